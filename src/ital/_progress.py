"""A progress display on standard error, where a person is looking."""

import contextlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def show_progress(title: str, total: int, shown: bool = True) -> Iterator[Callable[..., None]]:
    """Yields a function that takes how much of ``total`` is done, and a new title if it has changed."""
    if not shown:
        yield lambda done, title=None: None
        return
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
    with Progress(*columns, console=Console(stderr=True), transient=False) as progress:
        bar = progress.add_task(title, total=total)
        yield lambda done, title=None: progress.update(bar, completed=done, description=title)
