"""Run one experiment, from settings to files."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ital.experiments import _track
from ital.experiments._complete import completed
from ital.experiments._engines import Engine
from ital.experiments._experiment import RUN, Chunks, Experiment
from ital.experiments._settings import Plan, Settings
from ital.figures import Watched, picture_of
from ital.tasks import Task
from ital.teaching import seen, watch, write_summary, write_table
from ital.tools.progress import show_progress

if TYPE_CHECKING:
    import xarray as xr


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
    chunks = Chunks(seeds_per_cell)
    store = None if mlflow is None else _track.open_store(mlflow)
    with completed(
        experiment, Path(out), chunks, engine, overwrite=overwrite, progress=progress, say=say
    ) as done:
        curves = done.result
        files = [folder / RUN.file, *write_summary(curves, plan.task, folder, draw)]
        files += write_table(curves, folder / "curves.csv", csv)
        if draw and plan.task.picture is not None:
            files += _write_pictures(plan, curves, folder, animate, progress)
        outcome = Outcome(curves, plan.task, files, done.computed)
        if store is not None:
            _track.track(store, experiment, curves, files)
    done.check(outcome)
    return outcome


def _write_pictures(
    plan: Plan, curves: "xr.Dataset", folder: Path, animate: bool, progress: bool
) -> list[Path]:
    """Write what is learned on the first seed.

    A naive method is shown beside an aware one if the result has both. Existing files are current,
    because new curves remove them.

    Returns:
        ``pictures.png`` and ``.pdf``, and ``pictures.gif`` if ``animate`` is set.
    """
    from ital import figures

    stills = [folder / "pictures.png", folder / "pictures.pdf"]
    moving = folder / "pictures.gif"
    draw_stills = not all(file.exists() for file in stills)
    draw_moving = animate and not moving.exists()
    if draw_stills or draw_moving:
        with show_progress(f"{plan.task.name}: pictures", 100, progress) as show:
            # Teaching takes most of the time, unless frames are drawn.
            percent = 30 if draw_moving else 100

            def show_teaching(share: float) -> None:
                show(round(percent * share))

            def show_drawing(share: float) -> None:
                show(round(percent + (100 - percent) * share))

            watched = _watch_two(plan, curves, show_teaching)
            if draw_stills:
                figures.save(figures.plot_pictures(watched), folder / "pictures")
            if draw_moving:
                figures.animate(watched, moving, show=show_drawing)
    return [*stills, moving] if animate else stills


def _watch_two(plan: Plan, curves: "xr.Dataset", show: Callable[[float], None]) -> Watched:
    """Return what IMT and ITAL, or the first two methods, learned on the first seed."""
    from ital import learners

    methods = [str(name) for name in curves["learner"].values]
    pair = [name for name in methods if name in ("imt", "ital")] or methods[:2]
    recorded = seen(curves, plan.task, pair)
    if recorded is not None:
        return recorded
    # The result holds the path of another seed, or none: teach these two again.
    return watch(
        plan.task,
        plan.teacher,
        [learners.make(name) for name in pair],
        seed=int(curves["seed"].values[0]),
        show=show,
        run=plan.run,
    )
