"""Panels that several sections show, and the figure of a single experiment."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ital.figures import DASHES, colours, in_legend_order, label, plot_curves
from ital.reproduce import _charts
from ital.reproduce._charts import Panel
from ital.reproduce._data import Data, Evidence
from ital.reproduce._plan import STARTS
from ital.results import mean_and_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

START_COLOURS = {STARTS[0]: "#08306b", STARTS[1]: "#d55e00"}


def stamp(figure: "Figure", note: str) -> None:
    """Says on the figure itself, below its title, that it is of a quick run: it may travel alone."""
    if note:
        figure.suptitle(f"{figure.get_suptitle()}\n{note}", fontsize=11)


def task_figure(one: Evidence, note: str = "") -> "Figure":
    """All panels of one task with one teacher, from one start, as a file of its own."""
    figure = plot_curves(one.curves.sel({"method": shown_methods(one)}), one.task)
    seeds = one.curves.sizes["seed"]
    figure.suptitle(
        f"{one.task.title}: {one.condition.teacher} teacher, {one.condition.start} start, {seeds} seeds", fontsize=11
    )
    stamp(figure, note)
    return figure


def shown_methods(one: Evidence) -> list[str]:
    """The methods of the paper's figures: controls have figures of their own."""
    from ital import learners

    return in_legend_order([str(name) for name in one.curves["method"].values if name not in learners.CONTROLS])


def curves(
    one: Evidence,
    metric: str,
    title: str = "",
    size: tuple[float, float] = _charts.SIZE,
    methods: Sequence[str] | None = None,
) -> Panel:
    """One metric over the steps: mean over seeds and ± 1 standard error, with the target's own value or a floor."""
    methods = shown_methods(one) if methods is None else methods
    coloured = colours(methods)
    marks, lowest, highest = [], np.inf, 0.0
    for method in methods:
        steps, values = one.curve(method, metric)
        mean, error = mean_and_error(np.where(np.isfinite(values), values, np.nan))
        dash: Any = DASHES.get(method, (0, ()))[1]
        width = 2.2 if method == "ital" else 1.5
        banded = error if len(values) > 1 else None
        marks.append(
            _charts.line(label(one.curves, method), coloured[method], steps, mean, banded, dash=dash, width=width)
        )
        finite = mean[np.isfinite(mean)]
        lowest, highest = min([lowest, *finite]), max([highest, *finite])
    for kind, words in (("reference", "target"), ("floor", "floor")):
        if kind in one.curves[metric].attrs:
            marks.append(_charts.rule("y", float(np.mean(one.curves[metric].attrs[kind])), words))
    described = one.task.metrics.get(metric)
    logarithmic = metric == "loss" and 0 < lowest < highest / 50
    return _charts.panel(
        title,
        marks,
        x="Training iteration",
        y=described.title if described else metric.replace("_", " "),
        log="y" if logarithmic else "",
        zero=not logarithmic and not one.higher_is_better(metric),
        x_range=(0, one.steps),
        size=size,
    )


def all_panels(one: Evidence) -> list[Panel]:
    """Every metric of the task's figure."""
    return [curves(one, metric) for metric in one.panels()]


def starts_of(data: Data) -> Sequence[str]:
    """The starts that there are experiments from."""
    return [start for start in STARTS if any(condition.start == start for condition in data.experiments)]


def name(start: str) -> str:
    """A start in a file's name."""
    return start.replace(":", "-")
