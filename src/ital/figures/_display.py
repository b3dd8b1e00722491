"""A figure that notebooks show: matplotlib's own is shown only where pyplot made it."""

import io

from matplotlib.figure import Figure

DPI = 100


def as_png(figure: Figure, dpi: int = DPI) -> bytes:
    """The figure as the content of a PNG file."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi)
    return drawn.getvalue()


class NotebookFigure(Figure):
    """A matplotlib figure that is a picture at the end of a notebook cell, without pyplot or a magic command.

    Where pyplot has its own way to show figures, that one counts.
    """

    def _repr_png_(self) -> bytes:
        return as_png(self)
