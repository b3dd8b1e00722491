"""Redraw stored results, alone or several in one figure, and compare them."""

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from ital import figures
from ital.errors import InputError
from ital.experiments._experiment import RUN, SWEEP
from ital.experiments._sweep import Sweep, load_sweep
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
    # Every folder is read before any file is written.
    sweeps: list[Sweep] = []
    stored: dict[Path, Result] = {}
    for path in map(Path, folders):
        if _holds_sweep(path):
            sweeps.append(load_sweep(path))
        if not _holds_only_sweep(path):
            stored[path] = load(path)
    selected = [_select_methods(run, methods) for run in stored.values()]
    runs = dict(zip(_short_names(stored), selected, strict=True))
    if out is None:
        is_selection = metrics is not None or methods is not None
        out = _figure_of(list(stored), is_selection)

    files: list[Path] = []
    for swept in sweeps:
        beside_file = swept.files[0].with_suffix("")
        files += figures.save(swept.plot(), beside_file)
    files += _draw_runs(runs, metrics, Path(out))
    _print_comparisons(runs, metrics, against, console)
    return files


def _figure_of(folders: Sequence[Path], is_selection: bool) -> Path:
    """Return the figure file of runs, without suffix."""
    if len(folders) != 1:
        return Path(COMPARISON)
    (path,) = folders
    folder = path if path.is_dir() else path.parent
    # A selection must not replace the run's own figure.
    name = "selection" if is_selection else "curves"
    return folder / name


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
        shown = metrics or metrics_of(run.curves)
        recorded = [metric for metric in shown if metric in run.curves]
        title = f"{name}: methods at the last step"
        print_differences(title, run.compare(against, recorded), console)
    first = next(iter(runs), "")
    for name, run in itertools.islice(runs.items(), 1, None):
        described = run.task.metrics.items()
        better_high = [metric for metric, how in described if how.higher_is_better]
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
    titles = []
    teachers = []
    names = []
    for run in runs.values():
        title = run.task.title
        teacher = run.curves.attrs.get("teacher", "unknown")
        titles.append(title)
        teachers.append(f"{teacher} teacher")
        names.append(f"{title}, {teacher} teacher")
    if len(runs) > 1 and len(set(titles)) == 1:
        names = teachers
    if len(set(names)) < len(names):
        return [str(path) for path in runs]
    return names
