"""Engines that compute cells: this process, or local processes. ``_cluster`` has another.

All give the same numbers: an engine decides only where and when a cell is computed.
"""

import contextlib
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from ital.errors import InputError
from ital.experiments._cells import Cell, Say, Show, compute_cell
from ital.tools import processes as _processes
from ital.tools.files import Unwritable

ATTEMPTS = 3  # a cell that fails this often is skipped
# Errors that are not specific to one cell: all others would fail too.
FATAL = (InputError, Unwritable)


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
    cells: Sequence[Cell], folder: Path, show: Callable[..., None], say: Callable[[str], None]
) -> Finished:
    done = 0

    def show_share(share: float) -> None:
        # It reads the current cell: cells are computed one after the other.
        show(done + share * cell.size)

    for cell in cells:
        yield cell, _try_cell(cell, folder, show_share, say)
        done += cell.size


def _try_cell(cell: Cell, folder: Path, show: Show, say: Say) -> Failure | None:
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


@contextlib.contextmanager
def processes(workers: int, platform: str | None = None) -> Iterator[RunCells]:
    """Start local processes, each of which computes one cell at a time.

    This needs no library. A worker that dies is not replaced.

    Args:
        workers: number of processes.
        platform: "cpu" or "gpu", for the workers; None for JAX's default.

    Yields:
        An engine for :func:`run` and :func:`sweep`, while the context lasts.
    """

    def run_cells(
        cells: Sequence[Cell], folder: Path, show: Callable[..., None], say: Callable[[str], None]
    ) -> Finished:
        lanes_done: dict[str, float] = {}  # name of a cell → its lanes, in part perhaps
        cells_done = 0
        parts = [(cell, folder) for cell in cells]
        workers_needed = min(workers, len(parts))
        for part, message in _processes.run(_compute_here, parts, workers_needed, platform):
            # Without a part it is a message: a line, or how far a cell is.
            if part is not None:
                cells_done += 1
                yield part[0], message
            elif isinstance(message, str):
                say(message)
            else:
                name, done = message
                lanes_done[name] = done
                show(sum(lanes_done.values()), f", {cells_done} of {len(cells)} cells")

    yield run_cells


def _compute_here(part: tuple[Cell, Path]) -> Failure | None:
    """Compute a cell in a worker process."""
    cell, folder = part

    def show(share: float) -> None:
        _processes.tell((cell.name, share * cell.size))

    return _try_cell(cell, folder, show, _processes.tell)


def line_of(error: BaseException) -> str:
    """Return an error's type and message on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
