"""Engines that compute cells: this process, local processes, or a Dask cluster. The numbers are the same."""

import asyncio
import concurrent.futures
import contextlib
import errno
import functools
import logging
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ital.errors import InputError
from ital.experiments._attempts import ATTEMPTS, TOKEN, GivenUp, attempt, clear, starts
from ital.experiments._cells import CELLS, Cell, compute_cell
from ital.tools import interrupts
from ital.tools import processes as _processes
from ital.tools.checks import install
from ital.tools.files import Unwritable, write
from ital.tools.platform import check_platform

FATAL = (InputError, Unwritable)  # not specific to one cell: all others would fail too
LARGE_SWEEP = 2**21  # lane steps from which a sweep uses all cores; smaller ones are over before workers start


class Failure(NamedTuple):
    """A cell that failed for good, the number of attempts, and the traceback of the last."""

    cell: Cell
    attempts: int
    traceback: str


Finished = Iterator[tuple[Cell, Failure | None]]


class RunCells(Protocol):
    """The interface of an engine: compute cells in any order, here or elsewhere."""

    def __call__(
        self, cells: Sequence[Cell], folder: Path, show: Callable[..., None], say: Callable[[str], None], /
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


def _one_by_one(cells: Sequence[Cell], folder: Path, show: Callable[..., None], say: Callable[[str], None]) -> Finished:
    done = 0
    for cell in cells:
        tell = lambda share, first=done, size=cell.size: show(first + share * size)  # noqa: E731
        yield cell, _tried(cell, folder, tell, say)
        done += cell.size


def _tried(cell: Cell, folder: Path, show: Callable[[float], None], say: Callable[[str], None]) -> Failure | None:
    for number in range(1, ATTEMPTS + 1):
        try:
            compute_cell(cell, folder, show=show, say=say)
            return None
        except FATAL:
            raise
        except Exception as error:
            failure = Failure(cell, number, traceback.format_exc())
            say(f"cell {cell} failed ({_line(error)}), attempt {number} of {ATTEMPTS}")
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
        for part, message in _processes.run(_compute_here, parts, min(workers, len(parts)), platform):
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
    return _tried(cell, folder, lambda share: _processes.tell((cell.name, share * cell.size)), _processes.tell)


@contextlib.contextmanager
def cluster(
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    resource: str | None = None,
    platform: str | None = None,
) -> Iterator[RunCells]:
    """Workers of a Dask cluster, for one experiment: local processes, or all workers of a scheduler.

    A worker takes one cell at a time. A cell that raises, or whose worker dies, is tried up to three times.

    Args:
        workers: number of local processes to start; give this or ``scheduler``.
        scheduler: address of a scheduler.
        resource: use only workers that declare this resource; each cell takes one unit.
        platform: "cpu" or "gpu", for the workers; None for JAX's default.

    Yields:
        An engine for :func:`run` and :func:`sweep`, while the context lasts.

    Raises:
        InputError: if not exactly one of ``workers`` and ``scheduler`` is given, Dask is missing, or no scheduler
            answers.
    """
    if (workers is None) == (scheduler is None):
        raise InputError("a cluster needs either a number of workers or the address of a scheduler, not both")
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}")
    check_platform(platform)
    try:
        import distributed
    except ImportError:
        raise InputError(f"a cluster needs Dask: {install('ital[cluster]')}") from None
    with contextlib.ExitStack() as stack:
        for name in ("distributed", "tornado.application"):
            stack.enter_context(_quiet(name))
        # A scheduler must answer before anything is written; local processes start when there is work for them.
        opened = _local(distributed, workers) if workers is not None else _connected(distributed, scheduler or "")
        connect = functools.cache(lambda: stack.enter_context(opened))
        if scheduler is not None:
            connect()

        def run_cells(
            cells: Sequence[Cell], folder: Path, show: Callable[..., None], say: Callable[[str], None]
        ) -> Finished:
            send = _Sender(connect(), folder.resolve(), resource, platform)
            try:
                yield from _as_they_finish(distributed, send, cells, show, say)
            finally:
                clear(folder)

        yield run_cells


def engine_for(
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    resource: str | None = None,
    platform: str | None = None,
    seeds: int = 1,
    lane_steps: int = 0,
) -> Engine | None:
    """The engine that fits a sweep: a cluster if one is named, local processes if the sweep is large.

    Args:
        workers: Number of Dask workers to start; 0: compute in this process; None: decide by the size of the sweep.
        scheduler: Address of a Dask scheduler whose workers to use.
        resource: Resource that a worker of the cluster must declare.
        platform: ``cpu`` or ``gpu`` for the workers; None: JAX's choice.
        seeds: Number of seeds, at most one process each.
        lane_steps: Total number of steps of all lanes; from ``LARGE_SWEEP`` on, processes share the seeds.

    Returns:
        An engine for :func:`run` or :func:`sweep`, which checks its arguments when it is entered; None: this process.
    """
    if workers or scheduler is not None:
        return cluster(workers=workers, scheduler=scheduler, resource=resource, platform=platform)
    number = _processes.number_for(seeds) if workers is None and lane_steps >= LARGE_SWEEP else 0
    return processes(number, platform) if number else None


@contextlib.contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Silence the log of a library in this context; important events are reported separately."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def _connected(distributed: Any, address: str) -> Iterator[Any]:
    try:
        client = distributed.Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler answers at {address} ({_line(error)})") from None
    with client:
        yield client


@contextlib.contextmanager
def _local(distributed: Any, workers: int) -> Iterator[Any]:
    """A cluster of spawned local processes: forking after JAX is loaded would hang."""
    import dask

    # Deaths are counted for the cell being computed (see attempt), not for cells that were only queued there.
    patience = {"distributed.scheduler.allowed-failures": 1_000_000, "distributed.scheduler.worker-saturation": 1.0}
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(patience))
        # Dask cannot close a cluster that is still starting: Ctrl-C waits until it is up.
        with interrupts.deferred() as interrupted, interrupts.kept_from_children():
            try:
                local = distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address=":0",
                    preload=[*dask.config.get("distributed.worker.preload"), "ital.experiments._worker"],
                    silence_logs=logging.CRITICAL,
                    env={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},  # they may share a GPU
                )
            except RuntimeError as error:
                raise OSError(errno.ECHILD, f"could not be started ({_line(error)})", "workers") from error
            stack.enter_context(local)
        if interrupted():
            raise KeyboardInterrupt
        stack.enter_context(_tended(local, workers))
        yield stack.enter_context(distributed.Client(local, set_as_default=False))


@contextlib.contextmanager
def _tended(local: Any, workers: int) -> Iterator[None]:
    """In this context, restart workers that died while starting; Dask itself restarts all others."""
    from tornado.ioloop import PeriodicCallback

    def tend() -> None:
        for name, worker in list(local.workers.items()):
            if worker.status.name in ("closed", "failed"):
                del local.workers[name]
        local.scale(workers)

    every_second = PeriodicCallback(tend, 1000)
    local.loop.add_callback(every_second.start)
    try:
        yield
    finally:
        local.loop.add_callback(every_second.stop)


class _Sender:
    """Sends cells to the workers; ``token`` identifies one call of the engine."""

    def __init__(self, client: Any, folder: Path, resource: str | None, platform: str | None) -> None:
        self.client, self.folder, self.platform = client, folder, platform
        self.resources = None if resource is None else {resource: 1}
        self.token = uuid.uuid4().hex[:8]
        self.token_file = folder / CELLS / TOKEN
        self.token_file.parent.mkdir(exist_ok=True)
        write(self.token_file, self.token.encode())

    def __call__(self, cell: Cell) -> Any:
        key = f"ital-{cell.name}-{uuid.uuid4().hex[:8]}"  # unique, because the scheduler remembers past keys
        arguments = (cell, str(self.folder), self.token, self.platform)
        return self.client.submit(attempt, *arguments, key=key, pure=False, resources=self.resources)

    def starts(self, cell: Cell) -> int:
        return starts(cell, self.folder, self.token)


def _as_they_finish(
    distributed: Any, send: _Sender, cells: Sequence[Cell], show: Callable[..., None], say: Callable[[str], None]
) -> Finished:
    """Send all cells and yield each when it ends; resend those that fail."""
    if not send.client.scheduler_info()["workers"]:
        say("waiting for the first worker")
    sent = {send(cell): cell for cell in cells}
    number = done = 0
    running = distributed.as_completed(list(sent), loop=send.client.loop, raise_errors=False)
    for future in running:
        cell = sent.pop(future)
        failure = None
        if future.status == "lost":
            pass  # its worker ended after the cell did: the file exists, only its messages are lost
        elif future.status == "finished":
            for line in _result(future, send.client):
                say(line)
        elif future.status == "error":
            error = future.exception()
            if isinstance(error, FATAL):
                raise error
            starts = send.starts(cell)
            if isinstance(error, GivenUp) or starts >= ATTEMPTS:
                lines = traceback.format_exception(type(error), error, future.traceback())
                failure = Failure(cell, starts, str(error) if isinstance(error, GivenUp) else "".join(lines))
            else:
                say(f"cell {cell} failed ({_line(error)}), attempt {max(1, starts)} of {ATTEMPTS}")
                again = send(cell)
                sent[again] = cell
                running.add(again)
                continue
        else:
            raise _lost(send.client)
        number, done = number + 1, done + cell.size
        show(done, f", {number} of {len(cells)} cells")
        yield cell, failure


def _result(future: Any, client: Any) -> list[str]:
    """The messages of a finished cell; the scheduler that passes them on may end at the same moment."""
    try:
        return future.result()
    except (OSError, asyncio.CancelledError, concurrent.futures.CancelledError):
        raise _lost(client) from None


def _lost(client: Any) -> OSError:
    reason = "the scheduler is gone; finished work is kept, and the same command resumes it"
    return ConnectionError(errno.ECONNRESET, reason, client.scheduler.address if client.scheduler else "cluster")


def _line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
