"""The configurations that come with ital, as text with comments."""

import re
from importlib import resources

_COMMENT = re.compile(r"(#.*\n)+")

# A text of several lines, or anything up to a comment.
_VALUE = r'"""[\s\S]*?"""|[^#\n]*[^#\s]'


def shipped_text(name: str) -> str:
    """Return the text of a configuration that comes with ital.

    A file with ``like = "paper"`` says only what differs from that one. Files of researchers cannot
    do that: their meaning would change with the version of ital.

    Args:
        name: ``paper``, ``short`` or ``evidence``.

    Returns:
        A complete TOML file with its comments.
    """
    folder = resources.files("ital_study") / "configs"
    text = (folder / f"{name}.toml").read_text("utf-8")
    like = re.search(r'^like = "(\w+)"\n', text, re.MULTILINE)
    if like is None:
        return text
    changes = text.replace(like[0], "")
    return _with_changes(shipped_text(like[1]), changes)


def _with_changes(text: str, changes: str) -> str:
    """Return a text with other values of keys, lists of tables and comment at its top."""
    sections = _sections_of(text)
    for header, new in _sections_of(changes).items():
        if header.startswith("[["):
            # A list of tables has no keys of its own: it is replaced as a whole.
            sections[header] = new
        else:
            sections[header] = _with_keys(sections[header], new)
    without_comment = _COMMENT.sub("", "".join(sections.values()), count=1)
    comment = _COMMENT.match(changes)
    if comment is None:
        return without_comment
    return comment[0] + without_comment


def _sections_of(text: str) -> dict[str, str]:
    """Return the parts of a TOML text by their headers.

    The tables of a list are one part, as are a table and those inside it. The first part has no
    header.
    """
    top, *tables = re.split(r"^(?=\[)", text, flags=re.MULTILINE)
    sections = {"": top}
    header = ""
    for table in tables:
        own_header = table.partition("\n")[0]
        name = header.rstrip("]")
        is_inside = name and own_header.startswith(f"{name}.")
        if not is_inside:
            header = own_header
        so_far = sections.get(header, "")
        sections[header] = so_far + table
    return sections


def _with_keys(section: str, changes: str) -> str:
    """Return a section with other values of some keys; its comments stay.

    A key that the section has only in a comment, as an example, takes the place of that line.
    """
    for key, value in re.findall(rf"^(\w+) = ({_VALUE})", changes, re.MULTILINE):
        old = re.search(rf"^(?:# )?{key} = (?:{_VALUE}) *(.*)$", section, re.MULTILINE)
        if old is None:
            continue
        comment = old[1]
        column = old.start(1) - old.start()  # of the comment, which stays where it was
        line = f"{key} = {value}".rstrip()
        if comment:
            line = f"{line} ".ljust(column) + comment
        before = section[: old.start()]
        after = section[old.end() :]
        section = before + line + after
    return section
