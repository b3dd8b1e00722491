"""What runs and sweeps have in common: their lanes, their cells, and what identifies their results.

A run has one lane per method. A sweep has axes beside the methods, step sizes η and rationalities β, and one lane per
method and point of the grid. Everything else is the same.
"""

import dataclasses
import functools
import itertools
import json
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from ital import tuning
from ital._version import __version__
from ital.errors import InputError
from ital.experiments._settings import Plan, Settings
from ital.learners import Learner
from ital.tasks import World, stack_worlds
from ital.teaching import (
    DESCRIBED,
    Recording,
    check_footprint,
    check_world,
    described,
    open_sessions,
    situation,
    version_of,
)
from ital.tools import randomness, registry
from ital.tools.memory import check_memory

if TYPE_CHECKING:
    import xarray as xr

FIRST = "1.1.1"  # assumed version of lanes in a file that records none
GAPS = {"computed": 0, "diverged_at": -1, "version": ""}  # where nothing was computed; else NaN
WORLDS_AT_ONCE = 2**28  # numbers in the worlds of all seeds of a cell, if no cell size is given


class Point(NamedTuple):
    """A method and, in a sweep, its step size and β (None: the method has no β)."""

    method: str
    lr: float | None = None
    beta: float | None = None


class Chunks(NamedTuple):
    """The number of seeds and of points (lanes of a seed) per cell; None: as many as should fit."""

    seeds: int | None = None
    points: int | None = None

    def check(self) -> None:
        """Raise InputError for a size below 1."""
        for name, size in self._asdict().items():
            if size is not None and size < 1:
                raise InputError(f"{name} per cell must be at least 1, not {size}")


class ResultKind(NamedTuple):
    """What distinguishes the files and words of runs from those of sweeps.

    Attributes:
        verb: the command.
        file: name of the result's file.
        drawn: files drawn from a result, which a new one outdates.
        noun: the word for a lane.
        numbers_at_once: parameters of all lanes of a cell together, if no cell size is given.
    """

    verb: str
    file: str
    drawn: str
    noun: str
    numbers_at_once: int


RUN = ResultKind("run", "curves.nc", "pictures.*", "method", 2**26)
SWEEP = ResultKind("sweep", "sweep.nc", "", "setting", 2**25)


@dataclass(frozen=True)
class Experiment:
    """A run, or a sweep if it has axes. It is pickled as plain values; each process builds its parts.

    Attributes:
        settings: what to run; a sweep ignores their values along its axes.
        axes: the values of a sweep, name → values: ``lr`` and ``beta``; empty for a run.
        metric: what the settings of a sweep are judged by; None for the distance to the target.
    """

    settings: Settings
    axes: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict, hash=False)
    metric: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.settings, self.axes, self.metric)

    @property
    def kind(self) -> ResultKind:
        """Whether this is a run or a sweep."""
        return SWEEP if self.axes else RUN

    @functools.cached_property
    def plan(self) -> Plan:
        """The parts, built once: for a sweep, at its first point; raises InputError if any setting is not valid."""
        if not self.axes:
            return self.settings.plan()
        first_point = {name: values[0] for name, values in self.axes.items()}
        plan = dataclasses.replace(self.settings, **first_point).plan()
        for value in self.axes["lr"]:
            dataclasses.replace(plan.run, lr=value).check(plan.task, plan.learners)
        # Exams take minutes per lane: sweeps are judged by what is measured anyway.
        return dataclasses.replace(plan, task=plan.task._replace(exam=None))

    @functools.cached_property
    def lanes(self) -> list[Point]:
        """All lanes of a seed: every method at every point of the grid, without the axes that do not affect it."""
        lanes = []
        for learner in self.plan.learners:
            axes = dict(self.axes)
            if axes and not _has_beta(self.plan, learner):
                del axes["beta"]
            for values in itertools.product(*axes.values()):
                lanes.append(Point(learner.name, **dict(zip(axes, values, strict=True))))
        return lanes

    def names(self, lanes: Sequence[Point]) -> list[str]:
        """Name lanes as in the sessions: by method, or by number where a method has several lanes."""
        if self.axes:
            return [str(number) for number in range(len(lanes))]
        return [lane.method for lane in lanes]

    def open(self, lanes: Sequence[Point], seeds: Sequence[int]) -> Recording:
        """Open sessions for some lanes on some seeds."""
        by_name = {learner.name: learner for learner in self.plan.learners}
        learners = []
        for lane, name in zip(lanes, self.names(lanes), strict=True):
            learner = by_name[lane.method]
            if self.axes:
                learner = _with_beta(self.plan, learner, 0.0 if lane.beta is None else lane.beta)
            learners.append(learner._replace(name=name))
        run = dataclasses.replace(self.plan.run, seeds=list(seeds))
        if "lr" in self.axes:
            run = dataclasses.replace(run, lr=[lane.lr for lane in lanes])
        return Recording(open_sessions(self.plan.task, self.plan.teacher, learners, run))

    def coordinates(self, lane: Point) -> dict[str, float]:
        """Label a lane along the axes, without the axes that do not affect it."""
        values = lane._asdict()
        return {axis: values[axis] for axis in self.axes if values[axis] is not None}

    def version(self, lane: Point) -> str:
        """Name the version of the code that computes a lane."""
        learner = next(learner for learner in self.plan.learners if learner.name == lane.method)
        return version_of(self.plan.teacher, learner)

    # What identifies a result, and what is stored with it.

    @property
    def identity(self) -> dict[str, Any]:
        """The settings that distinguish one result from another; a sweep may grow along its axes."""
        return {name: value for name, value in self.plan.identity.items() if name not in self.axes}

    @functools.cached_property
    def made_by(self) -> str:
        """Everything that the numbers of a result depend on: its identity and the version of ital."""
        return json.dumps({**self.identity, "ital_version": __version__}, sort_keys=True)

    @functools.cached_property
    def folder(self) -> Path:
        """The experiment's folder, relative to the folder for results."""
        return Path(self.plan.task.name) / self.plan.teacher.name.replace(":", "-")

    @property
    def described(self) -> dict[str, str]:
        """What figures need to know about a task of the caller's own, which no registered name can give."""
        if isinstance(self.settings.task, str):
            return {}
        return {DESCRIBED: json.dumps(described(self.plan.task))}

    def attributes(self, result: "xr.Dataset") -> dict[str, Any]:
        """Make the attributes of a sweep: its values, the methods without β, and what settings are judged by."""
        if not self.axes:
            return {}
        without_beta = {lane.method for lane in self.lanes if lane.beta is None}
        judged = result
        if self.metric is not None:
            judged = tuning.judged_by(result, self.plan.task, self.metric)
        values = {name: json.dumps(result[name].values.tolist()) for name in self.axes}
        named = sorted({*tuning.without_beta(result), *without_beta})
        return {**judged.attrs, **values, "without_beta": json.dumps(named)}

    def grown(self, result: "xr.Dataset") -> "xr.Dataset":
        """Put a stored sweep on all its values and all of this one, with gaps where nothing was computed."""
        if not self.axes:
            return result
        axes = {
            name: sorted({*result[name].values.tolist(), *values})
            for name, values in self.axes.items()
        }
        wider = result.reindex(axes, fill_value=GAPS)
        for method in tuning.without_beta(result):
            # What does not depend on β is repeated along it.
            lanes = result.sel(learner=method).isel(beta=0, drop=True)
            lanes = lanes.reindex(lr=axes["lr"], fill_value=GAPS)
            for name, variable in lanes.data_vars.items():
                wider[name].loc[{"learner": method}] = variable
        return wider

    def command(self, seeds: Sequence[int], out: Path) -> str:
        """Write the command that computes what is missing on some seeds from the results in ``out``.

        It names all methods, not only the missing ones, so that they keep their order in the result.
        """
        options: dict[str, Any] = {}
        for field in dataclasses.fields(Settings):
            value = getattr(self.settings, field.name)
            if field.name != "task" and value != field.default:
                options[field.name] = value
        options |= {name: ",".join(map(repr, axis)) for name, axis in self.axes.items()}
        options["methods"] = ",".join(self.plan.methods)
        options |= {"first_seed": seeds[0], "seeds": seeds[-1] - seeds[0] + 1, "out": out}
        words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        task = [str(self.settings.task)] if self.settings.data is None else []
        return shlex.join(["ital", self.kind.verb, *task, *words])

    # Which lanes are missing, and how they are divided.

    def missing(self, result: "xr.Dataset | None", lane: Point) -> list[int]:
        """List the seeds on which the current code has not computed a lane."""
        return [seed for seed in self.plan.seeds if seed not in self._computed_seeds(result, lane)]

    def _computed_seeds(self, result: "xr.Dataset | None", lane: Point) -> set[int]:
        labels = {"learner": lane.method, **self.coordinates(lane)}
        if result is None or any(label not in result[dim].values for dim, label in labels.items()):
            return set()
        stored = result.sel(labels)
        complete = (stored["computed"] == 1) & self._is_current(stored, lane)
        # A lane that an axis does not affect is repeated along it.
        complete = complete.all([dim for dim in complete.dims if dim != "seed"])
        return {int(seed) for seed in complete["seed"].values[complete.values]}

    def _is_current(self, stored: "xr.Dataset", lane: Point) -> "xr.DataArray | bool":
        """Whether the current code computed a lane; files of earlier versions do not record it."""
        current = self.version(lane)
        if "version" not in stored:
            return current == FIRST
        version = stored["version"].astype(str)
        return (version == current) | ((version == "") & (current == FIRST))

    def outdated(self, result: "xr.Dataset | None") -> list[str]:
        """List stored methods outside this experiment that another version of its teacher has taught."""
        if result is None or "version" not in result:
            return []
        current = {
            _without_learner(version_of(self.plan.teacher, learner))
            for learner in self.plan.learners
        }
        found = []
        for name in map(str, result["learner"].values):
            stored = set(result["version"].sel(learner=name).values.ravel().astype(str)) - {""}
            if (
                name not in self.plan.methods
                and {_without_learner(version) for version in stored} - current
            ):
                found.append(name)
        return found

    @functools.cached_property
    def weight(self) -> tuple[int, int]:
        """The number of parameters per lane, and of numbers in a seed's own world. Also checks the world."""
        plan = self.plan
        worlds = [plan.task.world(seed) for seed in plan.seeds[:2]]
        check_world(plan.task, plan.teacher, worlds[0])

        def measured(world: World) -> tuple[Any, dict[str, Any]]:
            start = plan.task.rules.start(randomness.key(0), plan.run.start_on(plan.task), world)
            return start, plan.task.rules.measure(start, world.truth)

        start, metrics = jax.eval_shape(measured, worlds[0])
        self._check_metric(metrics)
        stacked, axes = stack_worlds(worlds)
        leaves = zip(jax.tree.leaves(stacked), axes, strict=True)
        per_seed = sum(np.size(leaf) for leaf, axis in leaves if axis == 0)
        return sum(leaf.size for leaf in jax.tree.leaves(start)), per_seed // len(worlds)

    def _check_metric(self, recorded: Iterable[str]) -> None:
        """Raise InputError if a sweep is judged by a metric that the task does not measure."""
        if not self.axes:
            return
        recorded = set(recorded)
        measured = [metric for metric in self.plan.task.metrics if metric in recorded]
        if self.metric is None and "distance" not in measured:
            raise InputError(
                f"task {self.plan.task.name!r} has no target, so a sweep cannot measure the distance to it: "
                f"choose --metric {' or '.join(measured)}"
            )
        if self.metric is not None and self.metric not in measured:
            raise InputError(registry.nearest("metric", self.metric, measured))

    def sizes(self, chunks: Chunks) -> Chunks:
        """Choose the cell sizes: as asked, or as few cells of similar size as should fit into memory anywhere."""
        parameters, world = self.weight
        lanes = len(self.lanes)
        self._check_memory()
        at_once = self.kind.numbers_at_once
        points = min(lanes, chunks.points or _even(lanes, at_once // parameters))
        bearable = min(at_once // (parameters * points), WORLDS_AT_ONCE // max(1, world))
        return Chunks(chunks.seeds or _even(len(self.plan.seeds), bearable), points)

    def _check_memory(self) -> None:
        """Raise InputError if the result, or a single seed, does not fit into memory: smaller cells would not help."""
        plan = self.plan
        rows = plan.run.steps // plan.run.interval_on(plan.task) + 2
        needed = len(self.lanes) * len(plan.seeds) * rows * np.dtype(np.float32).itemsize
        lanes = f"{len(self.lanes)} {self.kind.noun}s on {len(plan.seeds)} seeds"
        check_memory(
            f"curves of {lanes}, {rows} measurements each",
            needed,
            "take fewer seeds, or measure less often",
        )
        check_footprint(plan.task, plan.run, 1, plan.seeds[:1])


def axis_of(name: str, values: Sequence[float]) -> tuple[float, ...]:
    """Sort the values of an axis; raises InputError for values that do not form an axis."""
    if not len(values):
        raise InputError(f"a sweep needs at least one {name}")
    for i, value in enumerate(values):
        if not isinstance(value, int | float | np.number) or not math.isfinite(value):
            raise InputError(f"every {name} of a sweep must be a finite number, not {value!r}")
        if value in list(values)[:i]:
            raise InputError(f"{name} {value:g} is given twice")
    return tuple(sorted(map(float, values)))


def _with_beta(plan: Plan, learner: Learner, beta: float) -> Learner:
    """Give a learner its β and fill in all other open settings."""

    def no_auto(*arguments: Any) -> float:
        raise InputError(
            f"method {learner.name!r} finds its own β, but a sweep sets β: use ital run for this method"
        )

    run = dataclasses.replace(plan.run, beta=beta)
    context = situation(plan.task, plan.teacher, run, auto_beta=no_auto)
    return learner.resolve(learner, context)._replace(resolve=lambda learner, situation: learner)


def _has_beta(plan: Plan, learner: Learner) -> bool:
    """Whether a learner uses β."""
    at_zero = jax.tree.leaves(_with_beta(plan, learner, 0.0).settings)
    at_one = jax.tree.leaves(_with_beta(plan, learner, 1.0).settings)
    return not all(map(np.array_equal, at_zero, at_one))


def _without_learner(version: str) -> str:
    """The versions of the loop and the teacher, without that of the learner."""
    return version.rpartition(".")[0]


def _even(number: int, at_once: int) -> int:
    """The size of the fewest blocks of similar size that hold at most ``at_once`` each (at least 1)."""
    blocks = -(-number // max(1, at_once))
    return -(-number // blocks)
