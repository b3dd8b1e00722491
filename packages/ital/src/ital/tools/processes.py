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
    "a worker process ended before its work was done (killed, or out of memory?); "
    "finished work is kept, and the same command resumes it"
)

# The state of a worker process; see _begin_worker.
_stopped = False  # whether Ctrl-C has reached it
_send: Callable[[Any], None] = lambda message: None  # noqa: E731


def number_for(parts: int) -> int:
    """Return the number of workers for this many parts; 0: work in this process.

    It is limited by cores and free memory.
    """
    import jax

    # A container or a batch system may leave a process fewer cores than the machine has.
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    if jax.default_backend() != "cpu":
        cores = min(ON_A_GPU, cores)
    workers = min(cores, parts, shared_memory() // MEMORY_EACH)
    return workers if workers > 1 else 0


def tell(message: Any) -> None:
    """Send a message from a worker to the process that started it; outside a worker, do nothing."""
    _send(message)


def run(
    work: Callable[[Any], Any],
    parts: Sequence[Any],
    workers: int,
    platform: str | None = None,
) -> Iterator[tuple[Any, Any]]:
    """Run ``work(part)`` for every part in worker processes.

    Each worker takes one part at a time, in order. Ctrl-C reaches all workers, so that each can
    save its work. The first error stops all workers and is raised.

    Args:
        work: a function that can be imported.
        parts: what to work on.
        workers: number of processes.
        platform: "cpu" or "gpu", for the workers; None for JAX's default.

    Yields:
        (None, message) for each message as it arrives, and (part, result) when a part is done.
    """
    # Forking a process that has loaded JAX would hang.
    context = multiprocessing.get_context("spawn")
    messages: Any = context.Queue()
    started: list[int] = []
    pool = ProcessPoolExecutor(workers, context, _begin_worker, (messages, platform, os.getpid()))
    running: dict[Future[Any], Any] = {}
    try:
        # Within the try, because Ctrl-C may come while parts are handed out.
        running |= {pool.submit(_work, work, part): part for part in parts}
        while running:
            done, _ = wait(running, timeout=0)
            # A finished part continues at once; otherwise messages are waited for.
            yield from _pending(messages, started, 0.0 if done else PATIENCE)
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
    """Do one part, in a worker.

    SIGTERM ends the worker, after a part that it interrupts has been saved.
    """
    global _stopped  # noqa: PLW0603
    # After Ctrl-C the pool still hands out queued parts.
    if _stopped:
        raise KeyboardInterrupt
    interrupts.raise_and_note()
    try:
        return work(part)
    except KeyboardInterrupt:
        _stopped = True
        if interrupts.terminated():
            # The pool sends SIGTERM when another worker has died, and waits for this one to end.
            os._exit(128 + signal.SIGTERM)
        raise
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _pending(messages: Any, started: list[int], patience: float) -> Iterator[tuple[None, Any]]:
    """Yield all pending messages, after waiting up to ``patience`` seconds.

    A worker's first message is its process id, which is added to ``started``.
    """
    ends = time.monotonic() + patience
    while True:
        try:
            # A timeout of 0 would miss a message that is being written.
            timeout = max(0.0, ends - time.monotonic()) or 0.001
            kind, message = messages.get(timeout=timeout)
        except queue.Empty:
            return
        if kind == "started":
            started.append(message)
        else:
            yield None, message


def _begin_worker(messages: Any, platform: str | None, parent: int) -> None:
    """Set up a worker."""
    global _send  # noqa: PLW0603
    # In a group of its own: Ctrl-C in the terminal reaches only the parent process, which passes it
    # on.
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
