"""What a report is made of. Every block is a plain dict that can be stored as JSON; ``_html`` shows it."""

from collections.abc import Iterable, Sequence
from typing import Any

Block = dict[str, Any]


def paragraph(words: str) -> Block:
    """Plain words."""
    return {"kind": "paragraph", "words": words}


def heading(words: str) -> Block:
    """A heading within a section."""
    return {"kind": "heading", "words": words}


def bullets(lines: Iterable[str]) -> Block:
    """A list."""
    return {"kind": "bullets", "lines": list(lines)}


def commands(pairs: Iterable[tuple[str, str]]) -> Block:
    """Commands, each with what it is for."""
    return {"kind": "commands", "pairs": [list(pair) for pair in pairs]}


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    caption: str = "",
    numbers_from: int | None = None,
    best: Iterable[tuple[int, int]] = (),
) -> Block:
    """A table. Columns from ``numbers_from`` on are numbers; ``best`` are cells (row, column) in bold."""
    return {
        "kind": "table",
        "caption": caption,
        "heads": list(heads),
        "rows": [[str(value) for value in row] for row in rows],
        "numbers_from": numbers_from,
        "best": [list(one) for one in best],
    }


def figure(
    name: str, title: str, panels: Sequence[dict[str, Any]], caption: str, *, columns: int = 3, note: str = ""
) -> list[Block]:
    """A figure of panels (see ``_charts``), as a list: none where there is no panel. ``note`` stands on the figure."""
    if not panels:
        return []
    made = {"name": name, "title": title, "note": note, "panels": list(panels), "columns": columns, "caption": caption}
    return [{"kind": "figure", **made}]


def folded(title: str, blocks: Sequence[Block], *, unfolded: bool = False) -> list[Block]:
    """What is shown when asked for (or can be put away); nothing if there is nothing."""
    return [{"kind": "folded", "title": title, "open": unfolded, "blocks": list(blocks)}] if blocks else []


def figures_in(blocks: Iterable[Block]) -> list[Block]:
    """All figures, those in folds too."""
    found = []
    for block in blocks:
        if block["kind"] == "figure":
            found.append(block)
        found += figures_in(block.get("blocks", ()))
    return found
