"""Learning curves: one panel per metric, mean over seeds with a band of ±1 standard error."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ital import learners
from ital._files import write
from ital.errors import InputError
from ital.results import computed, mean_and_error, measured, metrics_of
from ital.tasks import Task

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

# Baselines in greys and earth, the aware family from yellow-green to dark blue by how much of the batch it sees:
# distinct in print and to colour-blind readers.
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
OTHERS = ("#cc79a7", "#7b3294", "#111111", "#b2182b", "#5e8c31", "#e6ab02")
DASHES = {"batch": (0, (1, 1)), "sgd": (0, (4, 1.5)), "imt": (0, (6, 1, 1, 1))}


def plot_curves(curves: "xr.Dataset", task: Task, metrics: Sequence[str] | None = None) -> "Figure":
    """A figure with the task's panels (or the given metrics), all methods in each.

    Args:
        curves: curves of a run.
        task: the task.
        metrics: names of the metrics, one panel each; None for the task's panels.

    Returns:
        The figure.

    Raises:
        InputError: if a metric was not recorded.
    """
    from matplotlib.figure import Figure

    recorded = metrics_of(curves)
    panels = list(metrics or [name for name in task.panels if name in recorded])
    unknown = [name for name in panels if name not in recorded]
    if unknown:
        raise InputError(f"metric {unknown[0]!r} was not recorded: there are {', '.join(recorded)}")
    figure = Figure(figsize=(4.2 * len(panels), 3.9), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, metric in zip(axes, panels, strict=True):
        _panel(axis, curves, task, metric)
    handles, labels = axes[0].get_legend_handles_labels()
    columns = {1: 3, 2: 4}.get(len(panels), 8)
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, handlelength=2.4)
    teacher, seeds = curves.attrs.get("teacher", ""), curves.sizes["seed"]
    detail = f"{teacher} teacher, {seeds} seed{'s' if seeds > 1 else ''}".strip(", ")
    figure.suptitle(f"{task.title}: {detail}", fontsize=11)
    return figure


def in_legend_order(methods: Sequence[str]) -> list[str]:
    """The paper's methods in the order of its legends, then all others as they come.

    Args:
        methods: names of methods.

    Returns:
        The same names, in order.
    """
    of_paper = [name for name in learners.PAPER if name in methods]
    return of_paper + [name for name in methods if name not in of_paper]


def label(curves: "xr.Dataset", method: str) -> str:
    """A method's name in a legend.

    Args:
        curves: curves of a run.
        method: name of the method.

    Returns:
        Its label.
    """
    return str(curves["label"].sel({"method": method}).values)


def colours(methods: Sequence[str]) -> dict[str, str]:
    """A colour for each method: a registered one has the same in every figure, others take what is left.

    Args:
        methods: names of methods.

    Returns:
        Method → colour.
    """
    others = [name for name in dict.fromkeys([*learners.REGISTRY, *methods]) if name not in COLOURS]
    return COLOURS | {name: OTHERS[i % len(OTHERS)] for i, name in enumerate(others)}


def _panel(axis: Any, curves: "xr.Dataset", task: Task, metric: str) -> None:
    lowest, highest = np.inf, 0.0
    methods = in_legend_order([str(m) for m in curves["method"].values])
    coloured = colours(methods)
    for method in methods:
        lanes = computed(curves, method)
        curve = lanes[metric].transpose("seed", "step").values
        is_measured = measured(curves, metric)
        steps, (mean, error) = lanes["step"].values[is_measured], mean_and_error(curve[:, is_measured])
        colour = coloured[method]
        front = 3 if method == "ital" else 2
        axis.plot(
            steps, mean, color=colour, label=label(curves, method), lw=2.2 if method == "ital" else 1.5,
            ls=DASHES.get(method, "-"), zorder=front,
        )  # fmt: skip
        if len(curve) > 1:
            axis.fill_between(steps, mean - error, mean + error, color=colour, alpha=0.18, lw=0, zorder=front - 1)
        finite = mean[np.isfinite(mean)]
        if finite.size:
            lowest, highest = min(lowest, finite.min()), max(highest, finite.max())
    for kind, name in (("reference", "target"), ("floor", "floor")):
        if kind in curves[metric].attrs:
            height = float(np.mean(curves[metric].attrs[kind]))
            axis.axhline(height, color="0.45", ls="--", lw=1, zorder=1)
            axis.annotate(
                name, (1, height), xycoords=("axes fraction", "data"),
                xytext=(-3, 3), textcoords="offset points", ha="right", fontsize=8, color="0.35",
            )  # fmt: skip
    described = task.metrics.get(metric)
    axis.set(xlabel="Training iteration", ylabel=described.title if described else metric.replace("_", " "))
    if metric == "loss" and 0 < lowest < highest / 50:
        axis.set_yscale("log")
    elif not (described and described.higher_is_better):
        axis.set_ylim(bottom=0)
    axis.set_xlim(0, int(curves["step"].values[-1]))
    axis.grid(alpha=0.25, lw=0.6)
    axis.spines[["top", "right"]].set_visible(False)


def save(figure: "Figure", path: Path) -> list[Path]:
    """Write a figure as PNG and PDF, laid out alike, each complete or not at all.

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
        figure.set_layout_engine("none")  # where everything is, is settled: it takes as long as to draw it
        write(file, drawn.getvalue())
        written.append(file)
    return written
