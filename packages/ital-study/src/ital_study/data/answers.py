"""Answers to the questions of a study: which are valid, how they stand in the table, and random ones."""

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
        item: The question's id; for rows of a scale and for multiple choices, with the row's id or option's number.
        wording: What was asked.
        value: The answer as a number: of an option or a point, from 1; whether an option was chosen; the number given.
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
        labels: Labels of the values 1, 2, … in the table; none where values are not points of a list.
        read: The answer as it is stored; None if there is none; raises ValueError if it is not valid.
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
    unknown = [id for id in answers if id not in {item.id for item in page.items}]
    if unknown:
        raise InputError(f"There is no question {unknown[0][:40]!a} on this page.")
    given = {}
    for item in page.items:
        kind = KINDS[item.kind]
        try:
            answer = None if answers.get(item.id) is None else kind.read(item, answers[item.id])
        except ValueError:
            raise InputError(f"Please answer “{item.question}” with {kind.asks(item)}.") from None
        if answer is not None:
            given[item.id] = answer
        elif item.required:
            raise InputError(f"Please answer “{item.question}”.")
    return given


def cells_of(page: Questionnaire, answers: Mapping[str, Any]) -> list[AnswerCell]:
    """The rows of the table for the answers to a page.

    Args:
        page: The page as it was shown.
        answers: What :func:`read_answers` returned.

    Returns:
        Always the same number of rows for a page; without a value where a question was not answered.
    """
    return [
        cell for item in page.items for cell in KINDS[item.kind].cells(item, answers.get(item.id))
    ]


def draw_answers(page: Questionnaire, rng: np.random.Generator) -> dict[str, Any]:
    """Random answers to a page, for simulated participants.

    Args:
        page: The page.
        rng: Source of random numbers.

    Returns:
        Valid answers to all questions.
    """
    return {item.id: KINDS[item.kind].draw(item, rng) for item in page.items}


def _is_whole(value: Any, most: int) -> bool:
    return type(value) is int and 1 <= value <= most


def _valid(fits: bool) -> None:
    if not fits:
        raise ValueError


def _no_labels(item: Item) -> tuple[str, ...]:
    return ()


# Single and multiple choice


def _read_single(item: Item, answer: Any) -> int:
    _valid(_is_whole(answer, len(item.options or ())))
    return int(answer)


def _single_cells(item: Item, answer: int | None) -> list[AnswerCell]:
    options = item.options or ()
    if answer is None:
        return [AnswerCell(item.id, item.question, math.nan, "")]
    return [AnswerCell(item.id, item.question, answer, options[answer - 1])]


def _read_multiple(item: Item, answer: Any) -> list[int] | None:
    most = len(item.options or ())
    _valid(isinstance(answer, list) and all(_is_whole(each, most) for each in answer))
    _valid(len(set(answer)) == len(answer))
    return sorted(answer) or None


def _multiple_cells(item: Item, answer: list[int] | None) -> list[AnswerCell]:
    cells = []
    for i, option in enumerate(item.options or (), start=1):
        value, label = (math.nan, "") if answer is None else (float(i in answer), option)
        cells.append(AnswerCell(f"{item.id}.{i}", f"{item.question} {option}", value, label))
    return cells


def _draw_multiple(item: Item, rng: np.random.Generator) -> list[int]:
    options = len(item.options or ())
    return sorted(
        int(i) + 1
        for i in rng.choice(options, size=int(rng.integers(1, options + 1)), replace=False)
    )


# Rows on a scale


def _read_likert(item: Item, answer: Any) -> dict[str, int] | None:
    rows, points = [row.id for row in item.rows or ()], len(item.scale or ())
    _valid(isinstance(answer, dict))
    given = {id: value for id, value in answer.items() if value is not None}
    _valid(all(id in rows and _is_whole(value, points) for id, value in given.items()))
    _valid(not item.required or len(given) == len(rows))
    return {id: given[id] for id in rows if id in given} or None


def _likert_cells(item: Item, answer: Mapping[str, int] | None) -> list[AnswerCell]:
    scale, cells = item.scale or (), []
    for row in item.rows or ():
        point = (answer or {}).get(row.id)
        value, label = (math.nan, "") if point is None else (point, scale[point - 1])
        cells.append(AnswerCell(f"{item.id}.{row.id}", f"{item.question} {row.text}", value, label))
    return cells


# Numbers and texts


def _read_number(item: Item, answer: Any) -> float:
    assert item.least is not None
    assert item.most is not None
    _valid(type(answer) is int or (type(answer) is float and not item.whole))
    _valid(item.least <= answer <= item.most)
    return answer


def _number_cells(item: Item, answer: float | None) -> list[AnswerCell]:
    return [AnswerCell(item.id, item.question, math.nan if answer is None else answer, "")]


def _number_asks(item: Item) -> str:
    return f"a {'whole ' if item.whole else ''}number from {item.least:g} to {item.most:g}"


def _draw_number(item: Item, rng: np.random.Generator) -> float:
    assert item.least is not None
    assert item.most is not None
    if item.whole:
        return int(rng.integers(math.ceil(item.least), math.floor(item.most) + 1))
    return float(rng.uniform(item.least, item.most))


def _read_text(item: Item, answer: Any) -> str | None:
    _valid(isinstance(answer, str))
    text = _NO_TEXT.sub("", answer).strip()
    _valid(len(text) <= (item.longest or 0))
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
