"""Several teachers of one task in one figure: one line each."""

import itertools
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ital.errors import InputError
from ital.figures import charts
from ital.figures._curves import curve_panel, label, panels_of
from ital.figures._runs import share_scale
from ital.results import metrics_of
from ital.tasks import Task

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

COLOURS = (
    "#595959",
    "#d55e00",
    "#0072b2",
    "#009e73",
    "#cc79a7",
    "#e6ab02",
    "#7b3294",
    "#8c510a",
    "#56b4e9",
    "#111111",
)
# Teachers that know much teach alike: dashes let the lines below show through.
DASHES = ((), (5, 3), (1, 2))
STYLES = tuple(zip(COLOURS, itertools.cycle(DASHES), strict=False))


def plot_teachers(
    runs: "Mapping[str, xr.Dataset]",
    task: Task,
    metrics: Sequence[str] | None = None,
    *,
    methods: Sequence[str] | None = None,
) -> "Figure":
    """Draw a row of panels for each method, with a line per teacher.

    A line is the mean over seeds, with a band of ±1 standard error.

    Args:
        runs: name of the teacher → curves of its run on the task.
        task: the task.
        metrics: names of the metrics, a column each; None for the task's panels.
        methods: names of the methods, a row each; None for all that every run has.

    Returns:
        The figure.

    Raises:
        InputError: if a run lacks one of the metrics or methods.

    Example:
        >>> runs = {
        ...     name: ital.teach("regression", name, "imt").curves
        ...     for name in ("random", "cooperative")
        ... }
        >>> ital.figures.plot_teachers(runs, ital.tasks.regression())
    """
    if not runs:
        raise InputError("plot_teachers needs at least one run")
    first = next(iter(runs.values()))
    columns = list(metrics or panels_of(task, metrics_of(first)))
    rows = list(methods or _shared_methods(runs))
    for teacher, run in runs.items():
        _check_recorded(teacher, "metric", columns, metrics_of(run))
        _check_recorded(teacher, "method", rows, run["learner"].values)
    styles = dict(zip(runs, itertools.cycle(STYLES), strict=False))
    panels = []
    for method, metric in itertools.product(rows, columns):
        curves = _curves_by_teacher(runs, method, metric)
        panel = curve_panel(
            curves,
            task,
            metric,
            label(first, method),
            methods=list(runs),
            styles=styles,
        )
        panels.append(panel)
    figure = charts.chart(panels, task.title, columns=len(columns))
    for column in range(len(columns)):
        share_scale(figure.axes[column :: len(columns)])
    return figure


def _shared_methods(runs: "Mapping[str, xr.Dataset]") -> list[str]:
    """Return the methods that every run has, in the order of the first."""
    first, *others = [run["learner"].values.tolist() for run in runs.values()]
    shared = set(first).intersection(*others)
    return [str(name) for name in first if name in shared]


def _check_recorded(
    teacher: str,
    kind: str,
    names: Sequence[str],
    recorded: Container[str],
) -> None:
    """Raise InputError if a run lacks one of these metrics or methods."""
    for name in names:
        if name not in recorded:
            raise InputError(f"the run with the {teacher} teacher has no {kind} {name!r}")


def _curves_by_teacher(runs: "Mapping[str, xr.Dataset]", method: str, metric: str) -> "xr.Dataset":
    """Return the curves of one method, with the teachers in place of the learners."""
    import xarray as xr

    lanes = []
    for name, run in runs.items():
        lane = run[[metric, "computed", "diverged_at"]].sel({"learner": [method]})
        lanes.append(lane.assign_coords(learner=[name], label=("learner", [name])))
    # Runs may have different seeds: what one lacks was not computed.
    gaps = {metric: np.nan, "computed": 0, "diverged_at": -1}
    return xr.concat(lanes, "learner", join="outer", fill_value=gaps, combine_attrs="override")
