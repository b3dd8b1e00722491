"""The tidy table of participants, one row each, made from their rows and events."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from ital_study.data import table
from ital_study.data.codebooks import PARTICIPANTS
from ital_study.robots.rules import StudyRules
from ital_study.store import exclusions, operations
from ital_study.store.records import Participant, StoredEvent
from ital_study.store.rows import count_unreadable
from ital_study.store.step_rows import rules_of
from ital_study.store.times import iso

if TYPE_CHECKING:
    import pandas as pd

BLOCK = 500  # participants
COPIED = (
    "mode",
    "teacher",
    "config",
    "code_version",
    "language",
    "stage",
    "usable",
    "excluded",
    "order",
    "done",
    "answered",
    "tries",
)
UNKNOWN = float("nan")


def participant_blocks(
    connection: sa.Connection, mode: str, **who: Any
) -> "Iterator[pd.DataFrame]":
    """Iterate over the table of participants.

    Args:
        connection: The transaction.
        mode: Mode of the participants.
        **who: Values of columns by which they are selected.

    Yields:
        Tables of up to 500 participants; a table without rows if there are none.
    """
    everyone = operations.everyone(connection, mode=mode, **who)
    rules = rules_of(connection)
    # One block at least: a table without rows still has its columns.
    for first in range(0, max(len(everyone), 1), BLOCK):
        block = everyone[first : first + BLOCK]
        rows = [_whole_row(connection, rules, participant) for participant in block]
        yield table.frame(rows, PARTICIPANTS, "table of participants")


def _whole_row(
    connection: sa.Connection, rules: Callable[[str], StudyRules], participant: Participant
) -> dict[str, Any]:
    config = rules(participant.config).config
    return {
        **participant_row(connection, participant),
        "unreadable_rows": count_unreadable(connection, config, participant),
        **exclusions.quality_of(connection, rules, participant),
    }


def participant_row(connection: sa.Connection, participant: Participant) -> dict[str, Any]:
    """Return one row of the table, without data quality.

    Args:
        connection: The transaction.
        participant: The participant.

    Returns:
        Values by column.
    """
    happened = operations.events_of(
        connection, participant.number, "consent", "comments", "focus_lost", "screen"
    )
    # A page can report events of any kind; those of the server are the ones that count.
    by_server = {event.kind: event for event in happened if event.source == "server"}
    by_page = [event for event in happened if event.source == "client"]
    screen = next((event.data for event in by_page if event.kind == "screen"), {})
    return {
        "participant": participant.number,
        **{column: getattr(participant, column) for column in COPIED},
        "joined_at": iso(participant.joined_at),
        **_ends_of_part(by_server.get("consent"), by_server.get("comments")),
        "focus_losses": sum(event.kind == "focus_lost" for event in by_page),
        "screen_width": screen.get("width", UNKNOWN),
        "screen_height": screen.get("height", UNKNOWN),
        "pointer": screen.get("pointer") or "",
    }


def _ends_of_part(consent: StoredEvent | None, end: StoredEvent | None) -> dict[str, Any]:
    """Return the columns of the beginning and the end of somebody's part, as far as they exist."""
    columns = {"consent_at": "", "finished_at": "", "minutes": UNKNOWN, "comment_length": 0}
    if consent is not None:
        columns["consent_at"] = iso(consent.at)
    if end is not None:
        columns["finished_at"] = iso(end.at)
        columns["comment_length"] = len(end.data["text"])
    if consent is not None and end is not None:
        columns["minutes"] = (end.at - consent.at) / 60_000
    return columns
