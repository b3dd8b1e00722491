"""Operations on the tables, each inside a given transaction.

Times are whole milliseconds since 1970, in UTC.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
import sqlalchemy as sa

from ital_study.config import lineup, map_orders
from ital_study.config.configuration import Config
from ital_study.store import rows
from ital_study.store.records import (
    Event,
    NewParticipant,
    Participant,
    StoredEvent,
    StoredStep,
)
from ital_study.store.tables import (
    audit,
    configurations,
    events,
    intake,
    participants,
    steps,
    tombstones,
)

# Stages of active participants.
OPEN = ("consent", "instructions", "check", "questions", "warm_up", "teach")
WAITING = "waiting"  # between two parts
PLACED = OPEN[1:]  # a place is taken at consent
ENDED = ("finished", "declined", "failed_check", "left")
DAY = 24 * 3600 * 1000  # milliseconds
EVENTS_PER_MINUTE = 600  # of one participant
RECOGNISED = ("live", "trial")  # modes in which deleted people are told so when they come back


T = TypeVar("T")
# Whose job is running; empty for commands and the server itself.
_WHO: ContextVar[str] = ContextVar("who", default="")


class Moved(Exception):
    """The participant is not where the caller assumed.

    Another request was faster, or they were erased.
    """


class Closed(Exception):
    """No new participants are admitted."""


def now() -> int:
    """Return the time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def as_bytes(state: np.ndarray) -> bytes:
    """Return a belief as it is stored: little-endian float32."""
    return np.asarray(state, "<f4").tobytes()


def as_json(value: Any) -> str:
    """Return data of an event or the times of a step as they are stored."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def as_state(stored: bytes) -> np.ndarray:
    """Return a stored belief as an array."""
    return np.frombuffer(stored, "<f4").astype(np.float32)


# Reading


def find(connection: sa.Connection, **columns: Any) -> Participant | None:
    """Return the participant whose columns have these values, if there is one."""
    return next(iter(everyone(connection, **columns)), None)


def everyone(connection: sa.Connection, **columns: Any) -> list[Participant]:
    """Return the participants whose columns have these values, by number."""
    p = participants.c
    wanted = [p[name] == value for name, value in columns.items()]
    query = sa.select(participants).where(*wanted).order_by(p.number)
    return [Participant(*row) for row in connection.execute(query)]


def steps_of(connection: sa.Connection, number: int, **values: Any) -> list[StoredStep]:
    """Return a participant's steps with these values in their columns, as they were taken."""
    s = steps.c
    columns = [s[name] for name in StoredStep._fields]
    wanted = [s[name] == value for name, value in values.items()]
    query = (
        sa.select(*columns)
        .where(s.participant == number, *wanted)
        # Two steps may be stored in one millisecond, so the time alone does not order them.
        .order_by(s.stored_at, s.robot, s.step)
    )
    return [StoredStep(*row) for row in connection.execute(query)]


def events_of(connection: sa.Connection, number: int, *kinds: str) -> list[StoredEvent]:
    """Return a participant's events of these kinds, in the order they happened.

    Those that cannot be read are left out.
    """
    e = events.c
    query = sa.select(events).where(e.participant == number, e.kind.in_(kinds)).order_by(e.number)
    stored = map(rows.read_event, connection.execute(query))
    return [event for event in stored if event is not None]


def config_text(connection: sa.Connection, config: str) -> str:
    """Return the configuration of that hash."""
    query = sa.select(configurations.c.text).where(configurations.c.hash == config)
    return connection.execute(query).scalar_one()


def taken_orders(connection: sa.Connection, mode: str, config: str, since: int) -> Counter[str]:
    """Count how often each order is in use.

    Usable completions count, and active participants seen after ``since``.
    """
    order = participants.c.order
    holders = _takes_slot(mode, config, since)
    query = sa.select(order, sa.func.count()).where(order.is_not(None), *holders).group_by(order)
    return Counter({row[0]: row[1] for row in connection.execute(query)})


def _takes_slot(mode: str, config: str, since: int) -> list[Any]:
    """Return conditions for a participant to count.

    They are usable, or active and seen after ``since``, and not excluded.
    """
    p = participants.c
    on_the_way = sa.and_(
        p.stage.in_(PLACED),
        ~p.released,
        p.seen_at > since,
    )
    # Who waits for the next part keeps the place, however long ago they were here.
    between_parts = sa.and_(
        p.stage == WAITING,
        ~p.released,
        sa.or_(p.closes_at.is_(None), p.closes_at > now()),
    )
    return [
        p.mode == mode,
        p.config == config,
        p.excluded.is_(None),
        sa.or_(p.usable, on_the_way, between_parts),
    ]


def is_paused(connection: sa.Connection) -> bool:
    """Return whether the researcher has paused the intake of new participants."""
    return bool(connection.execute(sa.select(intake.c.paused)).scalar_one())


# Writing


def add_configuration(connection: sa.Connection, config: Config) -> None:
    """Store the configuration under its hash, once."""
    stored = configurations.c.hash
    query = sa.select(stored).where(stored == config.hash)
    if connection.execute(query).first() is not None:
        return
    row = {
        "hash": config.hash,
        "name": config.name,
        "text": config.to_toml(),
        "added_at": now(),
    }
    connection.execute(configurations.insert().values(row))


def add_participant(
    connection: sa.Connection, config: Config, newcomer: NewParticipant
) -> Participant:
    """Add a participant with the next number, at consent.

    Args:
        connection: The transaction.
        config: The configuration that the participant sees.
        newcomer: Who joins.

    Returns:
        The participant.

    Raises:
        Closed: No more participants are admitted.
    """
    number = lock(connection).next_number
    check_open(connection, config, newcomer.mode)
    connection.execute(intake.update().values(next_number=number + 1))
    at = now()
    participant = Participant(
        number=number,
        **newcomer._asdict(),
        config=config.hash,
        stage="consent",
        order=None,
        done=0,
        tries=0,
        usable=False,
        released=False,
        events=0,
        joined_at=at,
        seen_at=at,
    )
    connection.execute(participants.insert().values(participant._asdict()))
    return participant


def lock(connection: sa.Connection) -> Any:
    """Keep every other process from admitting participants or assigning orders.

    The lock ends with the transaction.

    Returns:
        The row of the intake.
    """
    # An update that changes nothing locks the only row in PostgreSQL as well; SQLite has one writer
    # anyway.
    connection.execute(intake.update().values(id=1))
    return connection.execute(sa.select(intake)).one()


def check_open(connection: sa.Connection, config: Config, mode: str) -> None:
    """Raise :class:`Closed` if the intake is paused or all places are taken.

    Other modes than live have no limit.
    """
    if mode == "live" and (is_paused(connection) or _is_full(connection, config)):
        raise Closed


def _is_full(connection: sa.Connection, config: Config) -> bool:
    if config.intake is None:
        return False
    since = now() - release_after(config)
    holders = _takes_slot("live", config.hash, since)
    query = sa.select(sa.func.count()).where(*holders)
    return connection.execute(query).scalar_one() >= config.intake


def release_after(config: Config) -> int:
    """Return the milliseconds of inactivity after which a slot is given to somebody else."""
    return round(60_000 * config.release_after_minutes)


# The columns that an action of a participant may change.
_CHANGING = (
    "external_hash",
    "resume_hash",
    "stage",
    "order",
    "done",
    "tries",
    "usable",
    "events",
    "seen_at",
    "language",
    "bytes",
    "answered",
    "part",
    "opens_at",
    "closes_at",
)
# The columns that must be as the caller knows them. So of two requests that start from one state,
# the second changes no row and is refused: no step is stored twice, and none is overwritten.
_STILL = ("number", "uid", "stage", "done", "tries", "events", "answered", "part")
# Statements are built once, because they run with every step.
_AS_KNOWN = [participants.c[name] == sa.bindparam(f"was_{name}") for name in _STILL]
_NEW: dict[str, Any] = {name: sa.bindparam(f"new_{name}") for name in _CHANGING}
_MOVE = participants.update().where(*_AS_KNOWN).values(_NEW)
_ADD_STEP = steps.insert()
_ADD_EVENT = events.insert()


def move(
    connection: sa.Connection,
    participant: Participant,
    happened: Sequence[Event] = (),
    size: int = 0,
    **changes: Any,
) -> Participant:
    """Change a participant, and store events.

    Args:
        connection: The transaction.
        participant: The participant as the caller knows them.
        happened: Events to store.
        size: Bytes of other data that are stored with them.
        **changes: New values by column.

    Returns:
        The changed participant.

    Raises:
        Moved: The participant is no longer as the caller knows them.
    """
    data = [as_json(dict(event.data)) for event in happened]
    changed = participant._replace(
        events=participant.events + len(happened),
        # A clock that is set back must not make anybody inactive, or events out of order.
        seen_at=max(now(), participant.seen_at),
        bytes=participant.bytes + size + sum(map(len, data)),
        **changes,
    )
    old = {f"was_{name}": getattr(participant, name) for name in _STILL}
    new = {f"new_{name}": getattr(changed, name) for name in _CHANGING}
    if connection.execute(_MOVE, old | new).rowcount != 1:
        raise Moved
    added = [
        {
            "participant": participant.number,
            "number": number,
            "kind": event.kind,
            "source": event.source,
            "at": changed.seen_at,
            "client_at": event.client_at,
            "data": text,
        }
        for number, (event, text) in enumerate(
            zip(happened, data, strict=True), start=participant.events
        )
    ]
    if added:
        connection.execute(_ADD_EVENT, added)
    return changed


def add_step(
    connection: sa.Connection,
    participant: Participant,
    step: StoredStep,
    happened: Sequence[Event] = (),
    **changes: Any,
) -> Participant:
    """Store a step and move the participant on; both or neither."""
    # The participant first: if they have moved, no step is written.
    changed = move(
        connection, participant, happened, len(step.timing), done=participant.done + 1, **changes
    )
    connection.execute(_ADD_STEP, {"participant": participant.number, **step._asdict()})
    return changed


def assign_order(connection: sa.Connection, participant: Participant, config: Config) -> str:
    """Return the order that balances usable and active participants.

    Nobody else gets one meanwhile.
    """
    lock(connection)
    since = now() - release_after(config)
    taken = taken_orders(connection, participant.mode, participant.config, since)
    maps = len(config.maps)
    of_robots = Counter[str]()
    for order, times in taken.items():
        of_robots[map_orders.robots_of(order)] += times
    order = lineup.next_order(of_robots, maps, config.learners)
    if config.map_order == "fixed":
        return order
    return map_orders.with_row(order, map_orders.next_row(taken, order, config.part_sizes))


def decline(connection: sa.Connection, participant: Participant) -> Participant:
    """Store that somebody declined, and nothing that identifies them."""
    return move(connection, participant, stage="declined", external_hash=None, resume_hash=None)


def release(connection: sa.Connection, number: int) -> None:
    """Free an abandoned slot for somebody else."""
    own = participants.c.number == number
    connection.execute(participants.update().where(own).values(released=True))
    note(connection, "released", number)


def pause(connection: sa.Connection, paused: bool) -> None:
    """Pause or resume the intake of new participants."""
    connection.execute(intake.update().values(paused=paused))
    note(connection, "paused" if paused else "resumed")


def by(who: str, job: Callable[[sa.Connection], T]) -> Callable[[sa.Connection], T]:
    """Return a job whose audit records name a researcher.

    Args:
        who: Name of the researcher.
        job: Function of a connection.

    Returns:
        A function of a connection that does the same.
    """

    def named(connection: sa.Connection) -> T:
        token = _WHO.set(who)
        try:
            return job(connection)
        finally:
            _WHO.reset(token)

    return named


def note(
    connection: sa.Connection, action: str, number: int | None = None, detail: str = ""
) -> None:
    """Write an audit record."""
    record = {
        "at": now(),
        "action": action,
        "number": number,
        "detail": detail,
        "who": _WHO.get(),
    }
    connection.execute(audit.insert().values(record))


def tombstone_of(participant: Participant, by: str) -> dict[str, Any]:
    """Return what remains of a deleted participant.

    That is the fact that there was one, and the keyed hash by which they are recognised. Visitors
    who never agreed to take part may come again, and other modes than live have no people to
    recognise.
    """
    external_hash = None
    if participant.mode in RECOGNISED and participant.stage != "consent":
        external_hash = participant.external_hash
    return {
        "uid": participant.uid,
        "number": participant.number,
        "deleted_at": now(),
        "by": by,
        "external_hash": external_hash,
    }


def erase(connection: sa.Connection, tombstone: Mapping[str, Any]) -> bool:
    """Remove every row of a participant, leaving a tombstone and an audit record.

    It may be repeated, and the tombstone may be of somebody whom this database never had.

    Returns:
        Whether there was such a participant.
    """
    # The tombstone comes first and the participant's own row last: triggers let steps and events go
    # only while both are there. All of it is one transaction: a kill leaves everything or nothing.
    _add_tombstone(connection, tombstone)
    participant = find(connection, uid=tombstone["uid"])
    if participant is not None:
        own = participant.number
        connection.execute(events.delete().where(events.c.participant == own))
        connection.execute(steps.delete().where(steps.c.participant == own))
        connection.execute(participants.delete().where(participants.c.number == own))
        action = "withdrawn" if tombstone["by"] == "participant" else "deleted"
        note(connection, action, own)
    # Numbers are never given twice, even if the participant joined after the restored backup was
    # made.
    reserve_number(connection, tombstone["number"])
    return participant is not None


def _add_tombstone(connection: sa.Connection, tombstone: Mapping[str, Any]) -> None:
    uid = tombstones.c.uid
    query = sa.select(uid).where(uid == tombstone["uid"])
    if connection.execute(query).first() is None:
        connection.execute(tombstones.insert().values(dict(tombstone)))


def reserve_number(connection: sa.Connection, number: int) -> None:
    """Make sure that a number is not given to anybody who joins."""
    free = intake.c.next_number
    is_free = free <= number
    connection.execute(intake.update().where(is_free).values(next_number=number + 1))


# Admission: places are taken at consent, deleted people are recognised, and nobody stores too much.


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
    lock(connection)
    check_open(connection, config, participant.mode)
    return move(connection, participant, happened, stage="instructions")


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
    until = now() - min(release_after(config), DAY)
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
    """Return how much data one participant may store in events and in the timings of steps.

    Args:
        config: The configuration.

    Returns:
        Number of bytes of JSON. An event of a page has about 30.
    """
    return 100 * most_events(config)
