"""Answers to the questions of a study.

Which are valid, how they stand in the table, and random ones.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ital.errors import InputError
from ital_study.config.questions import Item, Questionnaire, ScaleRow

# Control characters, and halves of characters that no file could hold.
_NO_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


class AnswerCell(NamedTuple):
    """A row of the table of answers.

    Attributes:
        item: The question's id; for rows of a scale and for multiple choices, with the row's id or
            option's number.
        wording: What was asked.
        value: The answer as a number: of an option or a point, from 1; whether an option was
            chosen; the number given.
        label: The answer in words.
    """

    item: str
    wording: str
    value: float
    label: str


class AnswerKind(NamedTuple):
    """What depends on the kind of a question.

    Attributes:
        asks: What the answer must be, for a sentence.
        labels: Labels of the values 1, 2, … in the table; none where values are not points of a
            list.
        read: The answer as it is stored; None if there is none; raises ValueError if it is not
            valid.
        cells: Its rows of the table; the answer may be None.
        draw: A random valid answer.
    """

    asks: Callable[[Item], str]
    labels: Callable[[Item], tuple[str, ...]]
    read: Callable[[Item, Any], Any]
    cells: Callable[[Item, Any], list[AnswerCell]]
    draw: Callable[[Item, np.random.Generator], Any]


def read_answers(page: Questionnaire, answers: Mapping[str, Any]) -> dict[str, Any]:
    """Check the answers to a page.

    Args:
        page: The page as it was shown.
        answers: Answers by the id of the question.

    Returns:
        The answers to store, without questions that were left out.

    Raises:
        InputError: An answer is missing or not valid; the sentence names the question.
    """
    questions = {item.id for item in page.items}
    for id_ in answers:
        if id_ not in questions:
            raise InputError(f"There is no question {id_[:40]!a} on this page.")
    given = {}
    for item in page.items:
        answer = _read_answer(item, answers.get(item.id))
        if answer is not None:
            given[item.id] = answer
        elif item.required:
            raise InputError(f"Please answer “{item.question}”.")
    return given


def _read_answer(item: Item, answer: Any) -> Any:
    """Return an answer as it is stored; None if there is none."""
    if answer is None:
        return None
    kind = KINDS[item.kind]
    try:
        return kind.read(item, answer)
    except ValueError:
        asked = kind.asks(item)
        raise InputError(f"Please answer “{item.question}” with {asked}.") from None


def cells_of(page: Questionnaire, answers: Mapping[str, Any]) -> list[AnswerCell]:
    """Return the rows of the table for the answers to a page.

    Args:
        page: The page as it was shown.
        answers: What :func:`read_answers` returned.

    Returns:
        Always the same number of rows for a page; without a value where a question was not
        answered.
    """
    cells = []
    for item in page.items:
        kind = KINDS[item.kind]
        answer = answers.get(item.id)
        cells += kind.cells(item, answer)
    return cells


def draw_answers(page: Questionnaire, rng: np.random.Generator) -> dict[str, Any]:
    """Draw random answers to a page, for simulated participants.

    Args:
        page: The page.
        rng: Source of random numbers.

    Returns:
        Valid answers to all questions.
    """
    drawn = {}
    for item in page.items:
        kind = KINDS[item.kind]
        drawn[item.id] = kind.draw(item, rng)
    return drawn


def _is_whole(value: Any, most: int) -> bool:
    # The type itself: True is an int for isinstance.
    return type(value) is int and 1 <= value <= most


def _require(condition: bool) -> None:
    """Raise if an answer does not fit its question; :func:`read_answers` says what would."""
    if not condition:
        raise ValueError


def _no_labels(item: Item) -> tuple[str, ...]:
    return ()


def _only_cell(item: Item, value: float, label: str) -> list[AnswerCell]:
    """Return the row of a question that has only one."""
    return [AnswerCell(item.id, item.question, value, label)]


# Single and multiple choice


def _options_of(item: Item) -> tuple[str, ...]:
    return item.options or ()


def _read_single(item: Item, answer: Any) -> int:
    options = _options_of(item)
    _require(_is_whole(answer, len(options)))
    return int(answer)


def _single_cells(item: Item, answer: int | None) -> list[AnswerCell]:
    if answer is None:
        return _only_cell(item, math.nan, "")
    options = _options_of(item)
    return _only_cell(item, answer, options[answer - 1])


def _draw_single(item: Item, rng: np.random.Generator) -> int:
    options = _options_of(item)
    index = int(rng.integers(len(options)))
    return index + 1


def _read_multiple(item: Item, answer: Any) -> list[int] | None:
    most = len(_options_of(item))
    _require(isinstance(answer, list))
    _require(all(_is_whole(each, most) for each in answer))
    _require(len(set(answer)) == len(answer))
    return sorted(answer) or None


def _part_cell(item: Item, part: int | str, text: str, value: float, label: str) -> AnswerCell:
    """Return the cell of an option or a row of a question."""
    return AnswerCell(
        item=f"{item.id}.{part}",
        wording=f"{item.question} {text}",
        value=value,
        label=label,
    )


def _multiple_cells(item: Item, answer: list[int] | None) -> list[AnswerCell]:
    cells = []
    for number, option in enumerate(_options_of(item), start=1):
        value = math.nan
        label = ""
        if answer is not None:
            value = float(number in answer)
            label = option
        cells.append(_part_cell(item, number, option, value, label))
    return cells


def _draw_multiple(item: Item, rng: np.random.Generator) -> list[int]:
    options = len(_options_of(item))
    count = int(rng.integers(1, options + 1))
    drawn = rng.choice(options, size=count, replace=False)
    return sorted(int(index) + 1 for index in drawn)


# Rows on a scale


def _rows_of(item: Item) -> tuple[ScaleRow, ...]:
    return item.rows or ()


def _scale_of(item: Item) -> tuple[str, ...]:
    return item.scale or ()


def _read_likert(item: Item, answer: Any) -> dict[str, int] | None:
    rows = [row.id for row in _rows_of(item)]
    points = len(_scale_of(item))
    _require(isinstance(answer, dict))
    given = {id_: value for id_, value in answer.items() if value is not None}
    for id_, value in given.items():
        _require(id_ in rows)
        _require(_is_whole(value, points))
    _require(not item.required or len(given) == len(rows))
    # In the order of the question, whatever the order of the browser.
    in_order = {id_: given[id_] for id_ in rows if id_ in given}
    return in_order or None


def _likert_cells(item: Item, answer: Mapping[str, int] | None) -> list[AnswerCell]:
    scale = _scale_of(item)
    points = answer or {}
    cells = []
    for row in _rows_of(item):
        value = math.nan
        label = ""
        if row.id in points:
            value = points[row.id]
            label = scale[value - 1]
        cells.append(_part_cell(item, row.id, row.text, value, label))
    return cells


def _draw_likert(item: Item, rng: np.random.Generator) -> dict[str, int]:
    points = len(_scale_of(item))
    drawn = {}
    for row in _rows_of(item):
        index = int(rng.integers(points))
        drawn[row.id] = index + 1
    return drawn


# Numbers and texts


def _read_number(item: Item, answer: Any) -> float:
    assert item.least is not None
    assert item.most is not None
    allowed = (int,) if item.whole else (int, float)
    # The type itself: True is an int for isinstance.
    _require(type(answer) in allowed)
    _require(item.least <= answer <= item.most)
    return answer


def _number_cells(item: Item, answer: float | None) -> list[AnswerCell]:
    if answer is None:
        return _only_cell(item, math.nan, "")
    return _only_cell(item, answer, "")


def _number_asks(item: Item) -> str:
    kind = "number"
    if item.whole:
        kind = "whole number"
    return f"a {kind} from {item.least:g} to {item.most:g}"


def _draw_number(item: Item, rng: np.random.Generator) -> float:
    assert item.least is not None
    assert item.most is not None
    if item.whole:
        least = math.ceil(item.least)
        most = math.floor(item.most)
        return int(rng.integers(least, most + 1))
    return float(rng.uniform(item.least, item.most))


def _read_text(item: Item, answer: Any) -> str | None:
    _require(isinstance(answer, str))
    text = _NO_TEXT.sub("", answer).strip()
    longest = item.longest or 0
    _require(len(text) <= longest)
    return text or None


def _text_cells(item: Item, answer: str | None) -> list[AnswerCell]:
    return _only_cell(item, math.nan, answer or "")


def _draw_text(item: Item, rng: np.random.Generator) -> str:
    return "simulated"[: item.longest]


KINDS = {
    "single": AnswerKind(
        asks=lambda item: "one of the options",
        labels=_options_of,
        read=_read_single,
        cells=_single_cells,
        draw=_draw_single,
    ),
    "multiple": AnswerKind(
        asks=lambda item: "some of the options",
        labels=_no_labels,
        read=_read_multiple,
        cells=_multiple_cells,
        draw=_draw_multiple,
    ),
    "likert": AnswerKind(
        asks=lambda item: "one point of the scale in every row",
        labels=_scale_of,
        read=_read_likert,
        cells=_likert_cells,
        draw=_draw_likert,
    ),
    "number": AnswerKind(
        asks=_number_asks,
        labels=_no_labels,
        read=_read_number,
        cells=_number_cells,
        draw=_draw_number,
    ),
    "text": AnswerKind(
        asks=lambda item: f"a text of at most {item.longest} characters",
        labels=_no_labels,
        read=_read_text,
        cells=_text_cells,
        draw=_draw_text,
    ),
}
