"""Engines beside this process: local processes, and the workers of a Dask cluster.

All give the same numbers: an engine decides only where and when a cell is computed. The first half
of the cluster runs in the process that asked for the result, the second half in the workers. They
share the experiment's folder, and nothing else.
"""

import asyncio
import concurrent.futures
import contextlib
import errno
import functools
import logging
import os
import signal
import socket
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ital.errors import InputError
from ital.experiments._cells import (
    ATTEMPTS,
    CELLS,
    FATAL,
    Cell,
    Engine,
    Failure,
    Finished,
    RunCells,
    clear,
    compute_cell,
    line_of,
    read_cell,
    try_cell,
)
from ital.tools import interrupts
from ital.tools import processes as _processes
from ital.tools.checks import install
from ital.tools.files import write
from ital.tools.platform import check_platform, set_up_jax

# Lane steps from which a sweep uses all cores; smaller ones are over before workers start.
LARGE_SWEEP = 2**21
TOKEN = ".token"  # lets a worker verify that it sees the same folder


def engine_for(
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    resource: str | None = None,
    platform: str | None = None,
    seeds: int = 1,
    lane_steps: int = 0,
) -> Engine | None:
    """Return the engine that fits a sweep: a cluster if one is named, processes if it is large.

    Args:
        workers: Number of Dask workers to start; 0: compute in this process; None: decide by the
            size of the sweep.
        scheduler: Address of a Dask scheduler whose workers to use.
        resource: Resource that a worker of the cluster must declare.
        platform: ``cpu`` or ``gpu`` for the workers; None: JAX's choice.
        seeds: Number of seeds, at most one process each.
        lane_steps: Total number of steps of all lanes; from ``LARGE_SWEEP`` on, processes share the
            seeds.

    Returns:
        An engine for :func:`run` or :func:`sweep`, which checks its arguments when it is entered;
        None: this process.
    """
    if workers or scheduler is not None:
        return cluster(workers=workers, scheduler=scheduler, resource=resource, platform=platform)
    if workers is not None or lane_steps < LARGE_SWEEP:
        return None
    number = _processes.number_for(seeds)
    return processes(number, platform) if number else None


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
        cells: Sequence[Cell],
        folder: Path,
        show: Callable[..., None],
        say: Callable[[str], None],
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

    return try_cell(cell, folder, show, _processes.tell)


@contextlib.contextmanager
def cluster(
    *,
    workers: int | None = None,
    scheduler: str | None = None,
    resource: str | None = None,
    platform: str | None = None,
) -> Iterator[RunCells]:
    """Open a Dask cluster for one experiment: local processes, or all workers of a scheduler.

    A worker takes one cell at a time. A cell that raises, or whose worker dies, is tried up to
    three times.

    Args:
        workers: number of local processes to start; give this or ``scheduler``.
        scheduler: address of a scheduler.
        resource: use only workers that declare this resource; each cell takes one unit.
        platform: "cpu" or "gpu", for the workers; None for JAX's default.

    Yields:
        An engine for :func:`run` and :func:`sweep`, while the context lasts.

    Raises:
        InputError: if not exactly one of ``workers`` and ``scheduler`` is given, Dask is missing,
            or no scheduler answers.
    """
    if (workers is None) == (scheduler is None):
        raise InputError(
            "a cluster needs either a number of workers or the address of a scheduler, not both"
        )
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
        if workers is not None:
            opened = _local(distributed, workers)
        else:
            opened = _connected(distributed, scheduler or "")
        # A scheduler must answer before anything is written; local processes start when there is
        # work for them.
        connect = functools.cache(lambda: stack.enter_context(opened))
        if scheduler is not None:
            connect()

        def run_cells(
            cells: Sequence[Cell],
            folder: Path,
            show: Callable[..., None],
            say: Callable[[str], None],
        ) -> Finished:
            send = _Sender(connect(), folder.resolve(), resource, platform)
            try:
                yield from _as_they_finish(distributed, send, cells, show, say)
            finally:
                clear(folder)

        yield run_cells


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
    """Open a client of a scheduler; raise InputError if none answers."""
    try:
        client = distributed.Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler answers at {address} ({line_of(error)})") from None
    with client:
        yield client


@contextlib.contextmanager
def _local(distributed: Any, workers: int) -> Iterator[Any]:
    """A cluster of spawned local processes: forking after JAX is loaded would hang."""
    import dask

    # Deaths are counted for the cell being computed (see attempt), not for cells that were only
    # queued at the worker that died.
    patience = {
        "distributed.scheduler.allowed-failures": 1_000_000,
        "distributed.scheduler.worker-saturation": 1.0,
    }
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(patience))
        preload = [*dask.config.get("distributed.worker.preload"), "ital.experiments._engines"]
        # Dask cannot close a cluster that is still starting: Ctrl-C waits until it is up.
        with interrupts.deferred() as interrupted, interrupts.kept_from_children():
            try:
                local = distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address=":0",
                    preload=preload,
                    silence_logs=logging.CRITICAL,
                    env={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"},  # they may share a GPU
                )
            except RuntimeError as error:
                raise OSError(
                    errno.ECHILD,
                    f"could not be started ({line_of(error)})",
                    "workers",
                ) from error
            stack.enter_context(local)
        if interrupted():
            raise KeyboardInterrupt
        stack.enter_context(_tended(local, workers))
        yield stack.enter_context(distributed.Client(local, set_as_default=False))


@contextlib.contextmanager
def _tended(local: Any, workers: int) -> Iterator[None]:
    """In this context, restart workers that died while starting; Dask restarts all others."""
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
    """Sends cells to the workers.

    Attributes:
        client: the Dask client.
        folder: the experiment's folder.
        platform: "cpu" or "gpu", for the workers; None for JAX's default.
        resources: what a worker must declare to take a cell.
        token: identifies one call of the engine, in logs and in a file that workers look for.
    """

    def __init__(
        self,
        client: Any,
        folder: Path,
        resource: str | None,
        platform: str | None,
    ) -> None:
        self.client = client
        self.folder = folder
        self.platform = platform
        self.resources = None if resource is None else {resource: 1}
        self.token = uuid.uuid4().hex[:8]
        token_file = folder / CELLS / TOKEN
        token_file.parent.mkdir(exist_ok=True)
        write(token_file, self.token.encode())

    def __call__(self, cell: Cell) -> Any:
        # The scheduler remembers past keys, so a second attempt needs a key of its own.
        key = f"ital-{cell.name}-{uuid.uuid4().hex[:8]}"
        arguments = (cell, str(self.folder), self.token, self.platform)
        return self.client.submit(
            attempt,
            *arguments,
            key=key,
            pure=False,
            resources=self.resources,
        )

    def starts(self, cell: Cell) -> int:
        return starts(cell, self.folder, self.token)


def _as_they_finish(
    distributed: Any,
    send: _Sender,
    cells: Sequence[Cell],
    show: Callable[..., None],
    say: Callable[[str], None],
) -> Finished:
    """Send all cells and yield each when it ends; resend those that fail."""
    if not send.client.scheduler_info()["workers"]:
        say("waiting for the first worker")
    cell_of = {send(cell): cell for cell in cells}
    running = distributed.as_completed(list(cell_of), loop=send.client.loop, raise_errors=False)
    cells_done = 0
    lanes_done = 0
    for future in running:
        cell = cell_of.pop(future)
        failure = None
        if future.status == "finished":
            for line in _messages(future, send.client):
                say(line)
        elif future.status == "error":
            failure = _failure(future, cell, send, say)
            if failure is None:
                again = send(cell)
                cell_of[again] = cell
                running.add(again)
                continue
        elif future.status != "lost":
            raise _scheduler_gone(send.client)
        # A worker was lost after its cell ended: the file is there, only its messages are lost.
        cells_done += 1
        lanes_done += cell.size
        show(lanes_done, f", {cells_done} of {len(cells)} cells")
        yield cell, failure


def _failure(future: Any, cell: Cell, send: _Sender, say: Callable[[str], None]) -> Failure | None:
    """Return the failure of a cell that failed for good; None if it may be tried again.

    Raises an error that all other cells would meet, too.
    """
    error = future.exception()
    if isinstance(error, FATAL):
        raise error
    begun = send.starts(cell)
    if isinstance(error, GivenUp):
        return Failure(cell, begun, str(error))
    if begun >= ATTEMPTS:
        lines = traceback.format_exception(
            type(error),
            error,
            future.traceback(),
        )
        return Failure(cell, begun, "".join(lines))
    say(f"cell {cell} failed ({line_of(error)}), attempt {max(1, begun)} of {ATTEMPTS}")
    return None


def _messages(future: Any, client: Any) -> list[str]:
    """Return the messages of a finished cell."""
    try:
        return future.result()
    except (OSError, asyncio.CancelledError, concurrent.futures.CancelledError):
        # The scheduler, which passes them on, ended at the same moment.
        raise _scheduler_gone(client) from None


def _scheduler_gone(client: Any) -> OSError:
    reason = "the scheduler is gone; finished work is kept, and the same command resumes it"
    address = client.scheduler.address if client.scheduler else "cluster"
    return ConnectionError(errno.ECONNRESET, reason, address)


# What runs in a worker.


def dask_setup(worker: Any) -> None:
    """Leave Ctrl-C to the command that started the worker, and import what the first cell needs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import ital.experiments  # noqa: F401


class GivenUp(Exception):
    """Too many workers died while computing a cell."""


def attempt(cell: Cell, folder: str, token: str, platform: str | None) -> list[str]:
    """Compute a cell in a worker; return lines to print.

    Every attempt is logged before it starts, because a worker that dies leaves no other trace.
    """
    _set_up(platform)
    path = Path(folder)
    _check_shared(path, token)
    lines: list[str] = []
    if read_cell(cell.path(path), lines.append) is not None:
        return lines
    begun = starts(cell, path, token)
    if begun >= ATTEMPTS:
        raise GivenUp(f"{begun} workers died while computing this cell (killed, or out of memory?)")
    with _log_file(cell, path).open("a") as log:
        log.write(f"{token} {socket.gethostname()} {os.getpid()}\n")
    compute_cell(cell, path, say=lines.append)
    return lines


def _log_file(cell: Cell, folder: Path) -> Path:
    return folder / CELLS / f"{cell.name}.log"


def starts(cell: Cell, folder: Path, token: str) -> int:
    """Return the number of times a cell was started since it was first sent."""
    try:
        lines = _log_file(cell, folder).read_text().splitlines()
    except FileNotFoundError:
        return 0
    return sum(line.startswith(token) for line in lines)


_set_up = functools.cache(set_up_jax)


def _check_shared(folder: Path, token: str) -> None:
    """Raise InputError if this worker does not see the sender's folder."""
    try:
        found = (folder / CELLS / TOKEN).read_text()
    except OSError:
        found = ""
    if found != token:
        raise InputError(
            f"worker {socket.gethostname()} does not see {folder}: "
            "--out must be on a file system that all workers share"
        )
