"""Before the first step: ν⁰, memories of teacher and learners, references, ``beta="auto"``."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ital import rationality
from ital.learners import Beginning, Lesson
from ital.models import Init
from ital.tasks import World, copies
from ital.teaching._program import AUTO, START, TEACHER, Lane, LaneNumbers, Numbers, Program, key_of
from ital.teaching._step import draw, first_lesson, first_previous
from ital.tools.platform import traced_for
from ital.tools.types import Array, Params, PRNGKeyArray


@functools.partial(jax.jit, static_argnums=(0, 1))
def start(program: Program, kind: str, scale: Array, numbers: Numbers) -> Params:
    """Draw ν⁰ of every seed; all methods of a seed share it."""

    def start_of_seed(world: World, seed: Array) -> Params:
        key = jax.random.fold_in(key_of(seed), START)
        return program.rules.start(key, Init(kind, scale), world)

    axes = (numbers.world_axes(program), 0)
    with traced_for(program.platform):
        return jax.vmap(start_of_seed, in_axes=axes)(numbers.worlds, numbers.seeds)


@functools.partial(jax.jit, static_argnums=0)
def begin(program: Program, numbers: Numbers, starts: Params) -> tuple[Lane, Any]:
    """Return all lanes before the first step, and the references.

    There is one ν⁰ per seed and one memory per lane.
    """

    def begin_seed(
        world: World, seed: Array, start: Params, learner: Any, teacher: Any
    ) -> tuple[Lane, Any]:
        previous = first_previous(program.rules, start, world)

        def begin_lane(learner: Any, teacher: Any) -> Lane:
            params, memory = first_state(program, world, start, learner)
            return Lane(
                params=params,
                memory=memory,
                previous=previous,
                teacher=first_memory(program, world, seed, teacher),
                asked=() if program.teacher.ask is None else jnp.zeros((), int),
            )

        # Settings may be (): the number of lanes is then known from the step sizes only.
        lanes_of_seed = numbers.lanes.lr.shape[1]
        lanes = jax.vmap(begin_lane, axis_size=lanes_of_seed)(learner, teacher)
        return lanes, program.rules.references(start, world.truth)

    axes = (numbers.world_axes(program), 0, 0, 0, 0)
    with traced_for(program.platform):
        return jax.vmap(begin_seed, in_axes=axes)(
            numbers.worlds,
            numbers.seeds,
            starts,
            numbers.lanes.learner,
            numbers.lanes.teacher,
        )


def first_state(program: Program, world: World, start: Params, settings: Any) -> tuple[Params, Any]:
    """Return the learner's parameters and memory before the first step."""
    rules = program.rules
    rule = program.rule
    if rule.begin is None:
        return start, _strong(rule.init(start, settings))

    def draw_mini_batch(key: PRNGKeyArray) -> Any:
        return rules.show(world.learner, rules.draw(key, world, program.batch_size))

    beginning = Beginning(
        params=start,
        # Only shapes: no example is drawn before the first step.
        examples=jax.eval_shape(draw_mini_batch, key_of(0)),
        likelihood=rules.likelihood,
        rows=None if rules.pool_size is None else rules.pool_size(world),
        batch_size=program.batch_size,
        choices=program.choices,
    )
    params, memory = rule.begin(beginning, settings)
    return params, _strong(memory)


def first_memory(program: Program, world: World, seed: Array, settings: Any) -> Any:
    """Return the teacher's memory before the first step; () for a teacher without one."""
    if program.teacher.init is None:
        return ()
    key = jax.random.fold_in(key_of(seed), TEACHER)
    return _strong(program.teacher.init(key, world.teacher, settings))


def _strong(memory: Any) -> Any:
    """Give every number of a memory a strong type.

    Steps return strong types: a memory that started with weak types would make the block compile
    twice.
    """
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.result_type(leaf)), memory)


def at_start(
    program: Program, imagine: Callable[[Lesson, Params], Array], numbers: Numbers, starts: Params
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

    def of_seed(world: World, seed: Array, start: Params, lane: LaneNumbers) -> tuple[Array, Array]:
        memory = first_memory(program, world, seed, lane.teacher)

        def of_batch(key: PRNGKeyArray) -> tuple[Array, Array]:
            drawn = draw(program, world, key)
            lesson = first_lesson(program, world, drawn, numbers.last_step, start, lane, memory)
            return imagine(lesson, start), copies(drawn.batch, program.batch_size)

        auto_key = jax.random.fold_in(key_of(seed), AUTO)
        return jax.vmap(of_batch)(jax.random.split(auto_key, rationality.BATCHES))

    axes = (numbers.world_axes(program), 0, 0, 0)
    with traced_for(program.platform):
        return jax.vmap(of_seed, in_axes=axes)(numbers.worlds, numbers.seeds, starts, numbers.lanes)


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
    auto_beta = functools.partial(rationality.auto_beta, most=program.rules.most_awareness)
    return jax.vmap(auto_beta, in_axes=(0, None, 0, 0))(numbers.lanes.lr, sign, volumes, same)
