"""A progress display on standard error, where a person is looking."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

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
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(show_speed=False),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=Console(stderr=True), transient=False, speed_estimate_period=memory)


@contextlib.contextmanager
def show_whole(total: float, shown: bool = True) -> Iterator[Callable[[str, float], Any]]:
    """One display over many parts: yields ``part(title, weight)``, a context in which one of them is done.

    Displays that the work inside would open move this one instead. Where no terminal is, each part is a line.
    """
    with _display(memory=600.0) if shown else contextlib.nullcontext() as progress:
        bar = progress.add_task("", total=total) if progress else None
        done = 0.0

        @contextlib.contextmanager
        def part(title: str, weight: float) -> Iterator[None]:
            nonlocal done
            global _whole  # noqa: PLW0603
            if progress:
                progress.update(bar, completed=done, description=title)
                if not progress.console.is_terminal:
                    progress.console.print(f"{done / total:4.0%}  {title}", highlight=False)
            _whole = lambda share: progress.update(bar, completed=done + weight * min(share, 1.0)) if progress else None  # noqa: E731
            try:
                yield
            finally:
                _whole = None
            done += weight
            if progress:
                progress.update(bar, completed=done)

        yield part
