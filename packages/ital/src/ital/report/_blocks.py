"""The blocks of a report.

Each block is a plain dict that can be stored as JSON; the writers render it. Its keys are a file
format: stored reports hold them.
"""

import base64
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ital.errors import InputError
from ital.figures import charts
from ital.tools.files import check_readable

PICTURES = {".svg": "image/svg+xml", ".png": "image/png"}

Block = dict[str, Any]
"""One block of a report: its ``kind`` and its content."""

PageSection = dict[str, Any]
"""One section of a page: its ``title``, the ``id`` that links use, and its ``blocks``."""


def section(title: str, id: str, blocks: Iterable[Block]) -> PageSection:
    """Make a section of a page.

    Args:
        title: its heading.
        id: the name that links use.
        blocks: what it shows; a section without blocks is left out of a page.

    Returns:
        The section as plain data.
    """
    return {"title": title, "id": id, "blocks": list(blocks)}


def paragraph(words: str) -> Block:
    """Make a paragraph of plain text.

    Args:
        words: the text, without markup.

    Returns:
        The block.
    """
    return {"kind": "paragraph", "words": words}


def heading(words: str) -> Block:
    """Make a heading within a section.

    Args:
        words: the text.

    Returns:
        The block.
    """
    return {"kind": "heading", "words": words}


def bullets(lines: Iterable[str]) -> Block:
    """Make a bulleted list.

    Args:
        lines: the text of each item.

    Returns:
        The block.
    """
    return {"kind": "bullets", "lines": list(lines)}


def commands(pairs: Iterable[tuple[str, str]]) -> Block:
    """Make a list of commands, each with its purpose.

    Args:
        pairs: the purpose of each command, and the command.

    Returns:
        The block.
    """
    return {"kind": "commands", "pairs": [list(pair) for pair in pairs]}


def terms(pairs: Iterable[tuple[str, str]]) -> Block:
    """Make a list of terms, each with its meaning.

    Args:
        pairs: the terms with their meanings.

    Returns:
        The block.
    """
    return {"kind": "terms", "pairs": [list(pair) for pair in pairs]}


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    caption: str = "",
    numbers_from: int | None = None,
    best: Iterable[tuple[int, int]] = (),
) -> Block:
    """Make a table.

    Args:
        heads: the heading of each column.
        rows: the values of each row.
        caption: text above the table.
        numbers_from: the first column of numbers; it and all columns after it are right-aligned.
        best: cells (row, column) to print in bold.

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
    name: str,
    title: str,
    panels: Sequence[charts.Panel],
    caption: str,
    *,
    columns: int = 3,
    note: str = "",
) -> list[Block]:
    """Make a figure.

    Args:
        name: its name within the page.
        title: text above the panels.
        panels: the panels (see :mod:`ital.figures.charts`); curves are thinned and numbers rounded.
        caption: text below the panels.
        columns: number of panels in a row, where the page is wide enough.
        note: text beside the title, such as the source of the data.

    Returns:
        The block in a list, which is empty if there is no panel.
    """
    if not panels:
        return []
    block = {
        "kind": "figure",
        "name": name,
        "title": title,
        "note": note,
        "panels": [charts.stored(panel) for panel in panels],
        "columns": columns,
        "caption": caption,
    }
    return [block]


def picture(name: str, title: str, file: Path, caption: str, *, alt: str) -> Block:
    """Make a picture from a file, such as a screenshot. The block contains the picture itself.

    Args:
        name: its name within the page.
        title: text above the picture.
        file: an ``.svg`` or a ``.png`` file.
        caption: text below the picture.
        alt: a description for readers who cannot see it.

    Returns:
        The block.

    Raises:
        InputError: the file cannot be read, or has another format.
    """
    if file.suffix not in PICTURES:
        raise InputError(
            f"{file} is not a picture that a report can show: give an .svg or a .png file"
        )
    content = check_readable(file, f"the picture {file}").read_bytes()
    # The page needs no other file.
    encoded = base64.b64encode(content).decode()
    source = f"data:{PICTURES[file.suffix]};base64,{encoded}"
    return {
        "kind": "picture",
        "name": name,
        "title": title,
        "source": source,
        "caption": caption,
        "alt": alt,
    }


def folded(title: str, blocks: Sequence[Block], *, unfolded: bool = False) -> list[Block]:
    """Make blocks that are hidden behind a title until it is clicked.

    Args:
        title: the title to click.
        blocks: the hidden blocks.
        unfolded: whether the blocks are visible at first.

    Returns:
        The block in a list, which is empty if there is nothing to show.
    """
    if not blocks:
        return []
    return [{"kind": "folded", "title": title, "open": unfolded, "blocks": list(blocks)}]


def claims(rows: Iterable[dict[str, Any]]) -> Block:
    """Make a list of claims with their verdicts. A click on a claim shows the numbers behind it.

    Args:
        rows: one dict per claim: ``claim``, ``source``, ``rule``, ``verdict``, ``value``,
            ``summary``, ``tallies``, ``range``, ``p`` and ``checks``.

    Returns:
        The block.
    """
    return {"kind": "claims", "rows": list(rows)}


def figures_in(blocks: Iterable[Block]) -> list[Block]:
    """Find all figures among blocks.

    Args:
        blocks: the blocks to search, including those inside folds.

    Returns:
        The figures, in order.
    """
    figures = []
    for block in blocks:
        if block["kind"] == "figure":
            figures.append(block)
        else:
            # Folds hold blocks themselves.
            figures += figures_in(block.get("blocks", ()))
    return figures
