"""``ital study find``: look a participant up, and delete them on request."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ital.errors import InputError
from ital.tools.files import check_writable
from ital_study.cli.serve import DATABASE, FILE, FOLDER, database_of, open_source, say

if TYPE_CHECKING:
    from ital_study.store import Store
    from ital_study.store.records import Participant


def register(study: typer.Typer) -> None:
    """Add ``find`` to the commands of ``ital study``."""
    study.command(epilog="Example: ital study find 5f3a9c1b2d4e6f7a8b9c0d1e my-study")(find)


def find(
    who: Annotated[
        str,
        typer.Argument(
            help="Identity, resume code, completion code or number (#7: only a number); "
            "- asks for it.",
            show_default=False,
        ),
    ],
    folder: FOLDER = None,
    database: DATABASE = FILE,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete the participant, as they asked you to.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export",
            help="Folder for everything that is stored of the participant, with a codebook.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Show a participant's state, times, progress and what to pay. Needs the server's key; the
    server may run.
    """
    if export is not None:
        check_writable(export)
    with open_source(database_of(folder, database)) as store:
        found = _print_found(store, who)
        if delete:
            participant = _only_participant(store, found, "--delete")
        elif export is not None:
            participant = _only_participant(store, found, "--export")
        else:
            return
        if export is not None:
            from ital_study.store.export import export_person

            for file in export_person(store, export, participant):
                print(file)
        if delete:
            _delete_participant(store, participant, confirm=not yes)


def _print_found(store: "Store", who: str) -> list[dict[str, Any]]:
    """Find the participants that are meant, and print what is known of them."""
    from ital_study.server import look_up, nobody_found, person_lines, secret_of

    secret = secret_of(store.key_file)
    if who == "-":
        who = typer.prompt("Who", err=True, hide_input=True)
    found = look_up(store, secret, who)
    if not found:
        raise InputError(nobody_found(store, who))
    for person in found:
        print("\n".join(person_lines(person)))
    return found


def _only_participant(
    store: "Store", found: Sequence[Mapping[str, Any]], option: str
) -> "Participant":
    """Return the participant whom an option is about; raise if it may be several, or nobody."""
    from ital_study.store import operations

    number = _only_number(found, option)
    with store.reading() as connection:
        participant = operations.find(connection, number=number)
    if participant is None:
        raise InputError(f"participant {number} has been deleted already")
    return participant


def _delete_participant(store: "Store", participant: "Participant", *, confirm: bool) -> None:
    """Delete a participant, once the researcher has confirmed it."""
    number = participant.number
    if confirm:
        typer.confirm(
            f"Delete everything that participant {number} did? This cannot be undone",
            abort=True,
            err=True,
        )
    store.erase(participant, "researcher")
    say(f"participant {number} is deleted")


def _only_number(found: Sequence[Mapping[str, Any]], option: str) -> int:
    """Return the number of the only participant that was found and is not deleted.

    Raise otherwise.
    """
    present = [person for person in found if person["stage"] != "deleted"]
    if not present:
        raise InputError(f"participant {found[0]['number']} is deleted already")
    if len(present) > 1:
        raise InputError(
            f"{option}: {len(present)} participants were found: give a number, such as #7"
        )
    return int(present[0]["number"])
