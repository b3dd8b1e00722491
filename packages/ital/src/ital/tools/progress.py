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
    with _open_display() as progress:
        bar = progress.add_task(title, total=total)
        yield lambda done, title=None: progress.update(bar, completed=done, description=title)


def _open_display(memory: float = 30.0) -> Any:
    """Open a bar; the time that is left is estimated from the last ``memory`` seconds."""
    notebook = _notebook_display()
    if notebook is not None:
        return NotebookProgress(notebook)
    from rich import progress
    from rich.console import Console
    from rich.table import Column

    # The output of a notebook's !ital cannot be drawn over, although the kernel says that it is a
    # terminal. None leaves the question to rich.
    force_terminal = False if "JPY_PARENT_PID" in os.environ else None
    console = Console(stderr=True, force_terminal=force_terminal)
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


def _notebook_display() -> Any:
    """Return ``IPython.display`` inside a notebook kernel, else None."""
    # In a kernel IPython is loaded already; importing it elsewhere would take a second.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is None:
        return None
    return importlib.import_module("IPython.display")


class NotebookProgress:
    """A bar below a notebook cell, redrawn in place.

    It has the parts of rich's interface that are used here.

    Args:
        display: ``IPython.display``.
    """

    is_terminal = True  # so that show_whole prints no line per part

    def __init__(self, display: Any) -> None:
        self.display = display
        self.handle: Any = None
        self.title = ""
        self.total = 1.0
        self.done = 0.0
        self.began = self.drawn = time.monotonic()
        self.console = self

    def __enter__(self) -> "NotebookProgress":
        return self

    def __exit__(self, *error: object) -> None:
        self._draw()

    def add_task(self, title: str, total: float) -> int:
        """Show the bar; there is only one."""
        self.title = title
        self.total = max(total, 1e-12)
        self.handle = self.display.display(self._picture(), display_id=True)
        return 0

    def update(self, bar: object, completed: float, description: str | None = None) -> None:
        """Move the bar, at most a few times per second."""
        self.done = completed
        if description is not None:
            self.title = description
        if time.monotonic() - self.drawn >= SECONDS_BETWEEN_DRAWINGS:
            self._draw()

    def _draw(self) -> None:
        self.drawn = time.monotonic()
        if self.handle is not None:
            self.handle.update(self._picture())

    def _picture(self) -> Any:
        share = min(self.done / self.total, 1.0)
        elapsed = time.monotonic() - self.began
        words = f"{html.escape(self.title)} {share:.0%}, {_clock(elapsed)}"
        if 0 < share < 1:
            words += f", {_clock(elapsed * (1 - share) / share)} left"
        return self.display.HTML(f'<progress value="{share:.4f}" max="1"></progress> {words}')


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


@contextlib.contextmanager
def shown_by(tell: Callable[[float], None]) -> Iterator[None]:
    """In this context, code that would open a bar tells the share done instead, from 0 to 1."""
    global _whole  # noqa: PLW0603
    before = _whole
    _whole = lambda share: tell(min(share, 1.0))  # noqa: E731
    try:
        yield
    finally:
        _whole = before


@contextlib.contextmanager
def show_whole(total: float, shown: bool = True) -> Iterator[Callable[[str, float, float], None]]:
    """Open one bar for many parts.

    Bars opened inside this context move the part that was reported last. Without a terminal, each
    part prints one line when it starts.

    Args:
        total: the weights of all parts together.
        shown: whether to show the bar.

    Yields:
        A function of a part's title, weight and share done; parts may be reported in turn.
    """
    with _open_display(memory=600.0) if shown else contextlib.nullcontext() as progress:
        bar = progress.add_task("", total=total) if progress else None
        done: dict[str, float] = {}  # title of a part → how much of its weight is done
        latest: tuple[str, float] = ("", 0.0)  # the part that began last, and its weight

        def tell(title: str, weight: float, share: float) -> None:
            nonlocal latest
            begins = title not in done
            # A part that is resumed may report less than before; the bar never goes back.
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
