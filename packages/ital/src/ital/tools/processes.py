"""Local worker processes: independent jobs in parallel, with messages while they run."""

import contextlib
import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from threadpoolctl import threadpool_limits

from ital.tools import interrupts
from ital.tools.memory import shared_memory
from ital.tools.platform import set_up_jax

MEMORY_EACH = 3 * 2**30  # bytes of memory that a worker may need
ON_A_GPU = 13  # at most this many workers share a GPU; each still compiles on its own CPU core
INSISTENCE = 10.0  # seconds between two Ctrl-C sent to the workers
PATIENCE = 0.2  # seconds between two checks of the workers' messages

ENDED = (
    "a worker process ended before its work was done (killed, or out of memory?); finished work is kept, "
    "and the same command resumes it"
)

_stopped = False  # whether Ctrl-C has reached this worker
_send: Callable[[Any], None] = lambda message: None  # noqa: E731


def number_for(parts: int) -> int:
    """Number of workers for this many parts, limited by cores and free memory; 0: work in this process."""
    import jax

    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    if jax.default_backend() != "cpu":
        cores = min(ON_A_GPU, cores)
    workers = min(cores, parts, shared_memory() // MEMORY_EACH)
    return workers if workers > 1 else 0


def tell(message: Any) -> None:
    """Send a message from a worker to the process that started it; outside a worker, do nothing."""
    _send(message)


def run(
    work: Callable[[Any], Any], parts: Sequence[Any], workers: int, platform: str | None = None
) -> Iterator[tuple[Any, Any]]:
    """Run ``work(part)`` for every part in worker processes. Each worker takes one part at a time, in order.

    Yields (None, message) for each message as it arrives, and (part, result) when a part is done. Ctrl-C reaches all
    workers, so that each can save its work. The first error stops all workers and is raised.
    """
    context = multiprocessing.get_context(
        "spawn"
    )  # forking a process that has loaded JAX would hang
    messages: Any = context.Queue()
    started: list[int] = []
    pool = ProcessPoolExecutor(workers, context, _begin, (messages, platform, os.getpid()))
    running: dict[Future[Any], Any] = {}
    try:
        running |= {pool.submit(_work, work, part): part for part in parts}
        while running:
            done, _ = wait(running, timeout=0)
            yield from _heard(messages, started, 0.0 if done else PATIENCE)
            for future in done:
                yield running.pop(future), future.result()
    except BrokenProcessPool:
        raise OSError(0, ENDED, "workers") from None
    finally:
        ended = threading.Event()
        if running:
            threading.Thread(target=_interrupt, args=(started, ended), daemon=True).start()
        pool.shutdown(cancel_futures=True)
        ended.set()
        messages.cancel_join_thread()


def _interrupt(workers: list[int], ended: threading.Event) -> None:
    """Send Ctrl-C to the workers until they end: a library callback may swallow a single one."""
    while True:
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
        if ended.wait(INSISTENCE):
            return


def _work(work: Callable[[Any], Any], part: Any) -> Any:
    """Do one part, in a worker. After Ctrl-C the pool still hands out queued parts: they are not started.

    SIGTERM ends the worker, after a part that it interrupts has been saved.
    """
    global _stopped  # noqa: PLW0603
    if _stopped:
        raise KeyboardInterrupt
    interrupts.raise_and_note()
    try:
        return work(part)
    except KeyboardInterrupt:
        _stopped = True
        if interrupts.terminated():
            os._exit(
                128 + signal.SIGTERM
            )  # the pool sends it when another worker has died, and waits for the end
        raise
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _heard(messages: Any, started: list[int], patience: float) -> Iterator[tuple[None, Any]]:
    """All pending messages, after waiting up to ``patience`` seconds; a worker's first message is its process id."""
    ends = time.monotonic() + patience
    while True:
        try:
            kind, message = messages.get(timeout=max(0.0, ends - time.monotonic()) or 0.001)
        except queue.Empty:
            return
        if kind == "started":
            started.append(message)
        else:
            yield None, message


def _begin(messages: Any, platform: str | None, parent: int) -> None:
    """Set up a worker. Ctrl-C in the terminal reaches only the parent process, which passes it on."""
    global _send  # noqa: PLW0603
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    interrupts.raise_and_note(signal.SIGINT)
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # workers may share a GPU
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _send = lambda message: messages.put(("said", message))  # noqa: E731
    messages.put(("started", os.getpid()))
    threadpool_limits(1)  # NumPy's own threads: the workers share the cores
    set_up_jax(platform)


def _end_with(parent: int) -> None:
    """End this process when its parent process is gone."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
