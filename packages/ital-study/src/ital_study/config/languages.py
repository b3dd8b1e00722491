"""The words of participants' pages, by language.

Those that come with ital, and those of a study's own.
"""

import functools
import json
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

from ital.errors import InputError

SHIPPED = ("en", "de")

# English that looks foreign, is longer and runs from right to left: for tests.
PSEUDO = "qps"

TAG = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})?")
_ACCENTS = str.maketrans("aceinosuyACEINOSUY", "àçéîñöšüýÀÇÉÎÑÖŠÜÝ")
# Areas of words that came later: languages of studies that began before have none of them, so their
# pages show the English ones.
LATER = ("link.", "part.")
_FIELD = re.compile(r"(\{[a-z_]+\})")  # a group, so that splitting keeps the fields


@functools.cache
def shipped_words(language: str) -> Mapping[str, str]:
    """Return the words of a language that comes with ital.

    Args:
        language: ``en``, ``de`` or the pseudo-language.

    Returns:
        Words by key; none for another language.
    """
    if language == PSEUDO:
        pseudo = {key: pseudo_text(word) for key, word in shipped_words("en").items()}
        return pseudo | {"direction": "rtl", "name": pseudo_text("Pseudo")}
    if language not in SHIPPED:
        return {}
    file = resources.files("ital_study") / "pages" / "languages" / f"{language}.json"
    return json.loads(file.read_text("utf-8"))


def pseudo_text(text: str) -> str:
    """Return a text with accents, in brackets and a third longer; its fields stay.

    Args:
        text: English text.

    Returns:
        Text that people can still read, in which forgotten English stands out.
    """
    accented = ""
    for part in _FIELD.split(text):
        is_field = part.startswith("{")
        accented += part if is_field else part.translate(_ACCENTS)
    padding = " ·" * (len(text) // 8)
    return f"⟦{accented}{padding}⟧"


def words(language: str, own: Mapping[str, str]) -> dict[str, str]:
    """Return the words of a language, with a study's own ones.

    Args:
        language: The language.
        own: Words of the study.

    Returns:
        A word for every key.
    """
    later = {key: word for key, word in shipped_words("en").items() if key.startswith(LATER)}
    return {**later, **shipped_words(language), **own}


def check_words(language: str, own: Any, name: str) -> dict[str, str]:
    """Check a study's own words.

    Args:
        language: The language.
        own: Words by key.
        name: Name of the section in messages.

    Returns:
        The words.

    Raises:
        InputError: A key is unknown, a word is not a text, or a word of a language without shipped
            words is missing.
    """
    if not TAG.fullmatch(language):
        raise InputError(f"a language must be a tag such as en, de or pt-BR, not {language!r}")
    if not isinstance(own, dict):
        raise InputError(f"{name} must be a table of texts, not {own!r}")
    english = shipped_words("en")
    for key, word in own.items():
        if key not in english:
            raise InputError(
                f"{name} has the unknown key {key}: the keys are those of the English language file"
            )
        if not isinstance(word, str) or not word.strip():
            raise InputError(f"{name}.{key} must be a text")
        allowed = set(_FIELD.findall(english[key]))
        unknown = set(_FIELD.findall(word)) - allowed
        if unknown:
            raise InputError(f"{name}.{key} has the unknown field {min(unknown)}")
    available = words(language, own)
    missing = [key for key in english if key not in available]
    if missing:
        raise InputError(
            f"{name} lacks {len(missing)} words, for instance {missing[0]}: "
            f"ital has no words in {language!r}"
        )
    return dict(own)


def best(wishes: str, languages: tuple[str, ...]) -> str:
    """Choose the language of a study that fits a visitor best.

    Args:
        wishes: Language tags, the dearest first, separated by commas.
        languages: The study's languages, the first one for everybody else.

    Returns:
        One of the languages.
    """
    by_tag = {language.lower(): language for language in reversed(languages)}
    for wish in wishes.split(","):
        tag = wish.strip().lower()
        # Somebody who wishes for de-AT can read de.
        without_region = tag.partition("-")[0]
        for accepted in (tag, without_region):
            if accepted in by_tag:
                return by_tag[accepted]
    return languages[0]
