"""The jobs of ``ital reproduce``, run in this process or in several workers."""

import dataclasses
import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ital import experiments, figures, tasks
from ital.tools import processes, progress
from ital.tools.files import write
from ital_paper.experiments import maps, plan, study, theory
from ital_paper.experiments.data import Evidence
from ital_paper.experiments.figures import stamp, task_figure
from ital_paper.experiments.plan import STARTS, Condition, Scale

FEW = 4  # workers
BEYOND = "beyond"  # the folder of experiments beyond the paper
MATRIX = "matrix"  # the folder of real and assumed teachers
ZERO_LOSS = "zero-loss"  # the folder of teachers that assume zero loss for their target
THEORY_SECONDS, STUDY_SECONDS, ZERO_LOSS_SECONDS, MATRIX_SECONDS = 10.0, 20.0, 5.0, 15.0
SWEEP_RUNS = 2.0  # a sweep takes about as long as this many runs


class Job(NamedTuple):
    """One job: what it computes, for which experiment, and about how long it takes on one core."""

    kind: str
    condition: Condition
    title: str
    seconds: float

    def group(self, workers: int) -> str:
        """The group of this job. Jobs of one group run in one process, so that they share programs and caches.

        With a GPU, the search for equations takes most of the time, so each of those experiments is its own group.
        """
        if not plan.is_equation(self.condition.task):
            return self.condition.task
        return (
            "equation"
            if workers <= FEW
            else f"{self.condition.task} {self.condition.teacher} {self.condition.start}"
        )

    @property
    def figure(self) -> str:
        """The path of the figure of a run, within the folder for results."""
        return str(
            self.condition.folder(Path())
            / self.condition.task
            / self.condition.teacher
            / "curves.png"
        )


def planned(names: Sequence[str], scale: Scale, *, everything: bool) -> list[Job]:
    """All jobs for these tasks; with ``everything`` also the jobs that belong to no task of the paper."""
    jobs = [
        Job("run", condition, condition.title, plan.seconds(condition, scale))
        for condition in plan.conditions(names, scale)
    ]
    for condition in plan.zero_loss_conditions(names):
        jobs.append(
            Job(
                "zero loss",
                condition,
                f"zero loss of the target: {condition.title}",
                ZERO_LOSS_SECONDS,
            )
        )
    for condition in plan.beyond_conditions(names, scale) if everything else ():
        jobs.append(
            Job(
                "beyond",
                condition,
                f"beyond the paper: {condition.title}",
                plan.seconds(condition, scale),
            )
        )
    for condition in plan.matrix_conditions(names, scale):
        jobs.append(
            Job("matrix", condition, f"who believes what: {condition.title}", MATRIX_SECONDS)
        )
    for task, start in itertools.product(names, STARTS):
        if task in scale.theory:
            jobs.append(
                Job(
                    "theory",
                    Condition(start, task, ""),
                    f"theory on {task}, {start} start",
                    THEORY_SECONDS,
                )
            )
    for condition in plan.sweep_conditions(names, scale):
        seconds = SWEEP_RUNS * plan.seconds(condition, scale)
        jobs.append(
            Job(
                "sweep",
                condition,
                f"step sizes on {condition.task}, {condition.start} start",
                seconds,
            )
        )
    if everything:
        jobs.append(
            Job("study", Condition("", "study", ""), "study: simulated arms", STUDY_SECONDS)
        )
    return jobs


class Work(NamedTuple):
    """Jobs that one process does in their order."""

    jobs: tuple[Job, ...]
    scale: Scale
    out: Path


class News(NamedTuple):
    """A report from a worker: the finished share of a job (1: all of it), or a line to show."""

    job: Job | None
    share: float = 0.0
    line: str = ""


def run(
    jobs: Sequence[Job], scale: Scale, out: Path, workers: int, platform: str | None
) -> Iterator[News]:
    """Run all jobs and yield events. Groups of jobs go to ``workers`` processes, or run in this one (0)."""
    if not workers:
        yield from _do_here(jobs, scale, out)
        return
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.group(workers), []).append(job)
    # The first task runs first, so that there is something to look at; then the longest, so that none is last.
    first, *others = groups.values()
    others.sort(key=lambda group: -sum(job.seconds for job in group))
    for _, event in processes.run(
        _do, [Work(tuple(g), scale, out) for g in (first, *others)], workers, platform
    ):
        if event is not None:
            yield event


def _do_here(jobs: Sequence[Job], scale: Scale, out: Path) -> Iterator[News]:
    for job in jobs:
        said: list[str] = []
        yield News(job)
        do(job, scale, out, said.append)
        yield from (News(None, line=line) for line in said)
        yield News(job, 1.0)


def _do(work: Work) -> None:
    """Run a group of jobs in a worker."""
    for job in work.jobs:
        last_shown = 0.0

        def show(share: float, job: Job = job) -> None:
            nonlocal last_shown
            if time.monotonic() - last_shown > 0.3 and share < 1:
                last_shown = time.monotonic()
                processes.tell(News(job, share))

        show(0.0)
        with progress.shown_by(show):
            do(job, work.scale, work.out, lambda line: processes.tell(News(None, line=line)))
        processes.tell(News(job, 1.0))


def do(job: Job, scale: Scale, out: Path, say: Callable[[str], None]) -> None:
    """Run one job; skip what has been computed already."""
    if job.kind == "run":
        run_one(job.condition, scale, out, say)
    elif job.kind == "beyond":
        experiments.run(
            plan.beyond_settings(job.condition, scale),
            out / BEYOND,
            progress=True,
            draw=False,
            say=say,
        )
    elif job.kind == "matrix":
        experiments.run(
            plan.matrix_settings(job.condition, scale),
            out / MATRIX,
            progress=True,
            draw=False,
            say=say,
        )
    elif job.kind == "zero loss":
        settings = plan.zero_loss_settings(job.condition, scale)
        experiments.run(settings, out / ZERO_LOSS, progress=True, draw=False, say=say)
    elif job.kind == "theory":
        theory_of(job.condition.start, job.condition.task, scale, out, compute=True)
    elif job.kind == "sweep":
        sweep(job.condition, scale, out, say)
    else:
        study.simulate(out, scale.participants, scale.study_note)


def run_one(condition: Condition, scale: Scale, out: Path, say: Callable[[str], None]) -> None:
    """Run one experiment and draw its figure, with a label if the run is a quick one."""
    folder = condition.folder(out)
    outcome = experiments.run(
        plan.settings(condition, scale), folder, progress=True, draw=False, say=say
    )
    place = outcome.files[0].parent
    if outcome.lanes_computed or not (place / "curves.pdf").exists():
        figures.save(
            task_figure(Evidence(condition, outcome.task, outcome.curves), scale.note),
            place / "curves",
        )
    if (condition.start, condition.teacher) == (STARTS[0], "cooperative"):
        maps.store(outcome.task, outcome.curves, out, scale.steps)


def sweep(condition: Condition, scale: Scale, out: Path, say: Callable[[str], None]) -> None:
    """Run every method at every step size, and at every β if it has one."""
    settings = dataclasses.replace(
        plan.settings(condition, scale), methods=plan.TUNED, seeds=scale.sweep_seeds
    )
    betas = [multiple * float(tasks.make(condition.task).beta) for multiple in plan.RATIONALITIES]
    tuned = experiments.sweep(
        settings, plan.STEP_SIZES, betas, condition.folder(out), progress=True, say=say
    )
    figure = tuned.plot()
    stamp(figure, scale.sweep_note)
    figures.save(figure, tuned.files[0].with_name("sweep"))


def theory_of(start: str, task: str, scale: Scale, out: Path, *, compute: bool) -> Any:
    """The theory panel of a task, read from OUT/theory/ if it exists there."""
    file = out / "theory" / f"{task}-{start.replace(':', '-')}.json"
    made_with = {
        "version": theory.VERSION,
        "seeds": scale.theory_seeds,
        "steps": scale.theory_steps,
        "betas": list(theory.MULTIPLES),
        **plan.identity(plan.task_of(experiments.Settings(task=task))),
    }
    try:
        content = json.loads(file.read_text())
        if content["made_with"] == made_with:
            return content["panel"]
    except (OSError, ValueError, KeyError):
        pass
    if not compute:
        return None
    own = None if start == STARTS[0] else start
    panel = theory.panel(task, own, seeds=scale.theory_seeds, steps=scale.theory_steps)
    file.parent.mkdir(parents=True, exist_ok=True)
    write(file, json.dumps({"made_with": made_with, "panel": panel}).encode())
    return panel
