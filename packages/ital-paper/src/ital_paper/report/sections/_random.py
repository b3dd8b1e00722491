"""A teacher that chooses at random."""

import numpy as np

from ital import report
from ital.figures import charts, colours
from ital_paper.experiments.data import Evidence
from ital_paper.report.sections._context import Context

CAPTION = (
    "Share of the distance that is left at the end: one dot per seed, a bar for the mean. The "
    "paper finds no gain and a larger spread with the learners of its human study. Here ITAL may "
    "still be ahead of IMT, because its steps are longer."
)


def random_section(context: Context) -> list[report.Block]:
    """Draw the distance left, one dot per seed."""
    panels = [_dots(evidence) for evidence in context.data.every("random")]
    title = "Random teacher: what is left of the distance"
    return report.figure("random", title, panels, CAPTION, columns=4, note=context.scale.note)


def _dots(evidence: Evidence) -> charts.Panel:
    """Draw one experiment: a column of dots per method."""
    methods = evidence.methods
    colour_of = colours(methods)
    marks = [charts.rule("y", 1.0, "start")]
    for column, method in enumerate(methods):
        left = evidence.left(method)
        # Seeds stand beside each other, so that equal values do not hide each other.
        offsets = np.linspace(-0.14, 0.14, len(left)) if len(left) > 1 else np.zeros(1)
        xs = column + offsets
        bar = [column - 0.25, column + 0.25]
        marks += [
            charts.points("one seed", colour_of[method], xs, left, size=3.5, pale=True),
            charts.line("mean", charts.INK, bar, [left.mean()] * 2, width=1.6),
        ]
    names = [evidence.label(method) for method in methods]
    return charts.panel(
        f"{evidence.condition.task}, {evidence.condition.start} start",
        marks,
        y="Distance left, of the start",
        x_ticks=(range(len(names)), names),
        x_range=(-0.5, len(names) - 0.5),
        size=(2.9, 2.5),
    )
