"""Who believes what: real teachers with learners that assume nothing, a helper or an adversary.

Others find out what their teacher is.

Milli and Dragan (2019) ask this question of robots that learn from people, and order the pairs.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ital import figures
from ital.errors import InputError
from ital.experiments._cells import Engine
from ital.experiments._run import run
from ital.experiments._settings import Settings
from ital.figures import ASSUMED
from ital.statistics import number
from ital.tasks import Task
from ital.tools.files import write

if TYPE_CHECKING:
    import xarray as xr

TEACHERS = (
    "cooperative",
    "boltzmann",
    "random",
    "adversarial",
    "switching",
    "planner:3",
    "exam:20:120",
)
"""The real teachers of a matrix."""

CONTROL = "imt-matched"
# The theory of best responses (Milli and Dragan, 2019):
# each pair of teacher and learner does at least as well as the next one.
BEST_RESPONSES = (
    ("cooperative", "ital-helpful"),
    ("cooperative", "imt"),
    ("random", "imt"),
    ("random", "ital-helpful"),
)


@dataclass(frozen=True)
class Matrix:
    """Real teachers against the teachers that learners assume.

    Attributes:
        runs: teacher → curves of the learners.
        task: the task.
        left_out: a line for each teacher that makes no sense on the task.
        files: the files that were written.
    """

    runs: "dict[str, xr.Dataset]"
    task: Task
    left_out: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()

    @property
    def metric(self) -> str:
        """The metric that is compared."""
        return figures.main_metric(next(iter(self.runs.values())), self.task)

    @property
    def cells(self) -> dict[str, dict[str, figures.MatrixCell]]:
        """Teacher → learner → its mean, standard error, and ratio to the naive learner."""
        return figures.matrix_cells(self.runs, self.task)

    def best_responses(self) -> str:
        """Tell whether the means are in the order that the theory of best responses predicts.

        Returns:
            One line; empty if a teacher or a learner of the order is missing.
        """
        cells = self.cells
        for teacher, learner in BEST_RESPONSES:
            if learner not in cells.get(teacher, {}):
                return ""
        means = []
        pairs = []
        for teacher, learner in BEST_RESPONSES:
            mean = cells[teacher][learner].mean
            assumed = ASSUMED[learner]
            means.append(mean)
            pairs.append(f"{teacher} teacher, learner assumes {assumed}: {number(mean)}")
        found = "; ".join(pairs)
        described = self.task.metrics.get(self.metric)
        sign = -1.0 if described and described.higher_is_better else 1.0
        # The predicted order is from the lowest cost; a learner that diverged has the highest.
        costs = [sign * mean if np.isfinite(mean) else np.inf for mean in means]
        for place, (cost, next_cost) in enumerate(itertools.pairwise(costs), start=1):
            if cost > next_cost:
                at = f"between places {place} and {place + 1}"
                return f"The order that best responses predict fails {at} ({found})."
        return f"The order that best responses predict holds ({found})."


def matrix(  # noqa: PLR0913
    settings: Settings,
    out: Path | str = "results",
    *,
    teachers: Sequence[str] | None = None,
    controls: bool = False,
    overwrite: bool = False,
    draw: bool = True,
    engine: Engine | None = None,
    progress: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Matrix:
    """Teach learners that assume different teachers with each real teacher.

    The table and the figure are ``OUT/TASK/matrix.*``.

    Each teacher is a run of its own in ``OUT/TASK/TEACHER/``, as :func:`run` writes it: finished
    parts are skipped, interrupted ones resume.

    Args:
        settings: task and numbers of the runs; its teacher and methods are ignored.
        out: the folder for results.
        teachers: the real teachers, None for ``TEACHERS``; those that make no sense on the task are
            left out.
        controls: add a naive learner whose steps are as long as ITAL's.
        overwrite: compute everything again.
        draw: write the figure.
        engine: computes the cells; None for this process.
        progress: show a progress bar.
        say: called with a line about each event or problem.

    Returns:
        The matrix.

    Raises:
        InputError: if the settings are not valid, or no teacher makes sense on the task.
        Incomplete: if a cell of a run failed.

    Example:
        >>> settings = ital.experiments.Settings(task="gaussian", seeds=10)
        >>> ital.experiments.matrix(settings, "results").best_responses()
    """
    methods = tuple(ASSUMED)
    if controls:
        methods += (CONTROL,)
    teachers = TEACHERS if teachers is None else teachers
    wanted = {teacher: replace(settings, teacher=teacher, methods=methods) for teacher in teachers}
    left_out = _left_out(wanted)
    possible = {teacher: one for teacher, one in wanted.items() if teacher not in left_out}
    if not possible:
        raise InputError(f"none of these teachers makes sense on this task: {', '.join(teachers)}")
    for line in left_out.values():
        say(line)
    runs = {}
    for teacher, one in possible.items():
        outcome = run(
            one,
            out,
            draw=False,
            overwrite=overwrite,
            engine=engine,
            progress=progress,
            say=say,
        )
        # The folder may hold more methods and seeds, from other calls.
        runs[teacher] = outcome.curves.sel({"learner": list(methods), "seed": one.seed_list})
    result = Matrix(runs, outcome.task, tuple(left_out.values()))
    return replace(result, files=tuple(_write_matrix(result, Path(out) / outcome.task.name, draw)))


def _left_out(wanted: Mapping[str, Settings]) -> dict[str, str]:
    """Return the teachers that make no sense on the task, each with a line that says why.

    Raises:
        InputError: if settings are not valid for another reason, or only one teacher is wanted.
    """
    left_out = {}
    for teacher, settings in wanted.items():
        try:
            settings.plan()
        except InputError as error:
            if len(wanted) == 1 or not str(error).startswith("teacher "):
                raise
            left_out[teacher] = f"left out: {error}"
    return left_out


def _write_matrix(result: Matrix, folder: Path, draw: bool) -> list[Path]:
    """Write the table, and the figure if it is wanted."""
    lines = ["teacher,learner,assumes,metric,mean,standard_error,over_naive"]
    for teacher, row in result.cells.items():
        for learner, cell in row.items():
            assumes = ASSUMED.get(learner, "control")
            values = [f"{value:.6g}" for value in cell]
            words = [teacher, learner, assumes, result.metric, *values]
            lines.append(",".join(words))
    table = folder / "matrix.csv"
    text = "\n".join(lines) + "\n"
    write(table, text.encode())
    if not draw:
        return [table]
    figure = figures.plot_matrix(result.runs, result.task)
    return [table, *figures.save(figure, folder / "matrix")]


def print_matrix(result: Matrix, console: Console | None = None) -> None:
    """Print the matrix, what best responses predict, and the files.

    Args:
        result: what :func:`matrix` returned.
        console: where to print; None for standard output.
    """
    console = console or Console()
    first = next(iter(result.runs.values()))
    methods = [str(name) for name in first["learner"].values]
    what = result.metric.replace("_", " ")
    title = (
        f"{result.task.title}: {what} of learners by what they assume about their teacher; "
        "mean ± standard error, and × the naive learner with the same teacher"
    )
    table = Table(title=title, title_justify="left")
    table.add_column("real teacher")
    for name in methods:
        table.add_column(ASSUMED.get(name) or figures.label(first, name), justify="right")
    for teacher, row in result.cells.items():
        words = [_cell_in_words(row[name]) for name in methods]
        table.add_row(teacher, *words)
    console.print(table)
    order = result.best_responses()
    for line in (order, *map(str, result.files)):
        if line:
            console.print(Text(line), soft_wrap=True)


def _cell_in_words(cell: figures.MatrixCell) -> str:
    if not np.isfinite(cell.mean):
        return "diverged"
    mean = number(cell.mean)
    over_naive = number(cell.over_naive, 2)
    error = ""
    if np.isfinite(cell.error):
        error = f" ± {number(cell.error, 2)}"
    return f"{mean}{error}\n{over_naive} ×"
