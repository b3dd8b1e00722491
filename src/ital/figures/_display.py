"""A figure that notebooks show: matplotlib's own is shown only where pyplot made it."""

import io

from matplotlib.figure import Figure

DPI = 100


class NotebookFigure(Figure):
    """A matplotlib figure that is a picture at the end of a notebook cell, without pyplot or a magic command.

    Where pyplot has its own way to show figures, that one counts.
    """

    def _repr_png_(self) -> bytes:
        drawn = io.BytesIO()
        self.savefig(drawn, format="png", dpi=DPI)
        return drawn.getvalue()
