"""A progress bar: below the cell in a notebook, elsewhere on standard error."""

import contextlib
import html
import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

SECONDS_BETWEEN_DRAWINGS = 0.2
BESIDE = 51  # columns reserved for the bar and the times, beside the title

_whole: Callable[[float], None] | None = None  # set while an enclosing show_whole display is active


@contextlib.contextmanager
def show_progress(title: str, total: int, shown: bool = True) -> Iterator[Callable[..., None]]:
    """Yield a function that takes how much of ``total`` is done and, optionally, a new title.

    Inside :func:`show_whole` it opens no bar of its own, but moves the existing one.
    """
    if _whole is not None:
        tell = _whole
        yield lambda done, title=None: tell(done / max(total, 1))
        return
    if not shown:
        yield lambda done, title=None: None
        return
    with _display() as progress:
        bar = progress.add_task(title, total=total)
        yield lambda done, title=None: progress.update(bar, completed=done, description=title)


def _display(memory: float = 30.0) -> Any:
    kernel = _kernel()
    if kernel is not None:
        return NotebookProgress(kernel)
    from rich import progress
    from rich.console import Console
    from rich.table import Column

    # The output of a notebook's !ital cannot be drawn over, although the kernel says that it is a terminal.
    console = Console(stderr=True, force_terminal=False if "JPY_PARENT_PID" in os.environ else None)
    title = Column(max_width=max(10, console.width - BESIDE), no_wrap=True, overflow="ellipsis")
    return progress.Progress(
        progress.TextColumn("{task.description}", table_column=title),
        progress.BarColumn(20),
        progress.TaskProgressColumn(show_speed=False),
        progress.TimeElapsedColumn(),
        "left",
        progress.TimeRemainingColumn(),
        console=console,
        speed_estimate_period=memory,
    )


def _kernel() -> Any:
    """``IPython.display`` inside a notebook kernel, else None; IPython is not imported if it is not already loaded."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return (
        importlib.import_module("IPython.display")
        if getattr(shell, "kernel", None) is not None
        else None
    )


class NotebookProgress:
    """A bar below a notebook cell, redrawn in place, with the parts of rich's interface that are used here.

    Args:
        display: ``IPython.display``.
    """

    is_terminal = True  # so that show_whole prints no line per part

    def __init__(self, display: Any) -> None:
        self.display = display
        self.handle: Any = None
        self.title, self.total, self.done = "", 1.0, 0.0
        self.began = self.drawn = time.monotonic()
        self.console = self

    def __enter__(self) -> "NotebookProgress":
        return self

    def __exit__(self, *error: object) -> None:
        self._draw()

    def add_task(self, title: str, total: float) -> int:
        """Show the bar; there is only one."""
        self.title, self.total = title, max(total, 1e-12)
        self.handle = self.display.display(self._picture(), display_id=True)
        return 0

    def update(self, bar: object, completed: float, description: str | None = None) -> None:
        """Move the bar, at most a few times per second."""
        self.done, self.title = completed, self.title if description is None else description
        if time.monotonic() - self.drawn >= SECONDS_BETWEEN_DRAWINGS:
            self._draw()

    def _draw(self) -> None:
        self.drawn = time.monotonic()
        if self.handle is not None:
            self.handle.update(self._picture())

    def _picture(self) -> Any:
        share, elapsed = min(self.done / self.total, 1.0), time.monotonic() - self.began
        left = f", {_clock(elapsed * (1 - share) / share)} left" if 0 < share < 1 else ""
        words = f"{html.escape(self.title)} {share:.0%}, {_clock(elapsed)}{left}"
        return self.display.HTML(f'<progress value="{share:.4f}" max="1"></progress> {words}')


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


@contextlib.contextmanager
def shown_by(tell: Callable[[float], None]) -> Iterator[None]:
    """In this context, code that would open a bar calls ``tell`` with the share done instead, from 0 to 1."""
    global _whole  # noqa: PLW0603
    before, _whole = _whole, lambda share: tell(min(share, 1.0))
    try:
        yield
    finally:
        _whole = before


@contextlib.contextmanager
def show_whole(total: float, shown: bool = True) -> Iterator[Callable[[str, float, float], None]]:
    """One bar for many parts: yields ``tell(title, weight, share)``, which may report several parts in turn.

    Bars opened inside this context move the part that was reported last. Without a terminal, each part prints one
    line when it starts.
    """
    with _display(memory=600.0) if shown else contextlib.nullcontext() as progress:
        bar = progress.add_task("", total=total) if progress else None
        done: dict[str, float] = {}
        latest: tuple[str, float] = ("", 0.0)

        def tell(title: str, weight: float, share: float) -> None:
            nonlocal latest
            begins = title not in done
            done[title] = max(done.get(title, 0.0), weight * share)
            if not progress:
                return
            if begins:
                latest = title, weight
            completed = sum(done.values())
            progress.update(bar, completed=completed, description=latest[0])
            if begins and not progress.console.is_terminal:
                progress.console.print(f"{completed / total:4.0%}  {title}", highlight=False)

        with shown_by(lambda share: tell(*latest, share) if latest[0] else None):
            yield tell
