"""Who believes what: real teachers against the teachers that learners assume."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ital.figures import charts
from ital.figures._curves import label
from ital.results import computed, mean_and_error, measured, metrics_of
from ital.statistics import number
from ital.tasks import Task

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

NAIVE = "imt"
ASSUMED = {
    "imt": "nothing",
    "ital-helpful": "a helper",
    "ital-hostile": "an adversary",
    "ital-adaptive": "finds out",
}
"""What each learner of a matrix assumes about its teacher."""

MOST = 10.0  # the ratio to the naive learner with the last colour; its inverse has the first

MATRIX_NOTE = (
    "Each cell: the mean at the last step, and below it the ratio to the naive learner with the same teacher, which "
    "sets the colour.  Framed: the best of a row."
)


class MatrixCell(NamedTuple):
    """One learner with one teacher.

    Attributes:
        mean: the mean of the metric at the last step over seeds; NaN if a seed diverged.
        error: its standard error.
        over_naive: the mean over that of the naive learner with the same teacher.
    """

    mean: float
    error: float
    over_naive: float


def main_metric(curves: "xr.Dataset", task: Task) -> str:
    """The metric of a matrix: the distance without the part that no example can change, where there is one.

    Args:
        curves: the curves of a run.
        task: the task.

    Returns:
        Name of the metric.
    """
    recorded = metrics_of(curves)
    return next(
        name
        for name in ("distance_centred", "distance", *task.panels, *recorded)
        if name in recorded
    )


def matrix_cells(runs: "Mapping[str, xr.Dataset]", task: Task) -> dict[str, dict[str, MatrixCell]]:
    """The cells of a matrix.

    Args:
        runs: teacher → curves of the learners.
        task: the task.

    Returns:
        Teacher → learner → cell.
    """
    return {teacher: _row(curves, main_metric(curves, task)) for teacher, curves in runs.items()}


def _row(curves: "xr.Dataset", metric: str) -> dict[str, MatrixCell]:
    last = np.flatnonzero(measured(curves, metric))[-1]
    ends = {
        str(name): mean_and_error(
            computed(curves, str(name))[metric].transpose("seed", "step").values[:, last]
        )
        for name in curves["learner"].values
    }
    naive = float(ends[NAIVE][0]) if NAIVE in ends else np.nan
    return {
        name: MatrixCell(float(mean), float(error), float(mean) / naive)
        for name, (mean, error) in ends.items()
    }


def matrix_panel(runs: "Mapping[str, xr.Dataset]", task: Task, title: str = "") -> charts.Panel:
    """A heat map: a row per teacher, a column per learner, coloured by the ratio to the naive learner.

    Args:
        runs: teacher → curves of the learners.
        task: the task.
        title: title of the panel.

    Returns:
        The panel.
    """
    rows, first = matrix_cells(runs, task), next(iter(runs.values()))
    described = task.metrics.get(main_metric(first, task))
    methods = [str(name) for name in first["learner"].values]
    teachers = list(rows)[::-1]  # a map is drawn from the bottom up
    ratios = np.array(
        [[rows[teacher][name].over_naive for name in methods] for teacher in teachers]
    )
    texts = [[_text(rows[teacher][name]) for name in methods] for teacher in teachers]
    best = np.nanargmax if described and described.higher_is_better else np.nanargmin
    framed = [(i, int(best(ratios[i]))) for i in range(len(rows)) if np.isfinite(ratios[i]).any()]
    names = [ASSUMED.get(name, label(first, name)) for name in methods]
    return charts.panel(
        title, [charts.cells(ratios, texts, framed, None, (1 / MOST, MOST))],
        x="What the learner assumes about its teacher", y="Real teacher",
        x_ticks=(range(len(names)), names), y_ticks=(range(len(teachers)), teachers),
        size=(1.6 + 1.1 * len(names), 1.0 + 0.38 * len(teachers)),
    )  # fmt: skip


def _text(cell: MatrixCell) -> str:
    return (
        f"{number(cell.mean)}\n{number(cell.over_naive, 2)} ×"
        if np.isfinite(cell.mean)
        else "diverged"
    )


def plot_matrix(runs: "Mapping[str, xr.Dataset]", task: Task) -> "Figure":
    """Draw real teachers against assumed ones.

    Args:
        runs: teacher → curves of the learners.
        task: the task.

    Returns:
        The figure.
    """
    first = next(iter(runs.values()))
    metric = main_metric(first, task)
    what = task.metrics[metric].title if metric in task.metrics else metric.replace("_", " ")
    seeds = first.sizes["seed"]
    last = int(first["step"].values[-1])
    title = f"{task.title}: {what.lower()} at step {last}, {seeds} seed{'s' if seeds > 1 else ''}"
    return charts.chart([matrix_panel(runs, task)], title, columns=1, foot=MATRIX_NOTE)
