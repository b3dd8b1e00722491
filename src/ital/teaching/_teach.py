"""Teaching: learners on seeds, and their curves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax

from ital._platform import keep_programs
from ital._progress import show_progress
from ital.learners import Learner
from ital.results import Recording, summarise
from ital.tasks import Task
from ital.teachers import AnyTeacher
from ital.teaching._lanes import open_sessions
from ital.teaching._run import make_run, parts, takes_run

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Result:
    """What :func:`ital.teach` returns.

    Attributes:
        curves: a Dataset with dimensions (method, seed, step).
        task: the task.
        parameters: method → its final parameters, with a leading axis of seeds.
    """

    curves: "xr.Dataset"
    task: Task
    parameters: Mapping[str, Any] = field(repr=False)

    def plot(self, metrics: Sequence[str] | None = None) -> "Figure":
        """A matplotlib figure: one panel per metric, mean over seeds with a band of ±1 standard error.

        Args:
            metrics: names of the metrics; None for the task's panels.

        Returns:
            The figure.
        """
        from ital.figures import plot_curves

        return plot_curves(self.curves, self.task, metrics)

    def summary(self) -> "pd.DataFrame":
        """Mean and standard error over seeds per method and metric, at five steps of the run.

        Returns:
            One row per method, metric and step.
        """
        return summarise(self.curves)


@takes_run()
def teach(
    task: Task | str,
    teacher: AnyTeacher | str = "cooperative",
    learner: Learner | str | Sequence[Learner | str] = "ital",
    *,
    progress: bool = False,
    **settings: Any,
) -> Result:
    """Teach one or several learners, each on every seed, and return their learning curves.

    Args:
        task: where to teach, e.g. ``ital.tasks.regression()``; a registered name will do, here and below.
        teacher: who chooses the examples, e.g. ``ital.teachers.cooperative()``.
        learner: one learner, e.g. ``ital.learners.teacher_aware()``, or several, with shared mini-batches and starts.
        progress: show a progress bar.
        **settings: the numbers of the run, such as ``steps=2000``, ``seeds=20`` or ``lr=1e-3``: see
            :class:`ital.teaching.Run`.

    Returns:
        Curves, the task, and the learners' last parameters.

    Raises:
        InputError: if the parts or the numbers make no run; the message says why in a line.

    Example:
        >>> result = ital.teach("regression", "cooperative", ["imt", "ital"], steps=200, seeds=5)
        >>> result.plot().savefig("curves.png")
    """
    keep_programs()
    task, teacher, learners = parts(task, teacher, learner)
    run = make_run(settings)
    run.check(task, learners)
    sessions = open_sessions(task, teacher, learners, run)
    recording = Recording(sessions)
    with show_progress(f"{task.name}, {teacher.name} teacher", recording.total, progress) as show:
        for i, session in enumerate(sessions):
            for block in session.blocks(lambda share: show(recording.done_with(share))):
                recording.blocks[i].append(block)
                show(recording.done)
    curves = recording.curves(run.seed_list, [learner.name for learner in learners])
    curves.attrs |= {
        "task": task.name,
        "teacher": teacher.name,
        "lr": run.lr,
        "init": str(run.start_on(task)),
        "steps": run.steps,
        "batch_size": run.batch_size,
        "step_form": run.forms(len(learners))[0].name,
    }
    final = {
        learner.name: jax.tree.map(lambda leaf, lane=lane: leaf[:, lane].copy(), session.state.lanes.params)
        for session in sessions
        for lane, learner in enumerate(session.learners)
    }
    return Result(curves, task, final)
