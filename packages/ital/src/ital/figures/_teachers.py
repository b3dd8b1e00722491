"""Several teachers of one task in one figure: one line each."""

import itertools
from collections.abc import Mapping, Sequence
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
STYLES = tuple((colour, ((), (5, 3), (1, 2))[i % 3]) for i, colour in enumerate(COLOURS))


def plot_teachers(
    runs: "Mapping[str, xr.Dataset]",
    task: Task,
    metrics: Sequence[str] | None = None,
    *,
    methods: Sequence[str] | None = None,
) -> "Figure":
    """Draw a row of panels for each method: a line per teacher, mean over seeds with a band of ±1 standard error.

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
        >>> runs = {name: ital.teach("regression", name, "imt").curves for name in ("random", "cooperative")}
        >>> ital.figures.plot_teachers(runs, ital.tasks.regression())
    """
    if not runs:
        raise InputError("plot_teachers needs at least one run")
    first = next(iter(runs.values()))
    columns = list(metrics or panels_of(task, metrics_of(first)))
    shared = [
        name
        for name in map(str, first["learner"].values)
        if all(name in run["learner"] for run in runs.values())
    ]
    rows = list(methods or shared)
    for teacher, run in runs.items():
        for kind, names, known in (
            ("metric", columns, metrics_of(run)),
            ("method", rows, run["learner"].values),
        ):
            for name in names:
                if name not in known:
                    raise InputError(f"the run with the {teacher} teacher has no {kind} {name!r}")
    styles = dict(zip(runs, itertools.cycle(STYLES), strict=False))
    panels = [
        curve_panel(
            _by_teacher(runs, method, metric),
            task,
            metric,
            label(first, method),
            methods=list(runs),
            styles=styles,
        )
        for method in rows
        for metric in columns
    ]
    figure = charts.chart(panels, task.title, columns=len(columns))
    for column in range(len(columns)):
        share_scale(figure.axes[column :: len(columns)])
    return figure


def _by_teacher(runs: "Mapping[str, xr.Dataset]", method: str, metric: str) -> "xr.Dataset":
    """The curves of one method, with the teachers in place of the learners."""
    import xarray as xr

    lanes = [
        run[[metric, "computed", "diverged_at"]]
        .sel({"learner": [method]})
        .assign_coords(learner=[name], label=("learner", [name]))
        for name, run in runs.items()
    ]
    # Runs may have different seeds: what one lacks was not computed.
    gaps = {metric: np.nan, "computed": 0, "diverged_at": -1}
    return xr.concat(lanes, "learner", join="outer", fill_value=gaps, combine_attrs="override")
