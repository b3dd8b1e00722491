"""``ital study links``: signed links, one person each."""

import csv
import io
import os
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ital.errors import InputError
from ital.tools import files
from ital_study.cli import folder as _folder
from ital_study.cli.serve import DATABASE, FILE, need_extra, say, storing
from ital_study.config.configuration import Config
from ital_study.config.load import load_config

if TYPE_CHECKING:
    from ital_study.server import LinkRow
    from ital_study.store import Store

STUDY_FOLDER = Annotated[
    Path,
    typer.Argument(help="A folder made by ital study init.", metavar="DIR", show_default=False),
]
MOST = 100_000


def register(study: typer.Typer) -> None:
    """Add ``links`` to the commands of ``ital study``."""
    study.command(epilog="Example: ital study links my-study --count 200 --out links.csv")(links)


def links(
    folder: STUDY_FOLDER,
    count: Annotated[
        int | None,
        typer.Option(help="Number of links.", min=1, max=MOST, show_default=False),
    ] = None,
    ids: Annotated[
        Path | None,
        typer.Option(
            help="File with one ID per line: a link for each of them instead.", show_default=False
        ),
    ] = None,
    first: Annotated[
        int, typer.Option(help="Number of the first link: for more links later.", min=1, max=MOST)
    ] = 1,
    until: Annotated[
        str | None,
        typer.Option(help="Last day to begin by a link, as 2030-12-31.", show_default="forever"),
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(help="Address that participants see (default: ITAL_STUDY_ORIGIN)."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="File for the table (default: prints it).", show_default=False),
    ] = None,
    database: DATABASE = FILE,
) -> None:
    """Make signed links, one person each, for a study with links = "signed". The same command makes
    the same links again.
    """
    need_extra()
    config_file, database = _folder.enter(folder, database)
    config = load_config(config_file)
    if config.links != "signed":
        raise InputError(
            f'{config_file} lets anybody take part: set links = "signed" there, or use one link '
            "for all"
        )
    people = _people_invited(config, count, ids, first)
    expires_at = _end_of_day(until)
    address = _address(folder, origin)
    if out is not None:
        files.check_writable(out.parent)
        if out.exists():
            raise InputError(f"{out} exists: choose another --out")
    rows = _signed(database, config, address, people, expires_at)
    text = _links_csv(rows)
    if out is None:
        sys.stdout.write(text)
        return
    files.write(out, text.encode(), private=True)
    say(f"{out}: {len(rows)} links; whoever has a link takes part as that person, so keep it safe")


def _people_invited(
    config: Config, count: int | None, ids: Path | None, first: int
) -> list[tuple[int, str]]:
    """Return the number of each person, and their ID; it is empty if they have none."""
    if (count is None) == (ids is None):
        raise InputError(
            "give either --count N, for links without IDs, or --ids FILE, for a link for each ID"
        )
    if count is not None:
        return [(number, "") for number in range(first, first + count)]
    identities = read_ids(ids)
    for identity in identities:
        if not config.panel.accepts(identity):
            raise InputError(
                f"--ids {ids}: {identity!r} does not match panel.pattern of the study: "
                "one ID per line is needed"
            )
    return list(enumerate(identities, start=first))


def read_ids(file: Path | None) -> list[str]:
    """Return the IDs in a file, one per line; blank lines are left out.

    Args:
        file: The file.

    Returns:
        Different IDs.

    Raises:
        InputError: The file cannot be read, is empty, or names somebody twice.
    """
    text = files.read_text(str(file), f"the IDs in {file}")
    identities = [line.strip() for line in text.splitlines() if line.strip()]
    if not 0 < len(identities) <= MOST:
        raise InputError(f"--ids {file}: it must name 1 to {MOST} people, not {len(identities)}")
    seen: set[str] = set()
    for identity in identities:
        if identity in seen:
            raise InputError(f"--ids {file}: {identity!r} occurs twice, but a link is for one")
        seen.add(identity)
    return identities


def _end_of_day(day: str | None) -> int:
    """Return the end of a day in UTC, in seconds since 1970; 0 without a day."""
    if day is None:
        return 0
    try:
        last = date.fromisoformat(day)
    except ValueError:
        raise InputError(f"--until {day}: give a day such as 2030-12-31") from None
    midnight = datetime(last.year, last.month, last.day, tzinfo=UTC) + timedelta(days=1)
    end = int(midnight.timestamp()) - 1
    if end < time.time():
        raise InputError(f"--until {day}: this day is over, so nobody could begin by the links")
    return end


def _address(folder: Path, origin: str | None) -> str:
    from ital_study.server import origin_of

    environment: Mapping[str, str] = os.environ
    if origin is not None:
        environment = {"ITAL_STUDY_ORIGIN": origin}
    address = origin_of(environment)
    if address is None:
        raise InputError(
            "links need the address that participants see: set ITAL_STUDY_ORIGIN in "
            f"{folder / _folder.SETTINGS}, or give --origin"
        )
    return address


def _signed(
    database: str, config: Config, address: str, people: Sequence[tuple[int, str]], expires_at: int
) -> "list[LinkRow]":
    """Return the links, signed by the key of the study; it is drawn if there is none yet."""
    from ital_study.server import secret_of, signed_links
    from ital_study.store import open_store

    with storing(database), open_store(database, create=True) as store:
        secret = secret_of(store.key_file, draw=store.key_fingerprint() is None)
        bind(store, secret)
    return list(signed_links(secret, config, address, people, expires_at))


def bind(store: "Store", secret: bytes) -> None:
    """Raise unless the key is that of the database; a new database is bound to it."""
    from ital_study.server import fingerprint_of

    store.bind_key(fingerprint_of(secret))


def _links_csv(rows: "Sequence[LinkRow]") -> str:
    """Return the table for the researcher, as CSV."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(rows[0]._fields)
    writer.writerows(rows)
    return written.getvalue()
