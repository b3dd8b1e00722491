"""Does all the work of ``ital reproduce``: what is missing is computed, then everything is judged and shown."""

import dataclasses
import functools
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ital import experiments, figures, tasks, teachers
from ital._files import write
from ital._progress import show_whole
from ital.errors import InputError
from ital.experiments import Damaged, Settings, load_curves
from ital.reproduce import _claims, _maps, _plan, _report, _study, _theory
from ital.reproduce._data import Data, Experiment
from ital.reproduce._figures import stamp, task_figure
from ital.reproduce._plan import FULL, QUICK, STARTS, Cell, Scale
from ital.reproduce.sections import Context
from ital.results import computed
from ital.tasks import Task

if TYPE_CHECKING:
    import xarray as xr

BEYOND = "beyond"  # the folder of what the paper does not have
REPORT_SECONDS, THEORY_SECONDS, STUDY_SECONDS, SWEEP_SECONDS = 30.0, 10.0, 20.0, 10.0


def reproduce(
    names: Sequence[str] = (),
    *,
    quick: bool = False,
    out: Path | str | None = None,
    report_only: bool = False,
    progress: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Computes what is missing of the paper's experiments, judges its claims and writes ``OUT/index.html``.

    ``names`` are the tasks to compute (default: all that come with the package); the report shows whatever else is
    there already. ``quick`` takes few seeds and steps, and has a folder of its own. ``report_only`` computes nothing
    and makes the report of what is there. Returns the report's path.
    """
    scale = QUICK if quick else FULL
    out = Path(out) if out is not None else Path("results/quick" if quick else "results")
    wanted = [] if report_only else _plan.chosen(names)
    for missing, instead in _plan.STAND_INS.items():
        if not names and not report_only:
            say(f"{missing} needs features that the user builds, and is left out: {instead} stands for it.")
    work = _plan.cells(wanted, scale)
    theory = [(start, task) for task in wanted if task in scale.theory for start in STARTS]
    with_study = not names and not report_only and _study.is_there()
    total = sum(_plan.seconds(cell, scale) for cell in work) + THEORY_SECONDS * len(theory)
    tuned = _plan.sweep_cells(wanted, scale)
    beyond = _plan.beyond_cells(wanted, scale) if wanted and not names else []
    total += sum(_plan.seconds(cell, scale) for cell in beyond)
    total += STUDY_SECONDS * with_study + REPORT_SECONDS + SWEEP_SECONDS * len(tuned)
    began = time.monotonic()
    with show_whole(total, progress) as part:
        for cell in work:
            with part(cell.title, _plan.seconds(cell, scale)):
                _run(cell, scale, out, say)
        for cell in beyond:
            with part(f"beyond the paper: {cell.title}", _plan.seconds(cell, scale)):
                experiments.run(_plan.beyond_settings(cell, scale), out / BEYOND, progress=True, draw=False, say=say)
        for start, task in theory:
            with part(f"theory on {task}, {start} start", THEORY_SECONDS):
                _theory_of(start, task, scale, out, compute=True)
        for cell in tuned:
            with part(f"step sizes on {cell.task}, {cell.start} start", SWEEP_SECONDS):
                _sweep(cell, scale, out, say)
        if with_study:
            with part("study: simulated arms", STUDY_SECONDS):
                _study.simulate(out, scale.participants, scale.note)
        with part("report", REPORT_SECONDS):
            data = collect(scale, out)
            if report_only and not data.experiments:
                raise InputError(f"there are no results of a {'quick' if quick else 'full'} run in {out}")
            notes = [] if _study.is_there() else [_study.ABSENT]
            with np.errstate(invalid="ignore"):  # a diverged learner is infinitely far off
                findings = _claims.judge_all(data)
                took = None if report_only else time.monotonic() - began
                context = Context(data, findings, scale, out, took, notes)
                return _report.publish(_report.build(context), out)


def _run(cell: Cell, scale: Scale, out: Path, say: Callable[[str], None]) -> None:
    """One experiment with its figure, which says so if the run was a quick one."""
    folder = cell.folder(out)
    outcome = experiments.run(_plan.settings(cell, scale), folder, progress=True, draw=False, say=say)
    place = outcome.files[0].parent
    if outcome.lanes_computed or not (place / "curves.pdf").exists():
        figures.save(task_figure(Experiment(cell, outcome.task, outcome.curves), scale.note), place / "curves")
    if (cell.start, cell.teacher) == (STARTS[0], "cooperative"):
        _maps.store(outcome.task, out, scale.steps)


def _sweep(cell: Cell, scale: Scale, out: Path, say: Callable[[str], None]) -> None:
    """Every method at every step size, and every β of those that have one."""
    settings = dataclasses.replace(_plan.settings(cell, scale), methods=_plan.TUNED, seeds=scale.sweep_seeds)
    betas = [multiple * _task(cell.task).beta for multiple in _plan.RATIONALITIES]
    tuned = experiments.sweep(settings, _plan.STEP_SIZES, betas, cell.folder(out), progress=True, say=say)
    figure = tuned.plot()
    stamp(figure, f"quick run: {scale.sweep_seeds} seeds, {scale.steps} steps" if scale.quick else "")
    figures.save(figure, tuned.files[0].with_name("sweep"))


def collect(scale: Scale, out: Path) -> Data:
    """Everything in a folder that was made at this scale: experiments, theory, study."""
    found = [
        _found(cell, _plan.settings(cell, scale), cell.folder(out))
        for cell in _plan.cells((*_plan.TASKS, *_plan.STAND_INS), scale)
    ]
    beyond = [
        _found(cell, _plan.beyond_settings(cell, scale), out / BEYOND)
        for cell in _plan.beyond_cells(_plan.TASKS, scale)
    ]
    panels = {
        (start, task): panel
        for task in scale.theory
        for start in STARTS
        if (panel := _theory_of(start, task, scale, out, compute=False)) is not None
    }
    study = None
    if _study.is_there() and (out / "study" / "reproduce.json").exists():
        study = _study.simulate(out, scale.participants, scale.note)
    tuned = {
        cell: grid
        for cell in _plan.sweep_cells(_plan.TASKS, scale)
        if (grid := _grid(cell.folder(out) / cell.task / cell.teacher / "sweep.nc", scale)) is not None
    }
    there = ([one for one in several if one is not None] for several in (found, beyond))
    return Data(next(there), panels, study, tuned, next(there))


def _grid(file: Path, scale: Scale) -> "xr.Dataset | None":
    """A sweep of this scale, if it is there."""
    try:
        grid = load_curves(file)
    except (OSError, Damaged):
        return None
    return grid if grid.attrs.get("steps") == scale.steps else None


def _found(cell: Cell, wanted: Settings, folder: Path) -> Experiment | None:
    """A finished experiment of these settings, cut to its methods and seeds; None if it is not there or not whole."""
    file = folder / cell.task / cell.teacher / "curves.nc"
    if not file.exists():
        return None
    try:
        task, curves = _task(cell.task), load_curves(file)
    except (Damaged, InputError):
        return None
    made_with = {
        "task": cell.task,
        "teacher": cell.teacher,
        "beta": teachers.make(cell.teacher).sign * abs(task.beta),
        "init": wanted.init or str(task.init),
        "steps": wanted.steps,
        "lr": wanted.lr,
        "batch_size": wanted.batch_size,
        "data_version": task.data_version,
    }
    if any(curves.attrs.get(name) != value for name, value in made_with.items()):
        return None
    seeds = list(range(wanted.seeds))
    there = {str(name): computed(curves, str(name))["seed"].values.tolist() for name in curves["method"].values}
    if any(not set(seeds) <= set(there.get(method, ())) for method in wanted.methods):
        return None
    return Experiment(cell, task, curves.sel({"method": list(wanted.methods), "seed": seeds}))


@functools.cache  # its data are read once
def _task(name: str) -> Task:
    return tasks.make(name)


def _theory_of(start: str, task: str, scale: Scale, out: Path, *, compute: bool) -> Any:
    """The theory panel of a task, from OUT/theory/ where it is there already."""
    file = out / "theory" / f"{task}-{start.replace(':', '-')}.json"
    made_with = {"seeds": scale.theory_seeds, "steps": scale.theory_steps, "betas": list(_theory.MULTIPLES)}
    try:
        content = json.loads(file.read_text())
        if content["made_with"] == made_with:
            return content["panel"]
    except (OSError, ValueError, KeyError):
        pass
    if not compute:
        return None
    own = None if start == STARTS[0] else start
    panel = _theory.panel(task, own, seeds=scale.theory_seeds, steps=scale.theory_steps)
    file.parent.mkdir(parents=True, exist_ok=True)
    write(file, json.dumps({"made_with": made_with, "panel": panel}).encode())
    return panel
