"""The words of docs/reference/writing.md, in everything a person reads: pages, docstrings, comments and messages."""

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("**/*.md"))]
SOURCES = sorted((ROOT / "src" / "ital").rglob("*.py"))
# The teacher and the learner are "it"; interrupted work resumes; a number is named, not counted by "so many".
UNWANTED = re.compile(
    r"\b(he|she|his|hers|him|himself|herself|so many|goes? on|went on)\b", re.IGNORECASE
)
EXAMPLES = {"writing.md", "changelog.md"}  # pages that quote what we do not write


def texts(source):
    """Strings and comments of a Python file, with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if (
            token.type in (tokenize.STRING, tokenize.COMMENT)
            or tokenize.tok_name[token.type] == "FSTRING_MIDDLE"
        ):
            yield token.start[0], token.string


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_use_our_words(page):
    if page.name in EXAMPLES:
        return
    found = [line for line in page.read_text("utf-8").splitlines() if UNWANTED.search(line)]
    assert not found


def test_sources_use_our_words():
    found = [
        f"{file.relative_to(ROOT)}:{line}: {text.strip()[:100]}"
        for file in SOURCES
        for line, text in texts(file.read_text("utf-8"))
        if UNWANTED.search(text)
    ]
    assert not found, "\n".join(found)
