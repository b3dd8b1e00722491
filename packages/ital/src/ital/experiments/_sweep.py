"""Sweeps: a grid of step sizes and rationalities, all lanes of one compiled program."""

import dataclasses
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ital import tuning
from ital.errors import InputError
from ital.experiments import _store, _track
from ital.experiments._cells import Chunks, Experiment, Point
from ital.experiments._collect import GAPS
from ital.experiments._complete import completed
from ital.experiments._engines import Engine
from ital.experiments._settings import Plan, Settings
from ital.learners import Learner
from ital.tasks import Task
from ital.teaching import Recording, open_sessions, situation, task_of, write_table
from ital.tools import registry

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Sweep:
    """The result of a sweep.

    Methods without a β are computed once per η and repeated along ``beta``: ``grid.attrs["without_beta"]`` names them.

    Attributes:
        grid: a Dataset with dimensions (method, lr, beta, seed, step).
        task: the task.
        files: the files that were written.
        lanes_computed: number of lanes (a method at one η and one β on one seed) computed now, rather than found on
            disk.
    """

    grid: "xr.Dataset"
    task: Task
    files: list[Path]
    lanes_computed: int

    def __repr__(self) -> str:
        methods = ", ".join(map(str, self.grid["learner"].values))
        size = f"{self.grid.sizes['lr']} × {self.grid.sizes['beta']} settings"
        return f"Sweep({self.task.name!r}: {methods}; {size}, {len(self.files)} files)"

    def judged_by(self, metric: str) -> "Sweep":
        """The same sweep, judged by another metric.

        Args:
            metric: a metric that was recorded.

        Returns:
            The sweep.

        Raises:
            InputError: if the metric was not recorded.
        """
        return dataclasses.replace(self, grid=tuning.judged_by(self.grid, self.task, metric))

    def verdicts(self) -> list[tuning.Verdict]:
        """Each method at its best setting and the winner: after 500 and 1000 steps and at the end.

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


def sweep(
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
    """Compute the missing parts of a grid η × β, and write ``sweep.nc`` and its maps to ``OUT/TASK/TEACHER/``.

    Missing methods, seeds and values of η and β are added to an existing sweep; settings of the wider grid that nobody
    asked for stay gaps. An interrupted sweep resumes from its last checkpoint. Exams (the greedy searches of the
    equation tasks) are skipped.

    Args:
        settings: what to run; its ``lr`` and ``beta`` are ignored.
        lr: step sizes η.
        beta: rationalities β.
        out: the folder for results.
        metric: the metric that settings are judged by; None for the one before, and for the distance in a new sweep.
        overwrite: compute everything again.
        csv: also write every measured value as a table, ``sweep.csv``.
        seeds_per_cell: number of seeds in a cell; None for as many as should fit into memory.
        points_per_cell: number of points (methods at an η and a β) in a cell; None for as many as fit into memory.
        engine: computes the cells; None for this process. See :func:`processes` and :func:`cluster`.
        mlflow: address of an MLflow store to also log to.
        progress: show a progress bar.
        say: called with a line about each event or problem.

    Returns:
        The grid and the files.

    Raises:
        InputError: if the settings are not valid, or differ from those of the results in the folder.
        Incomplete: at the end, if a cell failed.

    Example:
        >>> settings = ital.experiments.Settings(task="regression", methods=("imt", "ital"), steps=200, seeds=5)
        >>> sweep = ital.experiments.sweep(settings, lr=[1e-3, 1e-2], beta=[1e3, 1e4])
    """
    experiment = Grid(settings, _axis("lr", lr), _axis("beta", beta), metric)
    plan = experiment.plan
    folder, chunks = Path(out) / experiment.folder, Chunks(seeds_per_cell, points_per_cell)
    store = None if mlflow is None else _track.open_store(mlflow)
    with completed(experiment, Path(out), chunks, engine, overwrite=overwrite, progress=progress, say=say) as done:
        from ital import figures

        grid = done.result
        if metric is not None and metric != tuning.metric_of(grid):
            # nothing was missing: only what the settings are judged by is new
            grid = tuning.judged_by(grid, plan.task, metric)
            _store.save_curves(grid, folder / experiment.file)
        maps = figures.save(figures.plot_sweep(grid, plan.task), folder / "sweep")
        table = write_table(grid, folder / "sweep.csv", csv)
        outcome = Sweep(grid, plan.task, [folder / experiment.file, *maps, *table], done.computed)
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
    file = Path(folder) / Grid.file
    if not file.is_file():
        raise InputError(f"{folder} holds no sweep: expected a folder with {Grid.file}, as ital sweep writes it")
    try:
        grid = _store.load_curves(file)
    except _store.Damaged as damage:
        raise InputError(f"{damage}: run ital sweep again") from None
    return Sweep(grid, task_of(grid.attrs), [file], 0)


def _axis(name: str, values: Sequence[float]) -> tuple[float, ...]:
    """The values of an axis in order; raises InputError for values that do not form an axis."""
    if not len(values):
        raise InputError(f"a sweep needs at least one {name}")
    for i, value in enumerate(values):
        if not isinstance(value, int | float | np.number) or not math.isfinite(value):
            raise InputError(f"every {name} of a sweep must be a finite number, not {value!r}")
        if value in list(values)[:i]:
            raise InputError(f"{name} {value:g} is given twice")
    return tuple(sorted(map(float, values)))


@dataclass(frozen=True)
class Grid(Experiment):
    """A sweep: every method with every η and β on every seed; a method without β has one lane per η."""

    lr: tuple[float, ...]
    beta: tuple[float, ...]
    metric: str | None = None  # what settings are judged by

    verb = "sweep"
    file = "sweep.nc"
    noun = "setting"
    numbers_at_once = 2**25

    @property
    def axes(self) -> dict[str, list[float]]:
        """η and β."""
        return {"lr": list(self.lr), "beta": list(self.beta)}

    @property
    def identity(self) -> dict[str, Any]:
        """The identity of a run without η and β: a sweep may grow along both."""
        return {name: value for name, value in self.plan.identity.items() if name not in self.axes}

    def grown(self, result: "xr.Dataset") -> "xr.Dataset":
        """A stored sweep on all its values of η and β and all of this one, with gaps where nothing was computed."""
        axes = {name: sorted({*result[name].values.tolist(), *values}) for name, values in self.axes.items()}
        wider = result.reindex(axes, fill_value=GAPS)
        for method in tuning.without_beta(result):
            # what does not depend on β is repeated along it
            lanes = result.sel(learner=method).isel(beta=0, drop=True).reindex(lr=axes["lr"], fill_value=GAPS)
            for name, variable in lanes.data_vars.items():
                wider[name].loc[{"learner": method}] = variable
        return wider

    def attributes(self, result: "xr.Dataset") -> dict[str, Any]:
        """All values of η and β, the methods that have no β, and what settings are judged by."""
        without_beta = {lane.method for lane in self.lanes if lane.beta is None}
        judged = result if self.metric is None else tuning.judged_by(result, self.plan.task, self.metric)
        return {
            **judged.attrs,
            **{name: json.dumps(result[name].values.tolist()) for name in self.axes},
            "without_beta": json.dumps(sorted({*tuning.without_beta(result), *without_beta})),
        }

    def make_plan(self) -> Plan:
        """The plan at the first η and β of the grid; raises InputError if any setting is not valid."""
        plan = dataclasses.replace(self.settings, lr=self.lr[0], beta=self.beta[0]).plan()
        for value in self.lr:
            dataclasses.replace(plan.run, lr=value).check(plan.task, plan.learners)
        return dataclasses.replace(plan, task=plan.task._replace(exam=None))

    def make_lanes(self) -> list[Point]:
        """Every method at every η and, if it has a β, at every β."""
        touched = {learner.name: _has_beta(self.plan, learner) for learner in self.plan.learners}
        return [
            Point(name, step_size, beta)
            for name in self.plan.methods
            for step_size in self.lr
            for beta in (self.beta if touched[name] else (None,))
        ]

    def names(self, lanes: Sequence[Point]) -> list[str]:
        """Distinct names for the lanes of one method."""
        return [str(number) for number in range(len(lanes))]

    def open(self, lanes: Sequence[Point], seeds: Sequence[int]) -> Recording:
        """Sessions for some settings on some seeds."""
        plan = self.plan
        by_name = {learner.name: learner for learner in plan.learners}
        versions = [_version(plan, by_name[lane.method], 0.0 if lane.beta is None else lane.beta) for lane in lanes]
        learners = [version._replace(name=name) for version, name in zip(versions, self.names(lanes), strict=True)]
        lrs = [lane.lr for lane in lanes if lane.lr is not None]  # in a sweep, every lane has one
        run = dataclasses.replace(plan.run, seeds=list(seeds), lr=lrs)
        return Recording(open_sessions(plan.task, plan.teacher, learners, run))

    def check_metrics(self, metrics: Iterable[str]) -> None:
        """Raise InputError for a metric that the task does not measure."""
        name = self.plan.task.name
        recorded = set(metrics)
        measured = [metric for metric in self.plan.task.metrics if metric in recorded]
        if self.metric is None and "distance" not in measured:
            raise InputError(
                f"task {name!r} has no target, so a sweep cannot measure the distance to it: "
                f"choose --metric {' or '.join(measured)}"
            )
        if self.metric is not None and self.metric not in measured:
            raise InputError(registry.nearest("metric", self.metric, measured))


def _version(plan: Plan, method: Learner, beta: float) -> Learner:
    """A learner with a β and all open settings filled in."""

    def no_auto(*arguments: Any) -> float:
        raise InputError(f"method {method.name!r} finds its own β, but a sweep sets β: use ital run for this method")

    context = situation(plan.task, plan.teacher, dataclasses.replace(plan.run, beta=beta), auto_beta=no_auto)
    return method.resolve(method, context)._replace(resolve=lambda learner, situation: learner)


def _has_beta(plan: Plan, method: Learner) -> bool:
    """Whether a learner uses β."""
    at_zero, at_one = (jax.tree.leaves(_version(plan, method, beta).settings) for beta in (0.0, 1.0))
    return not all(map(np.array_equal, at_zero, at_one))
