"""Blocks as a PDF file of one tall page."""

import io
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

from ital.figures import charts
from ital.report._blocks import Block

WIDTH = 13.0  # inches of the page
LETTERS = 140  # per line
LINE, ROW = 0.21, 0.26  # inches of a line of text and of a row of a table


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

    shown = [block for block in blocks if block["kind"] in DRAWN]
    sizes = [0.9, *(DRAWN[block["kind"]][0](block) for block in shown)]
    figure = Figure(figsize=(WIDTH, sum(sizes)), layout="constrained")
    top, *places = figure.subfigures(len(sizes), 1, height_ratios=sizes, squeeze=False).flat
    top.text(0.02, 0.9, title, fontsize=17, weight="bold", va="top")
    top.text(0.02, 0.4, banner, fontsize=13, weight="bold", va="top", color=colour)
    for place, block in zip(places, shown, strict=True):
        DRAWN[block["kind"]][1](place, block)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="pdf", metadata={"CreationDate": None})
    return buffer.getvalue()


def _lines(block: Block) -> list[str]:
    return textwrap.wrap(block["words"], LETTERS)


def _paragraph(place: Any, block: Block) -> None:
    place.text(0.02, 1, "\n".join(_lines(block)), fontsize=10.5, va="top", linespacing=1.35)


def _table(place: Any, block: Block) -> None:
    axis = place.subplots()
    axis.axis("off")
    axis.set_title(block["caption"], fontsize=10, loc="left")
    heads = [textwrap.fill(head, 16) for head in block["heads"]]
    drawn = axis.table(
        block["rows"], colLabels=heads, cellLoc="right", edges="horizontal", bbox=(0.02, 0, 0.96, 1)
    )
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(9)


def _figure(place: Any, block: Block) -> None:
    charts.chart(
        block["panels"], block["title"], columns=block["columns"], note=block["note"], onto=place
    )


DRAWN: dict[str, tuple[Callable[[Block], float], Callable[[Any, Block], None]]] = {
    "paragraph": (lambda block: LINE * (len(_lines(block)) + 0.7), _paragraph),
    "table": (lambda block: ROW * (len(block["rows"]) + 2.5), _table),
    "figure": (lambda block: charts.chart_size(block["panels"], block["columns"])[1], _figure),
}
