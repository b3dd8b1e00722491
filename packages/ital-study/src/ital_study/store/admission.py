"""Who is admitted, and how much somebody may store.

Places are taken at consent, and deleted people are recognised.
"""

from collections.abc import Sequence

import sqlalchemy as sa

from ital_study.config.configuration import Config
from ital_study.store import operations
from ital_study.store.records import Event, Participant
from ital_study.store.tables import participants, tombstones

DAY = 24 * 3600 * 1000  # milliseconds
EVENTS_PER_MINUTE = 600  # of one participant


def admit(
    connection: sa.Connection, participant: Participant, config: Config, happened: Sequence[Event]
) -> Participant:
    """Give a place to a visitor who agrees to take part; nobody else gets one meanwhile.

    Args:
        connection: The transaction.
        participant: The visitor, at consent.
        config: The configuration that they saw.
        happened: Events to store.

    Returns:
        The participant, at the instructions.

    Raises:
        Closed: All places are taken, or the intake is paused.
        Moved: The visitor is no longer at consent.
    """
    # Locked before places are counted: two people must not take the last one.
    operations.lock(connection)
    operations.check_open(connection, config, participant.mode)
    return operations.move(connection, participant, happened, stage="instructions")


def is_deleted(connection: sa.Connection, external_hash: str) -> bool:
    """Return whether somebody with this identity was deleted.

    Args:
        connection: The transaction.
        external_hash: Keyed hash of the identity.

    Returns:
        True if there is a tombstone.
    """
    query = sa.select(tombstones.c.uid).where(tombstones.c.external_hash == external_hash)
    return connection.execute(query).first() is not None


def erase_visitors(connection: sa.Connection, config: Config) -> int:
    """Erase visitors who never agreed to take part; nothing of them remains.

    Args:
        connection: The transaction.
        config: The configuration: it says for how long a visitor may think about it, but never more
            than a day.

    Returns:
        Number of erased visitors.
    """
    p = participants.c
    until = operations.now() - min(operations.release_after(config), DAY)
    # No tombstone: there is nothing of them in steps or events, and they may come again.
    visitors = participants.delete().where(p.stage == "consent", p.seen_at < until)
    return connection.execute(visitors).rowcount


def most_events(config: Config) -> int:
    """Return how many events one participant may store.

    Args:
        config: The configuration; a longer study causes more events.

    Returns:
        The number. A page causes two to five events per step.
    """
    return 1000 + 20 * config.total_steps


def most_bytes(config: Config) -> int:
    """Return how much data one participant may store with events.

    Args:
        config: The configuration.

    Returns:
        Number of bytes of JSON. An event of a page has about 30.
    """
    return 100 * most_events(config)
