"""Questionnaires: pages of questions before, during and after the teaching. Section ``[[questionnaires]]``."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ital.errors import InputError
from ital_study.config.toml import TomlTable

# Fields that are known only when the page is shown, by the moment of the page.
WHEN = {"before": (), "after_robot": ("map", "robot"), "after_map": ("map",), "end": ()}
KEYS = {  # of each kind of question, besides those of all kinds
    "single": ("options",),
    "multiple": ("options",),
    "likert": ("rows", "scale"),
    "number": ("least", "most", "whole"),
    "text": ("longest",),
}
LEFT_OUT = {"whole": True, "longest": 500}  # what keys are where they are left out


@dataclass(frozen=True)
class ScaleRow:
    """A statement that is judged on a scale.

    Attributes:
        id: Name in the table of answers.
        text: The statement.
    """

    id: str
    text: str


@dataclass(frozen=True)
class Item:
    """A question. Keys that do not belong to its kind are None.

    Attributes:
        id: Name in the table of answers.
        kind: ``single``, ``multiple``, ``likert``, ``number`` or ``text``.
        question: The question.
        required: Whether it must be answered.
        options: Answers to choose from.
        rows: Statements to judge on one scale.
        scale: Labels of the points of the scale; points between the first and the last may have none.
        least: Smallest number.
        most: Largest number.
        whole: Whether the number is a whole one.
        longest: Most characters of a text.
    """

    id: str
    kind: str
    question: str
    required: bool = True
    options: tuple[str, ...] | None = None
    rows: tuple[ScaleRow, ...] | None = None
    scale: tuple[str, ...] | None = None
    least: float | None = None
    most: float | None = None
    whole: bool | None = None
    longest: int | None = None


@dataclass(frozen=True)
class Questionnaire:
    """A page of questions.

    Attributes:
        id: Name in the table of answers.
        when: ``before`` the warm-up, ``after_robot``, ``after_map`` or at the ``end``.
        title: Heading of the page.
        items: The questions.
        text: Text below the heading; None: none.
    """

    id: str
    when: str
    title: str
    items: tuple[Item, ...]
    text: str | None = None


@dataclass(frozen=True)
class TranslatedItem:
    """A question in another language.

    Attributes:
        id: That of the question.
        question: The question.
        options: Answers to choose from, in the order of the first language.
        rows: Statements, in the order of the first language.
        scale: Labels of the points of the scale.
    """

    id: str
    question: str
    options: tuple[str, ...] | None = None
    rows: tuple[str, ...] | None = None
    scale: tuple[str, ...] | None = None


@dataclass(frozen=True)
class TranslatedQuestionnaire:
    """A page of questions in another language.

    Attributes:
        id: That of the page.
        title: Heading.
        items: The questions.
        text: Text below the heading, if the first language has one.
    """

    id: str
    title: str
    items: tuple[TranslatedItem, ...]
    text: str | None = None


def questionnaires_of(table: TomlTable) -> tuple[Questionnaire, ...]:
    """Read ``[[questionnaires]]``; none if there are none."""
    if "questionnaires" not in table.content:
        return ()
    pages = tuple(_questionnaire(each) for each in table.sections("questionnaires", Questionnaire))
    _check_unique("questionnaires", [page.id for page in pages])
    _check_unique("questions", [item.id for page in pages for item in page.items])
    return pages


def _questionnaire(table: TomlTable) -> Questionnaire:
    return Questionnaire(
        id=table.slug("id"),
        when=table.one_of("when", tuple(WHEN)),
        title=table.text("title", most=200),
        items=tuple(_item(each) for each in table.sections("items", Item)),
        text=table.text("text") if "text" in table.content else None,
    )


def _item(table: TomlTable) -> Item:
    """A question; only the keys of its kind are allowed."""
    kind = table.one_of("kind", tuple(KEYS))
    common = [field.name for field in dataclasses.fields(Item)][:4]
    for key in table.content:
        if key not in (*common, *KEYS[kind]):
            allowed = ", ".join(KEYS[kind])
            raise InputError(
                f"{table.prefix}{key} does not belong to kind {kind!r}: its own keys are {allowed}"
            )
    for key in KEYS[kind]:
        if key not in (*table.content, *LEFT_OUT):
            raise InputError(f"the key {table.prefix}{key} is missing")
    item = Item(
        table.slug("id"), kind, table.text("question", most=2000), table.yes_or_no("required")
    )
    own: dict[str, Any] = {
        key: _READ[key](table) if key in table.content else LEFT_OUT[key] for key in KEYS[kind]
    }
    return dataclasses.replace(item, **own)


def _lines(table: TomlTable, key: str, least: int, most: int) -> tuple[str, ...]:
    """A list of short texts."""
    value = table.get(key)
    if (
        not isinstance(value, list)
        or not least <= len(value) <= most
        or not all(map(_is_line, value))
    ):
        raise InputError(f"{table.prefix}{key} must be a list of {least} to {most} texts")
    return tuple(line.strip() for line in value)


def _is_line(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value.strip()) <= 1000


def _rows(table: TomlTable) -> tuple[ScaleRow, ...]:
    rows = tuple(
        ScaleRow(row.slug("id"), row.text("text", most=1000))
        for row in table.sections("rows", ScaleRow)
    )
    _check_unique(f"{table.prefix}rows", [row.id for row in rows])
    return rows


def _scale(table: TomlTable) -> tuple[str, ...]:
    """Labels of the points; both ends have one."""
    value = table.get("scale")
    fits = (
        isinstance(value, list)
        and 2 <= len(value) <= 11
        and all(isinstance(label, str) for label in value)
    )
    if not fits or not _is_line(value[0]) or not _is_line(value[-1]):
        raise InputError(
            f'{table.prefix}scale must be a list of 2 to 11 labels, not empty at both ends ("": no label)'
        )
    return tuple(label.strip() for label in value)


def _most(table: TomlTable) -> float:
    return table.number("most", least=table.number("least", least=-1e9, most=1e9), most=1e9)


_READ: dict[str, Callable[[TomlTable], object]] = {
    "options": lambda table: _lines(table, "options", 2, 50),
    "rows": _rows,
    "scale": _scale,
    "least": lambda table: table.number("least", least=-1e9, most=1e9),
    "most": _most,
    "whole": lambda table: table.yes_or_no("whole"),
    "longest": lambda table: table.whole("longest", 1, 5000),
}


def _check_unique(what: str, ids: Sequence[str]) -> None:
    twice = next((id for id in ids if ids.count(id) > 1), None)
    if twice is not None:
        raise InputError(f"{what} must have different ids, but {twice!r} occurs twice")


# Languages and fields


def translations_of(
    table: TomlTable, first: Sequence[Questionnaire]
) -> tuple[TranslatedQuestionnaire, ...]:
    """Read ``[[translations.LANGUAGE.questionnaires]]``: the same pages and questions in the same order."""
    tables = (
        table.sections("questionnaires", TranslatedQuestionnaire)
        if table.content.get("questionnaires")
        else []
    )
    _check_same(
        f"{table.prefix}questionnaires",
        [each.slug("id") for each in tables],
        [page.id for page in first],
    )
    return tuple(_translated_page(each, was) for each, was in zip(tables, first, strict=True))


def _translated_page(table: TomlTable, first: Questionnaire) -> TranslatedQuestionnaire:
    items = table.sections("items", TranslatedItem)
    _check_same(
        f"{table.prefix}items",
        [each.slug("id") for each in items],
        [item.id for item in first.items],
    )
    return TranslatedQuestionnaire(
        id=first.id,
        title=table.text("title", most=200),
        items=tuple(
            _translated_item(each, was) for each, was in zip(items, first.items, strict=True)
        ),
        text=None if first.text is None else table.text("text"),
    )


def _translated_item(table: TomlTable, first: Item) -> TranslatedItem:
    options = (
        None
        if first.options is None
        else _lines(table, "options", len(first.options), len(first.options))
    )
    rows = None if first.rows is None else _lines(table, "rows", len(first.rows), len(first.rows))
    scale = None if first.scale is None else _scale(table)
    if first.scale is not None and scale is not None and len(scale) != len(first.scale):
        raise InputError(
            f"{table.prefix}scale must have {len(first.scale)} labels, as in the first language"
        )
    return TranslatedItem(first.id, table.text("question", most=2000), options, rows, scale)


def _check_same(what: str, ids: Sequence[str], first: Sequence[str]) -> None:
    if list(ids) != list(first):
        expected = ", ".join(first) or "none"
        raise InputError(f"{what} must be those of the first language, in its order: {expected}")


def translated(page: Questionnaire, translation: TranslatedQuestionnaire) -> Questionnaire:
    """A page in another language.

    Args:
        page: The page in the first language.
        translation: Its texts in the other one.

    Returns:
        The page with these texts.
    """
    items = tuple(
        dataclasses.replace(
            item,
            question=new.question,
            options=new.options,
            rows=item.rows and tuple(map(ScaleRow, (row.id for row in item.rows), new.rows or ())),
            scale=new.scale,
        )
        for item, new in zip(page.items, translation.items, strict=True)
    )
    return dataclasses.replace(page, title=translation.title, text=translation.text, items=items)


def mapped(page: Questionnaire, new: Callable[[str], str]) -> Questionnaire:
    """A page whose texts are replaced.

    Args:
        page: The page.
        new: Makes a new text from an old one.

    Returns:
        The new page.
    """

    def each(texts: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if texts is None else tuple(map(new, texts))

    items = tuple(
        dataclasses.replace(
            item,
            question=new(item.question),
            options=each(item.options),
            rows=item.rows and tuple(ScaleRow(row.id, new(row.text)) for row in item.rows),
            scale=each(item.scale),
        )
        for item in page.items
    )
    return dataclasses.replace(
        page, title=new(page.title), text=page.text and new(page.text), items=items
    )


def later_fields(page: Questionnaire) -> dict[str, str]:
    """The fields that stay in the texts of a page until it is shown, as values of themselves."""
    return {name: f"{{{name}}}" for name in WHEN[page.when]}


def at_place(page: Questionnaire, map_number: object, robot: object) -> Questionnaire:
    """A page with the numbers of the map and the robot that it is about.

    Args:
        page: The page.
        map_number: What stands for ``{map}``.
        robot: What stands for ``{robot}``.

    Returns:
        The page as it is shown.
    """
    values = {"map": str(map_number), "robot": str(robot)}

    def new(text: str) -> str:
        for name in WHEN[page.when]:
            text = text.replace(f"{{{name}}}", values[name])
        return text

    return mapped(page, new)


def texts_of(page: Questionnaire) -> Iterator[str]:
    """Iterate over the texts of a page, those of the questions too."""
    texts: list[str] = []

    def keep(text: str) -> str:
        texts.append(text)
        return text

    mapped(page, keep)
    yield from texts
