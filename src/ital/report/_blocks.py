"""What a report is made of. Every block is a plain dict that can be stored as JSON; writers show it."""

import base64
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ital.errors import InputError
from ital.figures import charts

PICTURES = {".svg": "image/svg+xml", ".png": "image/png"}

Block = dict[str, Any]
"""A part of a report: its ``kind``, and what it shows."""

PageSection = dict[str, Any]
"""A part of a page: its ``title``, the ``id`` that links have for it, and its ``blocks``."""


def section(title: str, id: str, blocks: Iterable[Block]) -> PageSection:
    """A part of a page.

    Args:
        title: its heading.
        id: the name that links have for it.
        blocks: what it shows; a section without blocks is left out of a page.

    Returns:
        The section as plain data.

    """
    return {"title": title, "id": id, "blocks": list(blocks)}


def paragraph(words: str) -> Block:
    """Plain words.

    Args:
        words: the text; it holds no markup.

    Returns:
        The block.

    """
    return {"kind": "paragraph", "words": words}


def heading(words: str) -> Block:
    """A heading within a section.

    Args:
        words: the text.

    Returns:
        The block.

    """
    return {"kind": "heading", "words": words}


def bullets(lines: Iterable[str]) -> Block:
    """A list.

    Args:
        lines: the text of each item.

    Returns:
        The block.

    """
    return {"kind": "bullets", "lines": list(lines)}


def commands(pairs: Iterable[tuple[str, str]]) -> Block:
    """Commands, each with what it is for.

    Args:
        pairs: what each command is for, and the command.

    Returns:
        The block.

    """
    return {"kind": "commands", "pairs": [list(pair) for pair in pairs]}


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    caption: str = "",
    numbers_from: int | None = None,
    best: Iterable[tuple[int, int]] = (),
) -> Block:
    """A table.

    Args:
        heads: the head of each column.
        rows: the values of each row.
        caption: stands above the table.
        numbers_from: the first column of numbers, which are right-aligned, as are all after it.
        best: cells (row, column) in bold.

    Returns:
        The block.

    """
    return {
        "kind": "table",
        "caption": caption,
        "heads": list(heads),
        "rows": [[str(value) for value in row] for row in rows],
        "numbers_from": numbers_from,
        "best": [list(cell) for cell in best],
    }


def figure(
    name: str, title: str, panels: Sequence[charts.Panel], caption: str, *, columns: int = 3, note: str = ""
) -> list[Block]:
    """A figure.

    Args:
        name: its name within the page.
        title: stands above the panels.
        panels: what it shows (see :mod:`ital.figures.charts`); curves are thinned and numbers rounded.
        caption: stands below the panels.
        columns: panels in a row, where the page is wide enough.
        note: stands beside the title, such as whose data these are.

    Returns:
        The block in a list, which is empty if there is no panel.

    """
    kept = [charts.stored(panel) for panel in panels]
    about = {"name": name, "title": title, "note": note, "panels": kept, "columns": columns, "caption": caption}
    return [{"kind": "figure", **about}] if panels else []


def picture(name: str, title: str, file: Path, caption: str, *, alt: str) -> Block:
    """A picture from a file, such as a screenshot; it becomes part of the block.

    Args:
        name: its name within the page.
        title: stands above the picture.
        file: an ``.svg`` or a ``.png`` file.
        caption: stands below the picture.
        alt: what it shows, for readers who do not see it.

    Returns:
        The block.

    Raises:
        InputError: the file cannot be read, or is of another kind.

    """
    if file.suffix not in PICTURES:
        raise InputError(f"{file} is no picture for a report: give an .svg or a .png file")
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the picture {file}: {error.strerror}") from None
    source = f"data:{PICTURES[file.suffix]};base64,{base64.b64encode(content).decode()}"
    return {"kind": "picture", "name": name, "title": title, "source": source, "caption": caption, "alt": alt}


def folded(title: str, blocks: Sequence[Block], *, unfolded: bool = False) -> list[Block]:
    """Blocks behind a title, shown when it is clicked.

    Args:
        title: what is clicked.
        blocks: what is shown then.
        unfolded: whether the blocks are in sight at first.

    Returns:
        The block in a list, which is empty if there is nothing to show.

    """
    return [{"kind": "folded", "title": title, "open": unfolded, "blocks": list(blocks)}] if blocks else []


def claims(rows: Iterable[dict[str, Any]]) -> Block:
    """Claims with their verdicts, the numbers behind each when it is clicked.

    Args:
        rows: a claim each: ``claim``, ``source``, ``rule``, ``verdict``, ``value``, ``summary``, ``tallies``,
            ``range``, ``p`` and ``checks``.

    Returns:
        The block.

    """
    return {"kind": "claims", "rows": list(rows)}


def figures_in(blocks: Iterable[Block]) -> list[Block]:
    """All figures among blocks.

    Args:
        blocks: where to look; folds are searched, too.

    Returns:
        The figures in their order.

    """
    figures = []
    for block in blocks:
        figures += [block] if block["kind"] == "figure" else figures_in(block.get("blocks", ()))
    return figures
