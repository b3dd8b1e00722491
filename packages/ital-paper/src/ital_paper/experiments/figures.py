"""Panels that several sections show, and the figure of a single experiment."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ital import learners
from ital.figures import charts, curve_panel
from ital_paper.experiments.data import Data, Evidence
from ital_paper.experiments.plan import STARTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

START_COLOURS = {STARTS[0]: "#08306b", STARTS[1]: "#d55e00"}


def stamp(figure: "Figure", note: str) -> None:
    """Label the figure of a quick run below its title.

    The figure may be shown without the report, which says that its run is a quick one.
    """
    if note:
        figure.suptitle(f"{figure.get_suptitle()}\n{note}", fontsize=11)


def task_figure(evidence: Evidence, note: str = "") -> "Figure":
    """Draw all panels of one experiment."""
    start, _, teacher = evidence.condition
    seeds = evidence.curves.sizes["seed"]
    # The title says what a file outside the report would not: teacher, start and seeds.
    title = f"{evidence.task.title}: {teacher} teacher, {start} start, {seeds} seeds"
    panels = [metric_panel(evidence, metric, size=(4.2, 2.8)) for metric in evidence.panels()]
    return charts.chart(panels, title, columns=len(panels), note=note)


def drawn_methods(evidence: Evidence) -> list[str]:
    """Return the methods of the paper's figures; the controls have separate figures."""
    return [name for name in evidence.methods if name not in learners.CONTROLS]


def metric_panel(
    evidence: Evidence,
    metric: str,
    title: str = "",
    **options: Any,
) -> charts.Panel:
    """Draw one metric over the steps, by default for the methods of the paper's figures.

    The options are those of :func:`ital.figures.curve_panel`.
    """
    options.setdefault("methods", drawn_methods(evidence))
    return curve_panel(evidence.curves, evidence.task, metric, title, **options)


def starts_of(data: Data) -> Sequence[str]:
    """Return the starts that have experiments."""
    found = {condition.start for condition in data.experiments}
    return [start for start in STARTS if start in found]
