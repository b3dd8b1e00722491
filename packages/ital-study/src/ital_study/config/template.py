"""The configuration of a new study.

The text of a shipped one, comments included, with another name and languages.
"""

import itertools
import json
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ital.errors import InputError
from ital_study.config.configuration import SHIPPED
from ital_study.config.load import load_config
from ital_study.config.shipped import shipped_text

_HEADER = re.compile(r"\[\[?([\w.-]+)\]")

# A text of several lines, a list of several lines, or anything up to a comment.
_VALUE = r'"""[\s\S]*?"""|\[\n[\s\S]*?^\]|[^\n#]*[^\s#]'


def configuration(name: str, like: str, languages: tuple[str, ...] = ()) -> str:
    """Return the text of a new configuration.

    Args:
        name: Name of the study.
        like: The study to begin with: ``paper``, ``short`` or ``evidence``.
        languages: Languages of the texts; empty: all. The study's first one stays the first, if it
            is among them.

    Returns:
        TOML with comments.

    Raises:
        InputError: There is no such study or language.
    """
    if like not in SHIPPED:
        *names, last_name = SHIPPED
        shipped_names = f"{', '.join(names)} or {last_name}"
        raise InputError(f"--like {like}: there is no such study; choose {shipped_names}")
    old_first, *others = load_config(like).languages
    _check_languages(like, languages, old_first, others)
    text = shipped_text(like)
    new_first = old_first
    if languages and old_first not in languages:
        new_first = languages[0]
        text = _in_language(text, new_first)
    for language in others:
        # A translation into the new first language has taken the place of the texts that it
        # translated.
        if languages and (language not in languages or language == new_first):
            text = _without_section(text, f"translations.{language}")
    return re.sub(r'^name = ".*"$', f'name = "{name}"', text, count=1, flags=re.MULTILINE)


def _check_languages(
    like: str, languages: tuple[str, ...], first: str, others: Sequence[str]
) -> None:
    """Raise for languages that a shipped study does not have, or several without its first."""
    available = (first, *others)
    for language in languages:
        if language not in available:
            listed = ", ".join(available)
            raise InputError(
                f"--language {language}: {like} comes in {listed}; "
                "add other languages to study.toml"
            )
    if len(languages) > 1 and first not in languages:
        wanted = ",".join(languages)
        raise InputError(f"--language {wanted}: name {first} too, or one of the others alone")


class _NewValue(NamedTuple):
    """A value that changes in a file.

    Attributes:
        table: Name of the table; empty for keys at the top.
        number: Number of the table among those of its name, from 0.
        key: Key in the table.
        value: The new value.
    """

    table: str
    number: int
    key: str
    value: Any


def _in_language(text: str, language: str) -> str:
    """Return a TOML text whose first language is that of a translation.

    The translation's own section stays.
    """
    content = tomllib.loads(text)
    translated = content["translations"][language]
    # By name and number of the table, then by key.
    new_values: dict[tuple[str, int], dict[str, Any]] = defaultdict(dict)
    for new in _translated_values(content, translated, language):
        table = (new.table, new.number)
        new_values[table][new.key] = new.value
    parts = []
    tables_so_far = Counter[str]()
    for part in re.split(r"^(?=\[)", text, flags=re.MULTILINE):
        header = _HEADER.match(part)
        name = ""
        if header is not None:
            name = header[1]
        table = (name, tables_so_far[name])
        tables_so_far[name] += 1
        parts.append(_with_new_values(part, new_values[table]))
    return "".join(parts)


def _translated_values(
    content: Mapping[str, Any], translated: Mapping[str, Any], language: str
) -> Iterator[_NewValue]:
    """List what changes in a file for another first language."""
    yield _NewValue("", 0, "language", language)
    yield _NewValue("", 0, "title", translated["title"])
    yield _NewValue("", 0, "debriefing", translated["debriefing"])
    yield _NewValue("consent", 0, "text", translated["consent"])
    fields = translated.get("fields", {})
    for key, value in fields.items():
        yield _NewValue("fields", 0, key, value)
    for table in ("instructions", "check"):
        for number, texts in enumerate(translated[table]):
            for key, value in texts.items():
                yield _NewValue(table, number, key, value)
    pages = content["questionnaires"]
    yield from _translated_questions(pages, translated["questionnaires"])


def _translated_questions(
    pages: Sequence[Mapping[str, Any]], translations: Sequence[Mapping[str, Any]]
) -> Iterator[_NewValue]:
    """List what changes in pages of questions."""
    # The items of all pages are tables of one name, so they are counted over all pages.
    item_number = itertools.count()
    for number, (page, translation) in enumerate(zip(pages, translations, strict=True)):
        for key in ("title", "text"):
            if key in translation:
                yield _NewValue("questionnaires", number, key, translation[key])
        for item, texts in zip(page["items"], translation["items"], strict=True):
            current = next(item_number)
            new_texts = dict(texts)
            new_texts.pop("id")
            if "rows" in texts:
                new_texts["rows"] = _rows_with_ids(item["rows"], texts["rows"])
            for key, value in new_texts.items():
                yield _NewValue("questionnaires.items", current, key, value)


def _rows_with_ids(rows: Sequence[Mapping[str, str]], texts: Sequence[str]) -> list[Any]:
    """Return the rows of a question in its first language: translations give their texts alone."""
    with_ids = []
    for row, text in zip(rows, texts, strict=True):
        with_ids.append({"id": row["id"], "text": text})
    return with_ids


def _with_new_values(part: str, new: Mapping[str, Any]) -> str:
    """Return a table of a TOML text with other values of some keys.

    A comment behind a value stays.
    """
    for key, value in new.items():
        old = re.search(rf"^{key} = ({_VALUE})", part, flags=re.MULTILINE)
        if old is None:
            raise ValueError(f"there is no {key} in {part[:40]!r}")
        before = part[: old.start(1)]
        after = part[old.end(1) :]
        part = before + _readable_value(value) + after
    return part


def _readable_value(value: Any) -> str:
    """Return a value as people write it: long texts and lists on lines of their own."""
    if isinstance(value, str):
        return _readable_text(value)
    if isinstance(value, dict):
        pairs = []
        for key, item in value.items():
            pairs.append(f"{key} = {_readable_value(item)}")
        return f"{{ {', '.join(pairs)} }}"
    items = [_readable_value(item) for item in value]
    line = f"[{', '.join(items)}]"
    if len(line) <= 100:
        return line
    lines = "".join(f"    {item},\n" for item in items)
    return f"[\n{lines}]"


def _readable_text(text: str) -> str:
    if "\n" not in text:
        return json.dumps(text, ensure_ascii=False)
    stripped = text.strip("\n")
    escaped = stripped.replace("\\", "\\\\")
    escaped = escaped.replace('"""', '\\"""')
    return f'"""\n{escaped}\n"""'


def _without_section(text: str, section: str) -> str:
    """Return a TOML text without a section, those inside it, and the comments right above them."""
    kept: list[str] = []
    above: list[str] = []  # comments, which belong to what follows
    inside = False
    for line in text.splitlines(keepends=True):
        header = _HEADER.match(line)
        if header:
            name = header[1]
            inside = name == section or name.startswith(f"{section}.")
        if line.startswith("#"):
            above.append(line)
            continue
        if not inside:
            kept += [*above, line]
        above = []
    return "".join(kept)
