"""Complete a result: find its missing cells, run the engine, collect what it finishes.

The files of a folder are written by one process at a time, which holds the folder's lock
(``_store.owned``). Workers write nothing but files of cells and their checkpoints.
"""

import contextlib
import errno
import functools
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ital.errors import Incomplete, InputError
from ital.experiments import _store
from ital.experiments._cells import CELLS, Cell, missing_cells
from ital.experiments._cluster import clear
from ital.experiments._collect import Collector
from ital.experiments._engines import Engine, Failure, RunCells, in_process
from ital.experiments._experiment import Chunks, Experiment
from ital.tasks import describe_data
from ital.tools.files import check_writable
from ital.tools.progress import show_progress

if TYPE_CHECKING:
    import xarray as xr

SECONDS_BETWEEN_COLLECTIONS = 30.0
COLLECTING = 0.05  # largest share of the time spent collecting
ROUNDS = 3  # times that a finished cell whose file is lost is computed again


class Done(NamedTuple):
    """A completed result.

    Attributes:
        result: the result.
        computed: number of lanes computed now, rather than found on disk.
        failures: the cells that failed.
        cells: number of cells that were computed or failed now.
        out: the folder for results.
    """

    result: "xr.Dataset"
    computed: int
    failures: list[Failure]
    cells: int
    out: Path

    def check(self, partial: object) -> None:
        """Raise Incomplete if a cell failed; ``partial`` is the result without the failed cells."""
        if self.failures:
            raise Incomplete(partial, self.failures, self.cells, self.out)


class _Tally:
    """The cells that were computed and those that failed, in this call."""

    def __init__(self) -> None:
        self.computed: list[Cell] = []
        self.failures: list[Failure] = []

    def add(self, cell: Cell, failure: Failure | None) -> None:
        if failure is None:
            self.computed.append(cell)
        else:
            self.failures.append(failure)

    def not_failed(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells that have not failed for good."""
        failed = {failure.cell.name for failure in self.failures}
        return [cell for cell in cells if cell.name not in failed]


@contextlib.contextmanager
def completed(
    experiment: Experiment,
    out: Path,
    chunks: Chunks,
    engine: Engine | None,
    *,
    overwrite: bool,
    progress: bool,
    say: Callable[[str], None],
) -> Iterator[Done]:
    """Compute the missing parts of a result in ``out``.

    Its folder stays locked until the context ends.

    Args:
        experiment: the experiment.
        out: the folder for results.
        chunks: the sizes of cells that were asked for.
        engine: computes the cells; None for this process.
        overwrite: compute everything again. The old result stays until the end.
        progress: show a progress bar.
        say: called with a line about each event.

    Yields:
        The completed result.

    Raises:
        InputError: if settings are refused, or the folder cannot be used; nothing is written then.
        Incomplete: if every cell failed.
        OSError: if files of finished cells are lost again and again.
    """
    chunks.check()
    folder = out / experiment.folder
    _check_folder(experiment, folder, overwrite)
    if experiment.settings.data is not None:
        say(describe_data(experiment.plan.task))
    # Workers share a sweep seed by seed, unless sizes are given.
    one_seed_each = engine is not None and chunks == Chunks()
    sizes = experiment.sizes(Chunks(seeds=1) if one_seed_each else chunks)
    # The engine is entered first: it checks its arguments before the folder is created.
    with engine or in_process() as run_cells, _store.owned(folder):
        clear(folder)  # what a cluster left that was killed
        collector = _open_collector(experiment, folder, sizes, overwrite, say)
        tally = _Tally()
        for _ in range(ROUNDS + 1):
            missing = missing_cells(experiment, collector.result, sizes)
            cells = tally.not_failed(missing)
            if not cells:
                break
            if one_seed_each:
                say("one seed per cell (--seeds-per-cell changes this)")
            title = _title(experiment, cells)
            with show_progress(title, sum(cell.size for cell in cells), progress) as show:
                tell = functools.partial(_show_titled, show, title)
                for cell, failure in _collected(collector, run_cells, cells, tell, wait=overwrite):
                    tally.add(cell, failure)
            # A file of a finished cell may be lost or damaged: look again for what is missing.
        else:
            reason = "files of finished cells are repeatedly missing or damaged"
            raise OSError(errno.EIO, reason, str(folder))
        _store.remove_if_empty(folder / CELLS)
        number = len(tally.computed) + len(tally.failures)
        if collector.result is None:
            raise Incomplete(None, tally.failures, number, out)
        computed = sum(cell.size for cell in tally.computed)
        yield Done(collector.result, computed, tally.failures, number, out)


def _check_folder(experiment: Experiment, folder: Path, overwrite: bool) -> None:
    """Raise InputError if a result cannot be written to a folder, before the folder is touched."""
    file = folder / experiment.kind.file
    check_writable(folder)
    check_writable(folder / CELLS)
    if file.is_dir():
        raise InputError(
            f"{file} is a folder, but the result is a file of this name: "
            "move it, or choose another --out"
        )
    if not overwrite:
        # A result with other settings is refused here; it is read again under the lock.
        _store.stored_result(experiment.identity, file)


def _open_collector(
    experiment: Experiment,
    folder: Path,
    sizes: Chunks,
    overwrite: bool,
    say: Callable[[str], None],
) -> Collector:
    """Read what earlier runs left: the result, and cells that were finished but not collected."""
    if overwrite:
        return Collector(experiment, folder, None, sizes, say)
    earlier = _store.stored_result(experiment.identity, folder / experiment.kind.file, say)
    outdated = experiment.outdated(earlier)
    if outdated:
        say(
            f"{', '.join(outdated)}: computed by an earlier version of the teacher; "
            "name them to compute them again"
        )
    collector = Collector(experiment, folder, earlier, sizes, say)
    collector.collect()
    return collector


def _show_titled(show: Callable[..., Any], title: str, done: float, words: str = "") -> None:
    """Move a bar, and put words after its title."""
    show(done, f"{title}{words}")


def _collected(
    collector: Collector,
    run_cells: RunCells,
    cells: Sequence[Cell],
    show: Callable[..., None],
    *,
    wait: bool,
) -> Iterator[tuple[Cell, Failure | None]]:
    """Run cells and collect them periodically; yield each with its failure, if it failed.

    With ``wait`` they are collected only at the end, which replaces the old result.
    """
    finished: list[str] = []
    due = time.monotonic() + SECONDS_BETWEEN_COLLECTIONS
    for cell, failure in run_cells(cells, collector.folder, show, collector.say):
        if failure is None:
            finished.append(cell.name)
        yield cell, failure
        began = time.monotonic()
        if began > due and not wait:
            collector.collect(finished)
            ended = time.monotonic()
            # The larger the result, the longer it takes to write: collect more rarely then.
            due = ended + max(SECONDS_BETWEEN_COLLECTIONS, (ended - began) / COLLECTING)
            finished = []
    collector.collect(finished)


def _title(experiment: Experiment, cells: Sequence[Cell]) -> str:
    plan = experiment.plan
    lanes = {lane for cell in cells for lane in cell.lanes}
    seeds = {seed for cell in cells for seed in cell.seeds}
    size = f"{count(lanes, experiment.kind.noun)} × {count(seeds, 'seed')}"
    return f"{plan.task.name}, {plan.teacher.name} teacher: {size}"


def count(things: Collection[object], name: str) -> str:
    """Return a number of things with its noun: ``1 seed``, ``3 seeds``."""
    return f"{len(things)} {name}" if len(things) == 1 else f"{len(things)} {name}s"
