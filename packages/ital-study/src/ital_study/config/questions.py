"""Questionnaires: pages of questions before, during and after the teaching.

Section ``[[questionnaires]]``.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ital.errors import InputError
from ital_study.config.toml import TomlTable

# Fields whose values depend on when a page is shown, by the moment of the page.
WHEN = {"before": (), "after_robot": ("map", "robot"), "after_map": ("map",), "end": ()}
# Keys of each kind of question, besides those of all kinds.
KEYS = {
    "single": ("options",),
    "multiple": ("options",),
    "likert": ("rows", "scale"),
    "number": ("least", "most", "whole"),
    "text": ("longest",),
}
# Values of keys that are left out; other keys of a kind are required.
LEFT_OUT = {"whole": True, "longest": 500}


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
        scale: Labels of the points of the scale; points between the first and the last may have
            none.
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
    tables = table.sections("questionnaires", Questionnaire)
    pages = tuple(map(_questionnaire, tables))
    items: list[Item] = []
    for page in pages:
        items += page.items
    _check_ids_differ("questionnaires", [page.id for page in pages])
    _check_ids_differ("questions", [item.id for item in items])
    return pages


def _questionnaire(table: TomlTable) -> Questionnaire:
    """Read a page of questions."""
    page = Questionnaire(
        id=table.slug("id"),
        when=table.one_of("when", tuple(WHEN)),
        title=table.text("title", most=200),
        items=tuple(map(_item, table.sections("items", Item))),
    )
    if "text" not in table.content:
        return page
    return dataclasses.replace(page, text=table.text("text"))


def _item(table: TomlTable) -> Item:
    """Read a question; only the keys of its kind are allowed."""
    kind = table.one_of("kind", tuple(KEYS))
    _check_keys(table, kind)
    item = Item(
        id=table.slug("id"),
        kind=kind,
        question=table.text("question", most=2000),
        required=table.yes_or_no("required"),
    )
    own: dict[str, Any] = {}
    for key in KEYS[kind]:
        if key in table.content:
            own[key] = _READ[key](table)
        else:
            own[key] = LEFT_OUT[key]
    return dataclasses.replace(item, **own)


def _check_keys(table: TomlTable, kind: str) -> None:
    """Raise for keys of another kind, and for keys that are missing."""
    own_keys = KEYS[kind]
    keys_of_kinds = set().union(*KEYS.values())
    keys_of_others = keys_of_kinds - set(own_keys)
    for key in table.content:
        if key in keys_of_others:
            allowed = ", ".join(own_keys)
            raise InputError(
                f"{table.prefix}{key} does not belong to kind {kind!r}: its own keys are {allowed}"
            )
    for key in own_keys:
        if key not in table.content and key not in LEFT_OUT:
            raise InputError(f"the key {table.prefix}{key} is missing")


def _short_texts(table: TomlTable, key: str, least: int, most: int) -> tuple[str, ...]:
    """Read a list of short texts."""
    value = table.get(key)
    has_fitting_length = isinstance(value, list) and least <= len(value) <= most
    if not has_fitting_length or not all(map(_is_line, value)):
        raise InputError(f"{table.prefix}{key} must be a list of {least} to {most} texts")
    return tuple(line.strip() for line in value)


def _is_line(value: object) -> bool:
    if not isinstance(value, str):
        return False
    return 0 < len(value.strip()) <= 1000


def _scale_rows(table: TomlTable) -> tuple[ScaleRow, ...]:
    """Read statements that are judged on a scale."""
    rows = tuple(map(_scale_row, table.sections("rows", ScaleRow)))
    _check_ids_differ(f"{table.prefix}rows", [row.id for row in rows])
    return rows


def _scale_row(table: TomlTable) -> ScaleRow:
    return ScaleRow(
        id=table.slug("id"),
        text=table.text("text", most=1000),
    )


def _scale(table: TomlTable) -> tuple[str, ...]:
    """Read labels of the points; both ends have one."""
    value = table.get("scale")
    has_fitting_length = isinstance(value, list) and 2 <= len(value) <= 11
    if not has_fitting_length or not _are_labels(value):
        raise InputError(
            f"{table.prefix}scale must be a list of 2 to 11 labels, "
            'not empty at both ends ("": no label)'
        )
    return tuple(label.strip() for label in value)


def _are_labels(values: Sequence[object]) -> bool:
    """Say whether values are texts, the first and the last not empty."""
    if not all(isinstance(label, str) for label in values):
        return False
    return _is_line(values[0]) and _is_line(values[-1])


def _least(table: TomlTable) -> float:
    return table.number("least", least=-1e9, most=1e9)


def _most(table: TomlTable) -> float:
    return table.number("most", least=_least(table), most=1e9)


_READ: dict[str, Callable[[TomlTable], object]] = {
    "options": lambda table: _short_texts(table, "options", 2, 50),
    "rows": _scale_rows,
    "scale": _scale,
    "least": _least,
    "most": _most,
    "whole": lambda table: table.yes_or_no("whole"),
    "longest": lambda table: table.whole("longest", 1, 5000),
}


def _check_ids_differ(what: str, ids: Sequence[str]) -> None:
    for id_ in ids:
        if ids.count(id_) > 1:
            raise InputError(f"{what} must have different ids, but {id_!r} occurs twice")


# Languages and fields


def translations_of(
    table: TomlTable, first: Sequence[Questionnaire]
) -> tuple[TranslatedQuestionnaire, ...]:
    """Read ``[[translations.LANGUAGE.questionnaires]]``.

    The same pages and questions in the same order.
    """
    tables = []
    if table.content.get("questionnaires"):
        tables = table.sections("questionnaires", TranslatedQuestionnaire)
    ids = [page.slug("id") for page in tables]
    first_ids = [page.id for page in first]
    _check_same(f"{table.prefix}questionnaires", ids, first_ids)
    return tuple(map(_translation_of_page, tables, first))


def _translation_of_page(table: TomlTable, first: Questionnaire) -> TranslatedQuestionnaire:
    """Read a page in another language."""
    items = table.sections("items", TranslatedItem)
    ids = [each.slug("id") for each in items]
    first_ids = [item.id for item in first.items]
    _check_same(f"{table.prefix}items", ids, first_ids)
    page = TranslatedQuestionnaire(
        id=first.id,
        title=table.text("title", most=200),
        items=tuple(map(_translation_of_item, items, first.items)),
    )
    if first.text is None:
        return page
    return dataclasses.replace(page, text=table.text("text"))


def _translation_of_item(table: TomlTable, first: Item) -> TranslatedItem:
    """Read a question in another language, with as many options and rows as in the first."""
    return TranslatedItem(
        id=first.id,
        question=table.text("question", most=2000),
        options=_translated_lines(table, "options", first.options),
        rows=_translated_lines(table, "rows", first.rows),
        scale=_translated_scale(table, first.scale),
    )


def _translated_lines(
    table: TomlTable, key: str, first: Sequence[Any] | None
) -> tuple[str, ...] | None:
    if first is None:
        return None
    count = len(first)
    return _short_texts(table, key, least=count, most=count)


def _translated_scale(table: TomlTable, first: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if first is None:
        return None
    scale = _scale(table)
    if len(scale) != len(first):
        raise InputError(
            f"{table.prefix}scale must have {len(first)} labels, as in the first language"
        )
    return scale


def _check_same(what: str, ids: Sequence[str], first: Sequence[str]) -> None:
    if list(ids) != list(first):
        expected = ", ".join(first) or "none"
        raise InputError(f"{what} must be those of the first language, in its order: {expected}")


def translated_page(page: Questionnaire, translation: TranslatedQuestionnaire) -> Questionnaire:
    """Return a page in another language.

    Args:
        page: The page in the first language.
        translation: Its texts in the other one.

    Returns:
        The page with these texts.
    """
    items = tuple(map(_translated_item, page.items, translation.items))
    return dataclasses.replace(
        page,
        title=translation.title,
        text=translation.text,
        items=items,
    )


def _translated_item(item: Item, translation: TranslatedItem) -> Item:
    rows = None
    if item.rows is not None:
        ids = (row.id for row in item.rows)
        rows = tuple(map(ScaleRow, ids, translation.rows or ()))
    return dataclasses.replace(
        item,
        question=translation.question,
        options=translation.options,
        rows=rows,
        scale=translation.scale,
    )


def mapped(page: Questionnaire, new: Callable[[str], str]) -> Questionnaire:
    """Return a page whose texts are replaced.

    Args:
        page: The page.
        new: Makes a new text from an old one.

    Returns:
        The new page.
    """
    items = tuple(_mapped_item(item, new) for item in page.items)
    text = None
    if page.text is not None:
        text = new(page.text)
    return dataclasses.replace(
        page,
        title=new(page.title),
        text=text,
        items=items,
    )


def _mapped_item(item: Item, new: Callable[[str], str]) -> Item:
    texts: dict[str, Any] = {"question": new(item.question)}
    if item.options is not None:
        texts["options"] = tuple(map(new, item.options))
    if item.rows is not None:
        rows = [ScaleRow(row.id, new(row.text)) for row in item.rows]
        texts["rows"] = tuple(rows)
    if item.scale is not None:
        texts["scale"] = tuple(map(new, item.scale))
    return dataclasses.replace(item, **texts)


def later_fields(page: Questionnaire) -> dict[str, str]:
    """Return the fields that stay in a page until it is shown, as values of themselves."""
    return {name: f"{{{name}}}" for name in WHEN[page.when]}


def page_about(page: Questionnaire, map_number: object, robot: object) -> Questionnaire:
    """Return a page with the numbers of the map and the robot that it is about.

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


def texts_of_page(page: Questionnaire) -> Iterator[str]:
    """Iterate over the texts of a page, those of the questions too."""
    texts: list[str] = []

    def keep(text: str) -> str:
        texts.append(text)
        return text

    mapped(page, keep)
    yield from texts
