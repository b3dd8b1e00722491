"""The configuration of a new study: the text of a shipped one, comments included, with another name and languages."""

import re

from ital.errors import InputError
from ital.study._config import SHIPPED
from ital.study._load import load_config
from ital.study._shipped import shipped_text


def configuration(name: str, like: str, languages: tuple[str, ...] = ()) -> str:
    """Return the text of a new configuration.

    Args:
        name: Name of the study.
        like: The study to begin with: ``paper`` or ``short``.
        languages: Languages of the texts, the study's first one among them; empty: all.

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
    if languages and first not in languages:
        raise InputError(f"--language {','.join(languages)}: the first language of {like} is {first}; name it too")
    text = shipped_text(like)
    for language in others:
        if languages and language not in languages:
            text = _without_section(text, f"translations.{language}")
    return re.sub(r'^name = ".*"$', f'name = "{name}"', text, count=1, flags=re.MULTILINE)


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
