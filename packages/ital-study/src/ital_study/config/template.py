"""The configuration of a new study: the text of a shipped one, comments included, with another name and languages."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from ital.errors import InputError
from ital_study.config.configuration import SHIPPED
from ital_study.config.load import load_config
from ital_study.config.shipped import shipped_text


def configuration(name: str, like: str, languages: tuple[str, ...] = ()) -> str:
    """Return the text of a new configuration.

    Args:
        name: Name of the study.
        like: The study to begin with: ``paper`` or ``short``.
        languages: Languages of the texts; empty: all. The study's first one stays the first, if it is among them.

    Returns:
        TOML with comments.

    Raises:
        InputError: There is no such study or language.
    """
    if like not in SHIPPED:
        raise InputError(f"--like {like}: there is no such study; choose {' or '.join(SHIPPED)}")
    first, *others = load_config(like).languages
    for language in languages:
        if language not in (first, *others):
            known = ", ".join((first, *others))
            raise InputError(
                f"--language {language}: {like} comes in {known}; add other languages to study.toml"
            )
    text = shipped_text(like)
    if languages and first not in languages:
        if len(languages) > 1:
            raise InputError(
                f"--language {','.join(languages)}: name {first} too, or one of the others alone"
            )
        text = _in_language(text, languages[0])
    now_first = languages[0] if languages and first not in languages else first
    for language in others:
        if languages and (language not in languages or language == now_first):
            text = _without_section(text, f"translations.{language}")
    return re.sub(r'^name = ".*"$', f'name = "{name}"', text, count=1, flags=re.MULTILINE)


def _in_language(text: str, language: str) -> str:
    """A TOML text whose first language is that of a translation; the translation's own section stays."""
    content = tomllib.loads(text)
    translated = content["translations"][language]
    values = list(_translated_values(content, translated, language))
    parts, seen = [], dict[str, int]()
    for part in re.split(r"^(?=\[)", text, flags=re.MULTILINE):
        header = re.match(r"\[\[?([\w.-]+)\]", part)
        table = "" if header is None else header[1]
        number = seen[table] = seen.get(table, -1) + 1
        new = {
            key: value
            for of_table, of_number, key, value in values
            if (of_table, of_number) == (table, number)
        }
        parts.append(_with_values(part, new))
    return "".join(parts)


def _translated_values(
    content: Mapping[str, Any], translated: Mapping[str, Any], language: str
) -> Iterator[tuple[str, int, str, Any]]:
    """What changes in a file for another first language: table, its number among those of its name, key, value."""
    yield "", 0, "language", language
    yield "", 0, "title", translated["title"]
    yield "", 0, "debriefing", translated["debriefing"]
    yield "consent", 0, "text", translated["consent"]
    for key, value in translated.get("fields", {}).items():
        yield "fields", 0, key, value
    for table in ("instructions", "check"):
        for number, texts in enumerate(translated[table]):
            for key, value in texts.items():
                yield table, number, key, value
    items = 0
    for number, (page, texts) in enumerate(
        zip(content["questionnaires"], translated["questionnaires"], strict=True)
    ):
        for key in ("title", "text"):
            if key in texts:
                yield "questionnaires", number, key, texts[key]
        for item, words in zip(page["items"], texts["items"], strict=True):
            new = {key: value for key, value in words.items() if key != "id"}
            if "rows" in new:
                rows = zip(item["rows"], new["rows"], strict=True)
                new["rows"] = [{"id": row["id"], "text": text} for row, text in rows]
            for key, value in new.items():
                yield "questionnaires.items", items, key, value
            items += 1


def _with_values(part: str, new: Mapping[str, Any]) -> str:
    """A table of a TOML text with other values of some keys; a comment behind a value stays."""
    for key, value in new.items():
        old = re.search(
            rf'^{key} = ("""[\s\S]*?"""|\[\n[\s\S]*?^\]|[^\n#]*[^\s#])', part, flags=re.MULTILINE
        )
        if old is None:
            raise ValueError(f"there is no {key} in {part[:40]!r}")
        part = part[: old.start(1)] + _toml_value(value) + part[old.end(1) :]
    return part


def _toml_value(value: Any) -> str:
    """A value as people write it: long texts and lists on lines of their own."""
    if isinstance(value, str):
        if "\n" in value:
            return (
                '"""\n' + value.strip("\n").replace("\\", "\\\\").replace('"""', '\\"""') + '\n"""'
            )
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return (
            "{ " + ", ".join(f"{key} = {_toml_value(each)}" for key, each in value.items()) + " }"
        )
    items = [_toml_value(each) for each in value]
    line = f"[{', '.join(items)}]"
    return line if len(line) <= 100 else "[\n" + "".join(f"    {item},\n" for item in items) + "]"


def _without_section(text: str, section: str) -> str:
    """A TOML text without a section, those inside it, and the comments right above them."""
    kept: list[str] = []
    above: list[str] = []  # comments, which belong to what follows
    inside = False
    for line in text.splitlines(keepends=True):
        header = re.match(r"\[\[?([\w.-]+)\]", line)
        if header:
            inside = header[1] == section or header[1].startswith(f"{section}.")
        if line.startswith("#"):
            above.append(line)
            continue
        if not inside:
            kept += [*above, line]
        above = []
    return "".join(kept)
