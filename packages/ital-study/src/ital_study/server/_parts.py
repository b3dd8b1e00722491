"""The time between two parts of a study: when the next one is open, and what its page shows."""

from typing import Any

from ital_study.config.configuration import Config
from ital_study.server import _flow
from ital_study.store import operations
from ital_study.store.records import Event, Participant
from ital_study.store.times import iso

DAY = 24 * 3600 * 1000  # milliseconds
EARLY = "early"
OPEN = "open"
LATE = "late"


def waiting(config: Config, participant: Participant, now: int) -> dict[str, Any]:
    """Return the columns of somebody who waits for the next part.

    Only live participants wait: whoever tries the study out may go on at once.
    """
    part = config.parts[participant.part]  # the next one: they count from 0 there
    if participant.mode != "live":
        return {"stage": operations.WAITING, "opens_at": now, "closes_at": None}
    opens_at = now + round(part.after_days * DAY)
    closes_at = None
    if part.within_days is not None:
        closes_at = opens_at + round(part.within_days * DAY)
    return {"stage": operations.WAITING, "opens_at": opens_at, "closes_at": closes_at}


def moved_on(
    config: Config, participant: Participant, done: int, answered: int
) -> tuple[dict[str, Any], list[Event]]:
    """Return the changed columns after a step or a page of questions, and what happened.

    At the end of a part, the participant waits for the next one.
    """
    stage = _flow.stage_after(config, participant.order, done, answered, participant.part)
    if stage != operations.WAITING:
        return {"stage": stage}, []
    ended = Event("part_ended", {"part": participant.part})
    return waiting(config, participant, operations.now()), [ended]


def begun(config: Config, participant: Participant) -> tuple[dict[str, Any], list[Event]]:
    """Return the changed columns of somebody who begins the next part, and what happened."""
    part = participant.part + 1
    stage = _flow.stage_after(
        config, participant.order, participant.done, participant.answered, part
    )
    changes = {"stage": stage, "part": part, "opens_at": None, "closes_at": None}
    return changes, [Event("part_begun", {"part": part})]


def state_of(participant: Participant) -> str:
    """Return whether the next part is not yet open, open, or over."""
    now = operations.now()
    if participant.closes_at is not None and participant.closes_at < now:
        return LATE
    if participant.opens_at is not None and participant.opens_at > now:
        return EARLY
    return OPEN


def is_late(participant: Participant) -> bool:
    """Return whether somebody waited for too long, so that their part in the study is over."""
    return participant.stage == operations.WAITING and state_of(participant) == LATE


def page_part(config: Config, participant: Participant) -> dict[str, Any]:
    """Return what the page of somebody who waits needs."""
    return {
        "next": participant.part + 1,
        "parts": len(config.parts),
        "state": state_of(participant),
        "opens_at": iso(participant.opens_at),
        "closes_at": iso(participant.closes_at),
    }
