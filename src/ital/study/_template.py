"""The configuration of a new study: the text of a shipped one, comments included, with another name and languages."""

import re

from ital.errors import InputError
from ital.study._config import SHIPPED, load_config
from ital.study._shipped import shipped_text

_HEADER = re.compile(r"^(\[\[?[\w.-]+\]\]?)[ \t]*(?:#.*)?$")
_KEY = re.compile(r'^([a-z_]+) = ("""(?:.|\n)*?"""|"[^\n]*?"|\[\n(?:.*\n)*?\]|[^#\n]*?)[ \t]*(?:#.*)?$', re.MULTILINE)

Block = tuple[str, str]  # a header such as [fields] or [[maps]], empty at the top; and its text with the comments above


def configuration(name: str, like: str, languages: tuple[str, ...] = ()) -> str:
    """Return the text of a new configuration.

    Args:
        name: Name of the study.
        like: The study to begin with: ``paper`` or ``short``.
        languages: Languages of the texts, the first one for visitors who speak none of them; empty: all.

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
            raise InputError(f"--language {language}: {like} comes in {known}; add other languages to study.toml")
    blocks = _blocks(shipped_text(like))
    if languages and languages[0] != first:
        if first in languages:
            raise InputError(f"--language {','.join(languages)}: name {first} first, or leave it out")
        blocks = _promoted(blocks, languages[0])
        others.remove(languages[0])
    for language in others:
        if languages and language not in languages:
            blocks = [block for block in blocks if not _belongs(block, language)]
    top = _with_key(blocks[0][1], "name", f'"{name}"')
    return top + "".join(text for _, text in blocks[1:])


def _promoted(blocks: list[Block], language: str) -> list[Block]:
    """The same with a translation in place of the texts of the first language."""
    prefix = f"translations.{language}"
    texts = [block for block in blocks if _belongs(block, language)]
    kept = [block for block in blocks if not _belongs(block, language)]
    kept[0] = ("", _with_key(kept[0][1], "language", f'"{language}"'))
    seen: dict[str, int] = {}
    for header, text in texts:
        for key, value in _keys(text):
            target, name = header.replace(f"{prefix}.", ""), key
            if header == f"[{prefix}]":  # the consent has a section of its own in the first language
                target, name = ("[consent]", "text") if key == "consent" else ("", key)
            places = [i for i, block in enumerate(kept) if block[0] == target]
            at = places[seen.get(header, 0)] if header.startswith("[[") else places[0]
            kept[at] = (target, _with_key(kept[at][1], name, value))
        seen[header] = seen.get(header, 0) + 1
    return kept


def _belongs(block: Block, language: str) -> bool:
    """Whether a block is part of a translation."""
    return re.match(rf"\[\[?translations\.{re.escape(language)}[.\]]", block[0]) is not None


def _blocks(text: str) -> list[Block]:
    """Split a TOML text at its headers; comments right above a header belong to it."""
    blocks: list[Block] = []
    lines: list[str] = []
    above: list[str] = []
    header = ""
    for line in text.splitlines(keepends=True):
        found = _HEADER.match(line.rstrip("\n"))
        if found:
            blocks.append((header, "".join(lines)))
            header, lines, above = found[1], [*above, line], []
        elif line.startswith("#"):
            above.append(line)
        else:
            lines += [*above, line]
            above = []
    return [*blocks, (header, "".join(lines + above))]


def _keys(text: str) -> list[tuple[str, str]]:
    """The keys of a block with their values, as they are written."""
    return [(found[1], found[2]) for found in _KEY.finditer(text)]


def _with_key(text: str, key: str, value: str) -> str:
    """A block with another value of a key, which may be new; the comment after it stays."""
    for found in _KEY.finditer(text):
        if found[1] == key:
            after = text[found.end(2) : found.end()]
            aligned = value.ljust(len(found[2])) if after.strip() else value
            return text[: found.start(2)] + aligned + text[found.end(2) :]
    return f"{text.rstrip()}\n{key} = {value}\n\n"
