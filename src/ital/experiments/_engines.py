"""Who computes the cells: this process, or the workers of a Dask cluster. The numbers are the same."""

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

from ital import _interrupts, _processes
from ital._checks import install
from ital._files import Unwritable, write
from ital._platform import check_platform
from ital.errors import InputError
from ital.experiments._attempts import ATTEMPTS, TOKEN, GivenUp, attempt, clear, starts
from ital.experiments._cells import CELLS, Cell, compute_cell

FATAL = (InputError, Unwritable)  # not the fault of one cell: the others would meet it too
LARGE_SWEEP = 2**21  # lane steps from which a sweep uses all cores by default: a worker takes seconds to start


class Failure(NamedTuple):
    """A cell that was left out, the number of attempts, and the traceback of the last."""

    cell: Cell
    attempts: int
    traceback: str


Finished = Iterator[tuple[Cell, Failure | None]]


class RunCells(Protocol):
    """What an engine provides: it computes cells in some order, here or elsewhere."""

    def __call__(
        self, cells: Sequence[Cell], folder: Path, show: Callable[..., None], say: Callable[[str], None], /
    ) -> Finished:
        """Compute the cells and yield each as it is finished, with its failure if it has failed for good.

        Args:
            cells: the cells to compute.
            folder: the folder that gets their results.
            show: is told how many lanes are done, and the words for it.
            say: is told in a line what happens.

        """


Engine = AbstractContextManager[RunCells]


@contextlib.contextmanager
def in_process() -> Iterator[RunCells]:
    """One cell after the other, here."""
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
    """Processes of this machine, each one cell at a time. No library is needed, and no worker that dies is replaced.

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
    """What a process does with a cell."""
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
    """Workers of a Dask cluster, for one experiment: processes of this machine, or all workers of a scheduler.

    A worker takes one cell at a time. A cell that raises, or whose worker dies, is tried again, three times.

    Args:
        workers: number of processes to start on this machine, or
        scheduler: address of a scheduler.
        resource: use only workers that declare this resource, one unit of it for each cell.
        platform: "cpu" or "gpu", for the workers; None for JAX's default.

    Yields:
        An engine for :func:`run` and :func:`sweep`, while the context lasts.

    Raises:
        InputError: if not exactly one of ``workers`` and ``scheduler`` is given, Dask is missing, or no scheduler
            answers.
    """
    if (workers is None) == (scheduler is None):
        raise InputError("a cluster is either a number of workers or the address of a scheduler")
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}")
    check_platform(platform)
    try:
        import distributed
    except ImportError:
        raise InputError(f"a cluster needs Dask: {install('cluster')}") from None
    with contextlib.ExitStack() as stack:
        for name in ("distributed", "tornado.application"):
            stack.enter_context(_quiet(name))
        # A scheduler must answer before anything is written; processes start when there is work for them.
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
    """The engine that fits a sweep: a cluster if one is named, processes of this machine if the sweep is large.

    Args:
        workers: Number of Dask workers to start; 0: compute in this process; None: decide by the size of the sweep.
        scheduler: Address of a Dask scheduler whose workers compute.
        resource: Resource that a worker of the cluster must declare.
        platform: ``cpu`` or ``gpu`` for the workers; None: JAX's choice.
        seeds: Number of seeds, at most one process each.
        lane_steps: Number of steps of all lanes together; from ``LARGE_SWEEP`` on, processes share the seeds.

    Returns:
        An engine for :func:`run` or :func:`sweep`, which checks its arguments when it is entered; None: this process.
    """
    if workers or scheduler is not None:
        return cluster(workers=workers, scheduler=scheduler, resource=resource, platform=platform)
    number = _processes.number_for(seeds) if workers is None and lane_steps >= LARGE_SWEEP else 0
    return processes(number, platform) if number else None


@contextlib.contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Without the log of a library: what matters of it is said in a line."""
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
    """A cluster of processes, each spawned: forking after JAX would hang."""
    import dask

    # A death is counted where it happens (see attempt), not for what was merely waiting on the worker.
    patience = {"distributed.scheduler.allowed-failures": 1_000_000, "distributed.scheduler.worker-saturation": 1.0}
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(patience))
        # Dask cannot close a cluster that is half started: Ctrl-C waits until it is.
        with _interrupts.deferred() as interrupted, _interrupts.kept_from_children():
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
    """While it lasts, workers that ended before they were up are started again; of all others Dask takes care."""
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
    """Sends cells to the workers, for one call of the engine, which its ``token`` tells from others."""

    def __init__(self, client: Any, folder: Path, resource: str | None, platform: str | None) -> None:
        self.client, self.folder, self.platform = client, folder, platform
        self.resources = None if resource is None else {resource: 1}
        self.token = uuid.uuid4().hex[:8]
        self.token_file = folder / CELLS / TOKEN
        self.token_file.parent.mkdir(exist_ok=True)
        write(self.token_file, self.token.encode())

    def __call__(self, cell: Cell) -> Any:
        key = f"ital-{cell.name}-{uuid.uuid4().hex[:8]}"  # the scheduler remembers the fate of a key
        arguments = (cell, str(self.folder), self.token, self.platform)
        return self.client.submit(attempt, *arguments, key=key, pure=False, resources=self.resources)

    def starts(self, cell: Cell) -> int:
        return starts(cell, self.folder, self.token)


def _as_they_finish(
    distributed: Any, send: _Sender, cells: Sequence[Cell], show: Callable[..., None], say: Callable[[str], None]
) -> Finished:
    """Sends all cells and yields each as it ends; those that fail are sent again."""
    if not send.client.scheduler_info()["workers"]:
        say("no worker is there yet: waiting for the first")
    sent = {send(cell): cell for cell in cells}
    number = done = 0
    running = distributed.as_completed(list(sent), loop=send.client.loop, raise_errors=False)
    for future in running:
        cell = sent.pop(future)
        failure = None
        if future.status == "lost":
            pass  # its worker ended after the cell did: the file is there, only the words are not
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
    """What a finished cell had to say; the scheduler who passes it on may end at this very moment."""
    try:
        return future.result()
    except (OSError, asyncio.CancelledError, concurrent.futures.CancelledError):
        raise _lost(client) from None


def _lost(client: Any) -> OSError:
    reason = "the scheduler is gone; what is finished is kept, and the same command resumes"
    return ConnectionError(errno.ECONNRESET, reason, client.scheduler.address if client.scheduler else "cluster")


def _line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
