"""What runs and sweeps have in common: their lanes, their cells, and what identifies their results.

A run has one lane per method. A sweep has axes beside the methods, step sizes η and rationalities
β, and one lane per method and point of the grid. Everything else is the same.

Where would a sweep get a third axis? Its values are a setting of :class:`ital.teaching.Run`:

1. :class:`Point` gets a field of the setting's name; ``AXES`` follows from it, and cells, files,
   checkpoints, the collector and MLflow follow from ``AXES`` and ``Experiment.axes``.
2. :meth:`Experiment.open` hands the value of each lane to the sessions, and ``Experiment.plan``
   checks each value of the axis. This is enough for a number that a program takes as an argument,
   as it takes η. The batch size is the shape of a mini-batch instead: lanes of one session share
   it, so ``open`` opens sessions for each of its values, and the checks of memory take the largest.
3. :meth:`Experiment.axes_of` tells which learners it does not affect.
4. ``_sweep.sweep`` and the command ``ital sweep`` take its values. Four readers of a sweep name
   its axes: ``ital.tuning`` chooses the best points, ``figures.plot_sweep`` draws them, ``_table``
   prints them, and ``results.long_form`` writes ``sweep.csv``.
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
# The value of a variable where nothing was computed; NaN for all others.
GAPS = {"computed": 0, "diverged_at": -1, "version": ""}
WORLDS_AT_ONCE = 2**28  # numbers in the worlds of all seeds of a cell, if no cell size is given


class Point(NamedTuple):
    """A method and, in a sweep, its value on every axis.

    Attributes:
        method: the name of the method.
        lr: its step size η; None in a run.
        beta: its β; None in a run, and if the method has no β.
    """

    # Cells store points as lists: the order of these fields is a file format.
    method: str
    lr: float | None = None
    beta: float | None = None


AXES = Point._fields[1:]
"""The axes that a sweep has beside the methods: names of settings, which its points set."""


class CellSize(NamedTuple):
    """The number of seeds and of points (lanes of a seed) per cell; None: as many as should fit."""

    seeds: int | None = None
    points: int | None = None

    def check(self) -> None:
        """Raise InputError for a size below 1."""
        sizes = self._asdict()
        for name, size in sizes.items():
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


RUN = ResultKind(
    verb="run",
    file="curves.nc",
    drawn="pictures.*",
    noun="method",
    numbers_at_once=2**26,
)
SWEEP = ResultKind(
    verb="sweep",
    file="sweep.nc",
    drawn="",
    noun="setting",
    numbers_at_once=2**25,
)


@dataclass(frozen=True)
class Experiment:
    """A run, or a sweep if it has axes.

    It is pickled as plain values; each process builds its parts.

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
        """The parts, built once; for a sweep, at its first point.

        Raises:
            InputError: if any setting is not valid.
        """
        if not self.axes:
            return self.settings.plan()
        first_point: dict[str, Any] = {}
        for name, values in self.axes.items():
            first_point[name] = values[0]
        at_first_point = dataclasses.replace(self.settings, **first_point)
        plan = at_first_point.plan()
        for value in self.axes["lr"]:
            # Any finite β is valid, but not any η.
            run = dataclasses.replace(plan.run, lr=value)
            run.check(plan.task, plan.learners)
        # Exams take minutes per lane: sweeps are judged by what is measured anyway.
        without_exam = plan.task._replace(exam=None)
        return dataclasses.replace(plan, task=without_exam)

    def axes_of(self, learner: Learner) -> dict[str, Sequence[float]]:
        """Return the axes that affect a learner: η affects all, β only those that use it."""
        axes = dict(self.axes)
        is_fixed = "beta" in axes and not _uses_beta(self.plan, learner)
        if is_fixed:
            del axes["beta"]
        return axes

    @functools.cached_property
    def lanes(self) -> list[Point]:
        """All lanes of a seed: every method at every point of the axes that affect it."""
        lanes = []
        for learner in self.plan.learners:
            axes = self.axes_of(learner)
            for values in itertools.product(*axes.values()):
                point = dict(zip(axes, values, strict=True))
                lanes.append(Point(learner.name, **point))
        return lanes

    def names(self, lanes: Sequence[Point]) -> list[str]:
        """Name lanes as in the sessions: by method; by number if a method has several lanes."""
        if self.axes:
            return [str(number) for number in range(len(lanes))]
        return [lane.method for lane in lanes]

    def open(self, lanes: Sequence[Point], seeds: Sequence[int]) -> Recording:
        """Open sessions for some lanes on some seeds."""
        plan = self.plan
        learners = {learner.name: learner for learner in plan.learners}
        run = dataclasses.replace(plan.run, seeds=list(seeds))
        if self.axes:
            # Each axis goes where its setting does: η into the run, a value per lane; β into the
            # learners. Every lane of a sweep has an η.
            step_sizes: list[Any] = [lane.lr for lane in lanes]
            run = dataclasses.replace(run, lr=step_sizes)
        taught = []
        for lane, name in zip(lanes, self.names(lanes), strict=True):
            learner = learners[lane.method]
            if self.axes:
                # A learner without a β ignores the 0.
                learner = _with_beta(plan, learner, lane.beta or 0.0)
            taught.append(learner._replace(name=name))
        sessions = open_sessions(plan.task, plan.teacher, taught, run)
        return Recording(sessions)

    def coordinates(self, lane: Point) -> dict[str, float]:
        """Label a lane along the axes, without the axes that do not affect it."""
        values = lane._asdict()
        labels = {}
        for axis in self.axes:
            if values[axis] is not None:
                labels[axis] = values[axis]
        return labels

    def version(self, lane: Point) -> str:
        """Name the version of the code that computes a lane."""
        learners = {learner.name: learner for learner in self.plan.learners}
        return version_of(self.plan.teacher, learners[lane.method])

    # What identifies a result, and what is stored with it.

    @property
    def identity(self) -> dict[str, Any]:
        """The settings that distinguish one result from another; a sweep grows along its axes."""
        identity = self.plan.identity
        return {name: identity[name] for name in identity if name not in self.axes}

    @functools.cached_property
    def made_by(self) -> str:
        """All that the numbers of a result depend on: its identity and the version of ital."""
        depends_on = {**self.identity, "ital_version": __version__}
        return json.dumps(depends_on, sort_keys=True)

    @functools.cached_property
    def folder(self) -> Path:
        """The experiment's folder, relative to the folder for results."""
        teacher = self.plan.teacher.name.replace(":", "-")
        return Path(self.plan.task.name) / teacher

    @property
    def described(self) -> dict[str, str]:
        """What figures must know about a task of the caller's own: no registered name gives it."""
        if isinstance(self.settings.task, str):
            return {}
        description = described(self.plan.task)
        return {DESCRIBED: json.dumps(description)}

    def attributes(self, result: "xr.Dataset") -> dict[str, Any]:
        """Make the attributes of a sweep.

        They are the values of its axes, the methods without β, and what settings are judged by.
        """
        if not self.axes:
            return {}
        judged = result
        if self.metric is not None:
            judged = tuning.judged_by(result, self.plan.task, self.metric)
        attributes = dict(judged.attrs)
        for name in self.axes:
            values = result[name].values.tolist()
            attributes[name] = json.dumps(values)
        # A stored sweep may hold methods that this experiment does not name.
        without_beta = {lane.method for lane in self.lanes if lane.beta is None}
        without_beta |= set(tuning.without_beta(result))
        attributes["without_beta"] = json.dumps(sorted(without_beta))
        return attributes

    def grown(self, result: "xr.Dataset") -> "xr.Dataset":
        """Put a stored sweep on its values and those of this one; what is new are gaps.

        Args:
            result: a stored result, (learner, *axes, seed) and for curves also step.

        Returns:
            The same result on the wider axes; a run as it is.
        """
        if not self.axes:
            return result
        axes = {}
        for name, values in self.axes.items():
            stored_values = result[name].values.tolist()
            axes[name] = sorted({*stored_values, *values})
        wider = result.reindex(axes, fill_value=GAPS)
        other_axes = {name: axes[name] for name in axes if name != "beta"}
        for method in tuning.without_beta(result):
            # What does not depend on β is repeated along it, also along the new values.
            of_method = {"learner": method}
            lanes = result.sel(of_method)
            lanes = lanes.isel(beta=0, drop=True)
            lanes = lanes.reindex(other_axes, fill_value=GAPS)
            for recorded, variable in lanes.data_vars.items():
                wider[recorded].loc[of_method] = variable
        return wider

    def command(self, seeds: Sequence[int], out: Path) -> str:
        """Write the command that computes what the results in ``out`` miss on some seeds.

        It names all methods, not only the missing ones, so that they keep their order in the
        result.
        """
        options: dict[str, Any] = {}
        for field in dataclasses.fields(Settings):
            name = field.name
            value = getattr(self.settings, name)
            if name != "task" and value != field.default:
                options[name] = value
        for name, values in self.axes.items():
            in_words = map(repr, values)
            options[name] = ",".join(in_words)
        options["methods"] = ",".join(self.plan.methods)
        options["first_seed"] = seeds[0]
        options["seeds"] = seeds[-1] - seeds[0] + 1
        options["out"] = out
        words = ["ital", self.kind.verb]
        if self.settings.data is None:
            words.append(str(self.settings.task))
        for name, value in options.items():
            option = name.replace("_", "-")
            words.append(f"--{option}={value}")
        return shlex.join(words)

    # Which lanes are missing, and how they are divided.

    def missing(self, result: "xr.Dataset | None", lane: Point) -> list[int]:
        """List the seeds on which the current code has not computed a lane."""
        computed = self._computed_seeds(result, lane)
        return [seed for seed in self.plan.seeds if seed not in computed]

    def _computed_seeds(self, result: "xr.Dataset | None", lane: Point) -> set[int]:
        """Return the seeds on which the current code has computed a lane."""
        if result is None:
            return set()
        labels = {"learner": lane.method, **self.coordinates(lane)}
        for dim, label in labels.items():
            if label not in result[dim].values:
                return set()
        stored = result.sel(labels)
        is_computed = stored["computed"] == 1
        complete = is_computed & self._is_current(stored, lane)
        # A lane that an axis does not affect is repeated along it.
        repeated = [dim for dim in complete.dims if dim != "seed"]
        complete = complete.all(repeated)
        seeds = complete["seed"].values[complete.values]
        return set(seeds.tolist())

    def _is_current(self, stored: "xr.Dataset", lane: Point) -> "xr.DataArray | bool":
        """Whether the current code computed a lane; files of earlier versions do not record it."""
        current = self.version(lane)
        if "version" not in stored:
            return current == FIRST
        version = stored["version"].astype(str)
        unrecorded = version == ""
        return (version == current) | (unrecorded & (current == FIRST))

    def outdated(self, result: "xr.Dataset | None") -> list[str]:
        """List stored methods of others that another version of this teacher has taught."""
        if result is None or "version" not in result:
            return []
        plan = self.plan
        current = set()
        for learner in plan.learners:
            version = version_of(plan.teacher, learner)
            current.add(_without_learner(version))
        outdated = []
        for name in map(str, result["learner"].values):
            if name in plan.methods:
                continue
            stored = result["version"].sel(learner=name)
            versions = set(stored.values.ravel().astype(str))
            versions.discard(GAPS["version"])
            of_teacher = {_without_learner(version) for version in versions}
            if of_teacher - current:
                outdated.append(name)
        return outdated

    @functools.cached_property
    def lane_and_world_size(self) -> tuple[int, int]:
        """The number of parameters per lane, and of numbers in a seed's own world.

        Raises:
            InputError: if the world does not suit the task and the teacher, or lacks the metric
                that a sweep is judged by.
        """
        plan = self.plan
        task = plan.task
        rules = task.rules
        # Two worlds show which of their arrays the seeds do not share.
        worlds = [task.world(seed) for seed in plan.seeds[:2]]
        check_world(task, plan.teacher, worlds[0])

        def start_and_measure(world: World) -> tuple[Any, dict[str, Any]]:
            key = randomness.key(0)
            init = plan.run.start_on(task)
            start = rules.start(key, init, world)
            metrics = rules.measure(start, world.truth)
            return start, metrics

        # Shapes only: nothing is computed.
        start, metrics = jax.eval_shape(start_and_measure, worlds[0])
        self._check_metric(metrics)
        parameters = sum(leaf.size for leaf in jax.tree.leaves(start))
        stacked, axes = stack_worlds(worlds)
        leaves = jax.tree.leaves(stacked)
        of_both_seeds = 0
        for leaf, axis in zip(leaves, axes, strict=True):
            # Seeds share what has no axis of its own.
            if axis == 0:
                of_both_seeds += np.size(leaf)
        return parameters, of_both_seeds // len(worlds)

    def _check_metric(self, recorded: Iterable[str]) -> None:
        """Raise InputError if a sweep is judged by a metric that the task does not measure."""
        if not self.axes:
            return
        task = self.plan.task
        recorded = set(recorded)
        measured = [metric for metric in task.metrics if metric in recorded]
        if self.metric is None and "distance" not in measured:
            raise InputError(
                f"task {task.name!r} has no target, so a sweep cannot measure the "
                f"distance to it: choose --metric {' or '.join(measured)}"
            )
        if self.metric is not None and self.metric not in measured:
            raise InputError(registry.nearest("metric", self.metric, measured))

    def sizes(self, cell_size: CellSize) -> CellSize:
        """Choose the cell sizes: as asked, or as few similar cells as should fit into memory.

        They depend on no machine: cells have the same names wherever an experiment resumes.
        """
        parameters, world = self.lane_and_world_size
        self._check_memory()
        at_once = self.kind.numbers_at_once
        lanes = len(self.lanes)
        points = cell_size.points or _even_size(lanes, at_once // parameters)
        points = min(lanes, points)
        by_parameters = at_once // (parameters * points)
        by_worlds = WORLDS_AT_ONCE // max(1, world)
        seeds_at_once = min(by_parameters, by_worlds)
        seeds = cell_size.seeds or _even_size(len(self.plan.seeds), seeds_at_once)
        return CellSize(seeds, points)

    def _check_memory(self) -> None:
        """Raise InputError if smaller cells would not help: the result or one lane does not fit."""
        plan = self.plan
        # The first and the last step are measured whatever the interval is.
        rows = plan.run.steps // plan.run.interval_on(plan.task) + 2
        lanes = len(self.lanes)
        seeds = len(plan.seeds)
        numbers = lanes * seeds * rows
        bytes_of_number = np.dtype(np.float32).itemsize
        check_memory(
            f"curves of {lanes} {self.kind.noun}s on {seeds} seeds, {rows} measurements each",
            numbers * bytes_of_number,
            "take fewer seeds, or measure less often",
        )
        check_footprint(plan.task, plan.run, 1, plan.seeds[:1])


def axis_of(name: str, values: Sequence[float]) -> tuple[float, ...]:
    """Sort the values of an axis; raise InputError for values that do not form an axis."""
    if np.ndim(values) == 0:
        raise InputError(f"{name} of a sweep must be a list of numbers, not {values!r}")
    if not len(values):
        raise InputError(f"a sweep needs at least one {name}")
    axis: list[float] = []
    for value in values:
        is_number = isinstance(value, int | float | np.number)
        if not is_number or not math.isfinite(value):
            raise InputError(f"every {name} of a sweep must be a finite number, not {value!r}")
        if value in axis:
            raise InputError(f"{name} {value:g} is given twice")
        axis.append(float(value))
    return tuple(sorted(axis))


def _with_beta(plan: Plan, learner: Learner, beta: float) -> Learner:
    """Give a learner its β and fill in all other open settings."""

    def no_auto(*arguments: Any) -> float:
        raise InputError(
            f"method {learner.name!r} finds its own β, but a sweep sets β: "
            "use ital run for this method"
        )

    run = dataclasses.replace(plan.run, beta=beta)
    context = situation(plan.task, plan.teacher, run, auto_beta=no_auto)
    # Sessions resolve learners again, with the β of the run: this one keeps its own.
    resolved = learner.resolve(learner, context)
    return resolved._replace(resolve=lambda learner, situation: learner)


def _uses_beta(plan: Plan, learner: Learner) -> bool:
    """Return whether two values of β give a learner different settings."""
    at_zero = _with_beta(plan, learner, 0.0)
    at_one = _with_beta(plan, learner, 1.0)
    same = map(
        np.array_equal,
        jax.tree.leaves(at_zero.settings),
        jax.tree.leaves(at_one.settings),
    )
    return not all(same)


def _without_learner(version: str) -> str:
    """Return the versions of the loop and the teacher, without that of the learner."""
    return version.rpartition(".")[0]


def _even_size(number: int, at_once: int) -> int:
    """Return the size of the fewest blocks of similar size that hold at most ``at_once`` each.

    An ``at_once`` below 1 counts as 1.
    """
    blocks = math.ceil(number / max(1, at_once))
    return math.ceil(number / blocks)
