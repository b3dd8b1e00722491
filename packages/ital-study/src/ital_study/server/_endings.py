"""What participants get when their part ends: a code and an address to return to, by how it ended."""

from typing import Any

from ital_study.config.configuration import Config
from ital_study.config.sections import EarlyEnd
from ital_study.server._security import Keys
from ital_study.store import operations
from ital_study.store.records import Participant

OUTCOMES = operations.ENDED
ANONYMOUS = "declined"  # nothing is stored that could verify a code of one's own


def outcome_of(participant: Participant) -> str | None:
    """How somebody's part in the study ended; None if it has not. Whoever taught all robots has finished."""
    if participant.usable:
        return "finished"
    return participant.stage if participant.stage in OUTCOMES else None


def outcome_of_leaving(participant: Participant) -> str | None:
    """How the part of somebody ends who leaves now; None if an exclusion ended it."""
    ended = outcome_of(participant)
    if ended is not None or participant.excluded is not None:
        return ended
    return "left" if has_consented(participant) else "declined"


def has_consented(participant: Participant) -> bool:
    """Whether somebody agreed to take part: what the study was about is for them only."""
    return participant.stage not in ("consent", "declined")


def fixed_codes(config: Config) -> dict[str, str]:
    """The codes that everybody with the same outcome gets, by outcome."""
    what = config.completion
    ends = {
        outcome: what if outcome == "finished" else getattr(what, outcome) for outcome in OUTCOMES
    }
    codes = {
        outcome: end.code
        for outcome, end in ends.items()
        if end is not None and end.code is not None
    }
    return {
        outcome: code
        for outcome, code in codes.items()
        if not what.per_person or outcome == ANONYMOUS
    }


def completion(config: Config, keys: Keys, uid: str, outcome: str) -> dict[str, Any]:
    """The code and the address that a participant is entitled to; the page fills in the address's fields."""
    what = config.completion
    end = (
        EarlyEnd(what.code, what.redirect)
        if outcome == "finished"
        else getattr(what, outcome) or EarlyEnd()
    )
    code = end.code
    if what.per_person and code is not None and outcome != ANONYMOUS:
        code = keys.completion_code(uid, outcome)
    return {"code": code, "redirect": end.redirect, "pass_through": list(config.panel.pass_through)}
