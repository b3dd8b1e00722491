"""Make text fit: wrap lines to a width, and label only as many ticks as there is room for."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any

LETTER = 0.56  # width of a letter, in units of its size
DIGIT = 0.68  # of a digit or a minus
LINE = 1.4  # height of a line
INCH = 72.0  # points


def wrapped(text: str, inches: float, points: float) -> str:
    """Wrap a text to lines of at most ``inches``, at a font size of ``points``."""
    letters = max(8, int(inches * INCH / (LETTER * points)))
    return "\n".join(textwrap.fill(line, letters) for line in text.split("\n"))


def letter_size(texts: Sequence[str], width: float, height: float, largest: float) -> float:
    """Return the largest font size at which every text fits into a cell.

    All sizes are in points.
    """
    longest = max(map(len, texts), default=1)
    return min(largest, width / (DIGIT * max(longest, 2)), height / LINE)


def cell_size(axis: Any, rows: int, columns: int) -> tuple[float, float]:
    """Return width and height in points of a cell of a map on these axes."""
    box = axis.get_window_extent()
    scale = INCH / axis.figure.dpi
    return box.width * scale / columns, box.height * scale / rows


def name_cells(axis: Any, rows: int, columns: int, points: float = 7.5) -> None:
    """Rotate column labels that are too wide, and hide labels that do not fit."""
    width, height = cell_size(axis, rows, columns)
    names = [label.get_text() for label in axis.get_xticklabels()]
    upright = max(map(len, names), default=0) * LETTER * points > width
    # Labels side by side need no room along x, upright ones need a line each.
    shown_columns = max(1, math.ceil(LINE * points / width)) if upright else 1
    shown_rows = max(1, math.ceil(LINE * points / height))
    _show_every(axis.get_xticklabels(), shown_columns)
    _show_every(axis.get_yticklabels(), shown_rows)
    axis.tick_params(axis="x", rotation=90 if upright else 0, labelsize=points)
    axis.tick_params(axis="y", labelsize=points)


def _show_every(labels: Sequence[Any], step: int) -> None:
    """Hide all labels but the first, and every ``step``-th after it."""
    for position, label in enumerate(labels):
        if position % step:
            label.set_visible(False)
