"""Complete a result: find its missing cells, run the engine, collect what it finishes.

:func:`run` is the call for one experiment; :func:`completed` does what runs, sweeps and matrices
have in common. The files of a folder are written by one process at a time, which holds the
folder's lock (``tools.files.owned``): workers write nothing but files of cells and their
checkpoints.

:class:`Collector` is that single writer: it merges the files of finished cells. A result has one
labelled array per variable. Its axes are the learner, the axes of a sweep (``Experiment.axes``),
the seed and, for curves, the step. A cell holds some lanes on some seeds. :func:`assemble` makes a
result that has all labels and only gaps, then writes every part to the labels that it holds.
Nothing in it names η or β, so a third axis would pass through unchanged.
"""

import contextlib
import errno
import functools
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ital.errors import Incomplete, InputError
from ital.experiments import _track
from ital.experiments._cells import (
    CELLS,
    Cell,
    Engine,
    Failure,
    RunCells,
    clear,
    finished,
    forget,
    in_process,
    missing_cells,
    put_aside,
    remove_if_empty,
    stored_lanes,
    versions,
)
from ital.experiments._experiment import GAPS, RUN, CellSize, Experiment, Point
from ital.experiments._pictures import write_pictures
from ital.experiments._settings import DEFAULTS, Settings
from ital.figures import picture_of
from ital.tasks import Task, describe_data
from ital.teaching import write_summary, write_table
from ital.tools.curve_files import Damaged, load_curves, save_curves
from ital.tools.files import check_writable, owned
from ital.tools.progress import show_progress

if TYPE_CHECKING:
    import xarray as xr

SECONDS_BETWEEN_COLLECTIONS = 30.0
COLLECTING = 0.05  # largest share of the time spent collecting
ROUNDS = 3  # times that a finished cell whose file is lost is computed again
PATH = "path"  # the variable with the parameters over time, of one seed only


@dataclass(frozen=True)
class Outcome:
    """The result of an experiment, and how much of it was computed now.

    Attributes:
        curves: the curves, dimensions (learner, seed, step).
        task: the task.
        files: the files that were written.
        lanes_computed: number of lanes computed now, rather than found on disk.
    """

    curves: "xr.Dataset"
    task: Task
    files: list[Path]
    lanes_computed: int

    def __repr__(self) -> str:
        counts = f"{self.lanes_computed} lanes computed, {len(self.files)} files"
        return f"Outcome({self.task.name!r}, {counts})"


def run(  # noqa: PLR0913
    settings: Settings,
    out: Path | str = "results",
    *,
    animate: bool = False,
    overwrite: bool = False,
    draw: bool = True,
    csv: bool = False,
    seeds_per_cell: int | None = None,
    engine: Engine | None = None,
    mlflow: str | None = None,
    progress: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Outcome:
    """Compute the missing parts of an experiment and write ``OUT/TASK/TEACHER/``.

    (method, seed) pairs that are already stored with the same settings are skipped. An interrupted
    run resumes from its last checkpoint, with the same numbers.

    Args:
        settings: what to run.
        out: the folder for results.
        animate: also write an animation of what is learned on the first seed, if the task can be
            drawn.
        overwrite: compute everything again.
        draw: write figures.
        csv: also write every measured value as a table, ``curves.csv``.
        seeds_per_cell: number of seeds in a cell; None for as many as should fit into memory.
        engine: computes the cells; None for this process. See :func:`processes` and
            :func:`cluster`.
        mlflow: address of an MLflow store to also log to.
        progress: show a progress bar.
        say: called with a line about each event or problem.

    Returns:
        The curves and the files.

    Raises:
        InputError: if the settings are not valid, or differ from those of the results in the
            folder.
        Incomplete: at the end, if a cell failed.

    Example:
        >>> settings = ital.experiments.Settings(
        ...     task="regression", methods=("imt", "ital"), steps=200, seeds=5
        ... )
        >>> outcome = ital.experiments.run(settings, "results")
    """
    experiment = Experiment(settings)
    plan = experiment.plan
    # What could be refused is refused before anything is computed.
    if animate:
        picture_of(plan.task)
    folder = Path(out) / experiment.folder
    cell_size = CellSize(seeds_per_cell)
    store = None if mlflow is None else _track.open_store(mlflow)
    with completed(
        experiment,
        Path(out),
        cell_size,
        engine,
        overwrite=overwrite,
        progress=progress,
        say=say,
    ) as done:
        curves = done.result
        files = [folder / RUN.file, *write_summary(curves, plan.task, folder, draw)]
        files += write_table(curves, folder / "curves.csv", csv)
        if draw and plan.task.picture is not None:
            files += write_pictures(plan, curves, folder, animate, progress)
        outcome = Outcome(curves, plan.task, files, done.computed)
        if store is not None:
            _track.track(store, experiment, curves, files)
    done.check(outcome)
    return outcome


class Done(NamedTuple):
    """A completed result.

    Attributes:
        result: the result.
        computed: number of lanes computed now, rather than found on disk.
        failures: the cells that failed.
        cells: number of cells that were computed or failed now.
        out: the folder for results.
    """

    result: "xr.Dataset"
    computed: int
    failures: list[Failure]
    cells: int
    out: Path

    def check(self, partial: object) -> None:
        """Raise Incomplete if a cell failed; ``partial`` is the result without the failed cells."""
        if self.failures:
            raise Incomplete(partial, self.failures, self.cells, self.out)


class _Tally:
    """The cells that were computed and those that failed, in this call."""

    def __init__(self) -> None:
        self.computed: list[Cell] = []
        self.failures: list[Failure] = []

    def add(self, cell: Cell, failure: Failure | None) -> None:
        if failure is None:
            self.computed.append(cell)
        else:
            self.failures.append(failure)

    def not_failed(self, cells: Sequence[Cell]) -> list[Cell]:
        """Return the cells that have not failed for good."""
        failed = {failure.cell.name for failure in self.failures}
        return [cell for cell in cells if cell.name not in failed]


@contextlib.contextmanager
def completed(
    experiment: Experiment,
    out: Path,
    cell_size: CellSize,
    engine: Engine | None,
    *,
    overwrite: bool,
    progress: bool,
    say: Callable[[str], None],
) -> Iterator[Done]:
    """Compute the missing parts of a result in ``out``.

    Its folder stays locked until the context ends.

    Args:
        experiment: the experiment.
        out: the folder for results.
        cell_size: the sizes of cells that were asked for.
        engine: computes the cells; None for this process.
        overwrite: compute everything again. The old result stays until the end.
        progress: show a progress bar.
        say: called with a line about each event.

    Yields:
        The completed result.

    Raises:
        InputError: if settings are refused, or the folder cannot be used; nothing is written then.
        Incomplete: if every cell failed.
        OSError: if files of finished cells are lost again and again.
    """
    cell_size.check()
    folder = out / experiment.folder
    _check_folder(experiment, folder, overwrite)
    if experiment.settings.data is not None:
        say(describe_data(experiment.plan.task))
    # Workers share a sweep seed by seed, unless sizes are given.
    one_seed_each = engine is not None and cell_size == CellSize()
    if one_seed_each:
        cell_size = CellSize(seeds=1)
    sizes = experiment.sizes(cell_size)
    # The engine is entered first: it checks its arguments before the folder is created.
    with engine or in_process() as run_cells, owned(folder):
        clear(folder)  # what a cluster left that was killed
        collector = _open_collector(experiment, folder, sizes, overwrite, say)
        tally = _Tally()
        for _ in range(ROUNDS + 1):
            missing = missing_cells(experiment, collector.result, sizes)
            cells = tally.not_failed(missing)
            if not cells:
                break
            if one_seed_each:
                say("one seed per cell (--seeds-per-cell changes this)")
            ended = _run_shown(collector, run_cells, cells, progress, wait=overwrite)
            for cell, failure in ended:
                tally.add(cell, failure)
            # A file of a finished cell may be lost or damaged: look again for what is missing.
        else:
            reason = "files of finished cells are repeatedly missing or damaged"
            raise OSError(errno.EIO, reason, str(folder))
        remove_if_empty(folder / CELLS)
        number = len(tally.computed) + len(tally.failures)
        if collector.result is None:
            raise Incomplete(None, tally.failures, number, out)
        computed = sum(cell.size for cell in tally.computed)
        yield Done(collector.result, computed, tally.failures, number, out)


def _check_folder(experiment: Experiment, folder: Path, overwrite: bool) -> None:
    """Raise InputError if a result cannot be written to a folder, before the folder is touched."""
    file = folder / experiment.kind.file
    check_writable(folder)
    check_writable(folder / CELLS)
    if file.is_dir():
        raise InputError(
            f"{file} is a folder, but the result is a file of this name: "
            "move it, or choose another --out"
        )
    if not overwrite:
        # A result with other settings is refused here; it is read again under the lock.
        stored_result(experiment.identity, file)


def _open_collector(
    experiment: Experiment,
    folder: Path,
    sizes: CellSize,
    overwrite: bool,
    say: Callable[[str], None],
) -> "Collector":
    """Read what earlier runs left: the result, and cells that were finished but not collected."""
    if overwrite:
        return Collector(experiment, folder, None, sizes, say)
    earlier = stored_result(experiment.identity, folder / experiment.kind.file, say)
    outdated = experiment.outdated(earlier)
    if outdated:
        say(
            f"{', '.join(outdated)}: computed by an earlier version of the teacher; "
            "name them to compute them again"
        )
    collector = Collector(experiment, folder, earlier, sizes, say)
    collector.collect()
    return collector


def _run_shown(
    collector: "Collector",
    run_cells: RunCells,
    cells: Sequence[Cell],
    progress: bool,
    *,
    wait: bool,
) -> Iterator[tuple[Cell, Failure | None]]:
    """Run cells and collect them, under a progress bar; yield each with its failure, if any."""
    title = _title(collector.experiment, cells)
    lanes = sum(cell.size for cell in cells)
    with show_progress(title, lanes, progress) as show:
        tell = functools.partial(_show_titled, show, title)
        yield from _collected(collector, run_cells, cells, tell, wait=wait)


def _show_titled(show: Callable[..., Any], title: str, done: float, words: str = "") -> None:
    """Move a bar, and put words after its title."""
    show(done, f"{title}{words}")


def _collected(
    collector: "Collector",
    run_cells: RunCells,
    cells: Sequence[Cell],
    show: Callable[..., None],
    *,
    wait: bool,
) -> Iterator[tuple[Cell, Failure | None]]:
    """Run cells and collect them periodically; yield each with its failure, if it failed.

    With ``wait`` they are collected only at the end, which replaces the old result.
    """
    finished: list[str] = []
    due = time.monotonic() + SECONDS_BETWEEN_COLLECTIONS
    for cell, failure in run_cells(cells, collector.folder, show, collector.say):
        if failure is None:
            finished.append(cell.name)
        yield cell, failure
        began = time.monotonic()
        if began > due and not wait:
            collector.collect(finished)
            ended = time.monotonic()
            # The larger the result, the longer it takes to write: collect more rarely then.
            pause = (ended - began) / COLLECTING
            due = ended + max(SECONDS_BETWEEN_COLLECTIONS, pause)
            finished = []
    collector.collect(finished)


def _title(experiment: Experiment, cells: Sequence[Cell]) -> str:
    plan = experiment.plan
    lanes: set[Point] = set()
    seeds: set[int] = set()
    for cell in cells:
        lanes.update(cell.lanes)
        seeds.update(cell.seeds)
    lanes_in_words = count(lanes, experiment.kind.noun)
    seeds_in_words = count(seeds, "seed")
    size = f"{lanes_in_words} × {seeds_in_words}"
    return f"{plan.task.name}, {plan.teacher.name} teacher: {size}"


def count(things: Collection[object], name: str) -> str:
    """Return a number of things with its noun: ``1 seed``, ``3 seeds``."""
    number = len(things)
    if number == 1:
        return f"{number} {name}"
    return f"{number} {name}s"


def stored_result(
    identity: Mapping[str, Any],
    file: Path,
    say: Callable[[str], None] | None = None,
) -> "xr.Dataset | None":
    """Return a stored result, or None; rename a damaged file and report it.

    Args:
        identity: the settings that the result must have, without defaults.
        file: its file.
        say: called with a line about damage; None: leave a damaged file where it is.

    Raises:
        InputError: if the file cannot be read, or was made with other settings.
    """
    try:
        curves = load_curves(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror or error}") from None
    except Damaged as damage:
        if say is not None:
            say(f"{damage}: computing it again (the old file is now {put_aside(file).name})")
        return None
    for name, expected in {**DEFAULTS, **identity}.items():
        found = curves.attrs.get(name, DEFAULTS.get(name))
        if found != expected:
            difference = f"{name} = {found}, not {expected}"
            raise InputError(
                f"{file} was made with {difference}: "
                "choose another --out, or replace it with --overwrite"
            )
    return curves


@dataclass
class Collector:
    """Holds a result (None: nothing yet) and extends it, in memory and on disk."""

    experiment: Experiment
    folder: Path
    result: "xr.Dataset | None"
    sizes: CellSize
    say: Callable[[str], None]

    def collect(self, names: Sequence[str] = ()) -> None:
        """Merge all finished cells, then remove their files and those of the named cells."""
        cells = dict(finished(self.experiment, self.folder, self.say))
        if cells:
            self.result = self._merged(list(cells.values()))
            self._save(self.result)
        # Cells are removed only now, when the result that holds them is on the disk. A kill before
        # this line leaves both; the next call merges the cells again, which changes no number.
        forget(self.folder, {*names, *(file.stem for file in cells)})

    def _merged(self, cells: "list[xr.Dataset]") -> "xr.Dataset":
        """Return the result with the cells, and with the attributes that describe both."""
        kept: Mapping[str, Any] = {}
        seconds = 0.0
        if self.result is not None:
            kept = self.result.attrs
            seconds = float(kept["seconds"])
        seconds += sum(float(cell.attrs["seconds"]) for cell in cells)
        merged = assemble(self.experiment, self.result, cells).assign_attrs(kept)
        return merged.assign_attrs(
            {
                **self.experiment.described,
                **self.experiment.identity,
                **self.experiment.attributes(merged),
                **{name: cells[-1].attrs[name] for name in versions()},
                "seeds_per_cell": self.sizes.seeds,
                "points_per_cell": self.sizes.points,
                "seconds": seconds,
            }
        )

    def _save(self, result: "xr.Dataset") -> None:
        # Pictures of the old result go first: a kill in between must not leave them beside a new
        # one.
        kind = self.experiment.kind
        if kind.drawn:
            for outdated in self.folder.glob(kind.drawn):
                outdated.unlink()
        save_curves(result, self.folder / kind.file)


def assemble(
    experiment: Experiment,
    old: "xr.Dataset | None",
    cells: "Sequence[xr.Dataset]",
) -> "xr.Dataset":
    """Merge a stored result and cells.

    Args:
        experiment: the experiment that the cells belong to.
        old: the stored result; None if there is none.
        cells: the contents of finished cells, in any order.

    Returns:
        A result with all lanes. Where several parts have a lane, the last cell counts.
    """
    cells = _in_lane_order(experiment, cells)
    if old is not None:
        old = experiment.grown(old)
    result = _empty_result(experiment, old, cells)

    if old is not None:
        _write_part(old, result, {"learner": old["learner"].values, "seed": old["seed"].values})
    for cell in cells:
        for row, lane in enumerate(stored_lanes(cell)):
            labels = {
                "learner": lane.method,
                **experiment.coordinates(lane),
                "seed": cell["seed"].values,
            }
            _write_part(cell.isel(learner=row), result, labels)

    paths = [part[PATH] for part in _oldest_first(old, cells) if PATH in part]
    if paths:
        result[PATH] = _latest_path(paths, result["learner"].values.tolist())
    return result


def _oldest_first(old: "xr.Dataset | None", cells: "Sequence[xr.Dataset]") -> "list[xr.Dataset]":
    """List the stored result, if there is one, and the cells: from the oldest to the newest."""
    if old is None:
        return list(cells)
    return [old, *cells]


def _in_lane_order(experiment: Experiment, cells: "Iterable[xr.Dataset]") -> "list[xr.Dataset]":
    """Sort cells by their first lane and seed: a result must not show which finished first."""
    positions = {lane: position for position, lane in enumerate(experiment.lanes)}

    def position(cell: "xr.Dataset") -> tuple[int, int]:
        first_lane, *_ = stored_lanes(cell)
        first_seed = int(cell["seed"].values[0])
        # Lanes that this experiment does not name come last.
        return positions.get(first_lane, len(positions)), first_seed

    return sorted(cells, key=position)


def _empty_result(
    experiment: Experiment,
    old: "xr.Dataset | None",
    cells: "Sequence[xr.Dataset]",
) -> "xr.Dataset":
    """Make a result with all labels of the stored result and the cells, and with gaps only."""
    import xarray as xr

    parts = _oldest_first(old, cells)
    coords = _result_labels(experiment, old, cells)
    axes = list(experiment.axes)
    # In a sweep, cells also hold the η and β of their lanes; in the result these are axes.
    apart = {PATH, *axes}
    newest: dict[Any, xr.DataArray] = {}
    for part in parts:
        newest |= {name: part[name] for name in part.data_vars if name not in apart}
    variables = {}
    for name, variable in newest.items():
        dims = ["learner", *axes, "seed"]
        if "step" in variable.dims:
            dims.append("step")
        shape = [len(coords[dim]) for dim in dims]
        # Text of a fixed length would cut longer versions off.
        dtype = object if name == "version" else variable.dtype
        gap = GAPS.get(str(name), np.nan)
        gaps = np.full(shape, gap, dtype)
        constants = _seed_constants(name, parts, coords["seed"])
        variables[name] = (dims, gaps, constants)
    return xr.Dataset(variables, coords)


def _result_labels(
    experiment: Experiment,
    old: "xr.Dataset | None",
    cells: "Sequence[xr.Dataset]",
) -> dict[str, Any]:
    """Return the labels of a result along every axis, and the labels of its legend."""
    legend = _legend_labels(old, cells)
    stored_methods = [] if old is None else old["learner"].values.tolist()
    methods = _method_order(stored_methods, list(legend), experiment.lanes)
    seeds_of_parts = [part["seed"].values for part in _oldest_first(old, cells)]
    seeds = np.unique(np.concatenate(seeds_of_parts))
    # A stored sweep is on the wider axes already, see Experiment.grown.
    axes: dict[str, Any] = {name: list(values) for name, values in experiment.axes.items()}
    if old is not None:
        axes = {name: old[name].values for name in axes}
    return {
        "learner": methods,
        "label": ("learner", [legend[name] for name in methods]),
        **axes,
        "seed": seeds.astype(int).tolist(),
        "step": cells[0]["step"].values.astype(int),
    }


def _write_part(part: "xr.Dataset", result: "xr.Dataset", labels: Mapping[str, Any]) -> None:
    """Copy the variables of a part to these labels of a result.

    Along an axis without a label, the part is repeated: a learner without a β has one lane for all
    β.
    """
    for name in result.data_vars:
        if name in part:
            # Not combine_first: it would keep an old number where the new one is NaN, which is what
            # a lane that diverged holds.
            result[name].loc[labels] = part[name]


def _latest_path(paths: "Sequence[xr.DataArray]", methods: list[str]) -> "xr.DataArray":
    """Return the parameters over time of all methods, on the seed of the last path.

    Paths of other seeds are dropped: a picture compares methods on one seed.
    """
    last = paths[-1]
    # Methods without a path on this seed stay NaN. The labels of legends belong to the result.
    latest = last.reset_coords(drop=True).reindex(learner=methods)
    for path in paths:
        if path.attrs["seed"] == last.attrs["seed"]:
            latest.loc[{"learner": path["learner"].values}] = path.values
    return latest


def _method_order(stored: list[str], found: Sequence[str], lanes: Sequence[Point]) -> list[str]:
    """Order the methods of a result.

    They have the order of the experiment if it names all of them. Otherwise stored methods keep
    their order, and new ones follow.

    Args:
        stored: methods of the stored result.
        found: methods of the stored result and the cells.
        lanes: lanes of the experiment.
    """
    named = list(dict.fromkeys(lane.method for lane in lanes))
    if set(found) <= set(named):
        return [name for name in named if name in found]
    new = [name for name in found if name not in stored]
    new_unnamed = [name for name in new if name not in named]
    new_named = [name for name in named if name in new]
    return [*stored, *new_unnamed, *new_named]


def _legend_labels(old: "xr.Dataset | None", cells: "Sequence[xr.Dataset]") -> dict[str, str]:
    """Return methods → their labels in legends; the newest part counts."""
    labels: dict[str, str] = {}
    if old is not None:
        methods = old["learner"].values.tolist()
        stored = map(str, old["label"].values)
        labels |= dict(zip(methods, stored, strict=True))
    for cell in cells:
        # The lanes of a sweep's cell are numbered, so their methods stand in an attribute.
        methods = [lane.method for lane in stored_lanes(cell)]
        of_cell = map(str, cell["label"].values)
        labels |= dict(zip(methods, of_cell, strict=True))
    return labels


def _seed_constants(
    name: Any,
    parts: "Sequence[xr.Dataset]",
    seeds: list[int],
) -> Mapping[str, np.ndarray]:
    """Return the constants of a metric as arrays with one number per seed, e.g. its ``floor``."""
    constants: dict[str, dict[int, float]] = {}
    for part in parts:
        if name not in part:
            continue
        seeds_of_part = list(map(int, part["seed"].values))
        for constant, values in part[name].attrs.items():
            # A file holds one number instead of an array of length 1.
            numbers = np.atleast_1d(values)
            by_seed = constants.setdefault(constant, {})
            by_seed.update(zip(seeds_of_part, numbers, strict=True))
    in_order = {}
    for constant, by_seed in constants.items():
        numbers_in_order = [by_seed[seed] for seed in seeds]
        in_order[constant] = np.asarray(numbers_in_order)
    return in_order
