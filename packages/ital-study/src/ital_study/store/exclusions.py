"""The researcher's exclusions, and what the flags of data quality need from the store."""

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from ital.errors import InputError
from ital_study.data import flags
from ital_study.data.flags import PageEvent
from ital_study.robots.rules import StudyRules
from ital_study.store import operations
from ital_study.store.records import Participant
from ital_study.store.step_rows import steps_of_person
from ital_study.store.tables import participants

LONGEST = 500  # characters of a reason


def exclude(connection: sa.Connection, number: int, reason: str | None) -> None:
    """Exclude a participant with a reason, or include them again; the audit keeps both.

    Who is excluded does not count as a usable completion, and the order is given to somebody else.

    Args:
        connection: The transaction.
        number: Number of the participant.
        reason: Why; None: include.

    Raises:
        InputError: There is no such participant, or the reason is empty or too long.
    """
    participant = operations.find(connection, number=number)
    if participant is None:
        raise InputError(f"there is no participant {number}")
    if reason is not None:
        reason = reason.strip()
        _check_reason(reason)
    if participant.excluded == reason:  # the audit has it already
        return
    own = participants.c.number == number
    connection.execute(participants.update().where(own).values(excluded=reason))
    action = "included" if reason is None else "excluded"
    operations.note(connection, action, number, reason or "")


def _check_reason(reason: str) -> None:
    if not 0 < len(reason) <= LONGEST or not reason.isprintable():
        raise InputError(f"the reason must be one line of 1 to {LONGEST} characters")


def attended(connection: sa.Connection, number: int) -> frozenset[int]:
    """Return the attention checks that a participant has answered.

    Args:
        connection: The transaction.
        number: Number of the participant.

    Returns:
        Their indices in the configuration.
    """
    answered = operations.events_of(connection, number, "attention")
    return frozenset(event.data["check"] for event in answered if event.source == "server")


def quality_of(
    connection: sa.Connection, rules: Callable[[str], StudyRules], participant: Participant
) -> dict[str, Any]:
    """Return the columns of data quality of a participant.

    Args:
        connection: The transaction.
        rules: Rules by the hash of their configuration.
        participant: The participant.

    Returns:
        Values by column; :data:`ital_study.data.flags.COLUMNS` explains them.
    """
    own = rules(participant.config)
    stored = operations.events_of(connection, participant.number, "attention", "screen", "chosen")
    happened = [PageEvent(event.kind, event.data, event.source) for event in stored]
    steps = steps_of_person(connection, own, participant, measured=False)
    return flags.person(steps, happened, own.config)
