"""Rows of the tables: participants, their steps, and other events."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Participant(NamedTuple):
    """A row of the table of participants.

    Attributes:
        number: Number in this study, from which starts and arrows follow.
        uid: Secret name of the participant.
        mode: ``live``, ``pilot``, ``preview``, ``trial`` or ``simulated``.
        teacher: ``human``, or the name of a simulated teacher.
        external_hash: Keyed hash of an external ID.
        resume_hash: Keyed hash of the resume code.
        config: Hash of the configuration that the participant saw.
        code_version: Version of ital at that time.
        stage: Where the participant is.
        order: The learner that is robot 1 on each map, and the order of the maps if it is balanced
            (see ``config.map_orders``); None before it is assigned.
        done: Number of stored steps.
        tries: Number of attempts at the comprehension check.
        usable: Whether all steps are stored.
        released: Whether the slot was given to somebody else.
        events: Number of stored events.
        joined_at: Time of joining.
        seen_at: Time of the last activity.
        language: Language of the pages.
        bytes: Size of the stored events and of the timings of steps.
        excluded: Why the researcher excluded the participant; None: included.
        answered: Number of pages of questions that are answered.
        part: Number of the part that has begun, from 1.
        opens_at: From when on somebody who waits may begin the next part.
        closes_at: Until when they may; None: forever.
    """

    number: int
    uid: str
    mode: str
    teacher: str
    external_hash: str | None
    resume_hash: str | None
    config: str
    code_version: str
    stage: str
    order: str | None
    done: int
    tries: int
    usable: bool
    released: bool
    events: int
    joined_at: int
    seen_at: int
    language: str = "en"
    bytes: int = 0
    excluded: str | None = None
    answered: int = 0
    part: int = 1
    opens_at: int | None = None
    closes_at: int | None = None


class NewParticipant(NamedTuple):
    """Who joins, before the database gives a number.

    Attributes:
        uid: Secret name.
        resume_hash: Keyed hash of the resume code.
        mode: ``live``, ``pilot``, ``preview``, ``trial`` or ``simulated``.
        teacher: ``human``, or the name of a simulated teacher.
        code_version: Version of ital.
        external_hash: Keyed hash of an ID from outside.
        language: Language of the pages.
    """

    uid: str
    resume_hash: str
    mode: str
    teacher: str
    code_version: str
    external_hash: str | None = None
    language: str = "en"


class StoredStep(NamedTuple):
    """One choice and the belief after it.

    Attributes:
        map: Name of the map.
        learner: Kind of the robot.
        step: Number of the step, from 1.
        robot: 1 for the first robot on the map, 2 for the second, …
        choice: Index of the chosen arrow.
        state: Belief after the step, from ``operations.as_bytes``.
        timing: Times on the participant's clock, as JSON.
        stored_at: Time of storing.
    """

    map: str
    learner: str
    step: int
    robot: int
    choice: int
    state: bytes
    timing: str
    stored_at: int


class StoredEvent(NamedTuple):
    """An event as it is stored; see :class:`Event`.

    Attributes:
        number: Number among the participant's events, from 0.
        kind: What happened.
        source: ``server`` or ``client``.
        at: Time of storing.
        client_at: Time on the participant's own clock.
        data: Details, which fit the kind.
    """

    number: int
    kind: str
    source: str
    at: int
    client_at: int | None
    data: Mapping[str, Any]


class Event(NamedTuple):
    """An event, other than a step.

    Attributes:
        kind: What happened.
        data: Details.
        source: ``server`` or ``client``.
        client_at: Time on the participant's own clock.
    """

    kind: str
    data: Mapping[str, Any] = {}
    source: str = "server"
    client_at: int | None = None
