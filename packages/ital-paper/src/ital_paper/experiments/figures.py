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
    """Label the figure of a quick run below its title, because the figure may be shown without the report."""
    if note:
        figure.suptitle(f"{figure.get_suptitle()}\n{note}", fontsize=11)


def task_figure(evidence: Evidence, note: str = "") -> "Figure":
    """Write all panels of one task with one teacher, from one start, to a separate file."""
    place, seeds = evidence.condition, evidence.curves.sizes["seed"]
    title = f"{evidence.task.title}: {place.teacher} teacher, {place.start} start, {seeds} seeds"
    panels = [curves(evidence, metric, size=(4.2, 2.8)) for metric in evidence.panels()]
    return charts.chart(panels, title, columns=len(panels), note=note)


def shown_methods(evidence: Evidence) -> list[str]:
    """The methods of the paper's figures; the controls have separate figures."""
    return [name for name in evidence.methods if name not in learners.CONTROLS]


def curves(evidence: Evidence, metric: str, title: str = "", **options: Any) -> charts.Panel:
    """One metric over the steps (see ``figures.curve_panel``), by default for the methods of the paper's figures."""
    options.setdefault("methods", shown_methods(evidence))
    return curve_panel(evidence.curves, evidence.task, metric, title, **options)


def starts_of(data: Data) -> Sequence[str]:
    """The starts that have experiments."""
    return [
        start for start in STARTS if any(condition.start == start for condition in data.experiments)
    ]


def name(start: str) -> str:
    """A start as part of a file name."""
    return start.replace(":", "-")
