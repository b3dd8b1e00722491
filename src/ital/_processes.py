"""Worker processes of this machine: independent parts of a work side by side, with messages on the way."""

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

from ital import _interrupts
from ital._memory import free_memory
from ital._platform import set_up_jax

MEMORY_EACH = 3 * 2**30  # bytes of memory that a worker may need
ON_A_GPU = 13  # workers at most: they share its memory and its time, but each compiles on a core of its own
INSISTENCE = 10.0  # seconds between two Ctrl-C that workers are sent
PATIENCE = 0.2  # seconds between two looks at what the workers do

_stopped = False  # has Ctrl-C reached this worker?
_send: Callable[[Any], None] = lambda message: None  # noqa: E731


def number_for(parts: int) -> int:
    """How many workers to start for this many parts: as many as cores and free memory bear; 0: work in this process."""
    import jax

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if jax.default_backend() != "cpu":
        cores = min(ON_A_GPU, cores)
    workers = min(cores, parts, free_memory() // MEMORY_EACH)
    return workers if workers > 1 else 0


def tell(message: Any) -> None:
    """Sends a message from a worker to whoever started it; elsewhere it is lost."""
    _send(message)


def run(
    work: Callable[[Any], Any], parts: Sequence[Any], workers: int, platform: str | None = None
) -> Iterator[tuple[Any, Any]]:
    """Does ``work(part)`` of every part in worker processes, each one part at a time, in their order.

    Yields what they say as it comes: (None, message), and (part, result) when a part is done. Ctrl-C reaches all
    workers, which may still keep what they have. The first error ends the others as well, and is raised.
    """
    context = multiprocessing.get_context("spawn")  # a fork of a process with JAX in it would hang
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
        raise OSError(0, "a worker process ended before its work was done (out of memory?)", "workers") from None
    finally:
        ended = threading.Event()
        if running:
            threading.Thread(target=_interrupt, args=(started, ended), daemon=True).start()
        pool.shutdown(cancel_futures=True)
        ended.set()
        messages.cancel_join_thread()


def _interrupt(workers: list[int], ended: threading.Event) -> None:
    """Passes Ctrl-C on until the workers have ended: one that reaches a worker inside a library's callback is lost."""
    while True:
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
        if ended.wait(INSISTENCE):
            return


def _work(work: Callable[[Any], Any], part: Any) -> Any:
    """One part, in a worker. After Ctrl-C the pool still hands out what it had in its queue: nothing more is begun."""
    global _stopped  # noqa: PLW0603
    if _stopped:
        raise KeyboardInterrupt
    try:
        return work(part)
    except KeyboardInterrupt:
        _stopped = True
        raise


def _heard(messages: Any, started: list[int], patience: float) -> Iterator[tuple[None, Any]]:
    """All messages that are there, after some patience; a worker's first is its number."""
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
    """What a worker does first. Ctrl-C of the terminal reaches its parent alone, who passes it on once."""
    global _send  # noqa: PLW0603
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    _interrupts.raise_and_note()
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # workers may share a GPU
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _send = lambda message: messages.put(("said", message))  # noqa: E731
    messages.put(("started", os.getpid()))
    threadpool_limits(1)  # of NumPy's own threads: the workers share the cores
    set_up_jax(platform)


def _end_with(parent: int) -> None:
    """Ends this process when the one that started it is gone."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
