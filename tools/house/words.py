"""The words of docs/reference/writing.md, in everything that people read: pages, docstrings,
comments, messages.
"""

import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.house.sources import ROOT, Source

# The teacher and the learner are "it"; interrupted work resumes; a number is named, not counted by
# "so many".
UNWANTED = re.compile(
    r"\b(he|she|his|hers|him|himself|herself|so many|goes? on|went on)\b", re.IGNORECASE
)
QUOTING = {"writing.md", "changelog.md"}  # pages that quote what we do not write


def pages(root: Path = ROOT) -> list[Path]:
    """Return the pages of the documentation."""
    return [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("**/*.md"))]


def written_texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield the strings and comments of a Python file, with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_text = token.type in (tokenize.STRING, tokenize.COMMENT)
        # Python 3.12 and later tell the text of an f-string apart from its expressions.
        if is_text or tokenize.tok_name[token.type] == "FSTRING_MIDDLE":
            yield token.start[0], token.string


def unwanted_words(sources: Mapping[str, Source], root: Path = ROOT) -> Iterator[str]:
    """Yield the places of words that we do not use."""
    for page in pages(root):
        if page.name in QUOTING or "_build" in page.parts:
            continue
        for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
            if UNWANTED.search(line):
                yield f"{page.relative_to(root)}:{number}: {line.strip()[:100]}"
    for source in sources.values():
        for number, text in written_texts(source.text):
            if UNWANTED.search(text):
                yield f"{source.file.relative_to(root)}:{number}: {text.strip()[:100]}"
