"""Results in a folder: write and read the files of ``ital run``, and restore their task."""

import collections
import itertools
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ital import tasks
from ital.errors import InputError
from ital.tasks import Metric, Rules, Task
from ital.teaching._lanes import write_summary
from ital.tools.curve_files import Damaged, load_curves, save_curves

if TYPE_CHECKING:
    import xarray as xr

CURVES = "curves.nc"
# How many folders are searched for a run to suggest: the one that was named may be the whole disk.
FOLDERS_SEARCHED = 1000
DESCRIBED = "task_description"
"""The attribute of a stored result that holds what figures need to know about its task, as JSON."""


def described(task: Task) -> dict[str, Any]:
    """Return a task as plain data: what figures and tables need, and the settings to make it again.

    Args:
        task: the task.

    Returns:
        Data for JSON, from which :func:`task_from` makes a task.
    """
    return {
        "name": task.name,
        "title": task.title,
        "panels": list(task.panels),
        "metrics": {name: list(metric) for name, metric in task.metrics.items()},
        "settings": json.loads(json.dumps(dict(task.settings), default=str)),
    }


def task_from(description: Mapping[str, Any]) -> Task:
    """Return the task of a description.

    It is rebuilt if it is registered; else it can be drawn but not taught.

    Args:
        description: what :func:`described` returned.

    Returns:
        The task.
    """
    name = description["name"]
    settings = description["settings"]
    # Settings of a task are not always arguments of its constructor: try it without any first.
    choices: tuple[Mapping[str, Any], ...] = ({}, settings)
    for options in choices:
        made = _made_with(name, options)
        if made is not None and described(made)["settings"] == settings:
            return made
    metrics = {name: Metric(*metric) for name, metric in description["metrics"].items()}
    panels = tuple(description["panels"])
    return _to_draw_only(name, description["title"], metrics, panels, settings)


def _made_with(name: str, options: Mapping[str, Any]) -> Task | None:
    """Return a registered task with these options; None if there is none that takes them."""
    if name not in tasks.REGISTRY:
        return None
    try:
        return tasks.make(name, **options)
    except (InputError, TypeError, ValueError, OSError):
        return None


def _to_draw_only(
    name: str,
    title: str,
    metrics: Mapping[str, Metric],
    panels: tuple[str, ...],
    settings: Mapping[str, Any],
) -> Task:
    """Return a task without its functions, only for tables and figures."""

    def absent(*arguments: Any, **options: Any) -> NoReturn:
        raise InputError(
            f"task {name!r} was read from a file, which holds only its curves: "
            "make the task again to teach it"
        )

    rules = Rules(absent, absent, absent, absent, absent, absent, absent)
    return Task(name, title, absent, rules, 0.0, metrics, panels, settings=settings)


def task_of(attributes: Mapping[str, Any]) -> Task:
    """Return the task of a stored run or sweep.

    Args:
        attributes: the attributes of its file.

    Returns:
        The task; one that cannot be rebuilt is only for tables and figures.
    """
    if DESCRIBED in attributes:
        return task_from(json.loads(attributes[DESCRIBED]))
    name = str(attributes.get("task", "unknown"))
    made = _made_with(name, {})
    if made is None:
        return _to_draw_only(name, name, {}, (), {})
    # Files of older versions hold the settings as attributes, each on its own.
    description = described(made)
    settings = {
        key: _as_plain(attributes.get(key, default))
        for key, default in description["settings"].items()
    }
    return task_from(description | {"settings": settings})


def _as_plain(value: Any) -> Any:
    """Return a number of a file as one of Python's; other values as they are."""
    return value.item() if hasattr(value, "item") else value


def write_run(curves: "xr.Dataset", task: Task, folder: Path, overwrite: bool) -> list[Path]:
    """Write ``curves.nc``, the summary and the figures.

    An existing run is replaced only with ``overwrite``.
    """
    file = folder / CURVES
    if file.exists() and not overwrite:
        raise InputError(f"{file} exists already: choose another folder, or pass overwrite=True")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror or error}") from None
    save_curves(curves.assign_attrs({DESCRIBED: json.dumps(described(task))}), file)
    return [file, *write_summary(curves, task, folder)]


def read_run(folder: Path) -> "tuple[xr.Dataset, Task]":
    """Read curves and task of a run from its folder or file.

    ``ital run`` and :meth:`ital.Result.save` write it.
    """
    file = folder / CURVES if folder.is_dir() else folder
    if not file.is_file():
        raise InputError(f"{folder} holds no run: {_hint(folder)}")
    if file.suffix != Path(CURVES).suffix:
        raise InputError(f"{file} holds no run: give a folder that ital run wrote, or its {CURVES}")
    try:
        curves = load_curves(file)
    except Damaged as damage:
        raise InputError(f"{damage}: run it again") from None
    task = task_of(curves.attrs)
    curves.attrs.pop(DESCRIBED, None)
    return curves, task


def _hint(folder: Path) -> str:
    """Return what to do about a folder without a run."""
    if (folder / CURVES).is_dir():
        return f"{folder / CURVES} is a folder, not a file"
    below = itertools.islice(_folders_below(folder), FOLDERS_SEARCHED)
    found = [str(each) for each in below if os.path.isfile(each / CURVES)]
    if found:
        return f"there is one in {' and in '.join(sorted(found)[:3])}"
    if (folder / "sweep.nc").is_file():
        return "it holds a sweep, which ital plot draws and ital.experiments.load_curves reads"
    return f"expected a folder with {CURVES}, as ital run and result.save write it"


def _folders_below(folder: Path) -> Iterator[Path]:
    """Yield all folders below a folder, those that are nearest first."""
    waiting = collections.deque([folder])
    while waiting:
        try:
            entries = list(os.scandir(waiting.popleft()))
            below = sorted(
                Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)
            )
        except OSError:
            # It is no folder, or not ours to read.
            continue
        waiting.extend(below)
        yield from below
