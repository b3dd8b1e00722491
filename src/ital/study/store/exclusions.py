"""The researcher's exclusions, and what the flags of data quality need from the store."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from ital.errors import InputError
from ital.study import _quality, _table
from ital.study._quality import PageEvent
from ital.study._rules import StudyRules
from ital.study.store import operations
from ital.study.store.export import rows_of, rules_of
from ital.study.store.records import Participant
from ital.study.store.tables import events, participants

if TYPE_CHECKING:
    import pandas as pd

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
        if not 0 < len(reason) <= LONGEST or not reason.isprintable():
            raise InputError(f"the reason must be one line of 1 to {LONGEST} characters")
    if participant.excluded == reason:
        return
    connection.execute(participants.update().where(participants.c.number == number).values(excluded=reason))
    operations.note(connection, "included" if reason is None else "excluded", number, reason or "")


def events_of(connection: sa.Connection, number: int, kinds: tuple[str, ...] = ()) -> list[PageEvent]:
    """The events of a participant, in order.

    Args:
        connection: The transaction.
        number: Number of the participant.
        kinds: Kinds of event; none: all.

    Returns:
        The events.
    """
    where = [events.c.participant == number, *([events.c.kind.in_(kinds)] if kinds else [])]
    query = sa.select(events.c.kind, events.c.data, events.c.source).where(*where).order_by(events.c.number)
    return [PageEvent(row.kind, json.loads(row.data), row.source) for row in connection.execute(query)]


def attended(connection: sa.Connection, number: int) -> frozenset[int]:
    """The attention checks that a participant has answered.

    Args:
        connection: The transaction.
        number: Number of the participant.

    Returns:
        Their indices in the configuration.
    """
    answered = events_of(connection, number, ("attention",))
    return frozenset(event.data["check"] for event in answered if event.source == "server")


def quality_of(
    connection: sa.Connection, rules: Callable[[str], StudyRules], participant: Participant
) -> dict[str, Any]:
    """The columns of data quality of a participant.

    Args:
        connection: The transaction.
        rules: Rules by the hash of their configuration.
        participant: The participant.

    Returns:
        Values by column; :data:`ital.study._quality.COLUMNS` explains them.
    """
    own = rules(participant.config)
    steps = steps_of(connection, own, participant)
    happened = events_of(connection, participant.number, ("attention", "screen", "chosen"))
    return _quality.person(steps, happened, own.config)


def people_table(connection: sa.Connection, mode: str) -> "pd.DataFrame":
    """Data quality and exclusion of everybody of a mode.

    Args:
        connection: The transaction.
        mode: Mode of the participants.

    Returns:
        One row per participant.
    """
    import pandas as pd

    rules = rules_of(connection)
    rows = [
        {"participant": each.number, "teacher": each.teacher, "excluded": each.excluded or ""}
        | quality_of(connection, rules, each)
        for each in operations.everyone(connection, mode=mode)
    ]
    return pd.DataFrame(rows, columns=["participant", "teacher", "excluded", *_quality.COLUMNS])


def steps_of(connection: sa.Connection, rules: StudyRules, participant: Participant) -> "pd.DataFrame":
    """The rows of one participant in the step table, with their flags.

    Args:
        connection: The transaction.
        rules: Rules of the participant's configuration.
        participant: The participant.

    Returns:
        The table.
    """
    rows = rows_of(rules, participant, operations.steps_of(connection, participant.number))
    return _quality.flag_steps(_table.frame(rows), rules.config.quality)
