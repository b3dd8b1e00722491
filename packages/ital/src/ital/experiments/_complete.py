"""Complete a result: plan, find missing cells, run the engine, collect."""

import contextlib
import errno
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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
    """A result, the number of lanes computed now (not found on disk), and the cells that failed."""

    result: "xr.Dataset"
    computed: int
    failures: list[Failure]
    cells: int
    out: Path

    def check(self, shown: object) -> None:
        """Raise Incomplete if a cell failed; ``shown`` is the result without the failed cells."""
        if self.failures:
            raise Incomplete(shown, self.failures, self.cells, self.out)


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
    """Compute the missing parts of a result in ``out``; its folder stays locked until the context ends."""
    chunks.check()
    folder = out / experiment.folder
    file = folder / experiment.kind.file
    check_writable(folder)
    check_writable(folder / CELLS)
    if file.is_dir():
        raise InputError(
            f"{file} is a folder, but the result is a file of this name: move it, or choose another --out"
        )
    if not overwrite:
        _store.stored(
            experiment.identity, file
        )  # raises for other settings before the folder is touched
    spread = engine is not None and chunks == Chunks()
    if experiment.settings.data is not None:
        say(describe_data(experiment.plan.task))
    sizes = experiment.sizes(Chunks(seeds=1) if spread else chunks)
    with engine or in_process() as run_cells, _store.owned(folder):
        clear(folder)  # left by a run that was killed
        earlier = None if overwrite else _store.stored(experiment.identity, file, say)
        old = experiment.outdated(earlier)
        if old:
            say(
                f"{', '.join(old)}: computed by an earlier version of the teacher; name them to compute them again"
            )
        collector = Collector(experiment, folder, earlier, sizes, say)
        if not overwrite:
            collector.collect()
        done: list[Cell] = []
        failures: list[Failure] = []
        for _ in range(ROUNDS + 1):
            failed = {failure.cell.name for failure in failures}
            missing = missing_cells(experiment, collector.result, sizes)
            cells = [cell for cell in missing if cell.name not in failed]
            if not cells:
                break
            if spread:
                say("one seed per cell (--seeds-per-cell changes this)")
            title = _title(experiment, cells)
            with show_progress(title, sum(cell.size for cell in cells), progress) as show:
                tell = lambda done, words="": show(done, f"{title}{words}")  # noqa: B023, E731
                for cell, failure in _collected(collector, run_cells, cells, tell, wait=overwrite):
                    if failure is None:
                        done.append(cell)
                    else:
                        failures.append(failure)
        else:
            raise OSError(
                errno.EIO, "files of finished cells are repeatedly missing or damaged", str(folder)
            )
        _store.remove_if_empty(folder / CELLS)
        if collector.result is None:
            raise Incomplete(None, failures, len(failures), out)
        yield Done(
            collector.result,
            sum(cell.size for cell in done),
            failures,
            len(done) + len(failures),
            out,
        )


def _collected(
    collector: Collector,
    run_cells: RunCells,
    cells: Sequence[Cell],
    show: Callable[..., None],
    *,
    wait: bool,
) -> Iterator[tuple[Cell, Failure | None]]:
    """Run cells and collect them periodically; with ``wait`` only at the end, which replaces the old result."""
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
    """A number of things with its noun: ``1 seed``, ``3 seeds``."""
    return f"{len(things)} {name}" + ("" if len(things) == 1 else "s")
