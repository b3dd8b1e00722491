"""The configurations that come with ital, as text with comments."""

import re
from importlib import resources

_COMMENT = re.compile(r"(#.*\n)+")


def shipped_text(name: str) -> str:
    """Return the text of a configuration that comes with ital.

    A file with ``like = "paper"`` says only what differs from that one. Files of researchers cannot do that: their
    meaning would change with the version of ital.

    Args:
        name: ``paper`` or ``short``.

    Returns:
        A complete TOML file with its comments.
    """
    text = (resources.files("ital_study") / "configs" / f"{name}.toml").read_text("utf-8")
    like = re.search(r'^like = "(\w+)"\n', text, re.MULTILINE)
    return text if like is None else _changed(shipped_text(like[1]), text.replace(like[0], ""))


def _changed(text: str, changes: str) -> str:
    """A text with other values of single keys, other lists of tables, and another comment at its top."""
    sections, changed = _sections(text), _sections(changes)
    for header, new in changed.items():
        sections[header] = new if header.startswith("[[") else _with_values(sections[header], new)
    comment = _COMMENT.match(changes)
    return ("" if comment is None else comment[0]) + _COMMENT.sub(
        "", "".join(sections.values()), count=1
    )


def _sections(text: str) -> dict[str, str]:
    """The parts of a TOML text by their headers; the tables of a list are one part, and the first has no header."""
    sections: dict[str, str] = {}
    header = ""
    for i, part in enumerate(re.split(r"^(?=\[)", text, flags=re.MULTILINE)):
        own = part.split("\n", 1)[0] if i else ""
        if not (
            header and own.startswith(f"{header.rstrip(']')}.")
        ):  # not a table inside the last one
            header = own
        sections[header] = sections.get(header, "") + part
    return sections


def _with_values(section: str, changes: str) -> str:
    """A section with other values of some keys; its comments stay."""
    for key, value in re.findall(r"^(\w+) = (.*)$", changes, re.MULTILINE):
        old = re.search(rf"^{key} = [^#\n]*(.*)$", section, re.MULTILINE)
        if old is not None:
            line = f"{key} = {value}".ljust(old.start(1) - old.start()) + old[1]
            section = section[: old.start()] + line.rstrip() + section[old.end() :]
    return section
