"""The tidy table of answers to questions, made from the events of answered pages."""

import functools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from ital_study.config.configuration import Config
from ital_study.config.load import parse_config
from ital_study.data import table
from ital_study.data.answers import cells_of
from ital_study.data.codebooks import ANSWERS
from ital_study.store import operations
from ital_study.store.records import Participant
from ital_study.store.rows import answered_page
from ital_study.store.times import iso

if TYPE_CHECKING:
    import pandas as pd

    from ital_study.store._store import Store


def answer_blocks(connection: sa.Connection, mode: str, **who: Any) -> "Iterator[pd.DataFrame]":
    """Iterate over the table of answers, one participant at a time.

    Args:
        connection: The transaction.
        mode: Mode of the participants.
        **who: Values of columns by which they are selected.

    Yields:
        One table per participant; a table without rows if there are none.
    """

    # Most participants saw the same configuration, and parsing one takes a while.
    @functools.cache
    def config_of(config_hash: str) -> Config:
        return parse_config(operations.config_text(connection, config_hash))

    people = operations.everyone(connection, mode=mode, **who)
    tables = (
        _answers_frame(_answer_rows(connection, each, config_of(each.config)))
        for each in people
        if each.answered
    )
    yield from table.with_rows(tables, _answers_frame([]))


def answers_table(store: "Store", mode: str) -> "pd.DataFrame":
    """Return the table of answers of a mode.

    Args:
        store: The database.
        mode: ``live``, ``pilot``, ``preview``, ``trial`` or ``simulated``.

    Returns:
        One row per question, place and participant.
    """
    import pandas as pd

    with store.reading() as connection:
        return pd.concat(list(answer_blocks(connection, mode)), ignore_index=True)


def _answers_frame(rows: Iterable[dict[str, Any]]) -> "pd.DataFrame":
    return table.frame(rows, ANSWERS, "table of answers")


def _answer_rows(
    connection: sa.Connection, participant: Participant, config: Config
) -> Iterator[dict[str, Any]]:
    of_person = {
        "participant": participant.number,
        "mode": participant.mode,
        "teacher": participant.teacher,
        "language": participant.language,
    }
    for event in operations.events_of(connection, participant.number, "answers"):
        # A page can report events of any kind; only the server's hold answers.
        if event.source != "server":
            continue
        answered = answered_page(config, participant, event.data)
        if answered is None:
            continue
        of_page = {
            "page": event.data["page"],
            "place": event.data["place"],
            # Empty for pages that are about no map, or about no single robot.
            "map": event.data.get("map", ""),
            "robot": event.data.get("robot", ""),
            "learner": event.data.get("learner", ""),
        }
        kinds = {item.id: item.kind for item in answered.page.items}
        for cell in cells_of(*answered):
            yield {
                **of_person,
                **of_page,
                # Statements of a matrix have the id of their item before a dot.
                "kind": kinds[cell.item.partition(".")[0]],
                **cell._asdict(),
                "answered_at": iso(event.at),
                "seconds": event.data.get("seconds", float("nan")),
            }
