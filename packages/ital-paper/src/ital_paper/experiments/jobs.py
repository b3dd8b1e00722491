"""The jobs of ``ital reproduce``, run in this process or in several workers."""

import dataclasses
import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ital import experiments, figures, tasks
from ital.experiments import Settings
from ital.tools import processes, progress
from ital.tools.files import write
from ital_paper.experiments import maps, plan, study, theory
from ital_paper.experiments.data import Evidence
from ital_paper.experiments.figures import stamp, task_figure
from ital_paper.experiments.plan import STARTS, Condition, Scale

FEW = 4  # workers
# Folders, within that for results:
BEYOND = "beyond"  # experiments beyond the paper
EVIDENCE = "evidence"  # choices as evidence
MATRIX = "matrix"  # real and assumed teachers
ZERO_LOSS = "zero-loss"  # teachers that assume zero loss for their target

# Seconds that jobs take on one core, as weights in the progress display:
THEORY_SECONDS = 10.0
STUDY_SECONDS = 20.0
ZERO_LOSS_SECONDS = 5.0
MATRIX_SECONDS = 15.0
SWEEP_RUNS = 2.0  # a sweep takes about as long as this many runs
SECONDS_BETWEEN_SHARES = 0.3  # of a job, as a worker reports them


class Job(NamedTuple):
    """One job of a reproduction.

    Attributes:
        kind: what it computes.
        condition: for which experiment.
        title: both in words.
        seconds: about how long it takes on one core.
    """

    kind: str
    condition: Condition
    title: str
    seconds: float

    def group(self, workers: int) -> str:
        """Return the group of this job.

        Jobs of one group run in one process, so that they share programs and caches.
        """
        start, task, teacher = self.condition
        if not plan.is_equation(task):
            return task
        # With few workers, the experiments on equations share the cache of their search. With a
        # GPU, the search takes most of the time, so each experiment is a group.
        return "equation" if workers <= FEW else f"{task} {teacher} {start}"

    @property
    def figure(self) -> str:
        """The path of the figure of a run, within the folder for results."""
        folder = self.condition.folder(Path())
        return str(folder / self.condition.task / self.condition.teacher / "curves.png")


# ---- planning ----


def planned(
    names: Sequence[str],
    scale: Scale,
    *,
    everything: bool,
) -> list[Job]:
    """Plan all jobs for these tasks.

    With ``everything``, add the jobs that belong to no task of the paper.
    """
    jobs = [_plan_run(condition, scale) for condition in plan.conditions(names, scale)]
    jobs += map(_plan_zero_loss, plan.zero_loss_conditions(names))
    if everything:
        jobs += [
            _plan_beyond(condition, scale) for condition in plan.beyond_conditions(names, scale)
        ]
    jobs += map(_plan_matrix, plan.matrix_conditions(names, scale))
    jobs += [
        _plan_evidence(condition, scale) for condition in plan.evidence_conditions(names, scale)
    ]
    with_theory = [name for name in names if name in scale.theory]
    jobs += [_plan_theory(task, start) for task, start in itertools.product(with_theory, STARTS)]
    jobs += [_plan_sweep(condition, scale) for condition in plan.sweep_conditions(names, scale)]
    if everything:
        jobs.append(
            Job("study", Condition("", "study", ""), "study: simulated arms", STUDY_SECONDS)
        )
    return jobs


def _plan_run(condition: Condition, scale: Scale) -> Job:
    return Job("run", condition, condition.title, plan.seconds(condition, scale))


def _plan_zero_loss(condition: Condition) -> Job:
    title = f"zero loss of the target: {condition.title}"
    return Job("zero loss", condition, title, ZERO_LOSS_SECONDS)


def _plan_beyond(condition: Condition, scale: Scale) -> Job:
    title = f"beyond the paper: {condition.title}"
    return Job("beyond", condition, title, plan.seconds(condition, scale))


def _plan_matrix(condition: Condition) -> Job:
    return Job("matrix", condition, f"who believes what: {condition.title}", MATRIX_SECONDS)


def _plan_evidence(condition: Condition, scale: Scale) -> Job:
    title = f"choices as evidence: {condition.title}"
    return Job("evidence", condition, title, plan.evidence_seconds(condition, scale))


def _plan_theory(task: str, start: str) -> Job:
    title = f"theory on {task}, {start} start"
    return Job("theory", Condition(start, task, ""), title, THEORY_SECONDS)


def _plan_sweep(condition: Condition, scale: Scale) -> Job:
    title = f"step sizes on {condition.task}, {condition.start} start"
    return Job("sweep", condition, title, SWEEP_RUNS * plan.seconds(condition, scale))


# ---- running, here or in workers ----


class Work(NamedTuple):
    """Jobs that one process does in their order."""

    jobs: tuple[Job, ...]
    scale: Scale
    out: Path


class News(NamedTuple):
    """A report from a worker.

    Attributes:
        job: the job that is running; None for a line to show.
        share: the share of the job that is finished, 1 for all of it.
        line: the line to show.
    """

    job: Job | None
    share: float = 0.0
    line: str = ""


def run(
    jobs: Sequence[Job], scale: Scale, out: Path, workers: int, platform: str | None
) -> Iterator[News]:
    """Run all jobs and yield events.

    Groups of jobs go to ``workers`` processes, or run in this one (0).
    """
    if not workers:
        yield from _run_here(jobs, scale, out)
        return
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.group(workers), []).append(job)
    # The first task runs first, so that there is something to look at; then the longest, so that
    # none is last.
    first, *others = groups.values()
    others.sort(key=lambda group: -sum(job.seconds for job in group))
    work = [Work(tuple(group), scale, out) for group in (first, *others)]
    for _, event in processes.run(_run_in_worker, work, workers, platform):
        if event is not None:
            yield event


def _run_here(
    jobs: Sequence[Job],
    scale: Scale,
    out: Path,
) -> Iterator[News]:
    for job in jobs:
        lines: list[str] = []
        yield News(job)
        do_job(job, scale, out, lines.append)
        for line in lines:
            yield News(None, line=line)
        yield News(job, 1.0)


def _run_in_worker(work: Work) -> None:
    """Run a group of jobs in a worker."""
    for job in work.jobs:
        tell_share = _share_teller(job)
        tell_share(0.0)
        with progress.shown_by(tell_share):
            do_job(job, work.scale, work.out, _tell_line)
        # Only now is the job done: its figure comes after the last of its steps.
        processes.tell(News(job, 1.0))


def _share_teller(job: Job) -> Callable[[float], None]:
    """Return a function that reports the share of a job that is done, but not too often."""
    last_told = 0.0

    def tell(share: float) -> None:
        nonlocal last_told
        now = time.monotonic()
        if now - last_told > SECONDS_BETWEEN_SHARES and share < 1:
            last_told = now
            processes.tell(News(job, share))

    return tell


def _tell_line(line: str) -> None:
    processes.tell(News(None, line=line))


# ---- each kind of job ----


class Beside(NamedTuple):
    """Experiments beside the paper's: their settings, and their folder."""

    settings: Callable[[Condition, Scale], Settings]
    folder: str


BESIDE = {
    "beyond": Beside(plan.beyond_settings, BEYOND),
    "evidence": Beside(plan.evidence_settings, EVIDENCE),
    "matrix": Beside(plan.matrix_settings, MATRIX),
    "zero loss": Beside(plan.zero_loss_settings, ZERO_LOSS),
}


def do_job(
    job: Job,
    scale: Scale,
    out: Path,
    say: Callable[[str], None],
) -> None:
    """Do one job; skip what has been computed already."""
    if job.kind == "run":
        run_one(job.condition, scale, out, say)
    elif job.kind in BESIDE:
        settings_of, folder = BESIDE[job.kind]
        settings = settings_of(job.condition, scale)
        experiments.run(settings, out / folder, progress=True, draw=False, say=say)
    elif job.kind == "theory":
        theory_of(job.condition.start, job.condition.task, scale, out, compute=True)
    elif job.kind == "sweep":
        sweep(job.condition, scale, out, say)
    else:
        study.simulate(out, scale.participants, scale.study_note)


def run_one(
    condition: Condition,
    scale: Scale,
    out: Path,
    say: Callable[[str], None],
) -> None:
    """Run one experiment and draw its figure, with a label if the run is a quick one."""
    settings = plan.settings(condition, scale)
    folder = condition.folder(out)
    outcome = experiments.run(settings, folder, progress=True, draw=False, say=say)
    results = outcome.files[0].parent
    if outcome.lanes_computed or not (results / "curves.pdf").exists():
        figure = task_figure(Evidence(condition, outcome.task, outcome.curves), scale.note)
        figures.save(figure, results / "curves")
    if (condition.start, condition.teacher) == (STARTS[0], "cooperative"):
        maps.store(outcome.task, outcome.curves, out, scale.steps)


def sweep(
    condition: Condition,
    scale: Scale,
    out: Path,
    say: Callable[[str], None],
) -> None:
    """Run every method at every step size, and at every β if it has one."""
    settings = dataclasses.replace(
        plan.settings(condition, scale), methods=plan.TUNED, seeds=scale.sweep_seeds
    )
    task_beta = float(tasks.make(condition.task).beta)
    betas = [multiple * task_beta for multiple in plan.RATIONALITIES]
    folder = condition.folder(out)
    tuned = experiments.sweep(settings, plan.STEP_SIZES, betas, folder, progress=True, say=say)
    figure = tuned.plot()
    stamp(figure, scale.sweep_note)
    figures.save(figure, tuned.files[0].with_name("sweep"))


def theory_of(
    start: str,
    task: str,
    scale: Scale,
    out: Path,
    *,
    compute: bool,
) -> Any:
    """Return the theory panel of a task, read from OUT/theory/ if it exists there."""
    file = out / "theory" / f"{task}-{plan.as_file_name(start)}.json"
    made_with = {
        "version": theory.VERSION,
        "seeds": scale.theory_seeds,
        "steps": scale.theory_steps,
        "betas": list(theory.MULTIPLES),
        **plan.identity(plan.task_of(Settings(task=task))),
    }
    stored = _stored_panel(file, made_with)
    if stored is not None or not compute:
        return stored
    # None is the task's own start, whatever its name.
    init = None if start == STARTS[0] else start
    panel = theory.panel(task, init, seeds=scale.theory_seeds, steps=scale.theory_steps)
    file.parent.mkdir(parents=True, exist_ok=True)
    write(file, json.dumps({"made_with": made_with, "panel": panel}).encode())
    return panel


def _stored_panel(file: Path, made_with: dict[str, Any]) -> Any:
    """Return the panel in a file, or None if it is missing, broken or made with other settings."""
    try:
        content = json.loads(file.read_text())
        return content["panel"] if content["made_with"] == made_with else None
    except (OSError, ValueError, KeyError):
        return None
