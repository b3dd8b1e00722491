"""Whether researchers may see curves by condition: only when the intake is over, or on record."""

import sqlalchemy as sa

from ital_study.config.configuration import Config
from ital_study.store import operations
from ital_study.store.tables import intake, participants


def is_blind(connection: sa.Connection, config: Config, mode: str) -> bool:
    """Return whether curves by condition are hidden.

    A researcher who sees them might stop, prolong or change the study because of them.

    Args:
        connection: The transaction.
        config: The study.
        mode: Mode of the participants; only live ones are hidden.

    Returns:
        False once all places are taken by usable participants, or somebody unblinded the study.
    """
    if mode != "live" or unblinded_at(connection) is not None:
        return False
    return config.intake is None or _count_usable(connection, config) < config.intake


def unblinded_at(connection: sa.Connection) -> int | None:
    """Return when the study was unblinded, in milliseconds since 1970; None if it was not."""
    return connection.execute(sa.select(intake.c.unblinded_at)).scalar_one()


def unblind(connection: sa.Connection) -> None:
    """Show curves by condition from now on; the audit keeps the first time.

    Args:
        connection: The transaction.
    """
    if unblinded_at(connection) is not None:
        return
    connection.execute(intake.update().values(unblinded_at=operations.now()))
    operations.note(connection, "unblinded")


def _count_usable(connection: sa.Connection, config: Config) -> int:
    p = participants.c
    counted = (p.mode == "live", p.config == config.hash, p.usable, p.excluded.is_(None))
    query = sa.select(sa.func.count()).select_from(participants).where(*counted)
    return connection.execute(query).scalar_one()
