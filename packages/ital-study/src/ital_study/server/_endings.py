"""How parts end: the code and the address to return to that participants get, by outcome."""

from typing import Any

from ital_study.config.configuration import Config
from ital_study.config.sections import EarlyEnd
from ital_study.server._keys import Keys
from ital_study.store import operations
from ital_study.store.records import Participant

OUTCOMES = operations.ENDED
ANONYMOUS = "declined"  # nothing is stored that could verify a code of one's own


def outcome_of(participant: Participant) -> str | None:
    """Return how somebody's part in the study ended; None if it has not."""
    # Whoever taught all robots has finished, also if they leave before the last page.
    if participant.usable:
        return "finished"
    if participant.stage in OUTCOMES:
        return participant.stage
    return None


def outcome_of_leaving(participant: Participant) -> str | None:
    """Return how the part of somebody ends who leaves now; None if an exclusion ended it."""
    ended = outcome_of(participant)
    if ended is not None:
        return ended
    if participant.excluded is not None:
        return None
    if has_consented(participant):
        return "left"
    return "declined"


def has_consented(participant: Participant) -> bool:
    """Return whether somebody agreed to take part: the debriefing is for them only."""
    return participant.stage not in ("consent", "declined")


def fixed_codes(config: Config) -> dict[str, str]:
    """Return the codes that everybody with the same outcome gets, by outcome."""
    codes: dict[str, str] = {}
    for outcome in OUTCOMES:
        code = _end_of(config, outcome).code
        if code is not None and not _has_own_code(config, outcome):
            codes[outcome] = code
    return codes


def completion(config: Config, keys: Keys, uid: str, outcome: str) -> dict[str, Any]:
    """Return the code and the address that a participant is entitled to.

    The page fills in the address's fields.
    """
    end = _end_of(config, outcome)
    code = end.code
    if code is not None and _has_own_code(config, outcome):
        code = keys.completion_code(uid, outcome)
    return {"code": code, "redirect": end.redirect, "pass_through": list(config.panel.pass_through)}


def _end_of(config: Config, outcome: str) -> EarlyEnd:
    """Return code and address of an outcome; both are None if the study has none."""
    section = config.completion
    if outcome == "finished":
        return EarlyEnd(section.code, section.redirect)
    end: EarlyEnd | None = getattr(section, outcome)
    return end or EarlyEnd()


def _has_own_code(config: Config, outcome: str) -> bool:
    return config.completion.per_person and outcome != ANONYMOUS
