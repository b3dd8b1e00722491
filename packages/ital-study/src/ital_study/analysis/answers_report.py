"""Answers to questions in the report.

Distributions of all items, and scales compared between kinds of robot.
"""

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
    if not len(rows):
        return None
    return rows


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
            if not len(rows):
                continue
            # Rows of a scale and options have the id of their question before the dot.
            id_of_question = cell.item.partition(".")[0]
            yield AnsweredItem(
                item=items[id_of_question],
                id=cell.item,
                wording=cell.wording,
                by_robot=by_robot,
                rows=rows,
            )


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
    distributions: list[list[str]] = []
    compared: list[list[str]] = []
    for item in answered_items(config, answers):
        distributions += _distribution(item, names)
        compared += _compared(item, names)
    heads = ["question", "robot", "answers", "distribution"]
    tables = [report.table(heads, distributions, caption="All items")]
    if compared:
        heads = ["question", "robots", "first", "second", "n", "difference", "95 % interval", "p"]
        caption = "Scales, by kind of robot"
        tables.append(report.table(heads, compared, caption=caption, numbers_from=2))
    return [*tables, report.paragraph(NOTE)]


def _distribution(item: AnsweredItem, names: Sequence[tuple[str, str]]) -> Iterator[list[str]]:
    """Yield how an item was answered: a row for every kind of robot, or one in all."""
    groups = {"": item.rows}
    if item.by_robot:
        by_learner = item.rows["learner"]
        groups = {name: item.rows[by_learner == learner] for learner, name in names}
    kind = item.item.kind
    summary = _SUMMARIES[kind]
    for name, rows in groups.items():
        values = rows["value"].dropna().to_numpy()
        count = len(values)
        if kind == "text":
            # Texts have no value.
            count = int((rows["label"] != "").sum())
        if count:
            yield [item.wording, name, str(count), summary(item.item, values)]


def _shares(item: Item, values: np.ndarray) -> str:
    """Return how often each option or point was chosen; points of a scale may have no label."""
    labels = KINDS[item.kind].labels(item)
    parts = []
    for value, label in enumerate(labels, start=1):
        count = int((values == value).sum())
        percent = 100 * count / len(values)
        parts.append(f"{label or value}: {count} ({percent:.0f} %)")
    return ", ".join(parts)


def _spread(item: Item, values: np.ndarray) -> str:
    mean = decimals(values.mean(), 1)
    sd = ""
    if len(values) > 1:
        sd = f" ± {decimals(values.std(ddof=1), 1)} (SD)"
    return f"mean {mean}{sd}, from {values.min():g} to {values.max():g}"


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
    by_robot = item.rows.groupby(["participant", "teacher", "learner"])
    # A row per person, a column per kind of robot.
    means = by_robot["value"].mean().unstack()
    *others, (second, second_name) = names
    for first, first_name in others:
        if first not in means or second not in means:
            continue
        # Those who answered for both kinds of robot.
        pairs = means[[first, second]].dropna().to_numpy()
        if len(pairs) < 2:
            continue
        of_first, of_second = pairs.T
        test = statistics.paired(of_first, of_second)
        yield [
            item.wording,
            f"{first_name} − {second_name}",
            decimals(of_first.mean()),
            decimals(of_second.mean()),
            str(test.n),
            decimals(test.difference),
            f"{decimals(test.low)} … {decimals(test.high)}",
            p_value(test.p),
        ]
