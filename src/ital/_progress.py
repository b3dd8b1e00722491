"""A progress display on standard error, where a person is looking."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

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
