"""``beta="auto"``: β from the volumes that a learner imagines at the start of a run."""

import functools
from collections.abc import Callable

import jax

from ital import rationality
from ital.learners import Lesson
from ital.tasks import World, copies
from ital.teaching._program import AUTO, LaneNumbers, Program
from ital.teaching._session import Numbers, first_memory, key_of, start
from ital.teaching._step import draw, first_lesson
from ital.tools.platform import traced_for
from ital.tools.types import Array, Params, PRNGKeyArray


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
        memory = first_memory(program, world, seed, lane.teacher)

        def of_batch(key: PRNGKeyArray) -> tuple[Array, Array]:
            drawn = draw(program, world, key)
            lesson = first_lesson(
                program,
                world,
                drawn,
                numbers.last_step,
                start,
                lane,
                memory,
            )
            volumes = imagine(lesson, start)
            return volumes, copies(drawn.batch, program.batch_size)

        keys = batch_keys(seed)
        return jax.vmap(of_batch)(keys)

    with traced_for(program.platform):
        return numbers.each_seed(
            program,
            of_seed,
            numbers.seeds,
            starts,
            numbers.lanes,
        )


def batch_keys(seed: Array) -> Array:
    """Return the keys of the mini-batches from which β is found."""
    key = jax.random.fold_in(key_of(seed), AUTO)
    return jax.random.split(key, rationality.BATCHES)
