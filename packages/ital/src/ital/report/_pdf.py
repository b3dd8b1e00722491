"""Blocks as a PDF file of one tall page."""

import io
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

from ital.figures import charts
from ital.report._blocks import Block

WIDTH = 13.0  # inches of the page
LETTERS = 140  # per line
LINE = 0.21  # inches of a line of text
ROW = 0.26  # of a row of a table


def pdf(title: str, blocks: Iterable[Block], *, banner: str = "", colour: str = "black") -> bytes:
    """Render paragraphs, tables and figures on one page.

    Args:
        title: text at the top of the page.
        blocks: the blocks; all kinds but these three are left out.
        banner: text below the title, such as the source of the data.
        colour: the colour of the banner.

    Returns:
        The content of the file.
    """
    from matplotlib.figure import Figure

    drawn = [block for block in blocks if block["kind"] in DRAWINGS]
    # Each block has a part of the page that is as high as it needs; the title has the first.
    heights = [0.9]
    for block in drawn:
        measure, _ = DRAWINGS[block["kind"]]
        heights.append(measure(block))
    height = sum(heights)
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    rows = figure.subfigures(
        len(heights),
        1,
        height_ratios=heights,
        squeeze=False,
    )
    top, *parts = rows.flat
    top.text(0.02, 0.9, title, fontsize=17, weight="bold", va="top")
    top.text(0.02, 0.4, banner, fontsize=13, weight="bold", va="top", color=colour)
    for part, block in zip(parts, drawn, strict=True):
        _, draw = DRAWINGS[block["kind"]]
        draw(part, block)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="pdf", metadata={"CreationDate": None})
    return buffer.getvalue()


def _text_lines(block: Block) -> list[str]:
    return textwrap.wrap(block["words"], LETTERS)


def _paragraph_height(block: Block) -> float:
    return LINE * (len(_text_lines(block)) + 0.7)


def _draw_paragraph(part: Any, block: Block) -> None:
    part.text(0.02, 1, "\n".join(_text_lines(block)), fontsize=10.5, va="top", linespacing=1.35)


def _table_height(block: Block) -> float:
    # The heads and the caption take two rows and a half.
    return ROW * (len(block["rows"]) + 2.5)


def _draw_table(part: Any, block: Block) -> None:
    axis = part.subplots()
    axis.axis("off")
    axis.set_title(block["caption"], fontsize=10, loc="left")
    drawn = axis.table(
        block["rows"],
        colLabels=[textwrap.fill(head, 16) for head in block["heads"]],
        cellLoc="right",
        edges="horizontal",
        bbox=(0.02, 0, 0.96, 1),
    )
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(9)


def _figure_height(block: Block) -> float:
    _, height = charts.chart_size(block["panels"], block["columns"])
    return height


def _draw_figure(part: Any, block: Block) -> None:
    charts.chart(
        block["panels"],
        block["title"],
        columns=block["columns"],
        note=block["note"],
        onto=part,
    )


# Kind of a block → its height in inches, and the function that draws it on a part of the page.
DRAWINGS: dict[str, tuple[Callable[[Block], float], Callable[[Any, Block], None]]] = {
    "paragraph": (_paragraph_height, _draw_paragraph),
    "table": (_table_height, _draw_table),
    "figure": (_figure_height, _draw_figure),
}
