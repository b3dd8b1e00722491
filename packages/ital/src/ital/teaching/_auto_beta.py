"""``beta="auto"``: β from the volumes that a learner imagines at the start of a run."""

import functools
from collections.abc import Callable
from typing import TypeVar

import jax

from ital import rationality
from ital.learners import Lesson
from ital.tasks import World, copies
from ital.teaching._program import AUTO, LaneNumbers, Program
from ital.teaching._session import Numbers, first_memory, key_of, start
from ital.teaching._step import draw, first_lesson
from ital.tools.platform import traced_for
from ital.tools.types import Array, Params, PRNGKeyArray

Found = TypeVar("Found")


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def auto_beta_per_seed(
    program: Program,
    imagine: Callable[[Lesson, Params], Array],
    kind: str,
    scale: Array,
    sign: Array,
    numbers: Numbers,
) -> Array:
    """Find ``beta="auto"`` of every seed, from the volumes that the learner imagines at ν⁰."""
    starts = start(program, kind, scale, numbers)
    volumes, same = at_start(program, imagine, numbers, starts)
    auto_beta = functools.partial(
        rationality.auto_beta,
        most=program.rules.most_awareness,
    )
    of_each_seed = jax.vmap(auto_beta, in_axes=(0, None, 0, 0))
    return of_each_seed(numbers.lanes.lr, sign, volumes, same)


def at_start(
    program: Program,
    imagine: Callable[[Lesson, Params], Array],
    numbers: Numbers,
    starts: Params,
) -> tuple[Array, Array]:
    """Return the volumes that a learner imagines at ν⁰ on 64 mini-batches per seed.

    They follow the teacher's real choices.

    Args:
        program: the code.
        imagine: ``imagine(lesson, params)`` returns the volumes (B,).
        numbers: numbers of one lane per seed.
        starts: ν⁰ of every seed.

    Returns:
        The volumes (seed, n, B), and which examples of a mini-batch are copies of one another
        (seed, n, B, B).
    """

    def of_seed(
        world: World,
        seed: Array,
        start: Params,
        lane: LaneNumbers,
    ) -> tuple[Array, Array]:
        def imagined(lesson: Lesson, same: Array) -> tuple[Array, Array]:
            return imagine(lesson, start), same

        return on_first_lessons(program, numbers, world, seed, start, lane, imagined)

    with traced_for(program.platform):
        return numbers.each_seed(
            program,
            of_seed,
            numbers.seeds,
            starts,
            numbers.lanes,
        )


def on_first_lessons(
    program: Program,
    numbers: Numbers,
    world: World,
    seed: Array,
    start: Params,
    lane: LaneNumbers,
    measure: Callable[[Lesson, Array], Found],
) -> Found:
    """Measure the first lesson of a lane on each of the 64 mini-batches of a seed.

    Args:
        program: the code.
        numbers: numbers of the lanes.
        world: the world of the seed.
        seed: the seed.
        start: ν⁰.
        lane: numbers of the lane.
        measure: ``measure(lesson, same)``, where ``same`` says which examples of the mini-batch are
            copies of one another (B, B).

    Returns:
        What ``measure`` found, with a leading axis n.
    """
    memory = first_memory(program, world, seed, lane.teacher)

    def of_batch(key: PRNGKeyArray) -> Found:
        drawn = draw(program, world, key)
        lesson = first_lesson(program, world, drawn, numbers.last_step, start, lane, memory)
        return measure(lesson, copies(drawn.batch, program.batch_size))

    key = jax.random.fold_in(key_of(seed), AUTO)
    return jax.vmap(of_batch)(jax.random.split(key, rationality.BATCHES))
