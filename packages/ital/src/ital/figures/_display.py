"""A figure that notebooks show; they show matplotlib's own figures only if pyplot made them."""

import io

from matplotlib.figure import Figure

DPI = 100


def as_png(figure: Figure, dpi: int = DPI) -> bytes:
    """Return a figure as the content of a PNG file."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi)
    return drawn.getvalue()


class NotebookFigure(Figure):
    """A matplotlib figure that a notebook shows at the end of a cell.

    It needs neither pyplot nor a magic command.
    If pyplot has registered its own way to show figures, that one is used.
    """

    def _repr_png_(self) -> bytes:
        return as_png(self)
