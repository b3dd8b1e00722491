"""Evaluate a sweep over η and β: the best setting of each method, and where awareness helps.

Everything is read from the Dataset of a sweep, dimensions (learner, lr, beta, seed, step). A
setting is judged by the mean over seeds of one metric, which the Dataset names (see
:func:`judged_by`); without a name by the distance: ``distance_centred`` if it was recorded, else
``distance``. Settings that nobody ran are gaps; they are never best.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ital.errors import InputError
from ital.learners import CONTROLS
from ital.results import mean_and_error
from ital.tasks import Task
from ital.tools import registry
from ital.tools.short import short

if TYPE_CHECKING:
    import xarray as xr

# Where settings are judged besides the last step.
STEPS = (500, 1000)
# The share of the way that may be left where most of it counts as done.
SHARE = 0.1

# Attributes of a sweep that say what its settings are judged by.
METRIC = "judged_by"
MORE_IS_BETTER = "more_is_better"


@dataclass(frozen=True)
class Setting:
    """A method at one point of the grid, and what it reached on each seed at a step.

    Attributes:
        method: name of the method.
        label: its name in a legend.
        lr: the step size η.
        beta: β, or None if the method has none.
        edge: which of "η" and "β" lie at the end of their range; a wider range might contain a
            better value.
        values: the metric on each seed.
        share: its mean as a share of the mean at the start.
    """

    method: str
    label: str
    lr: float
    beta: float | None
    edge: tuple[str, ...]
    values: "xr.DataArray"
    share: float

    @property
    def mean(self) -> float:
        """Mean over seeds; infinitely bad if a seed diverged."""
        return float(self.values.mean())

    @property
    def error(self) -> float:
        """Its standard error."""
        _, error = mean_and_error(self.values.values)
        return float(error)

    def __repr__(self) -> str:
        numbers = {"lr": self.lr, "beta": self.beta, "mean": self.mean, "error": self.error}
        return short("Setting", self.method, numbers=numbers)

    def __str__(self) -> str:
        if self.beta is None:
            return f"{self.label} (η = {self.lr:g})"
        return f"{self.label} (η = {self.lr:g}, β = {self.beta:g})"


@dataclass(frozen=True)
class Verdict:
    """One step of a sweep: every method at its best setting, the best naive and aware methods.

    Attributes:
        step: the step.
        best: the best setting of every method, from best to worst.
        naive: the best of the naive methods, if there is one.
        aware: the best of the aware methods, if there is one.
        more_is_better: whether more of the metric is better.
    """

    step: int
    best: tuple[Setting, ...]
    naive: Setting | None
    aware: Setting | None
    more_is_better: bool = False

    @property
    def closer(self) -> tuple[int, int] | None:
        """On how many of the shared seeds the winner is better than the second best.

        The second number is that of the shared seeds. None without a second.
        """
        if len(self.best) < 2:
            return None
        winner, next_best, *_ = self.best
        first = winner.values
        second = next_best.values
        # A sweep may be unfinished: one of them may have run on more seeds.
        seeds = np.intersect1d(first["seed"], second["seed"])
        lead = first.sel(seed=seeds) - second.sel(seed=seeds)
        is_better = lead < 0
        if self.more_is_better:
            is_better = lead > 0
        return int(is_better.sum()), len(seeds)


def metric_of(grid: "xr.Dataset") -> str:
    """Return the metric by which settings are judged.

    Args:
        grid: the grid of a sweep.

    Returns:
        Name of the metric.
    """
    if METRIC in grid.attrs:
        return str(grid.attrs[METRIC])
    if "distance_centred" in grid:
        return "distance_centred"
    return "distance"


def more_is_better(grid: "xr.Dataset") -> bool:
    """Return whether more of the metric is better.

    Args:
        grid: the grid of a sweep.

    Returns:
        False for distances and losses.
    """
    return bool(grid.attrs.get(MORE_IS_BETTER, False))


def judged_by(grid: "xr.Dataset", task: Task, metric: str) -> "xr.Dataset":
    """Return the same sweep, judged by another metric.

    Args:
        grid: the grid of a sweep.
        task: its task, which knows whether more of the metric is better.
        metric: a metric that was recorded.

    Returns:
        The grid with other attributes.

    Raises:
        InputError: if the metric was not recorded.
    """
    recorded = [name for name in task.metrics if name in grid]
    if metric not in recorded:
        raise InputError(registry.nearest("metric", metric, recorded))
    higher_is_better = int(task.metrics[metric].higher_is_better)
    return grid.assign_attrs({METRIC: metric, MORE_IS_BETTER: higher_is_better})


def without_beta(grid: "xr.Dataset") -> list[str]:
    """Return the methods that have no β; the file repeats their values along it.

    Args:
        grid: the grid of a sweep.

    Returns:
        Names of the methods.
    """
    listed = json.loads(grid.attrs.get("without_beta", "[]"))
    # The first cells of an unfinished sweep may lack some.
    return [name for name in listed if name in grid["learner"].values]


def naive_methods(grid: "xr.Dataset") -> list[str]:
    """Return the methods that do not reason about the teacher: those without a β.

    Args:
        grid: the grid of a sweep.

    Returns:
        Names of the methods.
    """
    naive = without_beta(grid)
    return [str(name) for name in grid["learner"].values if name in naive]


def aware_methods(grid: "xr.Dataset") -> list[str]:
    """Return the methods with a β, without the controls, which do not reason about the teacher.

    Args:
        grid: the grid of a sweep.

    Returns:
        Names of the methods.
    """
    not_aware = (*without_beta(grid), *CONTROLS)
    return [str(name) for name in grid["learner"].values if name not in not_aware]


def judged_steps(grid: "xr.Dataset") -> list[int]:
    """Return steps 500 and 1000 (or the nearest measured) if the sweep reaches them, and the last.

    Args:
        grid: the grid of a sweep.

    Returns:
        The steps, in order.
    """
    measured = grid["step"].values
    last = int(measured[-1])
    judged = {last}
    for step in STEPS:
        if step <= last:
            nearest = np.abs(measured - step).argmin()
            judged.add(int(measured[nearest]))
    return sorted(judged)


def values(grid: "xr.Dataset", step: int) -> "xr.DataArray":
    """Return what each setting reached at a step.

    It is infinitely bad where the lane had diverged by then, and NaN where none was run.

    Args:
        grid: the grid of a sweep.
        step: a measured step.

    Returns:
        Values of the metric (learner, lr, beta, seed).
    """
    worst = np.inf
    if more_is_better(grid):
        worst = -np.inf
    found = grid[metric_of(grid)].sel({"step": step})
    diverged_at = grid["diverged_at"]  # −1 for lanes that never did
    has_diverged = (diverged_at >= 0) & (diverged_at <= step)
    is_valid = np.isfinite(found) & ~has_diverged
    was_run = grid["computed"] == 1
    return found.where(is_valid, worst).where(was_run)


def mean_values(grid: "xr.Dataset", step: int) -> "xr.DataArray":
    """Return means over seeds, infinitely bad where one diverged and NaN where none was run.

    Args:
        grid: the grid of a sweep.
        step: a measured step.

    Returns:
        Means (learner, lr, beta).
    """
    return values(grid, step).mean("seed")


def costs(grid: "xr.Dataset", step: int) -> "xr.DataArray":
    """Return the same means with the sign at which less is better.

    Args:
        grid: the grid of a sweep.
        step: a measured step.

    Returns:
        Means or their negatives (learner, lr, beta).
    """
    means = mean_values(grid, step)
    if more_is_better(grid):
        return -means
    return means


def diverged(grid: "xr.Dataset", step: int) -> "xr.DataArray":
    """Return whether a seed diverged, or the mean is worse than at the start.

    Args:
        grid: the grid of a sweep.
        step: a measured step.

    Returns:
        Booleans (learner, lr, beta).
    """
    return costs(grid, step) > costs(grid, 0)


def ran(grid: "xr.Dataset") -> "xr.DataArray":
    """Return whether a setting was run, on any seed.

    Args:
        grid: the grid of a sweep.

    Returns:
        Booleans (learner, lr, beta).
    """
    return (grid["computed"] == 1).any("seed")


def steps_to(grid: "xr.Dataset", share: float = SHARE) -> "xr.DataArray":
    """Return the first measured step at which most of the way is behind a learner.

    It is a median over seeds. A distance or a loss must fall to a share of its start. Where more is
    better, the same share may be missing of the way from the start to the best mean of the last
    step.

    Args:
        grid: the grid of a sweep.
        share: the share of the way that may be left.

    Returns:
        Steps (learner, lr, beta): infinite if half of the seeds never get there, NaN if no seed was
        run.
    """
    is_reached = _is_reached(grid, share)
    # The position of the first True; of the first step where there is none.
    position = is_reached.argmax("step")
    first = grid["step"].isel(step=position)
    first = first.where(is_reached.any("step"), np.inf).drop_vars("step")
    # A setting that was run on no seed has no median: it is computed from infinities, and left out.
    was_run = ran(grid)
    by_seed = first.where(grid["computed"] == 1).where(was_run, np.inf)
    median = by_seed.quantile(0.5, "seed", method="higher")
    return median.where(was_run)


def _is_reached(grid: "xr.Dataset", share: float) -> "xr.DataArray":
    """Return at which steps at most a share of the way is left (learner, lr, beta, seed, step)."""
    found = grid[metric_of(grid)].transpose("learner", "lr", "beta", "seed", "step")
    start = found.isel(step=0)
    if not more_is_better(grid):
        return found <= share * start
    last = int(grid["step"].values[-1])
    means = mean_values(grid, last)
    goal = means.where(np.isfinite(means)).max()
    left = share * (goal - start)
    return found >= goal - left


def best(grid: "xr.Dataset", method: str, step: int) -> Setting:
    """Return the setting of a method with the best mean at a step.

    Args:
        grid: the grid of a sweep.
        method: name of the method.
        step: a measured step.

    Returns:
        The setting.
    """
    # Ties go to the smallest η, then to the smallest β: the first along these axes.
    of_method = costs(grid, step).sel({"learner": method}).transpose("lr", "beta")
    # Gaps are never best.
    positions = of_method.fillna(np.inf).argmin(...)
    cell = of_method.isel(positions)
    lr = float(cell["lr"])
    beta = float(cell["beta"])
    place = {"learner": method, "lr": lr, "beta": beta}
    reached = values(grid, step).sel(place).dropna("seed")
    at_start = values(grid, 0).sel(place)
    has_beta = method not in without_beta(grid)
    edge = []
    if _is_edge(grid, "lr", place):
        edge.append("η")
    # β = 0 is not the end of a range: awareness ends there.
    if has_beta and beta != 0 and _is_edge(grid, "beta", place):
        edge.append("β")
    setting = Setting(
        method=method,
        label=str(grid["label"].sel({"learner": method}).values),
        lr=lr,
        beta=beta,
        edge=tuple(edge),
        values=reached,
        share=float(reached.mean() / at_start.mean()),
    )
    if has_beta:
        return setting
    return replace(setting, beta=None)


def _is_edge(grid: "xr.Dataset", axis: str, place: Mapping[str, Any]) -> bool:
    """Tell whether a setting lies at an end of the values of an axis that were tried beside it."""
    others = dict(place)
    value = others.pop(axis)
    was_run = ran(grid).sel(others).values
    tried = grid[axis].values[was_run]
    return value in (tried[0], tried[-1])


def pays(grid: "xr.Dataset", method: str, step: int) -> "xr.DataArray | None":
    """Return where an aware method is better than every naive method at its own best η.

    Args:
        grid: the grid of a sweep.
        method: name of an aware method.
        step: a measured step.

    Returns:
        Booleans (lr, beta), or None without a naive method.
    """
    naive = naive_methods(grid)
    if not naive:
        return None
    found = costs(grid, step)
    best_naive = found.sel({"learner": naive}).min()
    return found.sel({"learner": method}) < best_naive


def pays_at_same_lr(grid: "xr.Dataset", method: str, step: int) -> "xr.DataArray | None":
    """Return where an aware method is better than IMT with the same η.

    Args:
        grid: the grid of a sweep.
        method: name of an aware method.
        step: a measured step.

    Returns:
        Booleans (lr, beta), or None without IMT.
    """
    if "imt" not in grid["learner"].values:
        return None
    found = costs(grid, step)
    of_imt = found.sel({"learner": "imt"}).drop_vars("learner")
    return found.sel({"learner": method}) < of_imt


def judge(grid: "xr.Dataset", step: int) -> Verdict:
    """Judge every method at its own best setting at a step.

    Args:
        grid: the grid of a sweep.
        step: a measured step.

    Returns:
        The verdict.
    """
    settings = [best(grid, str(name), step) for name in grid["learner"].values]
    descending = more_is_better(grid)
    ranked = sorted(settings, key=lambda setting: setting.mean, reverse=descending)
    naive = [setting for setting in ranked if setting.method in naive_methods(grid)]
    aware = [setting for setting in ranked if setting.method in aware_methods(grid)]
    return Verdict(
        step=step,
        best=tuple(ranked),
        naive=next(iter(naive), None),
        aware=next(iter(aware), None),
        more_is_better=descending,
    )


__all__ = [
    "Setting",
    "Verdict",
    "aware_methods",
    "best",
    "costs",
    "diverged",
    "judge",
    "judged_by",
    "judged_steps",
    "mean_values",
    "metric_of",
    "more_is_better",
    "naive_methods",
    "pays",
    "pays_at_same_lr",
    "ran",
    "steps_to",
    "values",
    "without_beta",
]
