"""Redraw stored results, alone or several in one figure, and compare them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from ital import figures
from ital.errors import InputError
from ital.experiments._experiment import RUN, SWEEP
from ital.experiments._sweep import load_sweep
from ital.experiments._table import print_differences
from ital.results import compare_runs, metrics_of
from ital.teaching import Result, load

COMPARISON = "comparison"


def redraw(
    folders: Sequence[Path | str],
    *,
    metrics: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    against: str | None = None,
    out: Path | str | None = None,
    console: Console | None = None,
) -> list[Path]:
    """Redraw stored runs and sweeps, and print paired differences between methods and between runs.

    A sweep is drawn in its own folder. Several runs become rows of one figure; each is compared with the first.

    Args:
        folders: folders written by ``ital run``, ``ital sweep`` or :meth:`ital.Result.save`.
        metrics: names of the metrics to show; None for the panels of the tasks.
        methods: names of the methods to show; None for all.
        against: the method to compare the others with; None for ``imt``, or the first.
        out: the figure file of the runs, without suffix; None for ``curves`` in the folder of a single run
            (``selection`` if metrics or methods are named), and ``comparison`` in the working folder for several.
        console: where to print; None for standard output.

    Returns:
        The files.

    Raises:
        InputError: if a folder holds no result, or not the metrics and methods asked for.
    """
    places = [Path(folder) for folder in folders]
    sweeps = [load_sweep(place) for place in places if (place / SWEEP.file).is_file()]
    loaded = {place: load(place) for place in places if not _only_sweep(place)}
    chosen = {place: _chosen(run, methods) for place, run in loaded.items()}
    runs = dict(zip(_names(loaded), chosen.values(), strict=True))
    files = [
        file
        for swept in sweeps
        for file in figures.save(swept.plot(), swept.files[0].with_suffix(""))
    ]
    if len(runs) == 1:
        ((place, run),) = chosen.items()
        name = (
            "curves" if metrics is None and methods is None else "selection"
        )  # does not replace the run's own figure
        beside = (place if place.is_dir() else place.parent) / name
        files += figures.save(run.plot(metrics), Path(out or beside))
    elif runs:
        drawn = {name: (run.curves, run.task) for name, run in runs.items()}
        files += figures.save(figures.plot_runs(drawn, metrics), Path(out or COMPARISON))
    for name, run in runs.items():
        recorded = [metric for metric in metrics or metrics_of(run.curves) if metric in run.curves]
        print_differences(
            f"{name}: methods at the last step", _ordered(run).compare(against, recorded), console
        )
    for name in list(runs)[1:]:
        first = next(iter(runs))
        run = _ordered(runs[name])
        better_high = [metric for metric, how in run.task.metrics.items() if how.higher_is_better]
        differences = compare_runs(
            run.curves, runs[first].curves, first, metrics, higher_is_better=better_high
        )
        print_differences(f"{name} minus {first}: last step", differences, console)
    return files


def _only_sweep(place: Path) -> bool:
    return (place / SWEEP.file).is_file() and not (place / RUN.file).is_file()


def _chosen(run: Result, methods: Sequence[str] | None) -> Result:
    """A run with only these methods."""
    if methods is None:
        return run
    taught = [str(name) for name in run.curves["learner"].values]
    shared = [name for name in methods if name in taught]
    if not shared:
        raise InputError(
            f"no method {', '.join(methods)} was taught: choose from {', '.join(taught)}"
        )
    return Result(run.curves.sel(learner=shared), run.task, {})


def _ordered(run: Result) -> Result:
    """The run with its methods in the order of legends."""
    methods = figures.in_legend_order([str(name) for name in run.curves["learner"].values])
    return Result(run.curves.sel(learner=methods), run.task, {})


def _names(runs: Mapping[Path, Result]) -> list[str]:
    """The shortest names that distinguish the runs: teacher, task and teacher, or folder."""
    titles = [run.task.title for run in runs.values()]
    teachers = [f"{run.curves.attrs.get('teacher', 'unknown')} teacher" for run in runs.values()]
    both = [f"{title}, {teacher}" for title, teacher in zip(titles, teachers, strict=True)]
    folders = [str(place) for place in runs]
    shortest = teachers if len(runs) > 1 and len(set(titles)) == 1 else both
    return shortest if len(set(shortest)) == len(shortest) else folders
