"""Watch learners: record their parameters over time, on one seed."""

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ital.errors import InputError
from ital.figures import Watched
from ital.learners import Learner
from ital.tasks import Task
from ital.teachers import Teacher
from ital.teaching._lanes import open_sessions
from ital.teaching._run import Run, check_footprint, check_parts, make_run, parts, takes_run
from ital.teaching._session import Session, intervals_in
from ital.tools.checks import require_whole
from ital.tools.platform import keep_programs

if TYPE_CHECKING:
    import xarray as xr


@takes_run("seeds", "eval_every")
def watch(
    task: Task | str,
    teacher: Teacher | str = "cooperative",
    learner: Learner | str | Sequence[Learner | str] = ("imt", "ital"),
    *,
    seed: int = 0,
    frames: int = 40,
    show: Callable[[float], None] = lambda done: None,
    run: Run | None = None,
    **settings: Any,
) -> Watched:
    """Teach like :func:`ital.teach`, on one seed, and keep the parameters over time.

    Args:
        task: the task.
        teacher: the teacher.
        learner: one learner or several.
        seed: the seed.
        frames: approximate number of times that the parameters are kept.
        show: called from time to time with the share that is done, from 0 to 1.
        run: all other numbers of the run; or give them as
        **settings: single numbers, as in :class:`ital.teaching.Run`.

    Returns:
        The learners' parameters over time, to draw or animate.

    Raises:
        InputError: if the parts or the numbers are not valid.

    Example:
        >>> ital.watch("irl-dense", steps=200).animate("learning.gif")
    """
    keep_programs()
    task, teacher, watched = parts(task, teacher, learner)
    if run is None:
        run = make_run(settings, seeds=[seed], eval_every=None)
    require_whole(frames=frames)
    if frames < 1:
        raise InputError(f"frames must be at least 1, not {frames}")
    replace(run, seeds=[seed]).check(task, watched)
    check_parts(task, teacher, watched, run.choices)
    every = max(1, intervals_in(run.steps, frames))
    run = replace(run, seeds=[seed], eval_every=every, diagnostics=False)
    check_footprint(task, run, len(watched), run.seed_list)
    sessions = open_sessions(task, teacher, watched, run)
    params: dict[str, Any] = {}
    for i, session in enumerate(sessions):
        steps = []
        snapshots = []
        for step, snapshot in _snapshots(session, every):
            steps.append(step)
            snapshots.append(snapshot)
            if step > 0:
                share = step / session.steps
                show((i + share) / len(sessions))
        params |= _params_by_learner(session, snapshots)
    labels = {taught.name: taught.label for taught in watched}
    world = task.world(seed)
    return Watched(
        task,
        teacher.name,
        seed,
        np.asarray(steps),
        {name: params[name] for name in labels},
        world.truth.target,
        labels,
    )


def _params_by_learner(session: Session, snapshots: Sequence[Any]) -> dict[str, Any]:
    """Return learner → its parameters, with a leading axis of snapshots."""
    # Leaves become (snapshot, lane, …).
    over_time = jax.tree.map(lambda *leaves: np.stack(leaves), *snapshots)
    by_learner = {}
    for lane, taught in enumerate(session.learners):
        of_lane = functools.partial(_taken, index=lane)
        by_learner[taught.name] = jax.tree.map(of_lane, over_time)
    return by_learner


def _taken(leaf: np.ndarray, index: int) -> np.ndarray:
    """Return the part of an array (snapshot, lane, …) that belongs to one lane."""
    return leaf[:, index]


def _snapshots(session: Session, every: int) -> Iterator[tuple[int, Any]]:
    """Run a session to its end; yield step and parameters of all lanes at every interval."""
    yield 0, _params(session)
    while session.step < session.steps:
        due = session.step + every
        # One block may be shorter than the way to the next snapshot.
        while session.step < min(due, session.steps):
            session.advance((due - session.step) // session.stride)
        yield session.step, _params(session)


def seen(curves: "xr.Dataset", task: Task, methods: Sequence[str]) -> Watched | None:
    """Return the parameters over time that a stored run kept of its first seed.

    Args:
        curves: curves of the run.
        task: its task.
        methods: names of the methods.

    Returns:
        The parameters over time, or None if the run kept none for these methods.
    """
    seed = int(curves["seed"].values[0])
    if "path" not in curves or int(curves["path"].attrs["seed"]) != seed:
        return None
    path = curves["path"].sel({"learner": list(methods)})
    # Methods that were added to the run later have no path.
    if np.isnan(path.values).all(axis=(1, 2)).any():
        return None
    labels = {}
    params = {}
    for name in methods:
        of_learner = {"learner": name}
        labels[name] = str(curves["label"].sel(of_learner).values)
        params[name] = path.sel(of_learner).values
    target = task.world(seed).truth.target
    return Watched(
        task,
        curves.attrs["teacher"],
        seed,
        curves["frame"].values,
        params,
        target,
        labels,
    )


def _params(session: Session) -> Any:
    """Return the parameters of all lanes on the only seed."""
    lanes = session.carry.lanes
    return jax.tree.map(lambda leaf: np.asarray(leaf[0]), lanes.params)
