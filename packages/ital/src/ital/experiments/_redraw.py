"""Redraw stored results, alone or several in one figure, and compare them."""

import itertools
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

    A sweep is drawn in its own folder. Several runs become rows of one figure; each is compared
    with the first.

    Args:
        folders: folders written by ``ital run``, ``ital sweep`` or :meth:`ital.Result.save`.
        metrics: names of the metrics to show; None for the panels of the tasks.
        methods: names of the methods to show; None for all.
        against: the method to compare the others with; None for ``imt``, or the first.
        out: the figure file of the runs, without suffix; None for ``curves`` in the folder of a
            single run (``selection`` if metrics or methods are named), and ``comparison`` in the
            working folder for several.
        console: where to print; None for standard output.

    Returns:
        The files.

    Raises:
        InputError: if a folder holds no result, or not the metrics and methods asked for.
    """
    paths = [Path(folder) for folder in folders]
    sweeps = [load_sweep(path) for path in paths if _holds_sweep(path)]
    # Every folder is read before any file is written.
    stored = {path: load(path) for path in paths if not _holds_only_sweep(path)}
    selected = {path: _select_methods(run, methods) for path, run in stored.items()}
    runs = dict(zip(_short_names(stored), selected.values(), strict=True))
    files: list[Path] = []
    for swept in sweeps:
        files += figures.save(swept.plot(), swept.files[0].with_suffix(""))
    if out is None and len(selected) == 1:
        (path,) = selected
        folder = path if path.is_dir() else path.parent
        # A selection must not replace the run's own figure.
        out = folder / ("curves" if metrics is None and methods is None else "selection")
    files += _draw_runs(runs, metrics, Path(out or COMPARISON))
    _print_comparisons(runs, metrics, against, console)
    return files


def _draw_runs(
    runs: Mapping[str, Result],
    metrics: Sequence[str] | None,
    figure: Path,
) -> list[Path]:
    """Draw one run with its panels, or several as rows of one figure."""
    if not runs:
        return []
    if len(runs) == 1:
        (run,) = runs.values()
        return figures.save(run.plot(metrics), figure)
    rows = {name: (run.curves, run.task) for name, run in runs.items()}
    return figures.save(figures.plot_runs(rows, metrics), figure)


def _print_comparisons(
    runs: Mapping[str, Result],
    metrics: Sequence[str] | None,
    against: str | None,
    console: Console | None,
) -> None:
    """Print the differences between the methods of each run, and between each run and the first."""
    runs = {name: _with_legend_order(run) for name, run in runs.items()}
    for name, run in runs.items():
        # Runs of several tasks need not share all metrics.
        recorded = [metric for metric in metrics or metrics_of(run.curves) if metric in run.curves]
        title = f"{name}: methods at the last step"
        print_differences(title, run.compare(against, recorded), console)
    first = next(iter(runs), "")
    for name, run in itertools.islice(runs.items(), 1, None):
        better_high = [metric for metric, how in run.task.metrics.items() if how.higher_is_better]
        differences = compare_runs(
            run.curves,
            runs[first].curves,
            first,
            metrics,
            higher_is_better=better_high,
        )
        print_differences(f"{name} minus {first}: last step", differences, console)


def _holds_sweep(path: Path) -> bool:
    return (path / SWEEP.file).is_file()


def _holds_only_sweep(path: Path) -> bool:
    return _holds_sweep(path) and not (path / RUN.file).is_file()


def _select_methods(run: Result, methods: Sequence[str] | None) -> Result:
    """Return a run with only these methods; None: as it is."""
    if methods is None:
        return run
    taught = [str(name) for name in run.curves["learner"].values]
    shared = [name for name in methods if name in taught]
    if not shared:
        raise InputError(
            f"no method {', '.join(methods)} was taught: choose from {', '.join(taught)}"
        )
    return Result(run.curves.sel(learner=shared), run.task, {})


def _with_legend_order(run: Result) -> Result:
    """Return a run with its methods in the order of legends."""
    methods = figures.in_legend_order([str(name) for name in run.curves["learner"].values])
    return Result(run.curves.sel(learner=methods), run.task, {})


def _short_names(runs: Mapping[Path, Result]) -> list[str]:
    """Return the shortest names that distinguish runs.

    These are the teachers for several runs of one task, else task and teacher, else the folders.
    """
    titles = [run.task.title for run in runs.values()]
    teachers = [f"{run.curves.attrs.get('teacher', 'unknown')} teacher" for run in runs.values()]
    names = [f"{title}, {teacher}" for title, teacher in zip(titles, teachers, strict=True)]
    if len(runs) > 1 and len(set(titles)) == 1:
        names = teachers
    if len(set(names)) < len(names):
        return [str(path) for path in runs]
    return names
