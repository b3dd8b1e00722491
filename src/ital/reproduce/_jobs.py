"""The work of ``ital reproduce`` in parts, and who does them: this process, or several beside each other."""

import dataclasses
import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ital import _processes, _progress, experiments, figures, tasks
from ital._files import write
from ital.reproduce import _maps, _plan, _study, _theory
from ital.reproduce._data import Evidence
from ital.reproduce._figures import stamp, task_figure
from ital.reproduce._plan import STARTS, Condition, Scale

FEW = 4  # workers
BEYOND = "beyond"  # the folder of what the paper does not have
ZERO_LOSS = "zero-loss"  # the folder of teachers who take the loss of their target for zero
THEORY_SECONDS, STUDY_SECONDS, ZERO_LOSS_SECONDS = 10.0, 20.0, 5.0
SWEEP_RUNS = 2.0  # a sweep takes about as long as this many runs


class Job(NamedTuple):
    """One part of the work: what kind of thing is computed, where, and about how long that takes on a core."""

    kind: str
    condition: Condition
    title: str
    seconds: float

    def group(self, workers: int) -> str:
        """Jobs of one group share programs and what they remember, and so a process.

        Searching equations is most of the work where a GPU does the rest: there each experiment is on its own.
        """
        if not _plan.is_equation(self.condition.task):
            return self.condition.task
        return (
            "equation" if workers <= FEW else f"{self.condition.task} {self.condition.teacher} {self.condition.start}"
        )

    @property
    def figure(self) -> str:
        """The figure that a run leaves, within the folder for results."""
        return str(self.condition.folder(Path()) / self.condition.task / self.condition.teacher / "curves.png")


def planned(names: Sequence[str], scale: Scale, *, everything: bool) -> list[Job]:
    """All jobs for these tasks; with ``everything`` also what belongs to no task of the paper."""
    jobs = [
        Job("run", condition, condition.title, _plan.seconds(condition, scale))
        for condition in _plan.conditions(names, scale)
    ]
    for condition in _plan.zero_loss_conditions(names):
        jobs.append(Job("zero loss", condition, f"zero loss of the target: {condition.title}", ZERO_LOSS_SECONDS))
    for condition in _plan.beyond_conditions(names, scale) if everything else ():
        jobs.append(Job("beyond", condition, f"beyond the paper: {condition.title}", _plan.seconds(condition, scale)))
    for task, start in itertools.product(names, STARTS):
        if task in scale.theory:
            jobs.append(Job("theory", Condition(start, task, ""), f"theory on {task}, {start} start", THEORY_SECONDS))
    for condition in _plan.sweep_conditions(names, scale):
        seconds = SWEEP_RUNS * _plan.seconds(condition, scale)
        jobs.append(Job("sweep", condition, f"step sizes on {condition.task}, {condition.start} start", seconds))
    if everything:
        jobs.append(Job("study", Condition("", "study", ""), "study: simulated arms", STUDY_SECONDS))
    return jobs


class Work(NamedTuple):
    """Jobs that one process does in their order."""

    jobs: tuple[Job, ...]
    scale: Scale
    out: Path


class News(NamedTuple):
    """What is heard of the work: a share of a job that is done (1: all of it), or a line to say."""

    job: Job | None
    share: float = 0.0
    line: str = ""


def run(jobs: Sequence[Job], scale: Scale, out: Path, workers: int, platform: str | None) -> Iterator[News]:
    """Does all jobs and tells of them. Groups of jobs go to ``workers`` processes, or (0) are done here."""
    if not workers:
        yield from _do_here(jobs, scale, out)
        return
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.group(workers), []).append(job)
    # The first task begins, so that there is something to look at; then the longest, so that none is left to the end.
    first, *others = groups.values()
    others.sort(key=lambda group: -sum(job.seconds for job in group))
    for _, event in _processes.run(_do, [Work(tuple(g), scale, out) for g in (first, *others)], workers, platform):
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
    """What a worker does with a group of jobs."""
    for job in work.jobs:
        last_shown = 0.0

        def show(share: float, job: Job = job) -> None:
            nonlocal last_shown
            if time.monotonic() - last_shown > 0.3 and share < 1:
                last_shown = time.monotonic()
                _processes.tell(News(job, share))

        show(0.0)
        with _progress.shown_by(show):
            do(job, work.scale, work.out, lambda line: _processes.tell(News(None, line=line)))
        _processes.tell(News(job, 1.0))


def do(job: Job, scale: Scale, out: Path, say: Callable[[str], None]) -> None:
    """One job; what is there of it already is not computed again."""
    if job.kind == "run":
        run_one(job.condition, scale, out, say)
    elif job.kind == "beyond":
        experiments.run(_plan.beyond_settings(job.condition, scale), out / BEYOND, progress=True, draw=False, say=say)
    elif job.kind == "zero loss":
        settings = _plan.zero_loss_settings(job.condition, scale)
        experiments.run(settings, out / ZERO_LOSS, progress=True, draw=False, say=say)
    elif job.kind == "theory":
        theory_of(job.condition.start, job.condition.task, scale, out, compute=True)
    elif job.kind == "sweep":
        sweep(job.condition, scale, out, say)
    else:
        _study.simulate(out, scale.participants, scale.note)


def run_one(condition: Condition, scale: Scale, out: Path, say: Callable[[str], None]) -> None:
    """One experiment with its figure, which says so if the run was a quick one."""
    folder = condition.folder(out)
    outcome = experiments.run(_plan.settings(condition, scale), folder, progress=True, draw=False, say=say)
    place = outcome.files[0].parent
    if outcome.lanes_computed or not (place / "curves.pdf").exists():
        figures.save(task_figure(Evidence(condition, outcome.task, outcome.curves), scale.note), place / "curves")
    if (condition.start, condition.teacher) == (STARTS[0], "cooperative"):
        _maps.store(outcome.task, outcome.curves, out, scale.steps)


def sweep(condition: Condition, scale: Scale, out: Path, say: Callable[[str], None]) -> None:
    """Every method at every step size, and every β of those that have one."""
    settings = dataclasses.replace(_plan.settings(condition, scale), methods=_plan.TUNED, seeds=scale.sweep_seeds)
    betas = [multiple * float(tasks.make(condition.task).beta) for multiple in _plan.RATIONALITIES]
    tuned = experiments.sweep(settings, _plan.STEP_SIZES, betas, condition.folder(out), progress=True, say=say)
    figure = tuned.plot()
    stamp(figure, f"quick run: {scale.sweep_seeds} seeds, {scale.steps} steps" if scale.quick else "")
    figures.save(figure, tuned.files[0].with_name("sweep"))


def theory_of(start: str, task: str, scale: Scale, out: Path, *, compute: bool) -> Any:
    """The theory panel of a task, from OUT/theory/ where it is there already."""
    file = out / "theory" / f"{task}-{start.replace(':', '-')}.json"
    made_with = {
        "version": _theory.VERSION,
        "seeds": scale.theory_seeds,
        "steps": scale.theory_steps,
        "betas": list(_theory.MULTIPLES),
        **_plan.identity(_plan.task_of(experiments.Settings(task=task))),
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
    panel = _theory.panel(task, own, seeds=scale.theory_seeds, steps=scale.theory_steps)
    file.parent.mkdir(parents=True, exist_ok=True)
    write(file, json.dumps({"made_with": made_with, "panel": panel}).encode())
    return panel
