"""Who believes what: real teachers against the teachers that learners assume."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ital.figures import charts
from ital.figures._curves import label, seeds_in_words
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
    "Each cell: the mean at the last step, and below it the ratio to the naive learner with the "
    "same teacher, which sets the colour.  Framed: the best of a row."
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
    """Choose the metric of a matrix.

    It is the distance, without the part that no example can change where that was recorded.

    Args:
        curves: the curves of a run.
        task: the task.

    Returns:
        Name of the metric.
    """
    recorded = metrics_of(curves)
    candidates = ("distance_centred", "distance", *task.panels, *recorded)
    return next(name for name in candidates if name in recorded)


def matrix_cells(runs: "Mapping[str, xr.Dataset]", task: Task) -> dict[str, dict[str, MatrixCell]]:
    """Compute the cells of a matrix.

    Args:
        runs: teacher → curves of the learners.
        task: the task.

    Returns:
        Teacher → learner → cell.
    """
    cells = {}
    for teacher, curves in runs.items():
        metric = main_metric(curves, task)
        cells[teacher] = _matrix_row(curves, metric)
    return cells


def _matrix_row(curves: "xr.Dataset", metric: str) -> dict[str, MatrixCell]:
    """Return the cells of one teacher: learner → cell."""
    measured_steps = np.flatnonzero(measured(curves, metric))
    last = measured_steps[-1]
    means = {}
    errors = {}
    for name in map(str, curves["learner"].values):
        lanes = computed(curves, name)[metric]
        by_seed = lanes.transpose("seed", "step").values
        mean, error = mean_and_error(by_seed[:, last])
        means[name] = float(mean)
        errors[name] = float(error)
    naive = means.get(NAIVE, np.nan)
    cells = {}
    for name, at_end in means.items():
        cells[name] = MatrixCell(
            mean=at_end,
            error=errors[name],
            over_naive=at_end / naive,
        )
    return cells


def matrix_panel(runs: "Mapping[str, xr.Dataset]", task: Task, title: str = "") -> charts.Panel:
    """Make a heat map: a row per teacher, a column per learner.

    The colours are the ratios to the naive learner.

    Args:
        runs: teacher → curves of the learners.
        task: the task.
        title: title of the panel.

    Returns:
        The panel.
    """
    cells = matrix_cells(runs, task)
    first = next(iter(runs.values()))
    methods = [str(name) for name in first["learner"].values]
    # A map is drawn from the bottom up.
    teachers = list(reversed(cells))
    described = task.metrics.get(main_metric(first, task))
    best = np.nanargmin
    if described and described.higher_is_better:
        best = np.nanargmax
    ratios = []  # (teacher, learner)
    texts = []
    framed = []
    for row, teacher in enumerate(teachers):
        of_teacher = [cells[teacher][name] for name in methods]
        over_naive = [cell.over_naive for cell in of_teacher]
        ratios.append(over_naive)
        texts.append([_cell_text(cell) for cell in of_teacher])
        if np.isfinite(over_naive).any():
            column = int(best(over_naive))
            framed.append((row, column))
    names = [ASSUMED.get(name, label(first, name)) for name in methods]
    limits = (1 / MOST, MOST)
    width = 1.6 + 1.1 * len(names)
    height = 1.0 + 0.38 * len(teachers)
    return charts.panel(
        title,
        [charts.cells(np.array(ratios), texts, framed, None, limits)],
        x="What the learner assumes about its teacher",
        y="Real teacher",
        x_ticks=(range(len(names)), names),
        y_ticks=(range(len(teachers)), teachers),
        size=(width, height),
    )


def _cell_text(cell: MatrixCell) -> str:
    if not np.isfinite(cell.mean):
        return "diverged"
    return f"{number(cell.mean)}\n{number(cell.over_naive, 2)} ×"


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
    what = metric.replace("_", " ")
    if metric in task.metrics:
        what = task.metrics[metric].title
    last = int(first["step"].values[-1])
    title = f"{task.title}: {what.lower()} at step {last}, {seeds_in_words(first)}"
    panel = matrix_panel(runs, task)
    return charts.chart([panel], title, columns=1, foot=MATRIX_NOTE)
