"""Engines that compute cells: this process, or local processes. ``_cluster`` has another; the numbers are the same."""

import contextlib
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

from ital.errors import InputError
from ital.experiments._cells import Cell, compute_cell
from ital.tools import processes as _processes
from ital.tools.files import Unwritable

ATTEMPTS = 3  # a cell that fails this often is skipped
FATAL = (InputError, Unwritable)  # not specific to one cell: all others would fail too


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
        """Compute the cells and yield each when it is finished, with its failure if it failed for good.

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
    for cell in cells:
        tell = lambda share, first=done, size=cell.size: show(first + share * size)  # noqa: E731
        yield cell, _tried(cell, folder, tell, say)
        done += cell.size


def _tried(
    cell: Cell, folder: Path, show: Callable[[float], None], say: Callable[[str], None]
) -> Failure | None:
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
    """Local processes, each computing one cell at a time. Needs no library; a worker that dies is not replaced.

    Args:
        workers: number of processes.
        platform: "cpu" or "gpu", for the workers; None for JAX's default.

    Yields:
        An engine for :func:`run` and :func:`sweep`, while the context lasts.
    """

    def run_cells(
        cells: Sequence[Cell], folder: Path, show: Callable[..., None], say: Callable[[str], None]
    ) -> Finished:
        shares: dict[str, float] = {}
        number = 0
        parts = [(cell, folder) for cell in cells]
        for part, message in _processes.run(
            _compute_here, parts, min(workers, len(parts)), platform
        ):
            if part is not None:
                number += 1
                yield part[0], message
            elif isinstance(message, str):
                say(message)
            else:
                name, done = message
                shares[name] = done
                show(sum(shares.values()), f", {number} of {len(cells)} cells")

    yield run_cells


def _compute_here(part: tuple[Cell, Path]) -> Failure | None:
    """Compute a cell in a worker process."""
    cell, folder = part
    return _tried(
        cell, folder, lambda share: _processes.tell((cell.name, share * cell.size)), _processes.tell
    )


def line_of(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
