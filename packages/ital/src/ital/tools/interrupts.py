"""Ctrl-C and SIGTERM take effect between blocks, never within one.

A block's carry and its rows belong together: a checkpoint of one without the other would lose a
step.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from types import FrameType
from typing import Any

# Ctrl-C, and what a batch system or a container sends before it kills.
SIGNALS = (signal.SIGINT, signal.SIGTERM)
# JAX's callback of the garbage collector: Python ignores what is raised in it.
SWALLOWS = "_xla_gc_callback"
SOON = 0.02  # seconds

_received: set[int] = set()  # of the signals that are raised and noted


def raise_and_note(*numbers: int) -> None:
    """Let Ctrl-C and SIGTERM raise KeyboardInterrupt, and also record them.

    Some library callbacks swallow exceptions. In one that is known to, the signal is sent again a
    moment later.

    Args:
        *numbers: the signals, if not both.
    """
    _received.clear()
    for number in numbers or SIGNALS:
        signal.signal(number, _raise_and_note)


def _raise_and_note(number: int, frame: FrameType | None) -> None:
    _received.add(number)
    if any(inner.f_code.co_name == SWALLOWS for inner in _stack(frame)):
        later = threading.Timer(SOON, signal.raise_signal, [number])
        later.daemon = True
        later.start()
        return
    raise KeyboardInterrupt


def terminated() -> bool:
    """Return whether SIGTERM is among the signals that were received."""
    return signal.SIGTERM in _received


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


@contextlib.contextmanager
def kept_from_children() -> Iterator[None]:
    """In this context, new threads and processes ignore Ctrl-C, even before they run a line."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Otherwise a child would start the tracker, and that would unblock the signal.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def deferred() -> Iterator[Callable[[], bool]]:
    """In this context Ctrl-C is only recorded; a second one stops at once.

    So is SIGTERM, if it is raised and noted; a program that uses ital may treat it in its own way.

    Yields:
        A function that says whether a signal was received.
    """
    # Only the main thread receives signals.
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    # What arrived before this context counts, unless somebody else has handled signals since.
    noted = {number for number in _received if signal.getsignal(number) is _raise_and_note}

    def note(number: int, frame: FrameType | None) -> None:
        if number in noted:
            raise KeyboardInterrupt
        noted.add(number)
        if previous[number] is _raise_and_note:
            _received.add(number)

    previous: dict[int, Any] = {number: signal.getsignal(number) for number in SIGNALS}
    ours = [
        number
        for number in SIGNALS
        if number == signal.SIGINT or previous[number] is _raise_and_note
    ]
    for number in ours:
        signal.signal(number, note)
    try:
        yield lambda: bool(noted)
    finally:
        for number in ours:
            signal.signal(number, previous[number])
