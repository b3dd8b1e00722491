"""A teacher that chooses at random."""

import numpy as np

from ital import report
from ital.figures import charts, colours
from ital_paper.experiments.data import Evidence
from ital_paper.report.sections._context import Context


def build(context: Context) -> list[report.Block]:
    """The distance left, one dot per seed."""
    caption = (
        "Share of the distance that is left at the end: one dot per seed, a bar for the mean. The paper finds no gain "
        "and a larger spread with the learners of its human study. Here ITAL may still be ahead of IMT, because its "
        "steps are longer."
    )
    panels = [panel(evidence) for evidence in context.data.every("random")]
    title = "Random teacher: what is left of the distance"
    return report.figure("random", title, panels, caption, columns=4, note=context.scale.note)


def panel(evidence: Evidence) -> charts.Panel:
    """One experiment."""
    methods = evidence.methods
    coloured = colours(methods)
    marks = [charts.rule("y", 1.0, "start")]
    for i, method in enumerate(methods):
        left = evidence.left(method)
        jitter = np.linspace(-0.14, 0.14, len(left)) if len(left) > 1 else np.zeros(1)
        marks.append(
            charts.points("one seed", coloured[method], i + jitter, left, size=3.5, pale=True)
        )
        marks.append(
            charts.line("mean", charts.INK, [i - 0.25, i + 0.25], [left.mean()] * 2, width=1.6)
        )
    names = [evidence.label(method) for method in methods]
    return charts.panel(
        f"{evidence.condition.task}, {evidence.condition.start} start", marks, y="Distance left, of the start",
        x_ticks=(range(len(names)), names), x_range=(-0.5, len(names) - 0.5), size=(2.9, 2.5),
    )  # fmt: skip
