"""Answers to the questions of a study.

Which are valid, how they stand in the table, and random ones.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ital.errors import InputError
from ital_study.config.questions import Item, Questionnaire

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
        raise InputError(f"Please answer “{item.question}” with {kind.asks(item)}.") from None


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
        cells += KINDS[item.kind].cells(item, answers.get(item.id))
    return cells


def draw_answers(page: Questionnaire, rng: np.random.Generator) -> dict[str, Any]:
    """Draw random answers to a page, for simulated participants.

    Args:
        page: The page.
        rng: Source of random numbers.

    Returns:
        Valid answers to all questions.
    """
    return {item.id: KINDS[item.kind].draw(item, rng) for item in page.items}


def _is_whole(value: Any, most: int) -> bool:
    # The type itself: True is an int for isinstance.
    return type(value) is int and 1 <= value <= most


def _require(condition: bool) -> None:
    """Raise if an answer does not fit its question; :func:`read_answers` says what would."""
    if not condition:
        raise ValueError


def _no_labels(item: Item) -> tuple[str, ...]:
    return ()


# Single and multiple choice


def _read_single(item: Item, answer: Any) -> int:
    _require(_is_whole(answer, len(item.options or ())))
    return int(answer)


def _single_cells(item: Item, answer: int | None) -> list[AnswerCell]:
    options = item.options or ()
    if answer is None:
        return [AnswerCell(item.id, item.question, math.nan, "")]
    return [AnswerCell(item.id, item.question, answer, options[answer - 1])]


def _read_multiple(item: Item, answer: Any) -> list[int] | None:
    most = len(item.options or ())
    _require(isinstance(answer, list) and all(_is_whole(each, most) for each in answer))
    _require(len(set(answer)) == len(answer))
    return sorted(answer) or None


def _multiple_cells(item: Item, answer: list[int] | None) -> list[AnswerCell]:
    cells = []
    for number, option in enumerate(item.options or (), start=1):
        value = math.nan
        label = ""
        if answer is not None:
            value = float(number in answer)
            label = option
        wording = f"{item.question} {option}"
        cells.append(AnswerCell(f"{item.id}.{number}", wording, value, label))
    return cells


def _draw_multiple(item: Item, rng: np.random.Generator) -> list[int]:
    options = len(item.options or ())
    count = int(rng.integers(1, options + 1))
    drawn = rng.choice(options, size=count, replace=False)
    return sorted(int(index) + 1 for index in drawn)


# Rows on a scale


def _read_likert(item: Item, answer: Any) -> dict[str, int] | None:
    rows = [row.id for row in item.rows or ()]
    points = len(item.scale or ())
    _require(isinstance(answer, dict))
    given = {id_: value for id_, value in answer.items() if value is not None}
    _require(all(id_ in rows and _is_whole(value, points) for id_, value in given.items()))
    _require(not item.required or len(given) == len(rows))
    # In the order of the question, whatever the order of the browser.
    return {id_: given[id_] for id_ in rows if id_ in given} or None


def _likert_cells(item: Item, answer: Mapping[str, int] | None) -> list[AnswerCell]:
    scale = item.scale or ()
    points = answer or {}
    cells = []
    for row in item.rows or ():
        value = math.nan
        label = ""
        if row.id in points:
            value = points[row.id]
            label = scale[value - 1]
        wording = f"{item.question} {row.text}"
        cells.append(AnswerCell(f"{item.id}.{row.id}", wording, value, label))
    return cells


# Numbers and texts


def _read_number(item: Item, answer: Any) -> float:
    assert item.least is not None
    assert item.most is not None
    _require(type(answer) is int or (type(answer) is float and not item.whole))
    _require(item.least <= answer <= item.most)
    return answer


def _number_cells(item: Item, answer: float | None) -> list[AnswerCell]:
    value = math.nan if answer is None else answer
    return [AnswerCell(item.id, item.question, value, "")]


def _number_asks(item: Item) -> str:
    kind = "whole number" if item.whole else "number"
    return f"a {kind} from {item.least:g} to {item.most:g}"


def _draw_number(item: Item, rng: np.random.Generator) -> float:
    assert item.least is not None
    assert item.most is not None
    if item.whole:
        return int(rng.integers(math.ceil(item.least), math.floor(item.most) + 1))
    return float(rng.uniform(item.least, item.most))


def _read_text(item: Item, answer: Any) -> str | None:
    _require(isinstance(answer, str))
    text = _NO_TEXT.sub("", answer).strip()
    _require(len(text) <= (item.longest or 0))
    return text or None


KINDS = {
    "single": AnswerKind(
        lambda item: "one of the options",
        lambda item: item.options or (),
        _read_single,
        _single_cells,
        lambda item, rng: int(rng.integers(len(item.options or ()))) + 1,
    ),
    "multiple": AnswerKind(
        lambda item: "some of the options",
        _no_labels,
        _read_multiple,
        _multiple_cells,
        _draw_multiple,
    ),
    "likert": AnswerKind(
        lambda item: "one point of the scale in every row",
        lambda item: item.scale or (),
        _read_likert,
        _likert_cells,
        lambda item, rng: {
            row.id: int(rng.integers(len(item.scale or ()))) + 1 for row in item.rows or ()
        },
    ),
    "number": AnswerKind(_number_asks, _no_labels, _read_number, _number_cells, _draw_number),
    "text": AnswerKind(
        lambda item: f"a text of at most {item.longest} characters",
        _no_labels,
        _read_text,
        lambda item, answer: [AnswerCell(item.id, item.question, math.nan, answer or "")],
        lambda item, rng: "simulated"[: item.longest],
    ),
}
