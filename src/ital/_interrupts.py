"""Ctrl-C takes effect between blocks, never within one: a block's carry and rows belong together."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from types import FrameType

SWALLOWS = "_xla_gc_callback"  # JAX's callback of the garbage collector: Python ignores what is raised in it
SOON = 0.02  # seconds

_pending = False


def raise_and_note() -> None:
    """Let Ctrl-C raise as usual, and also record it: some library callbacks swallow exceptions.

    In a callback that is known to do so, the signal is sent again a moment later.
    """

    def note(number: int, frame: FrameType | None) -> None:
        global _pending  # noqa: PLW0603
        _pending = True
        if any(inner.f_code.co_name == SWALLOWS for inner in _stack(frame)):
            later = threading.Timer(SOON, signal.raise_signal, [number])
            later.daemon = True
            later.start()
            return
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, note)


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


@contextlib.contextmanager
def kept_from_children() -> Iterator[None]:
    """In this context, new threads and processes ignore Ctrl-C, even before their first line runs."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # otherwise a child would start it, and that would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def deferred() -> Iterator[Callable[[], bool]]:
    """In this context Ctrl-C is only recorded; yields a function that says whether. A second Ctrl-C stops at once."""
    noted = _pending

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal noted
        if noted:
            raise KeyboardInterrupt
        noted = True

    if threading.current_thread() is not threading.main_thread():  # only the main thread receives signals
        yield lambda: False
        return
    previous = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: noted
    finally:
        signal.signal(signal.SIGINT, previous)
