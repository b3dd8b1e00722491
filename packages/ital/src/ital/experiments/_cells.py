"""Cells: the independent parts of an experiment. A cell's file is the same wherever it is computed.

:func:`missing_cells` divides what a result misses. An engine computes cells: :func:`in_process` is
the one of this process, ``_engines`` has others. :func:`compute_cell` teaches a cell and writes its
file; in between it keeps checkpoints.

Why a kill, even of the whole machine, loses no result and changes no number:

1. Every file appears whole or not at all: temporary name, fsync, rename (``tools.files.whole``).
2. Ctrl-C and SIGTERM wait for the end of a block (``tools.interrupts.deferred``), so the carry of a
   checkpoint and its measurements are of the same step (:func:`run_to_the_end`).
3. A checkpoint is removed only when the file of its cell is there (:func:`_compute`), and the file
   of a cell only when it is in the result (``_run.Collector.collect``). At every moment,
   finished steps are in at least one of the three.
4. What a kill -9 does lose, the seconds since the last checkpoint, is computed again with the same
   numbers: randomness comes from the seed and the step, never from a clock or an order.
"""

import contextlib
import dataclasses
import functools
import hashlib
import io
import json
import os
import platform
import re
import socket
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import jax
import numpy as np

from ital._version import __version__
from ital.errors import InputError
from ital.experiments._experiment import AXES, CellSize, Experiment, Point
from ital.teaching import Block, Recording, check_footprint
from ital.tools import devices as _devices
from ital.tools import interrupts
from ital.tools.curve_files import Damaged, load_curves, save_curves
from ital.tools.files import Unwritable, write

if TYPE_CHECKING:
    import xarray as xr

CELLS = "cells"  # the folder of the cells' files, beside the result
NAME = "[0-9a-f]{16}"  # the name of a cell, see _hash
SECONDS_BETWEEN_CHECKPOINTS = 5.0
DIGEST = hashlib.sha256().digest_size  # bytes of the checksum at the beginning of a checkpoint
ATTEMPTS = 3  # a cell that fails this often is skipped
# Errors that are not specific to one cell: all others would fail too.
FATAL = (InputError, Unwritable)

Show = Callable[[float], None]  # is told the share that is done, from 0 to 1
Say = Callable[[str], None]  # is told a line about an event


@dataclass(frozen=True)
class Cell:
    """Some lanes of an experiment on some seeds.

    Attributes:
        experiment: the experiment.
        lanes: its lanes.
        seeds: its seeds.
        made_by: what its numbers depend on, copied from the experiment when the cell is created: a
            worker that unpickles the cell builds the experiment with its own version and data.
    """

    experiment: Experiment
    lanes: tuple[Point, ...]
    seeds: tuple[int, ...]
    made_by: str

    @functools.cached_property
    def name(self) -> str:
        """A hash of everything that the cell's numbers depend on, except the machine."""
        file = self.experiment.kind.file
        return _hash([file, self.made_by, self.lanes, self.seeds])

    @property
    def size(self) -> int:
        """The amount of work: lanes times seeds."""
        return len(self.lanes) * len(self.seeds)

    def __str__(self) -> str:
        methods = dict.fromkeys(lane.method for lane in self.lanes)
        facts = [", ".join(methods)]
        for axis in AXES:
            found = {getattr(lane, axis) for lane in self.lanes}
            values = [f"{value:g}" for value in sorted(found - {None})]
            if values:
                facts.append(f"{axis} {', '.join(values)}")
        first = self.seeds[0]
        last = self.seeds[-1]
        seeds = f"seeds {first} to {last}"
        if first == last:
            seeds = f"seed {first}"
        facts.append(seeds)
        return f"{self.name} ({'; '.join(facts)})"

    def path(self, folder: Path) -> Path:
        """Its file."""
        return folder / CELLS / f"{self.name}.nc"

    def halves(self) -> "list[Cell]":
        """Return two cells with half the seeds each, or half the lanes; none for a single lane."""
        # Seeds first: the lanes of a seed share its world.
        if len(self.seeds) > 1:
            halves = _halves(self.seeds)
            return [dataclasses.replace(self, seeds=seeds) for seeds in halves]
        if len(self.lanes) > 1:
            halves = _halves(self.lanes)
            return [dataclasses.replace(self, lanes=lanes) for lanes in halves]
        return []

    def check_here(self) -> None:
        """Raise InputError if ital or the data on this machine would give other numbers."""
        here = json.loads(self.experiment.made_by)
        sent = json.loads(self.made_by)
        for name, expected in sent.items():
            found = here.get(name)
            if found != expected:
                raise InputError(
                    f"a worker has {name} = {found}, not {expected}: set up all workers alike"
                )


def _halves(items: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    middle = len(items) // 2
    first = items[:middle]
    second = items[middle:]
    return first, second


def _hash(content: Mapping[str, Any] | list[Any]) -> str:
    text = json.dumps(content, sort_keys=True)
    digest = hashlib.sha256(text.encode())
    return digest.hexdigest()[:16]


def missing_cells(
    experiment: Experiment, result: "xr.Dataset | None", sizes: CellSize
) -> list[Cell]:
    """Divide the missing parts of a result into cells.

    Cells are counted from the first seed and the first lane that were asked for, so that existing
    results never change how the rest is divided: a rerun after a kill finds the same cells.

    Args:
        experiment: the experiment.
        result: the result so far; None if there is none.
        sizes: the seeds and the lanes of a full cell.

    Returns:
        Cells that together hold each missing lane on each seed once.
    """
    assert sizes.seeds is not None
    assert sizes.points is not None
    lanes = experiment.lanes
    missing_seeds = {lane: set(experiment.missing(result, lane)) for lane in lanes}
    lane_blocks = []
    for first in range(0, len(lanes), sizes.points):
        block = lanes[first : first + sizes.points]
        lane_blocks.append(block)
    # (number of the block of seeds, missing lanes) → its seeds that miss exactly these lanes.
    # Seeds that miss the same lanes share a cell: a cell is lanes × seeds without gaps.
    sharing: dict[tuple[int, tuple[Point, ...]], list[int]] = {}
    for position, seed in enumerate(experiment.plan.seeds):
        seed_block = position // sizes.seeds
        for block in lane_blocks:
            absent = tuple(lane for lane in block if seed in missing_seeds[lane])
            if absent:
                seeds = sharing.setdefault((seed_block, absent), [])
                seeds.append(seed)
    cells = []
    for (_, absent), seeds in sharing.items():
        cell = Cell(
            experiment=experiment,
            lanes=absent,
            seeds=tuple(seeds),
            made_by=experiment.made_by,
        )
        cells.append(cell)
    return cells


class Failure(NamedTuple):
    """A cell that failed for good, the number of attempts, and the traceback of the last."""

    cell: Cell
    attempts: int
    traceback: str


Finished = Iterator[tuple[Cell, Failure | None]]


class RunCells(Protocol):
    """The interface of an engine: compute cells in any order, here or elsewhere."""

    def __call__(
        self,
        cells: Sequence[Cell],
        folder: Path,
        show: Callable[..., None],
        say: Callable[[str], None],
        /,
    ) -> Finished:
        """Compute the cells and yield each when it ends, with its failure if it failed for good.

        Args:
            cells: the cells to compute.
            folder: the folder for their results.
            show: called with the number of lanes done, and words for the progress bar.
            say: called with a line about each event.

        """


Engine = AbstractContextManager[RunCells]


@contextlib.contextmanager
def in_process() -> Iterator[RunCells]:
    """An engine that computes one cell after the other in this process."""
    yield _one_by_one


def _one_by_one(
    cells: Sequence[Cell],
    folder: Path,
    show: Callable[..., None],
    say: Callable[[str], None],
) -> Finished:
    done = 0

    def show_share(share: float) -> None:
        # It reads the current cell: cells are computed one after the other.
        show(done + share * cell.size)

    for cell in cells:
        yield cell, try_cell(cell, folder, show_share, say)
        done += cell.size


def try_cell(cell: Cell, folder: Path, show: Show, say: Say) -> Failure | None:
    """Compute a cell in up to ``ATTEMPTS`` attempts; return its failure if it failed for good."""
    for number in range(1, ATTEMPTS + 1):
        try:
            compute_cell(cell, folder, show=show, say=say)
            return None
        except FATAL:
            raise
        except Exception as error:
            failure = Failure(cell, number, traceback.format_exc())
            say(f"cell {cell} failed ({line_of(error)}), attempt {number} of {ATTEMPTS}")
    return failure


def line_of(error: BaseException) -> str:
    """Return an error's type and message on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def compute_cell(
    cell: Cell,
    folder: Path,
    *,
    show: Show = lambda share: None,
    say: Say = lambda line: None,
) -> None:
    """Compute a cell and write its file, unless a complete one exists.

    It resumes from the last checkpoint. If the cell does not fit into memory, its halves are
    computed instead; each writes its own file.

    Args:
        cell: the cell.
        folder: the experiment's folder.
        show: called with the share that is done.
        say: called with a line about each event.
    """
    if read_cell(cell.path(folder), say) is not None:
        show(1.0)
        return
    if _may_fit(cell) and _compute(cell, folder, show, say):
        return
    say(f"not enough memory for cell {cell}: splitting it in two")
    for number, half in enumerate(cell.halves()):
        compute_cell(half, folder, show=functools.partial(_show_half, show, number), say=say)


def _show_half(show: Show, number: int, share: float) -> None:
    """Report the share of a whole cell whose half number 0 or 1 is done to this share."""
    show((number + share) / 2)


def _may_fit(cell: Cell) -> bool:
    """Return whether there may be enough memory; raise InputError if not and it cannot be divided.

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


def _compute(cell: Cell, folder: Path, show: Show, say: Say) -> bool:
    """Compute a cell in one piece; return whether memory sufficed."""
    cell.check_here()
    lane_versions = [cell.experiment.version(lane) for lane in cell.lanes]
    # Other code or another device may give other numbers: it must not resume this checkpoint.
    made_here = {**versions(), "lanes": lane_versions}
    resumable_by = _hash(made_here)
    checkpoint = folder / f".checkpoint-{cell.name}-{resumable_by}"
    try:
        curves, seconds = _teach_cell(
            cell,
            lane_versions,
            checkpoint,
            show,
            say,
        )
    except Exception as error:
        if not _is_out_of_memory(error) or not cell.halves():
            raise
        checkpoint.unlink(missing_ok=True)
        return False
    curves.attrs = {
        "result": cell.experiment.kind.file,
        "made_by": cell.made_by,
        "lanes": json.dumps(cell.lanes),
        "seconds": seconds,
        **versions(),
    }
    (folder / CELLS).mkdir(exist_ok=True)
    save_curves(curves, cell.path(folder), own_mark())
    # Only now: until the file is there, the checkpoint is all that a kill would leave.
    checkpoint.unlink(missing_ok=True)
    return True


def _teach_cell(
    cell: Cell,
    lane_versions: list[str],
    checkpoint: Path,
    show: Show,
    say: Say,
) -> "tuple[xr.Dataset, float]":
    """Teach the lanes of a cell; return their curves, (learner, seed, step), and the seconds."""
    experiment = cell.experiment
    recording = experiment.open(cell.lanes, list(cell.seeds))
    seconds = run_to_the_end(recording, checkpoint, show, say)
    curves = recording.curves(cell.seeds, experiment.names(cell.lanes))
    # One version per (lane, seed): a result may hold seeds of earlier versions.
    by_seed = np.repeat(np.array(lane_versions)[:, None], len(cell.seeds), axis=1)
    curves["version"] = (("learner", "seed"), by_seed)
    # Pictures show the first seed of a run; a sweep has none.
    if cell.seeds[0] == experiment.plan.seeds[0] and not experiment.axes:
        path = recording.path(cell.seeds)
        if path is not None:
            curves = curves.assign(path=path)
    return curves, seconds


def run_to_the_end(recording: Recording, checkpoint: Path, show: Show, say: Say) -> float:
    """Run all sessions to their end, from the last checkpoint if there is one.

    Args:
        recording: the sessions, and what they have reported.
        checkpoint: the file of the checkpoint.
        show: called with the share that is done.
        say: called with a line about each event.

    Returns:
        The time in seconds, including that before an interruption.

    Raises:
        KeyboardInterrupt: after Ctrl-C or SIGTERM, when the checkpoint is written.
    """
    began = time.monotonic()
    began -= _resume(recording, checkpoint, say)
    devices = recording.sessions[0].layout.devices
    if _devices.worth_saying(devices):
        say(f"computing on {_devices.named(devices)}")
    saved = time.monotonic()

    def show_done() -> None:
        show(recording.done / recording.total)

    def show_exam(share: float) -> None:
        show(recording.done_with(share) / recording.total)

    # Here Ctrl-C is only noted: a session's carry and the rows of its blocks must be of the same
    # step when they are saved. Between two blocks they are.
    with interrupts.deferred() as interrupted:
        show_done()
        for number, session in enumerate(recording.sessions):
            for block in session.blocks(show_exam):
                recording.blocks[number].append(block)
                show_done()
                now = time.monotonic()
                is_due = now - saved > SECONDS_BETWEEN_CHECKPOINTS
                if interrupted() or is_due:
                    save_checkpoint(recording, now - began, checkpoint)
                    saved = now
                if interrupted():
                    raise KeyboardInterrupt
    return time.monotonic() - began


def _resume(recording: Recording, checkpoint: Path, say: Say) -> float:
    """Restore a recording from its checkpoint; return the seconds it had taken, 0 without one."""
    try:
        seconds = load_checkpoint(recording, checkpoint)
    except Damaged as damage:
        say(f"{damage}: starting from the beginning")
        return 0.0
    if seconds is None:
        return 0.0
    share = recording.done / recording.total
    say(f"resuming an interrupted run ({share:.0%} done)")
    return seconds


def save_checkpoint(recording: Recording, seconds: float, path: Path) -> None:
    """Write the state of a run: carry and measurements of every session, and the time so far.

    Both are in one file, so that a kill cannot leave a carry with the measurements of another step.
    """
    arrays: dict[str, np.ndarray] = {"seconds": np.asarray(seconds)}
    for i, session in enumerate(recording.sessions):
        leaves = jax.tree.leaves(session.state)
        for j, leaf in enumerate(leaves):
            arrays[f"carry/{i}/{j}"] = leaf
        if session.begun:
            for name, row in recording.rows(i).items():
                arrays[f"rows/{i}/{name}"] = row
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    content = buffer.getvalue()
    # The mark keeps two machines that compute the same cell from writing one temporary file.
    checksum = hashlib.sha256(content).digest()
    write(path, checksum + content, own_mark())


def load_checkpoint(recording: Recording, path: Path) -> float | None:
    """Restore a run from its checkpoint.

    Args:
        recording: the sessions of the run, not begun; they are changed.
        path: the file.

    Returns:
        The seconds that it had taken; None if there is no checkpoint.

    Raises:
        Damaged: if the checkpoint cannot be used.
    """
    if not path.exists():
        return None
    file = path.read_bytes()
    expected = file[:DIGEST]
    content = file[DIGEST:]
    checksum = hashlib.sha256(content).digest()
    if checksum != expected:
        raise Damaged(f"{path} does not match its checksum")
    buffer = io.BytesIO(content)
    with np.load(buffer) as arrays:
        for i, session in enumerate(recording.sessions):
            leaves, structure = jax.tree.flatten(session.carry)
            if f"carry/{i}/{len(leaves)}" in arrays:
                # It holds more leaves than a carry has now.
                raise Damaged(f"{path} is of an earlier version")
            saved = [arrays[f"carry/{i}/{j}"] for j in range(len(leaves))]
            session.state = jax.tree.unflatten(structure, saved)
            prefix = f"rows/{i}/"
            rows = {}
            for name in arrays.files:
                if name.startswith(prefix):
                    rows[name.removeprefix(prefix)] = arrays[name]
            session.begun = bool(rows)
            recording.blocks[i] = []
            if rows:
                # All blocks so far come back as one.
                steps = rows.pop("step")
                recording.blocks[i].append(Block(steps, rows))
        return float(arrays["seconds"])


def own_mark() -> str:
    """Return a suffix that distinguishes temporary files of this process from those of others."""
    return f".{socket.gethostname()}-{os.getpid()}"


def versions() -> dict[str, Any]:
    """Return the software versions that computed a result, for its attributes."""
    first_device = jax.devices()[:1]
    return {
        "ital_version": __version__,
        "jax_version": jax.__version__,
        "numpy_version": np.__version__,
        "python_version": platform.python_version(),
        "device": _devices.named(first_device),
    }


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, jax.errors.JaxRuntimeError):
        return "RESOURCE_EXHAUSTED" in str(error)
    return isinstance(error, MemoryError)


def read_cell(file: Path, say: Say) -> "xr.Dataset | None":
    """Return the content of a cell's file, or None; rename a damaged file and report it."""
    try:
        return load_curves(file)
    except FileNotFoundError:
        return None
    except Damaged as damage:
        aside = put_aside(file)
        say(f"{damage}: computing it again (the old file is now {aside.name})")
        return None


def finished(experiment: Experiment, folder: Path, say: Say) -> "Iterator[tuple[Path, xr.Dataset]]":
    """Yield the finished cells of an experiment in a folder, and their files.

    Cells of other experiments and other files are ignored.
    """
    of_experiment = {"result": experiment.kind.file, "made_by": experiment.made_by}
    files = (folder / CELLS).glob("*.nc")
    for file in sorted(files):
        if not re.fullmatch(NAME, file.stem) or not file.is_file():
            continue
        cell = read_cell(file, say)
        if cell is None:
            continue
        found = {name: cell.attrs.get(name) for name in of_experiment}
        if found == of_experiment:
            yield file, cell


def stored_lanes(cell: "xr.Dataset") -> list[Point]:
    """Return the lanes in a cell's file, in the order of its rows."""
    lanes = json.loads(cell.attrs["lanes"])
    return [Point(*lane) for lane in lanes]


def forget(folder: Path, names: set[str]) -> None:
    """Remove the files of these cells, and their folder if it is empty."""
    cells = folder / CELLS
    for file in [*folder.glob(".*"), *cells.glob("*")]:
        # Checkpoints, logs and temporary files of a cell have its name in theirs.
        name = re.search(NAME, file.name)
        # A damaged file may be asked for in a bug report.
        if name and name[0] in names and file.suffix != ".damaged":
            file.unlink(missing_ok=True)
    remove_if_empty(cells)


def clear(folder: Path) -> None:
    """Remove what a cluster leaves beside the cells: token, logs, partial files."""
    for pattern in (".*", "*.log"):
        for file in (folder / CELLS).glob(pattern):
            file.unlink(missing_ok=True)


def put_aside(file: Path) -> Path:
    """Rename a damaged file, so that a new one can replace it."""
    aside = file.with_name(f"{file.name}.damaged")
    return file.replace(aside)


def remove_if_empty(folder: Path) -> None:
    """Remove a folder if it is empty."""
    with contextlib.suppress(OSError):
        folder.rmdir()
