"""Cells: the independent parts of an experiment. A cell's file is the same wherever it is computed."""

import abc
import dataclasses
import functools
import hashlib
import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax
import numpy as np

from ital._version import __version__
from ital.errors import InputError
from ital.experiments import _store
from ital.experiments._resume import compute, versions
from ital.experiments._settings import Plan, Settings
from ital.tasks import World, stack_worlds
from ital.teaching import DESCRIBED, Recording, check_footprint, check_world, described, version_of
from ital.tools import randomness
from ital.tools.memory import check_memory

if TYPE_CHECKING:
    import xarray as xr

CELLS = "cells"  # the folder of the cells' files, beside the result
NAME = "[0-9a-f]{16}"  # the name of a cell, see _hash
FIRST = "1.1.1"  # assumed version of lanes in a file that records none
WORLDS_AT_ONCE = 2**28  # numbers in the worlds of all seeds of a cell, if no cell size is given


class Point(NamedTuple):
    """A method and, in a sweep, its step size and β (None: the method has no β)."""

    method: str
    lr: float | None = None
    beta: float | None = None


class Chunks(NamedTuple):
    """The number of seeds and of points (lanes of a seed) per cell; None: as many as should fit into memory."""

    seeds: int | None = None
    points: int | None = None

    def check(self) -> None:
        """Raise InputError for a size below 1."""
        for name, size in self._asdict().items():
            if size is not None and size < 1:
                raise InputError(f"{name} per cell must be at least 1, not {size}")


@dataclass(frozen=True)
class Experiment(abc.ABC):
    """What runs and sweeps have in common. It is pickled as plain values; each process builds the parts it uses."""

    settings: Settings

    verb: ClassVar[str]  # the command
    file: ClassVar[str]  # file name of the result
    drawn: ClassVar[str] = ""  # files drawn from a result, outdated by a new one
    noun: ClassVar[str]  # the word for a lane
    numbers_at_once: ClassVar[int]  # parameters of all lanes of a cell together, if no cell size is given

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in dataclasses.fields(self))

    @abc.abstractmethod
    def make_plan(self) -> Plan:
        """The parts; raises InputError if the settings are not valid."""

    @abc.abstractmethod
    def make_lanes(self) -> list[Point]:
        """All lanes of a seed."""

    @abc.abstractmethod
    def open(self, lanes: Sequence[Point], seeds: Sequence[int]) -> Recording:
        """Sessions for some lanes on some seeds."""

    @property
    def axes(self) -> dict[str, list[float]]:
        """Axes of the result between method and seed."""
        return {}

    @property
    def identity(self) -> dict[str, Any]:
        """The settings that distinguish one result from another."""
        return self.plan.identity

    @property
    def described(self) -> dict[str, str]:
        """What figures need to know about a task of the caller's own, which no registered name can give."""
        return {} if isinstance(self.settings.task, str) else {DESCRIBED: json.dumps(described(self.plan.task))}

    def attributes(self, result: "xr.Dataset") -> dict[str, Any]:
        """Further attributes to store with a result."""
        return {}

    def check_metrics(self, metrics: Iterable[str]) -> None:  # noqa: B027
        """Raise InputError if the task does not measure what is needed."""

    def names(self, lanes: Sequence[Point]) -> list[str]:
        """The names of these lanes in the sessions."""
        return [lane.method for lane in lanes]

    @functools.cached_property
    def plan(self) -> Plan:
        """The parts, built once."""
        return self.make_plan()

    @functools.cached_property
    def lanes(self) -> list[Point]:
        """All lanes of a seed, listed once."""
        return self.make_lanes()

    def command(self, seeds: Sequence[int], out: Path) -> str:
        """The command that computes what is missing on some seeds from the results in ``out``.

        It names all methods, not only the missing ones, so that they keep their order in the result.
        """
        options: dict[str, Any] = {}
        for field in dataclasses.fields(Settings):
            value = getattr(self.settings, field.name)
            if field.name != "task" and value != field.default:
                options[{"form": "step"}.get(field.name, field.name)] = value
        options |= {name: ",".join(map(repr, axis)) for name, axis in self.axes.items()}
        options["methods"] = ",".join(self.plan.methods)
        options |= {"first_seed": seeds[0], "seeds": seeds[-1] - seeds[0] + 1, "out": out}
        words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        task = [str(self.settings.task)] if self.settings.data is None else []
        return shlex.join(["ital", self.verb, *task, *words])

    @functools.cached_property
    def made_by(self) -> str:
        """Everything that the numbers of a result depend on: its identity and the version of ital."""
        return json.dumps({**self.identity, "ital_version": __version__}, sort_keys=True)

    @functools.cached_property
    def folder(self) -> Path:
        """The experiment's folder, relative to the folder for results."""
        return Path(self.plan.task.name) / self.plan.teacher.name.replace(":", "-")

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
        self.check_metrics(metrics)
        stacked, axes = stack_worlds(worlds)
        per_seed = sum(np.size(leaf) for leaf, axis in zip(jax.tree.leaves(stacked), axes, strict=True) if axis == 0)
        return sum(leaf.size for leaf in jax.tree.leaves(start)), per_seed // len(worlds)

    def coordinates(self, lane: Point) -> dict[str, float]:
        """The labels of a lane along the axes, without the axes that do not affect it."""
        values = lane._asdict()
        return {axis: values[axis] for axis in self.axes if values[axis] is not None}

    def grown(self, result: "xr.Dataset") -> "xr.Dataset":
        """A stored result with gaps for what this experiment adds to its axes."""
        return result

    def sizes(self, chunks: Chunks) -> Chunks:
        """The cell sizes: as asked, or as few cells of similar size as should fit into memory, on any machine."""
        parameters, world = self.weight
        lanes = len(self.lanes)
        self._check_memory()
        points = min(lanes, chunks.points or _even(lanes, self.numbers_at_once // parameters))
        bearable = min(self.numbers_at_once // (parameters * points), WORLDS_AT_ONCE // max(1, world))
        return Chunks(chunks.seeds or _even(len(self.plan.seeds), bearable), points)

    def _check_memory(self) -> None:
        """Raise InputError if the result, or a single seed, does not fit into memory: smaller cells would not help."""
        plan = self.plan
        rows = plan.run.steps // plan.run.interval_on(plan.task) + 2
        needed = len(self.lanes) * len(plan.seeds) * rows * np.dtype(np.float32).itemsize
        what = f"curves of {len(self.lanes)} {self.noun}s on {len(plan.seeds)} seeds, {rows} measurements each"
        check_memory(what, needed, "take fewer seeds, or measure less often")
        check_footprint(plan.task, plan.run, 1, plan.seeds[:1])

    def cells(self, result: "xr.Dataset | None", sizes: Chunks) -> "list[Cell]":
        """The missing parts of a result, as cells: seeds that miss the same lanes share a cell.

        Cells are counted from the first seed and the first lane that were asked for, so that existing results never
        change how the rest is divided.
        """
        assert sizes.seeds is not None
        assert sizes.points is not None
        computed = [self._computed_seeds(result, lane) for lane in self.lanes]
        together: dict[tuple[int, tuple[Point, ...]], list[int]] = {}
        for i, seed in enumerate(self.plan.seeds):
            for first in range(0, len(self.lanes), sizes.points):
                block = range(first, min(first + sizes.points, len(self.lanes)))
                absent = tuple(self.lanes[j] for j in block if seed not in computed[j])
                if absent:
                    together.setdefault((i // sizes.seeds, absent), []).append(seed)
        return [Cell(self, lanes, tuple(seeds), self.made_by) for (_, lanes), seeds in together.items()]

    def _computed_seeds(self, result: "xr.Dataset | None", lane: Point) -> set[int]:
        """The seeds on which the current code has computed a lane."""
        labels = {"learner": lane.method, **self.coordinates(lane)}
        if result is None or any(label not in result[dim].values for dim, label in labels.items()):
            return set()
        stored = result.sel(labels)
        complete = (stored["computed"] == 1) & self._is_current(stored, lane)
        # a lane that an axis does not affect is repeated along it
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
        """Stored methods that are not part of this experiment, and that another version of its teacher has taught."""
        if result is None or "version" not in result:
            return []
        names = [str(name) for name in result["learner"].values if name not in self.plan.methods]
        own = {version_of(self.plan.teacher, learner).rpartition(".")[0] for learner in self.plan.learners}
        made = {name: set(result["version"].sel({"learner": name}).values.ravel().astype(str)) - {""} for name in names}
        return [name for name, found in made.items() if {version.rpartition(".")[0] for version in found} - own]

    def version(self, lane: Point) -> str:
        """The version of the code that computes a lane."""
        learner = next(learner for learner in self.plan.learners if learner.name == lane.method)
        return version_of(self.plan.teacher, learner)


def _even(number: int, at_once: int) -> int:
    """The size of the fewest blocks of similar size that hold at most ``at_once`` each (at least 1)."""
    blocks = -(-number // max(1, at_once))
    return -(-number // blocks)


def _halved(items: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return items[: len(items) // 2], items[len(items) // 2 :]


@dataclass(frozen=True)
class Cell:
    """Some lanes of an experiment on some seeds; ``made_by`` is copied from the experiment when the cell is created."""

    experiment: Experiment
    lanes: tuple[Point, ...]
    seeds: tuple[int, ...]
    made_by: str

    @functools.cached_property
    def name(self) -> str:
        """A hash of everything that the cell's numbers depend on, except the machine."""
        return _hash([self.experiment.file, self.made_by, self.lanes, self.seeds])

    @property
    def size(self) -> int:
        """The amount of work: lanes times seeds."""
        return len(self.lanes) * len(self.seeds)

    def __str__(self) -> str:
        methods = ", ".join(dict.fromkeys(lane.method for lane in self.lanes))
        first, last = self.seeds[0], self.seeds[-1]
        seeds = f"seed {first}" if first == last else f"seeds {first} to {last}"
        numbers = {axis: sorted({getattr(lane, axis) for lane in self.lanes} - {None}) for axis in ("lr", "beta")}
        axes = [f"{axis} {', '.join(f'{value:g}' for value in values)}" for axis, values in numbers.items() if values]
        return f"{self.name} ({'; '.join([methods, *axes, seeds])})"

    def path(self, folder: Path) -> Path:
        """Its file."""
        return folder / CELLS / f"{self.name}.nc"

    def halves(self) -> "list[Cell]":
        """Two cells with half the seeds each, or half the lanes of a single seed; empty for a single lane."""
        if len(self.seeds) > 1:
            return [dataclasses.replace(self, seeds=seeds) for seeds in _halved(self.seeds)]
        if len(self.lanes) > 1:
            return [dataclasses.replace(self, lanes=lanes) for lanes in _halved(self.lanes)]
        return []

    def check_here(self) -> None:
        """Raise InputError if ital or the data on this machine would give other numbers."""
        here = json.loads(self.experiment.made_by)
        for name, expected in json.loads(self.made_by).items():
            if here.get(name) != expected:
                raise InputError(f"a worker has {name} = {here.get(name)}, not {expected}: set up all workers alike")


def compute_cell(
    cell: Cell,
    folder: Path,
    *,
    show: Callable[[float], None] = lambda share: None,
    say: Callable[[str], None] = lambda line: None,
) -> None:
    """Compute a cell and write its file, unless a complete one exists; resume from the last checkpoint.

    If it does not fit into memory, compute its halves instead; each writes its own file.
    """
    if read(cell.path(folder), say) is not None:
        show(1.0)
    elif not _fits(cell) or not _compute(cell, folder, show, say):
        say(f"not enough memory for cell {cell}: splitting it in two")
        for i, half in enumerate(cell.halves()):
            compute_cell(half, folder, show=lambda share, i=i: show((i + share) / 2), say=say)  # type: ignore[misc]


def _fits(cell: Cell) -> bool:
    """Whether there may be enough memory; raise InputError if not, and the cell cannot be divided.

    Trying would not always raise an error: a system or a container may kill the process instead.
    """
    plan = cell.experiment.plan
    try:
        check_footprint(plan.task, plan.run, len(cell.lanes), cell.seeds)
    except InputError:
        if not cell.halves():
            raise
        return False
    return True


def _compute(cell: Cell, folder: Path, show: Callable[[float], None], say: Callable[[str], None]) -> bool:
    """Compute a cell in one piece; return whether memory sufficed."""
    cell.check_here()
    lane_versions = [cell.experiment.version(lane) for lane in cell.lanes]
    checkpoint = folder / f".checkpoint-{cell.name}-{_hash({**versions(), 'lanes': lane_versions})}"
    try:
        recording = cell.experiment.open(cell.lanes, list(cell.seeds))
        seconds = compute(recording, checkpoint, show, say)
        curves = recording.curves(cell.seeds, cell.experiment.names(cell.lanes))
        curves["version"] = ("learner", "seed"), np.repeat(np.array(lane_versions)[:, None], len(cell.seeds), axis=1)
        if cell.seeds[0] == cell.experiment.plan.seeds[0] and not cell.experiment.axes:
            path = recording.path(cell.seeds)
            curves = curves if path is None else curves.assign(path=path)
    except Exception as error:
        if not _out_of_memory(error) or not cell.halves():
            raise
        checkpoint.unlink(missing_ok=True)
        return False
    lanes = json.dumps(cell.lanes)
    curves.attrs = {"result": cell.experiment.file, "made_by": cell.made_by, "lanes": lanes, "seconds": seconds}
    curves.attrs |= versions()
    (folder / CELLS).mkdir(exist_ok=True)
    _store.save_curves(curves, cell.path(folder), _store.own_mark())
    checkpoint.unlink(missing_ok=True)
    return True


def _out_of_memory(error: Exception) -> bool:
    device = isinstance(error, jax.errors.JaxRuntimeError) and "RESOURCE_EXHAUSTED" in str(error)
    return device or isinstance(error, MemoryError)


def read(file: Path, say: Callable[[str], None]) -> "xr.Dataset | None":
    """The content of a cell's file, or None; renames a damaged file and reports it."""
    try:
        return _store.load_curves(file)
    except FileNotFoundError:
        return None
    except _store.Damaged as damage:
        say(f"{damage}: computing it again (the old file is now {_store.put_aside(file).name})")
        return None


def finished(experiment: Experiment, folder: Path, say: Callable[[str], None]) -> "Iterator[tuple[Path, xr.Dataset]]":
    """The finished cells of an experiment in a folder; cells of other experiments and other files are ignored."""
    wanted = (experiment.file, experiment.made_by)
    for file in sorted((folder / CELLS).glob("*.nc")):
        if not re.fullmatch(NAME, file.stem) or not file.is_file():
            continue
        cell = read(file, say)
        if cell is not None and (cell.attrs.get("result"), cell.attrs.get("made_by")) == wanted:
            yield file, cell


def lanes_of(cell: "xr.Dataset") -> list[Point]:
    """The lanes in a cell's file, in order."""
    return [Point(*lane) for lane in json.loads(cell.attrs["lanes"])]


def forget(folder: Path, names: set[str]) -> None:
    """Remove the files of these cells, and their folder if it is empty."""
    for file in [*folder.glob(".*"), *(folder / CELLS).glob("*")]:
        name = re.search(NAME, file.name)
        if name and name[0] in names and file.suffix != ".damaged":
            file.unlink(missing_ok=True)
    _store.remove_if_empty(folder / CELLS)


def _hash(content: Mapping[str, Any] | list[Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
