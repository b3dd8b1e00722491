"""The list of errors beside the tests that were judged to be no error at all.

It is TOML: a table per reason with snippets of files, ``"file" = [["before", "after"], …]``. A
snippet occurs once in its file, so an entry that no longer fits the source is found (``stale``).
"""

import tomllib
from pathlib import Path
from typing import NamedTuple

EQUIVALENT = "tests/mutants-equivalent.toml"


class Entry(NamedTuple):
    """A snippet of a file, what replaces it, and why it is in the list."""

    file: str
    before: str
    after: str
    why: str

    def broken(self, text: str) -> str | None:
        """The file's text with the snippet replaced; None if it is not there exactly once."""
        if text.count(self.before) != 1:
            return None
        return text.replace(self.before, self.after)


def read(root: Path, name: str) -> list[Entry]:
    """The entries of a list; none if there is no list."""
    path = root / name
    if not path.exists():
        return []
    entries = []
    for why, files in tomllib.loads(path.read_text("utf-8")).items():
        for file, pairs in files.items():
            entries += [Entry(file, before, after, why) for before, after in pairs]
    return entries


def stale(root: Path, entries: list[Entry]) -> list[str]:
    """What is wrong with the entries that no longer fit the source."""
    wrong = []
    for entry in entries:
        path = root / entry.file
        text = path.read_text("utf-8") if path.exists() else ""
        if entry.broken(text) in {None, text}:
            count = text.count(entry.before)
            wrong.append(f"{entry.file}: {entry.before!r} occurs {count} times, not once")
    return wrong
