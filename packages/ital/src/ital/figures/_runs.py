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
    own = [name for curves, task in runs.values() for name in panels_of(task, metrics_of(curves))]
    columns = list(metrics or dict.fromkeys(own))
    panels = []
    for run, (curves, task) in runs.items():
        taught = [str(name) for name in curves["learner"].values]
        shown = (
            in_legend_order(taught)
            if methods is None
            else [name for name in methods if name in taught]
        )
        for metric in columns:
            known = metric in metrics_of(curves) and shown
            panels.append(
                curve_panel(curves, task, metric, run, methods=shown) if known else charts.blank()
            )
    if not any(panel["marks"] for panel in panels):
        raise InputError("no run has any of these metrics and methods")
    figure = charts.chart(panels, "", columns=len(columns))
    for column in range(len(columns)):
        share_scale([axis for axis in figure.axes[column :: len(columns)] if axis.axison])
    return figure


def share_scale(axes: Sequence[Any]) -> None:
    """Give axes of the same name one scale and one range of y: logarithmic if one of them is."""
    if len({axis.get_ylabel() for axis in axes}) != 1:
        return
    if any(axis.get_yscale() == "log" for axis in axes):
        for axis in axes:
            axis.set_yscale("log")
            axis.relim()
            axis.autoscale(axis="y")
    low, high = zip(*(axis.get_ylim() for axis in axes), strict=True)
    for axis in axes:
        axis.set_ylim(min(low), max(high))
