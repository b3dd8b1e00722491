"""The work of ``ital reproduce``: compute what is missing, judge the claims, write the report."""

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ital import tasks, teachers
from ital.errors import InputError
from ital.experiments import Damaged, Settings, load_curves
from ital.results import computed
from ital.tasks import Task
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


def reproduce(  # noqa: PLR0913
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
        names: registered tasks to compute (default: those of the paper, without those whose
            features the user has not built). The report also shows all earlier results in the
            folder.
        quick: use few seeds and steps, in a separate folder.
        out: the folder for results.
        report_only: compute nothing, and make the report from existing results.
        workers: number of worker processes that share the tasks; 0 for this process alone, None
            for as many as cores and memory allow. Workers import the main module again, so a
            script of your own needs ``if __name__ == "__main__":``.
        equations: number of equations in an exam of the equation tasks (default: the tasks' own).
        platform: the platform of the workers, cpu or gpu (default: JAX's own choice).
        progress: whether to show a progress display.
        say: called with a line about each event.

    Returns:
        The path of the report. It exists as soon as the first experiment is done, and is updated
        from then on.

    Raises:
        InputError: a task is unknown or its files are missing, ``workers`` is negative, there are
            no results to report, or the folder cannot be written to.

    """
    scale = (QUICK if quick else FULL)._replace(equations=equations)
    out = _results_folder(out, scale)
    # Everything is checked before anything is computed.
    if workers is not None and workers < 0:
        raise InputError(f"workers must be 0 (this process alone) or more, not {workers}")
    check_writable(out)
    wanted = [] if report_only else plan.chosen(names)
    if equations is not None:
        tasks.make("equation-40", equations=equations)
    if not names and not report_only:
        _say_what_is_left_out(say)

    jobs = _jobs.planned(wanted, scale, everything=bool(wanted) and not names)
    if workers is None:
        workers = processes.number_for(len({job.condition.task for job in jobs}))
    report = _Report(scale, out, computing=bool(jobs))
    with show_whole(sum(job.seconds for job in jobs) + REPORT_SECONDS, progress) as tell:
        left = list(jobs)
        for news in _jobs.run(jobs, scale, out, workers, platform):
            if news.job is None:
                say(news.line)
                continue
            tell(news.job.title, news.job.seconds, news.share)
            if news.share == 1:
                left.remove(news.job)
                _report_progress(report, news.job, jobs, left, say)
        tell("report", REPORT_SECONDS, 0.0)
        return report.update([])


def _results_folder(out: Path | str | None, scale: Scale) -> Path:
    if out is not None:
        return Path(out)
    return Path("results/quick" if scale.quick else "results")


def _say_what_is_left_out(say: Callable[[str], None]) -> None:
    for missing in plan.left_out():
        instead = plan.STAND_INS[missing]
        say(
            f"{missing} needs features that you have to build, and is skipped: "
            f"{instead} replaces it."
        )


def _report_progress(
    report: "_Report",
    finished: _jobs.Job,
    jobs: Sequence[_jobs.Job],
    left: Sequence[_jobs.Job],
    say: Callable[[str], None],
) -> None:
    """Update the report after a job; after the first one, say where to look."""
    if len(left) == len(jobs) - 1:
        say(f"first figure: {report.out / finished.figure}")
        page = report.update(left)
        say(f"report: {page} is updated as results come in: reload it to see more")
    elif left:
        # After the last job the final report follows anyway.
        report.update_if_due(left)


class _Report:
    """The report of a folder, updated as results come in."""

    def __init__(
        self,
        scale: Scale,
        out: Path,
        *,
        computing: bool,
    ) -> None:
        self.scale = scale
        self.out = out
        self.computing = computing
        self.began = time.monotonic()
        self.due = 0.0  # the time from which a next update is worth its seconds

    def update(self, left: Sequence[_jobs.Job]) -> Path:
        """Judge the results so far and write the page, which lists the tasks that are left."""
        began = time.monotonic()
        data = collect(self.scale, self.out)
        found = data.experiments or data.evidence or data.others
        if not self.computing and not found:
            kind = "quick" if self.scale.quick else "full"
            raise InputError(f"there are no results of a {kind} run in {self.out}")
        with np.errstate(invalid="ignore"):  # a diverged learner is infinitely far away
            findings = catalogue.judge_all(data)
            took = time.monotonic() - self.began if self.computing else None
            pending = tuple(dict.fromkeys(job.condition.task for job in left))
            context = Context(data, findings, self.scale, self.out, took, pending)
            page = _report.publish(_report.build_report(context), self.out, files=not left)
        ended = time.monotonic()
        # A report that takes long is made less often, so that reports never take most of the time.
        self.due = ended + max(SECONDS_BETWEEN_REPORTS, (ended - began) / REPORTING)
        return page

    def update_if_due(self, left: Sequence[_jobs.Job]) -> None:
        """Update the page if the last one is old enough."""
        if time.monotonic() > self.due:
            self.update(left)


# ---- reading results ----


def collect(scale: Scale, out: Path) -> Data:
    """Read all results of this scale in a folder.

    These are the experiments of every kind, theory, study, and runs of other tasks.
    """
    experiments = [
        finished(condition, plan.settings(condition, scale), condition.folder(out))
        for condition in plan.conditions(plan.PAPER, scale)
    ]
    study = None
    if (out / "study" / "reproduce.json").exists():
        study = _study.simulate(out, scale.participants, scale.study_note)
    beyond = plan.beyond_conditions(plan.PAPER, scale)
    zero_loss = plan.zero_loss_conditions(plan.TASKS)
    matrix = plan.matrix_conditions(plan.TASKS, scale)
    evidence = plan.evidence_conditions(plan.PAPER, scale)
    return Data(
        filter(None, experiments),
        theory=_collect_theory(scale, out),
        study=study,
        sweeps=_collect_sweeps(scale, out),
        beyond=_collect_beside("beyond", beyond, scale, out),
        zero_loss=_collect_beside("zero loss", zero_loss, scale, out),
        others=other_runs(out),
        matrix=_collect_beside("matrix", matrix, scale, out),
        evidence=_collect_beside("evidence", evidence, scale, out),
    )


def _collect_beside(
    kind: str, conditions: Sequence[Condition], scale: Scale, out: Path
) -> list[Evidence]:
    """Read the finished experiments of a kind beside the paper's."""
    settings_of, folder = _jobs.BESIDE[kind]
    found = [
        finished(condition, settings_of(condition, scale), out / folder) for condition in conditions
    ]
    return [evidence for evidence in found if evidence is not None]


def _collect_theory(scale: Scale, out: Path) -> dict[tuple[str, str], Any]:
    """Read the theory panels, by start and task."""
    # Without its file, the identity of a task's results is not known.
    without_files = plan.left_out()
    names = [task for task in scale.theory if task not in without_files]
    panels = {
        (start, task): _jobs.theory_of(start, task, scale, out, compute=False)
        for task, start in itertools.product(names, STARTS)
    }
    return {key: panel for key, panel in panels.items() if panel is not None}


def _collect_sweeps(scale: Scale, out: Path) -> "dict[Condition, xr.Dataset]":
    conditions = plan.sweep_conditions(plan.PAPER, scale)
    grids = {condition: _sweep_grid(condition, scale, out) for condition in conditions}
    return {condition: grid for condition, grid in grids.items() if grid is not None}


def other_runs(out: Path) -> list[Evidence]:
    """Read the runs in a folder on tasks that are not the paper's, whatever their settings."""
    found = []
    for start in STARTS:
        for file in sorted(Condition(start, "", "").folder(out).glob("*/*/curves.nc")):
            task, teacher = file.parts[-3:-1]
            if task in plan.PAPER:
                continue
            try:
                run = load(file.parent)
            except InputError:  # not made by this version, or incomplete
                continue
            # The folder says only whether the start is the second one of the paper.
            condition = Condition(str(run.curves.attrs["init"]), task, teacher)
            found.append(Evidence(condition, run.task, run.curves))
    return found


def _has_settings(curves: "xr.Dataset", made_with: dict[str, Any]) -> bool:
    return all(curves.attrs.get(name) == value for name, value in made_with.items())


def _sweep_grid(
    condition: Condition,
    scale: Scale,
    out: Path,
) -> "xr.Dataset | None":
    """Return the sweep of this scale, or None if there is none."""
    folder = condition.folder(out) / condition.task / condition.teacher
    try:
        grid = load_curves(folder / "sweep.nc")
        task = plan.task_of(plan.settings(condition, scale))
    except (OSError, Damaged, InputError):
        return None
    made_with = {"steps": scale.steps, **plan.identity(task)}
    return grid if _has_settings(grid, made_with) else None


def finished(
    condition: Condition,
    wanted: Settings,
    folder: Path,
) -> Evidence | None:
    """Return the finished experiment with these settings, reduced to its methods and seeds.

    Args:
        condition: its condition.
        wanted: its settings.
        folder: the folder for results of its kind.

    Returns:
        The experiment; None if it is missing, incomplete or made with other settings.
    """
    file = folder / condition.task / plan.as_file_name(condition.teacher) / "curves.nc"
    if not file.exists():
        return None
    try:
        curves = load_curves(file)
    except Damaged:
        return None
    described = _described_task(condition, wanted)
    if described is None:
        return None
    task, of_task = described
    made_with = {
        "task": condition.task,
        "teacher": condition.teacher,
        "steps": wanted.steps,
        "lr": wanted.lr,
        "batch_size": wanted.batch_size,
        **of_task,
    }
    methods = list(wanted.methods or ())
    if not _has_settings(curves, made_with) or not _is_complete(curves, methods, wanted.seed_list):
        return None
    return Evidence(condition, task, curves.sel({"learner": methods, "seed": wanted.seed_list}))


def _described_task(condition: Condition, wanted: Settings) -> tuple[Task, dict[str, Any]] | None:
    """Return the task of an experiment, and the settings that its results must have because of it.

    A task whose features are on another machine is described by the task that replaces it, which
    has the same metrics and panels; then nothing is known about the settings. None without one.
    """
    try:
        task = plan.task_of(wanted)
        sign = teachers.make(condition.teacher).sign
        return task, {
            "beta": sign * abs(float(task.beta)),
            "init": wanted.init or str(task.init),
            **plan.identity(task),
        }
    except InputError:
        if condition.task not in plan.STAND_INS:
            return None
    stand_in = plan.task_of(replace(wanted, task=plan.STAND_INS[condition.task]))
    return stand_in._replace(name=condition.task, title=condition.task), {}


def _is_complete(
    curves: "xr.Dataset",
    methods: Sequence[str],
    seeds: Sequence[int],
) -> bool:
    """Return whether all these methods were computed on all these seeds."""
    recorded = {str(name) for name in curves["learner"].values}
    for method in methods:
        if method not in recorded:
            return False
        finished_seeds = computed(curves, method)["seed"].values.tolist()
        if not set(seeds) <= set(finished_seeds):
            return False
    return True
