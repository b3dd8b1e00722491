"""Learning curves: one panel per metric, mean over seeds with a band of ±1 standard error."""

import io
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ital import learners
from ital.errors import InputError
from ital.figures import charts
from ital.results import computed, mean_and_error, measured, metrics_of, questions_of
from ital.tasks import Metric, Task
from ital.tools.files import write

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

# Baselines in grey and earth colours; aware methods from yellow-green to dark blue by how much of
# the batch they see. The colours are distinct in print and to colour-blind readers.
COLOURS = {
    "batch": "#9a9a9a",
    "sgd": "#c8a06a",
    "imt": "#d55e00",
    "ital": "#08306b",
    "ital-2": "#a6d96a",
    "ital-5": "#41b6a6",
    "ital-10": "#2c8fc9",
    "ital-15": "#225ea8",
}
OTHERS = (
    "#cc79a7",
    "#7b3294",
    "#111111",
    "#b2182b",
    "#5e8c31",
    "#e6ab02",
    "#1f9e89",
    "#8c510a",
    "#5c5cff",
    "#ff7f7f",
    "#4d4d4d",
    "#80b1d3",
    "#00c2d1",
    "#9e9ac8",
    "#c51b7d",
    "#b3de69",
)
DASHES = {"batch": (0, (1, 1)), "sgd": (0, (4, 1.5)), "imt": (0, (6, 1, 1, 1))}


def plot_curves(
    curves: "xr.Dataset",
    task: Task,
    metrics: Sequence[str] | None = None,
    *,
    methods: Sequence[str] | None = None,
    ax: Any = None,
    figsize: tuple[float, float] | None = None,
) -> "Figure":
    """Draw the task's panels (or the given metrics), with all methods (or the given ones) in each.

    Args:
        curves: curves of a run.
        task: the task.
        metrics: names of the metrics, one panel each; None for the task's panels.
        methods: names of the methods to show; None for all.
        ax: your own axes to draw on, one for each metric; a single one takes the first metric.
        figsize: width and height of a new figure in inches.

    Returns:
        The figure, or that of the given axes.

    Raises:
        InputError: if a metric was not recorded, a method was not taught, or there are too few
            axes.
    """
    recorded = metrics_of(curves)
    taught = [str(name) for name in curves["learner"].values]
    chosen_metrics = _listed_names("metric", metrics, recorded, "was not recorded")
    chosen_methods = _listed_names("learner", methods, taught, "was not taught")
    columns = chosen_metrics or panels_of(task, recorded)
    legend = chosen_methods or in_legend_order(taught)
    if ax is not None:
        axes = np.ravel(ax)
        # Who names metrics needs as many axes; the task's panels may be more than there are axes.
        if not metrics:
            columns = columns[: len(axes)]
        return _draw_on_axes(curves, task, columns, legend, axes)
    panels = [
        curve_panel(curves, task, metric, methods=legend, size=(4.2, 2.8)) for metric in columns
    ]
    seeds = seeds_in_words(curves)
    teacher = curves.attrs.get("teacher", "")
    detail = f"{teacher} teacher, {seeds}".strip(", ")
    return charts.chart(panels, f"{task.title}: {detail}", columns=len(panels), figsize=figsize)


def seeds_in_words(curves: "xr.Dataset") -> str:
    """Return the number of seeds: ``1 seed``, ``20 seeds``."""
    seeds = curves.sizes["seed"]
    return f"{seeds} seed" if seeds == 1 else f"{seeds} seeds"


def _listed_names(
    kind: str,
    names: Sequence[str] | str | None,
    known: list[str],
    fault: str,
) -> list[str]:
    """Return the names as a list, empty for None; raise InputError for an unknown name."""
    if names is None:
        return []
    listed = [names] if isinstance(names, str) else list(names)
    for name in listed:
        if name not in known:
            raise InputError(f"{kind} {name!r} {fault}: choose from {', '.join(known)}")
    return listed


def panels_of(task: Task, recorded: list[str]) -> list[str]:
    """Return the task's panels that were recorded, or all recorded metrics if there are none."""
    return [name for name in task.panels if name in recorded] or recorded


def _draw_on_axes(
    curves: "xr.Dataset",
    task: Task,
    metrics: Sequence[str],
    methods: Sequence[str],
    axes: np.ndarray,
) -> "Figure":
    """Draw panels on the caller's axes, each with its own legend."""
    if len(axes) < len(metrics):
        raise InputError(f"{len(metrics)} metrics need {len(metrics)} axes, not {len(axes)}")
    for axis, metric in zip(axes, metrics, strict=False):
        charts.draw(axis, curve_panel(curves, task, metric, methods=methods))
        axis.legend(frameon=False, fontsize="small")
    return axes[0].figure


def in_legend_order(methods: Sequence[str]) -> list[str]:
    """Put the paper's methods in the order of its legends, then all others as given.

    Args:
        methods: names of methods.

    Returns:
        The same names, in order.
    """
    of_paper = [name for name in learners.PAPER if name in methods]
    return of_paper + [name for name in methods if name not in of_paper]


def label(curves: "xr.Dataset", method: str) -> str:
    """Return a method's name in a legend.

    Args:
        curves: curves of a run.
        method: name of the method.

    Returns:
        Its label.
    """
    return str(curves["label"].sel({"learner": method}).values)


def colours(methods: Sequence[str]) -> dict[str, str]:
    """Choose a colour for each method.

    A registered method has the same in every figure; others take the remaining colours.

    Args:
        methods: names of methods.

    Returns:
        Method → colour.
    """
    # All registered methods take part, so that a colour does not depend on what else is shown.
    every = dict.fromkeys([*learners.REGISTRY, *methods])
    others = [name for name in every if name not in COLOURS]
    left = itertools.cycle(OTHERS)
    return COLOURS | dict(zip(others, left, strict=False))


def curve_panel(
    curves: "xr.Dataset",
    task: Task,
    metric: str,
    title: str = "",
    *,
    methods: Sequence[str] | None = None,
    styles: Mapping[str, tuple[str, Any]] | None = None,
    size: tuple[float, float] = charts.SIZE,
) -> charts.Panel:
    """Make a panel of one metric over the steps.

    It shows the mean over seeds ± 1 standard error, and the reference line or floor.

    Args:
        curves: the curves of a run.
        task: the task that was taught.
        metric: the metric to show.
        title: the title of the panel.
        methods: the methods to show (default: all, in the order of the paper's legends).
        styles: the colour and the dashes of each method (default: as in every figure).
        size: inches of the panel.

    Returns:
        The panel, for :func:`ital.figures.charts.chart` or a report.
    """
    if methods is None:
        methods = in_legend_order([str(name) for name in curves["learner"].values])
    styles = styles or _default_styles(methods)
    at = measured(curves, metric)
    lines = [_mean_line(curves, metric, method, styles[method], at) for method in methods]
    described = task.metrics.get(metric) or Metric(metric.replace("_", " "))
    rules = _rules_of(curves[metric], described)
    # Differences between small losses are lost on a linear scale.
    logarithmic = metric == "loss" and _spans(lines, 50)
    more_is_better = described.higher_is_better
    return charts.panel(
        title,
        [*lines, *rules],
        x="Training iteration",
        y=described.title,
        log="y" if logarithmic else "",
        zero=not logarithmic and not more_is_better,
        x_range=(0, int(curves["step"].values[-1])),
        size=size,
    )


def _rules_of(lanes: "xr.DataArray", described: Metric) -> list[charts.Mark]:
    """Make the lines of the constants of a metric, means over the seeds."""
    rules = []
    for constant, words in (("reference", described.reference), ("floor", "floor")):
        by_seed = lanes.attrs.get(constant)
        if by_seed is not None:
            mean = float(np.mean(by_seed))
            rules.append(charts.rule("y", mean, words))
    return rules


def _default_styles(methods: Sequence[str]) -> dict[str, tuple[str, Any]]:
    """Return the colour and the dashes that methods have in every figure."""
    styles = {}
    for name, colour in colours(methods).items():
        _, dashes = DASHES.get(name, (0, ()))
        styles[name] = (colour, dashes)
    return styles


def _mean_line(
    curves: "xr.Dataset",
    metric: str,
    method: str,
    style: tuple[str, Any],
    at: np.ndarray,
) -> charts.Mark:
    """Make the line of one method: the mean over its seeds at the steps where ``at`` is true."""
    colour, dash = style
    lanes = computed(curves, method)
    by_seed = lanes[metric].transpose("seed", "step").values
    values = by_seed[:, at].astype(float)
    finite = np.where(np.isfinite(values), values, np.nan)
    mean, error = mean_and_error(finite, questions_of(curves, metric))
    return charts.line(
        label(curves, method),
        colour,
        lanes["step"].values[at],
        mean,
        error if len(values) > 1 else None,
        dash=dash,
        width=2.2 if method == "ital" else 1.5,
    )


def _spans(lines: Sequence[charts.Mark], factor: float) -> bool:
    """Return whether lines are positive and span more than this factor."""
    points = np.concatenate([np.empty(0), *(line["y"] for line in lines)])
    finite = points[np.isfinite(points)]
    if not finite.size:
        return False
    lowest = finite.min()
    highest = max(finite.max(), 0.0)
    return bool(0 < lowest < highest / factor)


def save(figure: "Figure", path: Path) -> list[Path]:
    """Write a figure as PNG and PDF with the same layout, each completely or not at all.

    Args:
        figure: the figure.
        path: the files without their suffixes.

    Returns:
        The files.
    """
    written = []
    for suffix, options in ((".png", {"dpi": 150}), (".pdf", {"metadata": {"CreationDate": None}})):
        file = path.with_name(path.name + suffix)
        drawn = io.BytesIO()
        figure.savefig(drawn, format=suffix[1:], **options)
        # The layout is done; repeating it would take as long as drawing.
        figure.set_layout_engine("none")
        write(file, drawn.getvalue())
        written.append(file)
    return written
