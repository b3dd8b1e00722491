"""The tidy table of answers to questions, made from the events of answered pages."""

import functools
from collections.abc import Callable, Iterator
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
    config = functools.cache(lambda hash: parse_config(operations.config_text(connection, hash)))
    answered = [each for each in operations.everyone(connection, mode=mode, **who) if each.answered]
    tables = (
        table.frame(_rows(connection, each, config), ANSWERS, "table of answers")
        for each in answered
    )
    yield from table.with_rows(tables, table.frame([], ANSWERS, "table of answers"))


def answers_table(store: "Store", mode: str) -> "pd.DataFrame":
    """The table of answers of a mode.

    Args:
        store: The database.
        mode: ``live``, ``pilot``, ``preview``, ``trial`` or ``simulated``.

    Returns:
        One row per question, place and participant.
    """
    import pandas as pd

    with store.reading() as connection:
        return pd.concat(list(answer_blocks(connection, mode)), ignore_index=True)


def _rows(
    connection: sa.Connection, participant: Participant, config_of: Callable[[str], Config]
) -> Iterator[dict[str, Any]]:
    config = config_of(participant.config)
    for event in operations.events_of(connection, participant.number, "answers"):
        data = event.data
        answered = (
            answered_page(config, participant.language, data) if event.source == "server" else None
        )
        if answered is None:
            continue
        kinds = {item.id: item.kind for item in answered.page.items}
        for cell in cells_of(*answered):
            yield {
                "participant": participant.number,
                **{
                    column: getattr(participant, column)
                    for column in ("mode", "teacher", "language")
                },
                **{column: data[column] for column in ("page", "place")},
                **{column: data.get(column, "") for column in ("map", "robot", "learner")},
                "kind": kinds[cell.item.partition(".")[0]],
                **cell._asdict(),
                "answered_at": iso(event.at),
                "seconds": data.get("seconds", float("nan")),
            }
