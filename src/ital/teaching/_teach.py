"""Teaching: learners on seeds, and their curves."""

from collections.abc import Sequence
from typing import Any

import jax

from ital._progress import show_progress
from ital.learners import Learner
from ital.results import Recording, Result
from ital.tasks import Task
from ital.teachers import AnyTeacher
from ital.teaching._lanes import open_sessions
from ital.teaching._run import make_run, parts, takes_run


@takes_run()
def teach(
    task: Task | str,
    teacher: AnyTeacher | str = "cooperative",
    learner: Learner | str | Sequence[Learner | str] = "ital",
    *,
    progress: bool = False,
    **settings: Any,
) -> Result:
    """Teaches one or several learners, each on every seed, and returns their learning curves.

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
        InputError: where the parts or the numbers make no run; the message says why in a line.

    """
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
