"""``ital study exclude`` and ``ital study include``."""

from pathlib import Path
from typing import Annotated

import typer

from ital_study.cli.serve import DATABASE, FILE, FOLDER, database_of, open_source

NUMBER = Annotated[
    int, typer.Argument(help="Number of the participant.", min=0, show_default=False)
]


def register(study: typer.Typer) -> None:
    """Add the commands to ``ital study``."""
    study.command(epilog='Example: ital study exclude 17 my-study --reason "took part twice"')(
        exclude
    )
    study.command(epilog="Example: ital study include 17 my-study")(include)


def exclude(
    number: NUMBER,
    reason: Annotated[
        str, typer.Option(help="Why, for the audit and the report.", show_default=False)
    ],
    folder: FOLDER = None,
    database: DATABASE = FILE,
) -> None:
    """Exclude a participant: no usable completion, not in the filtered analysis. Possible while the
    server runs.
    """
    _set(folder, database, number, reason)
    print(f"participant {number} is excluded: {reason.strip()}")


def include(number: NUMBER, folder: FOLDER = None, database: DATABASE = FILE) -> None:
    """Include an excluded participant again."""
    _set(folder, database, number, None)
    print(f"participant {number} is included")


def _set(folder: Path | None, database: str, number: int, reason: str | None) -> None:
    with open_source(database_of(folder, database)) as store:
        from ital_study.store import exclusions

        store.write(lambda connection: exclusions.exclude(connection, number, reason))
