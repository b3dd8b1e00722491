"""The tidy table of participants, one row each, made from their rows and events."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from ital_study.data import table
from ital_study.data.codebooks import PARTICIPANTS
from ital_study.store import exclusions, operations
from ital_study.store.records import Participant
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
)


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
    everyone, rules = operations.everyone(connection, mode=mode, **who), rules_of(connection)
    for first in range(0, max(len(everyone), 1), BLOCK):
        rows = [
            participant_row(connection, participant)
            | {
                "unreadable_rows": count_unreadable(
                    connection, rules(participant.config).config, participant
                )
            }
            | exclusions.quality_of(connection, rules, participant)
            for participant in everyone[first : first + BLOCK]
        ]
        yield table.frame(rows, PARTICIPANTS, "table of participants")


def participant_row(connection: sa.Connection, participant: Participant) -> dict[str, Any]:
    """One row of the table, without data quality.

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
    consent, end = by_server.get("consent"), by_server.get("comments")
    return {
        "participant": participant.number,
        **{column: getattr(participant, column) for column in (*COPIED, "answered", "tries")},
        "joined_at": iso(participant.joined_at),
        "consent_at": iso(consent.at) if consent else "",
        "finished_at": iso(end.at) if end else "",
        "minutes": (end.at - consent.at) / 60_000 if consent and end else float("nan"),
        "focus_losses": sum(event.kind == "focus_lost" for event in by_page),
        "comment_length": len(end.data["text"]) if end else 0,
        "screen_width": screen.get("width", float("nan")),
        "screen_height": screen.get("height", float("nan")),
        "pointer": screen.get("pointer") or "",
    }
