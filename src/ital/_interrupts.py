"""Ctrl-C between blocks: a run is never stopped half-way through a block, whose carry and rows belong together."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from types import FrameType

_pending = False


def raise_and_note() -> None:
    """Makes Ctrl-C raise as ever, but also be remembered: some library callbacks swallow what is raised in them."""

    def note(number: int, frame: FrameType | None) -> None:
        global _pending  # noqa: PLW0603
        _pending = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, note)


@contextlib.contextmanager
def kept_from_children() -> Iterator[None]:
    """While it lasts, threads and processes that are started never hear Ctrl-C, not even before their first line."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # if a child had to start it, that would end the blocking
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def deferred() -> Iterator[Callable[[], bool]]:
    """While it lasts, Ctrl-C is only noted; yields a function that tells. A second Ctrl-C stops at once."""
    noted = _pending

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal noted
        if noted:
            raise KeyboardInterrupt
        noted = True

    if threading.current_thread() is not threading.main_thread():  # signals reach the main thread alone
        yield lambda: False
        return
    previous = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: noted
    finally:
        signal.signal(signal.SIGINT, previous)
