"""What awareness amounts to at the start of a run: the sharpness of q, the length of its step."""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ital.gradients import add_scaled, squared_norm
from ital.learners import Learner, Lesson, awareness_step, imagine, imagined_choice, in_view
from ital.tasks import Task, World
from ital.teachers import Teacher
from ital.teaching._auto_beta import on_first_lessons
from ital.teaching._lanes import open_sessions
from ital.teaching._program import LaneNumbers, Program
from ital.teaching._run import check_parts, make_run, parts, takes_run
from ital.teaching._session import Numbers
from ital.tools.platform import keep_programs, traced_for
from ital.tools.types import Array, Params

if TYPE_CHECKING:
    import pandas as pd


@takes_run("steps", "eval_every")
def awareness(
    task: Task | str,
    teacher: Teacher | str = "cooperative",
    learner: Learner | str | Sequence[Learner | str] = "ital",
    **settings: Any,
) -> "pd.DataFrame":
    """Measure what awareness amounts to at the start of a run, on 64 mini-batches per seed.

    If q, the choice that the learner imagines, is even over the mini-batch, or the awareness step
    much shorter than the naive one, an aware learner does what the naive one does, and a comparison
    of both compares noise.

    Args:
        task: the task.
        teacher: the teacher.
        learner: one learner or several; those without awareness have no row.
        **settings: single numbers, as in :class:`ital.teaching.Run`.

    Returns:
        One row per aware learner, means over the seeds: its ``beta``, ``sharpness`` (the mean
        probability of the most probable example under q), ``even`` (the sharpness of an even q),
        and ``step`` (the length of the awareness step over that of the naive one).

    Raises:
        InputError: if the parts or the numbers are not valid.

    Example:
        >>> ital.teaching.awareness("regression", seeds=3)
    """
    import pandas as pd

    keep_programs()
    task, teacher, learners = parts(task, teacher, learner)
    run = make_run(settings, steps=1)
    run.check(task, learners)
    check_parts(task, teacher, learners, run.choices)
    rows = []
    for session in open_sessions(task, teacher, learners, run):
        # Only rules of two steps have an awareness step.
        if not all(hasattr(lane.settings, "literal") for lane in session.learners):
            continue
        found = _measure_awareness(
            session.program,
            session.numbers,
            session.starts,
        )
        # Means over the seeds, one per lane.
        sharpness, even, step = (np.asarray(per_seed).mean(axis=0) for per_seed in found)
        for lane, aware in enumerate(session.learners):
            beta = float(np.mean(aware.settings.beta))
            if beta == 0:
                continue
            row = {
                "method": aware.label,
                "beta": beta,
                "sharpness": float(sharpness[lane]),
                "even": float(even[lane]),
                "step": float(step[lane]),
            }
            rows.append(row)
    return pd.DataFrame(rows, columns=["method", "beta", "sharpness", "even", "step"])


@functools.partial(jax.jit, static_argnums=0)
def _measure_awareness(
    program: Program,
    numbers: Numbers,
    starts: Params,
) -> tuple[Array, Array, Array]:
    """Return sharpness of q, that of an even q, and relative length of the awareness step.

    Each has the axes (seed, lane).
    """

    def of_lane(
        world: World,
        seed: Array,
        start: Params,
        lane: LaneNumbers,
    ) -> tuple[Array, Array, Array]:
        settings = lane.learner

        def of_batch(lesson: Lesson, same: Array) -> tuple[Array, Array, Array]:
            imagined = imagine(lesson, start, settings.literal, "imitated")
            seen = in_view(lesson, settings.view)
            q = imagined_choice(settings.beta, imagined.volumes, seen, lesson.chosen)
            after = awareness_step(
                settings.beta,
                lesson.lr,
                lesson.chosen,
                q,
                imagined.naive,
                imagined.gradients,
            )
            naive_step = add_scaled(imagined.naive, -1.0, start)
            naive = squared_norm(naive_step)
            aware_step = add_scaled(after, -1.0, imagined.naive)
            aware = squared_norm(aware_step)
            sharpness = _largest_probability(same, q)
            even = _largest_probability(same, seen / settings.view)
            return sharpness, even, jnp.sqrt(aware / naive)

        # The mini-batches of ``beta="auto"``: what it found is judged on the same ones.
        per_batch = on_first_lessons(program, numbers, world, seed, start, lane, of_batch)
        mean = functools.partial(jnp.mean, axis=0)
        return jax.tree.map(mean, per_batch)

    def of_seed(
        world: World,
        seed: Array,
        start: Params,
        lanes: LaneNumbers,
    ) -> tuple[Array, Array, Array]:
        of_lanes = jax.vmap(functools.partial(of_lane, world, seed, start))
        return of_lanes(lanes)

    with traced_for(program.platform):
        return numbers.each_seed(
            program,
            of_seed,
            numbers.seeds,
            starts,
            numbers.lanes,
        )


def _largest_probability(same: Array, probabilities: Array) -> Array:
    """Return the probability of the most probable example; copies count as one.

    Args:
        same: which examples are copies of one another (B, B).
        probabilities: the probability of each example (B,).
    """
    return jnp.max(jnp.sum(jnp.where(same, probabilities, 0.0), axis=-1))


def awareness_in_words(found: "pd.DataFrame") -> list[str]:
    """Return a line for each aware learner.

    Args:
        found: what :func:`awareness` returned.

    Returns:
        The lines.
    """
    return [
        f"{row['method']}: β = {row['beta']:.3g}; "
        f"q gives its likeliest example {row['sharpness']:.0%} (even: {row['even']:.0%}); "
        f"the awareness step is {row['step']:.2g} times as long as the naive one (at the start)"
        for row in found.to_dict("records")
    ]
