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
    width_of_letter = LETTER * points
    that_fit = int(inches * INCH / width_of_letter)
    letters = max(8, that_fit)
    lines = [textwrap.fill(line, letters) for line in text.split("\n")]
    return "\n".join(lines)


def letter_size(texts: Sequence[str], width: float, height: float, largest: float) -> float:
    """Return the largest font size at which every text fits into a cell.

    All sizes are in points.
    """
    longest = max(map(len, texts), default=1)
    digits = max(longest, 2)
    fitting_width = width / (DIGIT * digits)
    fitting_height = height / LINE
    return min(largest, fitting_width, fitting_height)


def cell_size(axis: Any, rows: int, columns: int) -> tuple[float, float]:
    """Return width and height in points of a cell of a map on these axes."""
    box = axis.get_window_extent()
    points_per_pixel = INCH / axis.figure.dpi
    width = box.width * points_per_pixel / columns
    height = box.height * points_per_pixel / rows
    return width, height


def name_cells(axis: Any, rows: int, columns: int, points: float = 7.5) -> None:
    """Rotate column labels that are too wide, and hide labels that do not fit."""
    width, height = cell_size(axis, rows, columns)
    column_labels = axis.get_xticklabels()
    row_labels = axis.get_yticklabels()
    height_of_line = LINE * points
    letters = max((len(label.get_text()) for label in column_labels), default=0)
    upright = letters * LETTER * points > width
    # Labels side by side need no room along x, upright ones need a line each.
    shown_columns = 1
    rotation = 0
    if upright:
        shown_columns = max(1, math.ceil(height_of_line / width))
        rotation = 90
    shown_rows = max(1, math.ceil(height_of_line / height))
    _show_every(column_labels, shown_columns)
    _show_every(row_labels, shown_rows)
    axis.tick_params(axis="x", rotation=rotation, labelsize=points)
    axis.tick_params(axis="y", labelsize=points)


def _show_every(labels: Sequence[Any], step: int) -> None:
    """Hide all labels but the first, and every ``step``-th after it."""
    for position, label in enumerate(labels):
        if position % step:
            label.set_visible(False)
