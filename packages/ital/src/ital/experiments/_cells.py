"""Cells: the independent parts of an experiment. A cell's file is the same wherever it is computed."""

import dataclasses
import functools
import hashlib
import json
import platform
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ital._version import __version__
from ital.errors import InputError
from ital.experiments import _store
from ital.experiments._experiment import Chunks, Experiment, Point
from ital.teaching import Recording, check_footprint
from ital.tools import devices as _devices
from ital.tools import interrupts

if TYPE_CHECKING:
    import xarray as xr

CELLS = "cells"  # the folder of the cells' files, beside the result
NAME = "[0-9a-f]{16}"  # the name of a cell, see _hash
SECONDS_BETWEEN_CHECKPOINTS = 5.0


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
        return _hash([self.experiment.kind.file, self.made_by, self.lanes, self.seeds])

    @property
    def size(self) -> int:
        """The amount of work: lanes times seeds."""
        return len(self.lanes) * len(self.seeds)

    def __str__(self) -> str:
        methods = ", ".join(dict.fromkeys(lane.method for lane in self.lanes))
        first, last = self.seeds[0], self.seeds[-1]
        seeds = f"seed {first}" if first == last else f"seeds {first} to {last}"
        numbers = {
            axis: sorted({getattr(lane, axis) for lane in self.lanes} - {None})
            for axis in ("lr", "beta")
        }
        axes = [
            f"{axis} {', '.join(f'{value:g}' for value in values)}"
            for axis, values in numbers.items()
            if values
        ]
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
                raise InputError(
                    f"a worker has {name} = {here.get(name)}, not {expected}: set up all workers alike"
                )


def _halved(items: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    return items[: len(items) // 2], items[len(items) // 2 :]


def missing_cells(experiment: Experiment, result: "xr.Dataset | None", sizes: Chunks) -> list[Cell]:
    """Divide the missing parts of a result into cells: seeds that miss the same lanes share a cell.

    Cells are counted from the first seed and the first lane that were asked for, so that existing results never
    change how the rest is divided.
    """
    assert sizes.seeds is not None
    assert sizes.points is not None
    lanes = experiment.lanes
    missing = [set(experiment.missing(result, lane)) for lane in lanes]
    # (number of the block of seeds, missing lanes) → the seeds of that block that miss just these lanes
    together: dict[tuple[int, tuple[Point, ...]], list[int]] = {}
    for i, seed in enumerate(experiment.plan.seeds):
        for first in range(0, len(lanes), sizes.points):
            block = range(first, min(first + sizes.points, len(lanes)))
            absent = tuple(lanes[j] for j in block if seed in missing[j])
            if absent:
                together.setdefault((i // sizes.seeds, absent), []).append(seed)
    return [
        Cell(experiment, absent, tuple(seeds), experiment.made_by)
        for (_, absent), seeds in together.items()
    ]


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


def _compute(
    cell: Cell, folder: Path, show: Callable[[float], None], say: Callable[[str], None]
) -> bool:
    """Compute a cell in one piece; return whether memory sufficed."""
    cell.check_here()
    lane_versions = [cell.experiment.version(lane) for lane in cell.lanes]
    checkpoint = folder / f".checkpoint-{cell.name}-{_hash({**versions(), 'lanes': lane_versions})}"
    try:
        recording = cell.experiment.open(cell.lanes, list(cell.seeds))
        seconds = run_to_the_end(recording, checkpoint, show, say)
        curves = recording.curves(cell.seeds, cell.experiment.names(cell.lanes))
        curves["version"] = (
            ("learner", "seed"),
            np.repeat(np.array(lane_versions)[:, None], len(cell.seeds), axis=1),
        )
        if cell.seeds[0] == cell.experiment.plan.seeds[0] and not cell.experiment.axes:
            path = recording.path(cell.seeds)
            curves = curves if path is None else curves.assign(path=path)
    except Exception as error:
        if not _out_of_memory(error) or not cell.halves():
            raise
        checkpoint.unlink(missing_ok=True)
        return False
    lanes = json.dumps(cell.lanes)
    curves.attrs = {
        "result": cell.experiment.kind.file,
        "made_by": cell.made_by,
        "lanes": lanes,
        "seconds": seconds,
    }
    curves.attrs |= versions()
    (folder / CELLS).mkdir(exist_ok=True)
    _store.save_curves(curves, cell.path(folder), _store.own_mark())
    checkpoint.unlink(missing_ok=True)
    return True


def run_to_the_end(
    recording: Recording,
    checkpoint: Path,
    show: Callable[[float], None],
    say: Callable[[str], None],
) -> float:
    """Run all sessions to their end, from the last checkpoint if there is one; return the total time in seconds.

    ``show`` is called with the share that is done.
    """
    began = time.monotonic()
    try:
        earlier = _store.load_checkpoint(recording, checkpoint)
    except _store.Damaged as damage:
        say(f"{damage}: starting from the beginning")
        earlier = None
    if earlier is not None:
        share = recording.done / recording.total
        say(f"resuming an interrupted run ({share:.0%} done)")
        began -= earlier
    devices = recording.sessions[0].layout.devices
    if _devices.worth_saying(devices):
        say(f"computing on {_devices.named(devices)}")
    saved = time.monotonic()
    with interrupts.deferred() as interrupted:
        show(recording.done / recording.total)
        for i, session in enumerate(recording.sessions):
            for block in session.blocks(
                lambda share: show(recording.done_with(share) / recording.total)
            ):
                recording.blocks[i].append(block)
                show(recording.done / recording.total)
                now = time.monotonic()
                if interrupted() or now - saved > SECONDS_BETWEEN_CHECKPOINTS:
                    _store.save_checkpoint(recording, now - began, checkpoint)
                    saved = now
                if interrupted():
                    raise KeyboardInterrupt
    return time.monotonic() - began


def versions() -> dict[str, Any]:
    """The software versions that computed a result, for its attributes."""
    return {
        "ital_version": __version__,
        "jax_version": jax.__version__,
        "numpy_version": np.__version__,
        "python_version": platform.python_version(),
        "device": _devices.named(jax.devices()[:1]),
    }


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


def finished(
    experiment: Experiment, folder: Path, say: Callable[[str], None]
) -> "Iterator[tuple[Path, xr.Dataset]]":
    """The finished cells of an experiment in a folder; cells of other experiments and other files are ignored."""
    wanted = (experiment.kind.file, experiment.made_by)
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
