"""Evaluate a sweep over η and β: each method at its best setting, the winner, and where awareness helps.

Everything is read from the Dataset of a sweep, dimensions (method, lr, beta, seed, step). A setting is judged by its
mean distance over seeds: ``distance_centred`` if it was recorded, else ``distance``.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ital.learners import CONTROLS
from ital.results import mean_and_error

if TYPE_CHECKING:
    import xarray as xr

STEPS = (500, 1000)
SHARE = 0.1


@dataclass(frozen=True)
class Setting:
    """A method at one point of the grid, and its distance on each seed at a step.

    Attributes:
        method: name of the method.
        label: its name in a legend.
        lr: the step size η.
        beta: β, or None if the method has none.
        edge: which of "η" and "β" lie at the end of their range; a wider range might contain a better value.
        distances: distance on each seed.
        share: mean distance as a share of the mean distance at the start.
    """

    method: str
    label: str
    lr: float
    beta: float | None
    edge: tuple[str, ...]
    distances: "xr.DataArray"
    share: float  # of the mean distance at the start

    @property
    def mean(self) -> float:
        """Mean distance over seeds; infinite if a seed diverged."""
        return float(self.distances.mean())

    @property
    def error(self) -> float:
        """Its standard error."""
        return float(mean_and_error(self.distances.values)[1])

    def __str__(self) -> str:
        return f"{self.label} (η = {self.lr:g}" + (")" if self.beta is None else f", β = {self.beta:g})")


@dataclass(frozen=True)
class Verdict:
    """One step of a sweep: every method at its own best setting, and the best naive and aware methods.

    Attributes:
        step: the step.
        best: the best setting of every method, from best to worst.
        naive: the best of the naive methods, if there is one.
        aware: the best of the aware methods, if there is one.
    """

    step: int
    best: tuple[Setting, ...]
    naive: Setting | None
    aware: Setting | None

    @property
    def closer(self) -> tuple[int, int] | None:
        """On how many of the shared seeds the winner is closer than the second best; None without a second."""
        if len(self.best) < 2:
            return None
        first, second = (setting.distances for setting in self.best[:2])
        seeds = np.intersect1d(first["seed"], second["seed"])
        return int((first.sel(seed=seeds) < second.sel(seed=seeds)).sum()), len(seeds)


def metric_of(grid: "xr.Dataset") -> str:
    """The distance by which settings are judged.

    Args:
        grid: the grid of a sweep.

    Returns:
        Name of the metric.
    """
    return "distance_centred" if "distance_centred" in grid else "distance"


def without_beta(grid: "xr.Dataset") -> list[str]:
    """Methods that have no β; the file repeats their values along it.

    Args:
        grid: the grid of a sweep.

    Returns:
        Names of the methods.
    """
    return json.loads(grid.attrs["without_beta"])


def naive_methods(grid: "xr.Dataset") -> list[str]:
    """Methods that do not reason about the teacher: Batch, SGD, IMT, and others without a β.

    Args:
        grid: the grid of a sweep.

    Returns:
        Names of the methods.
    """
    return [str(name) for name in grid["learner"].values if name in without_beta(grid)]


def aware_methods(grid: "xr.Dataset") -> list[str]:
    """Methods with a β, without the controls, which only take steps as long as an aware one.

    Args:
        grid: the grid of a sweep.

    Returns:
        Names of the methods.
    """
    return [str(name) for name in grid["learner"].values if name not in (*without_beta(grid), *CONTROLS)]


def judged_steps(grid: "xr.Dataset") -> list[int]:
    """Steps 500 and 1000 (or the nearest measured) if the sweep reaches them, and the last step.

    Args:
        grid: the grid of a sweep.

    Returns:
        The steps, in order.
    """
    steps = grid["step"].values
    nearest = [int(steps[np.abs(steps - step).argmin()]) for step in STEPS if step <= steps[-1]]
    return sorted({*nearest, int(steps[-1])})


def distances(grid: "xr.Dataset", step: int) -> "xr.DataArray":
    """Distances at a step: infinite where the lane had diverged by then, NaN where none was run.

    Args:
        grid: the grid of a sweep.
        step: a measured step.

    Returns:
        Distances (method, lr, beta, seed).
    """
    values = grid[metric_of(grid)].sel({"step": step})
    diverged = (grid["diverged_at"] >= 0) & (grid["diverged_at"] <= step)
    return values.where(np.isfinite(values) & ~diverged, np.inf).where(grid["computed"] == 1)


def mean_distances(grid: "xr.Dataset", step: int) -> "xr.DataArray":
    """Mean distances over seeds, infinite where one diverged.

    Args:
        grid: the grid of a sweep.
        step: a measured step.

    Returns:
        Means (method, lr, beta).
    """
    return distances(grid, step).mean("seed")


def diverged(grid: "xr.Dataset", step: int) -> "xr.DataArray":
    """Whether a seed diverged, or the mean distance is larger than at the start.

    Args:
        grid: the grid of a sweep.
        step: a measured step.

    Returns:
        Booleans (method, lr, beta).
    """
    return mean_distances(grid, step) > mean_distances(grid, 0)


def steps_to(grid: "xr.Dataset", share: float = SHARE) -> "xr.DataArray":
    """The first measured step at which the distance is within a share of the start's, as a median over seeds.

    Args:
        grid: the grid of a sweep.
        share: share of the distance at the start.

    Returns:
        Steps (method, lr, beta): infinite if half of the seeds never get there, NaN if no seed was run.
    """
    values = grid[metric_of(grid)].transpose("learner", "lr", "beta", "seed", "step")
    reached = values <= share * values.isel(step=0)
    first = grid["step"].isel(step=reached.argmax("step")).where(reached.any("step"), np.inf)
    run = grid["computed"] == 1
    ran = run.any("seed")  # a setting that was run on no seed has no median
    return first.drop_vars("step").where(run).where(ran, np.inf).quantile(0.5, "seed", method="higher").where(ran)


def best(grid: "xr.Dataset", method: str, step: int) -> Setting:
    """The setting of a method with the smallest mean distance at a step.

    Args:
        grid: the grid of a sweep.
        method: name of the method.
        step: a measured step.

    Returns:
        The setting.
    """
    means = mean_distances(grid, step).sel({"learner": method}).transpose("lr", "beta").values
    i, j = np.unravel_index(np.argmin(np.where(np.isnan(means), np.inf, means)), means.shape)  # gaps are never best
    lrs, betas = grid["lr"].values, grid["beta"].values
    has_beta = method not in without_beta(grid)
    edge = ["η"] if i in (0, len(lrs) - 1) else []
    # β = 0 is not the end of a range: awareness ends there
    edge += ["β"] if has_beta and j in (0, len(betas) - 1) and betas[j] != 0 else []
    cell = {"learner": method, "lr": lrs[i], "beta": betas[j]}
    lanes = distances(grid, step).sel(cell).dropna("seed")
    return Setting(
        method=method,
        label=str(grid["label"].sel({"learner": method}).values),
        lr=float(lrs[i]),
        beta=float(betas[j]) if has_beta else None,
        edge=tuple(edge),
        distances=lanes,
        share=float(lanes.mean() / distances(grid, 0).sel(cell).mean()),
    )


def pays(grid: "xr.Dataset", method: str, step: int) -> "xr.DataArray | None":
    """Where an aware method is closer than every naive method at its own best η.

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
    means = mean_distances(grid, step)
    return means.sel({"learner": method}) < means.sel({"learner": naive}).min()


def pays_at_same_lr(grid: "xr.Dataset", method: str, step: int) -> "xr.DataArray | None":
    """Where an aware method is closer than IMT with the same η.

    Args:
        grid: the grid of a sweep.
        method: name of an aware method.
        step: a measured step.

    Returns:
        Booleans (lr, beta), or None without IMT.
    """
    if "imt" not in grid["learner"].values:
        return None
    means = mean_distances(grid, step)
    return means.sel({"learner": method}) < means.sel({"learner": "imt"}).drop_vars("learner")


def judge(grid: "xr.Dataset", step: int) -> Verdict:
    """Every method at its own best setting at a step.

    Args:
        grid: the grid of a sweep.
        step: a measured step.

    Returns:
        The verdict.
    """
    ranked = sorted((best(grid, str(name), step) for name in grid["learner"].values), key=lambda setting: setting.mean)

    def first_of(methods: list[str]) -> Setting | None:
        return next((setting for setting in ranked if setting.method in methods), None)

    return Verdict(step, tuple(ranked), first_of(naive_methods(grid)), first_of(aware_methods(grid)))


__all__ = [
    "Setting",
    "Verdict",
    "aware_methods",
    "best",
    "distances",
    "diverged",
    "judge",
    "judged_steps",
    "mean_distances",
    "metric_of",
    "naive_methods",
    "pays",
    "pays_at_same_lr",
    "steps_to",
    "without_beta",
]
