"""Answers to questions in the report.

Distributions of all items, and scales compared between kinds of robot.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ital import report, statistics
from ital.report import Block
from ital.statistics import decimals, p_value
from ital_study.config import questions
from ital_study.config.configuration import Config
from ital_study.config.questions import Item
from ital_study.data.answers import KINDS, cells_of

if TYPE_CHECKING:
    import pandas as pd

# Stands for the number of a map or robot in the wording.
SOME = "…"
NOTE = (
    "Questions are those of the first language. Differences are paired by participant, over means "
    "of the maps. The "
    "intervals are not adjusted for the number of items. Texts that people wrote are in "
    "answers.csv."
)


class AnsweredItem(NamedTuple):
    """An item of a question and its answers.

    Attributes:
        item: The question.
        id: Its id in the table; one for each row of a scale.
        wording: What was asked.
        by_robot: Whether it was asked about every robot.
        rows: Its rows of the table.
    """

    item: Item
    id: str
    wording: str
    by_robot: bool
    rows: "pd.DataFrame"


def answers_of(answers: "pd.DataFrame | None", steps: "pd.DataFrame") -> "pd.DataFrame | None":
    """Select the answers of the participants whose steps are analysed.

    Args:
        answers: The table of answers, if there is one.
        steps: The rows of the step table that are analysed.

    Returns:
        Their rows; None without any.
    """
    if answers is None:
        return None
    who = steps[["participant", "mode", "teacher"]].drop_duplicates()
    rows = answers.merge(who, on=list(who.columns))
    return rows if len(rows) else None


def answered_items(config: Config, answers: "pd.DataFrame") -> Iterator[AnsweredItem]:
    """Iterate over the items of the configuration that were answered, in its order.

    Args:
        config: The study.
        answers: The table of answers.

    Yields:
        The items with their rows.
    """
    for page in config.texts().questionnaires:
        asked_page = questions.page_about(page, SOME, SOME)
        items = {item.id: item for item in asked_page.items}
        by_robot = page.when == "after_robot"
        for cell in cells_of(asked_page, {}):
            rows = answers[answers["item"] == cell.item]
            if len(rows):
                # Rows of a scale and options have the id of their question before the dot.
                item = items[cell.item.partition(".")[0]]
                yield AnsweredItem(item, cell.item, cell.wording, by_robot, rows)


def blocks(
    config: Config, answers: "pd.DataFrame | None", names: Sequence[tuple[str, str]]
) -> list[Block]:
    """Return the tables of the report.

    Args:
        config: The study.
        answers: The answers of the participants who are analysed; None without any.
        names: Kinds of robot and what they are called, in the order of the tables; the last one is
            what the others are compared with.

    Returns:
        Nothing without answers.
    """
    if answers is None:
        return []
    items = list(answered_items(config, answers))
    distributions = itertools.chain.from_iterable(_distribution(item, names) for item in items)
    heads = ["question", "robot", "answers", "distribution"]
    tables = [report.table(heads, list(distributions), caption="All items")]
    compared = list(itertools.chain.from_iterable(_compared(item, names) for item in items))
    if compared:
        heads = ["question", "robots", "first", "second", "n", "difference", "95 % interval", "p"]
        tables.append(
            report.table(heads, compared, caption="Scales, by kind of robot", numbers_from=2)
        )
    return [*tables, report.paragraph(NOTE)]


def _distribution(item: AnsweredItem, names: Sequence[tuple[str, str]]) -> Iterator[list[str]]:
    """Yield how an item was answered: a row for every kind of robot, or one in all."""
    groups = [("", item.rows)]
    if item.by_robot:
        groups = [(name, item.rows[item.rows["learner"] == learner]) for learner, name in names]
    summary = _SUMMARIES[item.item.kind]
    for name, rows in groups:
        values = rows["value"].dropna().to_numpy()
        count = len(values)
        if item.item.kind == "text":
            # Texts have no value.
            count = int((rows["label"] != "").sum())
        if count:
            yield [item.wording, name, str(count), summary(item.item, values)]


def _shares(item: Item, values: np.ndarray) -> str:
    """Return how often each option or point was chosen; points of a scale may have no label."""
    parts = []
    for value, label in enumerate(KINDS[item.kind].labels(item), start=1):
        count = int((values == value).sum())
        parts.append(f"{label or value}: {count} ({100 * count / len(values):.0f} %)")
    return ", ".join(parts)


def _spread(item: Item, values: np.ndarray) -> str:
    sd = ""
    if len(values) > 1:
        sd = f" ± {decimals(values.std(ddof=1), 1)} (SD)"
    return f"mean {decimals(values.mean(), 1)}{sd}, from {values.min():g} to {values.max():g}"


_SUMMARIES: dict[str, Callable[[Item, np.ndarray], str]] = {
    "single": _shares,
    "multiple": lambda item, values: f"chosen in {100 * values.mean():.0f} %",
    "likert": lambda item, values: f"{_spread(item, values)}. {_shares(item, values)}",
    "number": _spread,
    "text": lambda item, values: "texts",
}


def _compared(item: AnsweredItem, names: Sequence[tuple[str, str]]) -> Iterator[list[str]]:
    """Yield the mean of a scale for each other kind of robot against the last, paired by person."""
    if not item.by_robot or item.item.kind != "likert":
        return
    means = item.rows.groupby(["participant", "teacher", "learner"])["value"].mean().unstack()
    *others, (second, second_name) = names
    for first, first_name in others:
        if first not in means or second not in means:
            continue
        # Shape (people, 2): those who answered for both kinds of robot.
        pairs = means[[first, second]].dropna().to_numpy()
        if len(pairs) < 2:
            continue
        test = statistics.paired(pairs[:, 0], pairs[:, 1])
        yield [
            item.wording,
            f"{first_name} − {second_name}",
            decimals(pairs[:, 0].mean()),
            decimals(pairs[:, 1].mean()),
            str(test.n),
            decimals(test.difference),
            f"{decimals(test.low)} … {decimals(test.high)}",
            p_value(test.p),
        ]
