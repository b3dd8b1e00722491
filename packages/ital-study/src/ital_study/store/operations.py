"""Operations on the tables, each inside a given transaction.

Times are whole milliseconds since 1970, in UTC.
"""

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa

from ital_study.config import orders
from ital_study.config.configuration import Config
from ital_study.store import rows
from ital_study.store.records import Event, Participant, StoredEvent, StoredStep
from ital_study.store.tables import (
    audit,
    configurations,
    events,
    intake,
    participants,
    steps,
    tombstones,
)

OPEN = (
    "consent",
    "instructions",
    "check",
    "questions",
    "warm_up",
    "teach",
)  # stages of active participants
PLACED = OPEN[1:]  # a place is taken at consent
ENDED = ("finished", "declined", "failed_check", "left")
RECOGNISED = ("live", "trial")  # modes in which deleted people are told so when they come back


class Moved(Exception):
    """The participant is not where the caller assumed: another request was faster, or they were erased."""


class Closed(Exception):
    """No new participants are admitted."""


def now() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def as_bytes(state: np.ndarray) -> bytes:
    """A belief as it is stored: little-endian float32."""
    return np.asarray(state, "<f4").tobytes()


def as_json(value: Any) -> str:
    """Data of an event or the times of a step, as they are stored."""
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def as_state(stored: bytes) -> np.ndarray:
    """A stored belief."""
    return np.frombuffer(stored, "<f4").astype(np.float32)


# Reading


def find(connection: sa.Connection, **columns: Any) -> Participant | None:
    """The participant whose columns have these values, if there is one."""
    return next(iter(everyone(connection, **columns)), None)


def everyone(connection: sa.Connection, **columns: Any) -> list[Participant]:
    """The participants whose columns have these values, by number."""
    where = [participants.c[name] == value for name, value in columns.items()]
    query = sa.select(participants).where(*where).order_by(participants.c.number)
    return [Participant(*row) for row in connection.execute(query)]


def steps_of(connection: sa.Connection, number: int, **values: Any) -> list[StoredStep]:
    """Stored steps of a participant with these values in their columns, in the order they were taken."""
    columns = [steps.c[name] for name in StoredStep._fields]
    where = [steps.c[name] == value for name, value in values.items()]
    query = sa.select(*columns).where(steps.c.participant == number, *where)
    in_order = query.order_by(steps.c.stored_at, steps.c.robot, steps.c.step)
    return [StoredStep(*row) for row in connection.execute(in_order)]


def events_of(connection: sa.Connection, number: int, *kinds: str) -> list[StoredEvent]:
    """Stored events of a participant of these kinds, in the order they happened, without those that cannot be read."""
    query = sa.select(events).where(events.c.participant == number, events.c.kind.in_(kinds))
    stored = map(rows.read_event, connection.execute(query.order_by(events.c.number)))
    return [event for event in stored if event is not None]


def config_text(connection: sa.Connection, config: str) -> str:
    """The configuration of that hash."""
    return connection.execute(
        sa.select(configurations.c.text).where(configurations.c.hash == config)
    ).scalar_one()


def taken_orders(connection: sa.Connection, mode: str, config: str, since: int) -> Counter[str]:
    """How often each order is in use: usable completions, and active participants seen after ``since``."""
    order = participants.c.order
    query = sa.select(order, sa.func.count()).where(
        order.is_not(None), *_takes_slot(mode, config, since)
    )
    return Counter({row[0]: row[1] for row in connection.execute(query.group_by(order))})


def _takes_slot(mode: str, config: str, since: int) -> list[Any]:
    """Conditions for a participant to count: usable, or active and seen after ``since``, and not excluded."""
    p = participants.c
    on_the_way = sa.and_(p.stage.in_(PLACED), ~p.released, p.seen_at > since)
    return [p.mode == mode, p.config == config, p.excluded.is_(None), sa.or_(p.usable, on_the_way)]


def is_paused(connection: sa.Connection) -> bool:
    """Whether the researcher has paused the intake of new participants."""
    return bool(connection.execute(sa.select(intake.c.paused)).scalar_one())


# Writing


def add_configuration(connection: sa.Connection, config: Config) -> None:
    """Store the configuration under its hash, once."""
    if (
        connection.execute(
            sa.select(configurations.c.hash).where(configurations.c.hash == config.hash)
        ).first()
        is None
    ):
        row = {
            "hash": config.hash,
            "name": config.name,
            "text": config.to_toml(),
            "added_at": now(),
        }
        connection.execute(configurations.insert().values(row))


def add_participant(
    connection: sa.Connection,
    config: Config,
    *,
    uid: str,
    mode: str,
    teacher: str,
    code_version: str,
    resume_hash: str,
    external_hash: str | None = None,
    language: str = "en",
) -> Participant:
    """Add a participant with the next number, at consent.

    Args:
        connection: The transaction.
        config: The configuration that the participant sees.
        uid: Secret name.
        mode: ``live``, ``pilot``, ``preview`` or ``simulated``.
        teacher: ``human``, or the name of a simulated teacher.
        code_version: Version of ital.
        resume_hash: Keyed hash of the resume code.
        external_hash: Keyed hash of an ID from outside.
        language: Language of the pages.

    Returns:
        The participant.

    Raises:
        Closed: No more participants are admitted.
    """
    number = lock(connection).next_number
    check_open(connection, config, mode)
    connection.execute(intake.update().values(next_number=number + 1))
    at = now()
    participant = Participant(
        number=number,
        uid=uid,
        mode=mode,
        teacher=teacher,
        external_hash=external_hash,
        resume_hash=resume_hash,
        config=config.hash,
        code_version=code_version,
        stage="consent",
        order=None,
        done=0,
        tries=0,
        usable=False,
        released=False,
        events=0,
        joined_at=at,
        seen_at=at,
        language=language,
    )
    connection.execute(participants.insert().values(participant._asdict()))
    return participant


def lock(connection: sa.Connection) -> Any:
    """Keep every other process from admitting participants or assigning orders until the transaction ends."""
    connection.execute(intake.update().values(id=1))
    return connection.execute(sa.select(intake)).one()


def check_open(connection: sa.Connection, config: Config, mode: str) -> None:
    """Raise :class:`Closed` if the intake is paused or all places are taken; other modes than live have no limit."""
    if mode == "live" and (is_paused(connection) or _is_full(connection, config)):
        raise Closed


def _is_full(connection: sa.Connection, config: Config) -> bool:
    if config.intake is None:
        return False
    holders = _takes_slot("live", config.hash, now() - release_after(config))
    return (
        connection.execute(sa.select(sa.func.count()).where(*holders)).scalar_one() >= config.intake
    )


def release_after(config: Config) -> int:
    """Milliseconds of inactivity after which a slot is given to somebody else."""
    return round(60_000 * config.release_after_minutes)


# The columns that a participant's steps change. Built once, because it runs with every step.
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
)
_STILL = ("number", "uid", "stage", "done", "tries", "events", "answered")
_MOVE = (
    participants.update()
    .where(*(participants.c[name] == sa.bindparam(f"was_{name}") for name in _STILL))
    .values({name: sa.bindparam(f"new_{name}") for name in _CHANGING})
)
_ADD_STEP, _ADD_EVENT = steps.insert(), events.insert()


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
    count, seen_at = participant.events + len(happened), max(now(), participant.seen_at)
    data = [as_json(dict(event.data)) for event in happened]
    size += participant.bytes + sum(map(len, data))
    changed = participant._replace(events=count, seen_at=seen_at, bytes=size, **changes)
    old = {f"was_{name}": getattr(participant, name) for name in _STILL}
    new = {f"new_{name}": getattr(changed, name) for name in _CHANGING}
    if connection.execute(_MOVE, old | new).rowcount != 1:
        raise Moved
    added = [
        {
            "participant": participant.number,
            "number": participant.events + i,
            "kind": event.kind,
            "source": event.source,
            "at": changed.seen_at,
            "client_at": event.client_at,
            "data": data[i],
        }
        for i, event in enumerate(happened)
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
    changed = move(
        connection, participant, happened, len(step.timing), done=participant.done + 1, **changes
    )
    connection.execute(_ADD_STEP, {"participant": participant.number, **step._asdict()})
    return changed


def assign_order(connection: sa.Connection, participant: Participant, config: Config) -> str:
    """The order that balances usable and active participants; nobody else gets one meanwhile."""
    lock(connection)
    taken = taken_orders(
        connection, participant.mode, participant.config, now() - release_after(config)
    )
    return orders.next_order(taken, len(config.maps), config.learners)


def decline(connection: sa.Connection, participant: Participant) -> Participant:
    """Store that somebody declined, and nothing that identifies them."""
    return move(connection, participant, stage="declined", external_hash=None, resume_hash=None)


def release(connection: sa.Connection, number: int) -> None:
    """Free an abandoned slot for somebody else."""
    connection.execute(
        participants.update().where(participants.c.number == number).values(released=True)
    )
    note(connection, "released", number)


def pause(connection: sa.Connection, paused: bool) -> None:
    """Pause or resume the intake of new participants."""
    connection.execute(intake.update().values(paused=paused))
    note(connection, "paused" if paused else "resumed")


def note(
    connection: sa.Connection, action: str, number: int | None = None, detail: str = ""
) -> None:
    """Write an audit record."""
    connection.execute(audit.insert().values(at=now(), action=action, number=number, detail=detail))


def tombstone_of(participant: Participant, by: str) -> dict[str, Any]:
    """What remains of a deleted participant: that there was one, and the keyed hash by which they are recognised.

    Visitors who never agreed to take part may come again, and other modes than live have no people to recognise.
    """
    known = participant.mode in RECOGNISED and participant.stage != "consent"
    return {
        "uid": participant.uid,
        "number": participant.number,
        "deleted_at": now(),
        "by": by,
        "external_hash": participant.external_hash if known else None,
    }


def erase(connection: sa.Connection, tombstone: Mapping[str, Any]) -> bool:
    """Remove every row of a participant, leaving a tombstone and an audit record; return False if there was none."""
    uid, number = tombstone["uid"], tombstone["number"]
    if (
        connection.execute(sa.select(tombstones.c.uid).where(tombstones.c.uid == uid)).first()
        is None
    ):
        connection.execute(tombstones.insert().values(dict(tombstone)))
    participant = find(connection, uid=uid)
    if participant is not None:
        connection.execute(events.delete().where(events.c.participant == participant.number))
        connection.execute(steps.delete().where(steps.c.participant == participant.number))
        connection.execute(participants.delete().where(participants.c.number == participant.number))
        note(
            connection,
            "withdrawn" if tombstone["by"] == "participant" else "deleted",
            participant.number,
        )
    # Numbers are never given twice, even if the participant joined after the restored backup was made.
    free = connection.execute(sa.select(intake.c.next_number)).scalar_one()
    if free <= number:
        connection.execute(intake.update().values(next_number=number + 1))
    return participant is not None
