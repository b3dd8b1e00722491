"""``ital study payments``: who is paid what."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ital.errors import InputError
from ital.tools import files
from ital_study.cli.links import STUDY_FOLDER, read_ids
from ital_study.cli.serve import DATABASE, FILE, database_of, open_source, say


def register(study: typer.Typer) -> None:
    """Add ``payments`` to the commands of ``ital study``."""
    study.command(epilog="Example: ital study payments my-study --ids ids.txt --out payments.csv")(
        payments
    )


def payments(
    folder: STUDY_FOLDER,
    ids: Annotated[
        Path | None,
        typer.Option(
            help="File with one ID per line, to name people: the data have only hashes of IDs.",
            show_default=False,
        ),
    ] = None,
    mode: Annotated[
        str,
        typer.Option(help="Mode of the participants: live, pilot, preview, trial or simulated."),
    ] = "live",
    out: Annotated[
        Path | None,
        typer.Option(help="File for the list (default: prints it).", show_default=False),
    ] = None,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="Leave texts that a spreadsheet takes for formulas."),
    ] = False,
    database: DATABASE = FILE,
) -> None:
    """List everybody whose part has ended: ending, code, times, amount. Needs the server's key; the
    server may run.
    """
    identities: list[str] = []
    if ids is not None:
        identities = read_ids(ids)
    if out is not None:
        files.check_writable(out.parent)
        if out.exists():
            raise InputError(f"{out} exists: choose another --out")
    with open_source(database_of(folder, database)) as store:
        from ital_study.server import payment_list, secret_of

        listed = payment_list(store, secret_of(store.key_file), mode, identities)
    if out is None:
        sys.stdout.write(listed.csv(raw=raw))
    else:
        files.write(out, listed.csv(raw=raw).encode(), private=True)
        say(f"{out}: {len(listed.rows)} people")
    if listed.unfinished:
        say(f"{listed.unfinished} more have not ended their part")
    if listed.unknown:
        say(f"of {listed.unknown} only a hash of the ID is stored: name the IDs with --ids")
