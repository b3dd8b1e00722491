"""The work of ``ital reproduce``: compute what is missing, judge the claims, write the report."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ital import tasks, teachers
from ital.errors import InputError
from ital.experiments import Damaged, Settings, load_curves
from ital.results import computed
from ital.teaching import load
from ital.tools import processes
from ital.tools.files import check_writable
from ital.tools.progress import show_whole
from ital_paper.claims import catalogue
from ital_paper.experiments import jobs as _jobs
from ital_paper.experiments import plan
from ital_paper.experiments import study as _study
from ital_paper.experiments.data import Data, Evidence
from ital_paper.experiments.plan import FULL, QUICK, STARTS, Condition, Scale
from ital_paper.report import page as _report
from ital_paper.report.sections import Context

if TYPE_CHECKING:
    import xarray as xr

REPORT_SECONDS = 10.0
SECONDS_BETWEEN_REPORTS = 20.0
REPORTING = 0.2  # largest share of the time to spend on reports while jobs run


def reproduce(
    names: Sequence[str] = (),
    *,
    quick: bool = False,
    out: Path | str | None = None,
    report_only: bool = False,
    workers: int | None = 0,
    equations: int | None = None,
    platform: str | None = None,
    progress: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Compute the missing experiments of the paper, judge its claims and write ``OUT/index.html``.

    Args:
        names: registered tasks to compute (default: those of the paper, without those whose features the user has
            not built). The report also shows all earlier results in the folder.
        quick: use few seeds and steps, in a separate folder.
        out: the folder for results.
        report_only: compute nothing, and make the report from existing results.
        workers: number of worker processes that share the tasks; 0 for this process alone, None for as many as cores
            and memory allow. Workers import the main module again, so a script of your own needs
            ``if __name__ == "__main__":``.
        equations: number of equations in an exam of the equation tasks (default: the tasks' own).
        platform: the platform of the workers, cpu or gpu (default: JAX's own choice).
        progress: whether to show a progress display.
        say: called with a line about each event.

    Returns:
        The path of the report. It exists as soon as the first experiment is done, and is updated from then on.

    Raises:
        InputError: a task is unknown or its files are missing, ``workers`` is negative, there are no results to
            report, or the folder cannot be written to.

    """
    scale = (QUICK if quick else FULL)._replace(equations=equations)
    out = Path(out) if out is not None else Path("results/quick" if quick else "results")
    if workers is not None and workers < 0:
        raise InputError(f"workers must be 0 (this process alone) or more, not {workers}")
    check_writable(out)
    wanted = [] if report_only else plan.chosen(names)
    if equations is not None:
        tasks.make(
            "equation-40", equations=equations
        )  # raises for an invalid number before anything is computed
    for missing in plan.left_out() if not names and not report_only else ():
        instead = plan.STAND_INS[missing]
        say(
            f"{missing} needs features that you have to build, and is skipped: {instead} replaces it."
        )
    jobs = _jobs.planned(wanted, scale, everything=bool(wanted) and not names)
    if workers is None:
        workers = processes.number_for(len({job.condition.task for job in jobs}))
    report = _Report(scale, out, computing=bool(jobs))
    with show_whole(sum(job.seconds for job in jobs) + REPORT_SECONDS, progress) as tell:
        left = list(jobs)
        for event in _jobs.run(jobs, scale, out, workers, platform):
            if event.job is None:
                say(event.line)
                continue
            tell(event.job.title, event.job.seconds, event.share)
            if event.share == 1:
                left.remove(event.job)
                if len(left) == len(jobs) - 1:
                    say(f"first figure: {out / event.job.figure}")
                    say(
                        f"report: {report.update(left)} is updated as results come in: reload it to see more"
                    )
                elif left:
                    report.update_if_due(left)
        tell("report", REPORT_SECONDS, 0.0)
        return report.update([])


class _Report:
    """The report of a folder, updated as results come in."""

    def __init__(self, scale: Scale, out: Path, *, computing: bool) -> None:
        self.scale, self.out, self.computing = scale, out, computing
        self.began, self.due = time.monotonic(), 0.0

    def update(self, left: Sequence[_jobs.Job]) -> Path:
        """Judge the results so far and write the page, which lists the tasks that are left."""
        scale, out, began = self.scale, self.out, time.monotonic()
        data = collect(scale, out)
        if not self.computing and not data.experiments and not data.others:
            raise InputError(
                f"there are no results of a {'quick' if scale.quick else 'full'} run in {out}"
            )
        with np.errstate(invalid="ignore"):  # a diverged learner is infinitely far away
            findings = catalogue.judge_all(data)
            took = time.monotonic() - self.began if self.computing else None
            pending = tuple(dict.fromkeys(job.condition.task for job in left))
            context = Context(data, findings, scale, out, took, pending)
            page = _report.publish(_report.build(context), out, files=not left)
        ended = time.monotonic()
        self.due = ended + max(SECONDS_BETWEEN_REPORTS, (ended - began) / REPORTING)
        return page

    def update_if_due(self, left: Sequence[_jobs.Job]) -> None:
        """Update the page if the last one is old enough."""
        if time.monotonic() > self.due:
            self.update(left)


def collect(scale: Scale, out: Path) -> Data:
    """Read all results of this scale in a folder: experiments, theory, study, and runs of other tasks."""
    experiments = [
        _finished(condition, plan.settings(condition, scale), condition.folder(out))
        for condition in plan.conditions(plan.PAPER, scale)
    ]
    beyond = [
        _finished(condition, plan.beyond_settings(condition, scale), out / _jobs.BEYOND)
        for condition in plan.beyond_conditions(plan.PAPER, scale)
    ]
    matrix = [
        _finished(condition, plan.matrix_settings(condition, scale), out / _jobs.MATRIX)
        for condition in plan.matrix_conditions(plan.TASKS, scale)
    ]
    zero_loss = [
        _finished(condition, plan.zero_loss_settings(condition, scale), out / _jobs.ZERO_LOSS)
        for condition in plan.zero_loss_conditions(plan.TASKS)
    ]
    panels = {
        (start, task): panel
        for task in scale.theory
        if task not in plan.left_out()
        for start in STARTS
        if (panel := _jobs.theory_of(start, task, scale, out, compute=False)) is not None
    }
    kept = (out / "study" / "reproduce.json").exists()
    study = _study.simulate(out, scale.participants, scale.study_note) if kept else None
    tuned = {
        condition: grid
        for condition in plan.sweep_conditions(plan.PAPER, scale)
        if (grid := _grid(condition, scale, out)) is not None
    }
    return Data(
        filter(None, experiments),
        panels,
        study,
        tuned,
        filter(None, beyond),
        filter(None, zero_loss),
        other_runs(out),
        filter(None, matrix),
    )


def other_runs(out: Path) -> list[Evidence]:
    """Runs in a folder on tasks that are not the paper's, whatever their settings."""
    found = []
    for start in STARTS:
        for file in sorted(Condition(start, "", "").folder(out).glob("*/*/curves.nc")):
            condition = Condition(start, file.parts[-3], file.parts[-2])
            if condition.task in plan.PAPER:
                continue
            try:
                run = load(file.parent)
            except InputError:
                continue
            found.append(
                Evidence(
                    condition._replace(start=str(run.curves.attrs["init"])), run.task, run.curves
                )
            )
    return found


def _grid(condition: Condition, scale: Scale, out: Path) -> "xr.Dataset | None":
    """The sweep of this scale, or None if there is none."""
    try:
        grid = load_curves(condition.folder(out) / condition.task / condition.teacher / "sweep.nc")
        made_with = {
            "steps": scale.steps,
            **plan.identity(plan.task_of(plan.settings(condition, scale))),
        }
    except (OSError, Damaged, InputError):
        return None
    return grid if all(grid.attrs.get(name) == value for name, value in made_with.items()) else None


def _finished(condition: Condition, wanted: Settings, folder: Path) -> Evidence | None:
    """The finished experiment with these settings, reduced to its methods and seeds; None if missing or incomplete."""
    file = folder / condition.task / condition.teacher.replace(":", "-") / "curves.nc"
    if not file.exists():
        return None
    try:
        curves = load_curves(file)
    except Damaged:
        return None
    made_with = {
        "task": condition.task,
        "teacher": condition.teacher,
        "steps": wanted.steps,
        "lr": wanted.lr,
        "batch_size": wanted.batch_size,
    }
    try:
        task = plan.task_of(wanted)
        made_with |= {
            "beta": teachers.make(condition.teacher).sign * abs(float(task.beta)),
            "init": wanted.init or str(task.init),
            **plan.identity(task),
        }
    except InputError:  # its features are on another machine; the task that replaces it has the same metrics and panels
        if condition.task not in plan.STAND_INS:
            return None
        stand_in = plan.task_of(replace(wanted, task=plan.STAND_INS[condition.task]))
        task = stand_in._replace(name=condition.task, title=condition.task)
    if any(curves.attrs.get(name) != value for name, value in made_with.items()):
        return None
    seeds = wanted.seed_list
    seeds_of = {
        str(name): computed(curves, str(name))["seed"].values.tolist()
        for name in curves["learner"].values
    }
    if any(not set(seeds) <= set(seeds_of.get(method, ())) for method in wanted.methods or ()):
        return None
    return Evidence(
        condition, task, curves.sel({"learner": list(wanted.methods or ()), "seed": seeds})
    )
