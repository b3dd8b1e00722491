"""A progress display: a bar below the cell in a notebook, elsewhere one on standard error."""

import contextlib
import html
import importlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

SECONDS_BETWEEN_DRAWINGS = 0.2
BESIDE = 51  # columns of a line that the title leaves to the bar and the times

_whole: Callable[[float], None] | None = None  # the display of a larger work, while a part of it is under way


@contextlib.contextmanager
def show_progress(title: str, total: int, shown: bool = True) -> Iterator[Callable[..., None]]:
    """Yields a function that takes how much of ``total`` is done, and a new title if it has changed.

    Within a part of :func:`show_whole` there is no display of its own: it moves the one that is there.
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

    console = Console(stderr=True)
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
    """``IPython.display`` inside the kernel of a notebook, else None; nothing is imported that is not there."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return importlib.import_module("IPython.display") if getattr(shell, "kernel", None) is not None else None


class NotebookProgress:
    """One bar below a notebook cell, drawn again in its place: as much of a display of rich as is used here.

    Args:
        display: ``IPython.display``.
    """

    is_terminal = True  # show_whole prints no line for each part: the bar is there

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
        """Shows the bar; there is only one."""
        self.title, self.total = title, max(total, 1e-12)
        self.handle = self.display.display(self._picture(), display_id=True)
        return 0

    def update(self, bar: object, completed: float, description: str | None = None) -> None:
        """Moves the bar, a few times per second at most."""
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
    """While it lasts, work that would open a display tells ``tell`` its share instead, from 0 to 1."""
    global _whole  # noqa: PLW0603
    before, _whole = _whole, lambda share: tell(min(share, 1.0))
    try:
        yield
    finally:
        _whole = before


@contextlib.contextmanager
def show_whole(total: float, shown: bool = True) -> Iterator[Callable[[str, float, float], None]]:
    """One display over many parts: yields ``tell(title, weight, share)``, which may tell of several by turns.

    Displays that work inside would open move the part that was told of last. Where no terminal is, each part is a
    line when it begins.
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
