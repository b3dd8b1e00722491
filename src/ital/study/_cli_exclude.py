"""``ital study exclude`` and ``ital study include``."""

from typing import Annotated

import typer

from ital.study._cli_server import DATABASE, FILE, need_extra

NUMBER = Annotated[int, typer.Argument(help="Number of the participant.", min=0, show_default=False)]


def register(study: typer.Typer) -> None:
    """Add the commands to ``ital study``."""
    study.command(epilog='Example: ital study exclude 17 --reason "took part twice"')(exclude)
    study.command(epilog="Example: ital study include 17")(include)


def exclude(
    number: NUMBER,
    reason: Annotated[str, typer.Option(help="Why, for the audit and the report.", show_default=False)],
    database: DATABASE = FILE,
) -> None:
    """Exclude a participant: no usable completion, not in the filtered analysis. Possible while the server runs."""
    _set(database, number, reason)
    print(f"participant {number} is excluded: {reason.strip()}")


def include(number: NUMBER, database: DATABASE = FILE) -> None:
    """Include an excluded participant again."""
    _set(database, number, None)
    print(f"participant {number} is included")


def _set(database: str, number: int, reason: str | None) -> None:
    need_extra()
    from ital.study.store import exclusions, open_store

    with open_store(database) as store:
        store.write(lambda connection: exclusions.exclude(connection, number, reason))
