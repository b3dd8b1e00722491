"""Sweeps: a grid of step sizes and rationalities, all lanes of one compiled program."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ital import tuning
from ital.errors import InputError
from ital.experiments import _track
from ital.experiments._cells import Engine
from ital.experiments._experiment import SWEEP, CellSize, Experiment, axis_of
from ital.experiments._run import completed
from ital.experiments._settings import Settings
from ital.tasks import Task
from ital.teaching import task_of, write_table
from ital.tools.curve_files import Damaged, load_curves, save_curves

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Sweep:
    """The result of a sweep.

    Methods without a β are computed once per η and repeated along ``beta``:
    ``grid.attrs["without_beta"]`` names them.

    Attributes:
        grid: a Dataset with dimensions (learner, lr, beta, seed, step).
        task: the task.
        files: the files that were written.
        lanes_computed: number of lanes (a method at one η and one β on one seed) computed now,
            rather than found on disk.
    """

    grid: "xr.Dataset"
    task: Task
    files: list[Path]
    lanes_computed: int

    def __repr__(self) -> str:
        names = map(str, self.grid["learner"].values)
        methods = ", ".join(names)
        sizes = self.grid.sizes
        size = f"{sizes['lr']} × {sizes['beta']} settings"
        return f"Sweep({self.task.name!r}: {methods}; {size}, {len(self.files)} files)"

    def judged_by(self, metric: str) -> "Sweep":
        """Return the same sweep, judged by another metric.

        Args:
            metric: a metric that was recorded.

        Returns:
            The sweep.

        Raises:
            InputError: if the metric was not recorded.
        """
        return dataclasses.replace(self, grid=tuning.judged_by(self.grid, self.task, metric))

    def verdicts(self) -> list[tuning.Verdict]:
        """Judge each method at its best setting: after 500 and 1000 steps and at the end.

        Returns:
            One verdict per step.
        """
        return [tuning.judge(self.grid, step) for step in tuning.judged_steps(self.grid)]

    def plot(self) -> "Figure":
        """Draw heat maps: what each setting reaches in the end, and how soon it gets close to that.

        Returns:
            The figure.
        """
        from ital.figures import plot_sweep

        return plot_sweep(self.grid, self.task)


def sweep(  # noqa: PLR0913
    settings: Settings,
    lr: Sequence[float],
    beta: Sequence[float],
    out: Path | str = "results",
    *,
    metric: str | None = None,
    overwrite: bool = False,
    csv: bool = False,
    seeds_per_cell: int | None = None,
    points_per_cell: int | None = None,
    engine: Engine | None = None,
    mlflow: str | None = None,
    progress: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Sweep:
    """Compute the missing parts of a grid η × β.

    ``sweep.nc`` and its maps are in ``OUT/TASK/TEACHER/``.

    Missing methods, seeds and values of η and β are added to an existing sweep; settings of the
    wider grid that nobody asked for stay gaps. An interrupted sweep resumes from its last
    checkpoint. Exams (the greedy searches of the equation tasks) are skipped.

    Args:
        settings: what to run; its ``lr`` and ``beta`` are ignored.
        lr: step sizes η.
        beta: rationalities β.
        out: the folder for results.
        metric: the metric that settings are judged by; None for the one before, and for the
            distance in a new sweep.
        overwrite: compute everything again.
        csv: also write every measured value as a table, ``sweep.csv``.
        seeds_per_cell: number of seeds in a cell; None for as many as should fit into memory.
        points_per_cell: number of points (methods at an η and a β) in a cell; None for as many as
            fit into memory.
        engine: computes the cells; None for this process. See :func:`processes` and
            :func:`cluster`.
        mlflow: address of an MLflow store to also log to.
        progress: show a progress bar.
        say: called with a line about each event or problem.

    Returns:
        The grid and the files.

    Raises:
        InputError: if the settings are not valid, or differ from those of the results in the
            folder.
        Incomplete: at the end, if a cell failed.

    Example:
        >>> settings = ital.experiments.Settings(
        ...     task="regression", methods=("imt", "ital"), steps=200, seeds=5
        ... )
        >>> sweep = ital.experiments.sweep(settings, lr=[1e-3, 1e-2], beta=[1e3, 1e4])
    """
    # In the order of AXES. A third axis enters here, as a further argument.
    axes = {"lr": axis_of("lr", lr), "beta": axis_of("beta", beta)}
    experiment = Experiment(settings, axes, metric)
    plan = experiment.plan
    folder = Path(out) / experiment.folder
    cell_size = CellSize(seeds_per_cell, points_per_cell)
    # The store must answer before anything is computed.
    store = None if mlflow is None else _track.open_store(mlflow)
    with completed(
        experiment,
        Path(out),
        cell_size,
        engine,
        overwrite=overwrite,
        progress=progress,
        say=say,
    ) as done:
        from ital import figures

        grid = done.result
        if metric is not None and metric != tuning.metric_of(grid):
            # Nothing was missing: only what the settings are judged by is new.
            grid = tuning.judged_by(grid, plan.task, metric)
            save_curves(grid, folder / SWEEP.file)
        maps = figures.save(figures.plot_sweep(grid, plan.task), folder / "sweep")
        table = write_table(grid, folder / "sweep.csv", csv)
        outcome = Sweep(grid, plan.task, [folder / SWEEP.file, *maps, *table], done.computed)
        if store is not None:
            _track.track(store, experiment, grid, outcome.files)
    done.check(outcome)
    return outcome


def load_sweep(folder: Path | str) -> Sweep:
    """Read a sweep that :func:`sweep` wrote.

    Args:
        folder: the folder with ``sweep.nc``.

    Returns:
        The sweep; its only file is the one that was read.

    Raises:
        InputError: if there is no sweep, or its file is damaged.
    """
    file = Path(folder) / SWEEP.file
    if not file.is_file():
        raise InputError(
            f"{folder} holds no sweep: expected a folder with {SWEEP.file}, as ital sweep writes it"
        )
    try:
        grid = load_curves(file)
    except Damaged as damage:
        raise InputError(f"{damage}: run ital sweep again") from None
    return Sweep(grid, task_of(grid.attrs), [file], 0)
