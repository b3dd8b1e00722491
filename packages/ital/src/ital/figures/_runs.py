"""Several runs in one figure: one row each, with a shared scale per metric."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ital.errors import InputError
from ital.figures import charts
from ital.figures._curves import curve_panel, in_legend_order, panels_of
from ital.results import metrics_of
from ital.tasks import Task

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


def plot_runs(
    runs: "Mapping[str, tuple[xr.Dataset, Task]]",
    metrics: Sequence[str] | None = None,
    *,
    methods: Sequence[str] | None = None,
) -> "Figure":
    """Draw a row of panels for each run; panels of the same metric share their scale.

    Args:
        runs: name → curves and task of each run.
        metrics: names of the metrics, a column each; None for the panels of the tasks.
        methods: names of the methods to show; None for all.

    Returns:
        The figure.

    Raises:
        InputError: if no run has any of the metrics or methods.
    """
    columns = list(metrics or _all_panels(runs))
    panels = []
    for run, (curves, task) in runs.items():
        legend = _legend_of(curves, methods)
        for metric in columns:
            if legend and metric in metrics_of(curves):
                panels.append(curve_panel(curves, task, metric, run, methods=legend))
            else:
                # An empty place keeps the columns aligned.
                panels.append(charts.blank())
    if not any(panel["marks"] for panel in panels):
        raise InputError("no run has any of these metrics and methods")
    figure = charts.chart(panels, "", columns=len(columns))
    for column in range(len(columns)):
        axes = figure.axes[column :: len(columns)]
        share_scale([axis for axis in axes if axis.axison])
    return figure


def _all_panels(runs: "Mapping[str, tuple[xr.Dataset, Task]]") -> list[str]:
    """Return the panels of all tasks, each once."""
    panels: dict[str, None] = {}
    for curves, task in runs.values():
        panels |= dict.fromkeys(panels_of(task, metrics_of(curves)))
    return list(panels)


def _legend_of(curves: "xr.Dataset", methods: Sequence[str] | None) -> list[str]:
    """Return the methods of a run to show: those that are named, or all in the legend's order."""
    taught = [str(name) for name in curves["learner"].values]
    if methods is None:
        return in_legend_order(taught)
    return [name for name in methods if name in taught]


def share_scale(axes: Sequence[Any]) -> None:
    """Give axes of the same name one scale and one range of y: logarithmic if one of them is."""
    if len({axis.get_ylabel() for axis in axes}) != 1:
        return
    if any(axis.get_yscale() == "log" for axis in axes):
        # Limits of a linear scale may reach 0.
        for axis in axes:
            axis.set_yscale("log")
            axis.relim()
            axis.autoscale(axis="y")
    lows, highs = zip(*(axis.get_ylim() for axis in axes), strict=True)
    for axis in axes:
        axis.set_ylim(min(lows), max(highs))
