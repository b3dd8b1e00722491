"""The compiled program of simulated participants: one step of many lanes side by side."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital.gradients import add_scaled
from ital.tools.types import Array
from ital_study.robots import world
from ital_study.robots.world import Arrows, Game

Pick = Callable[[int, Arrows, np.ndarray], np.ndarray]
"""Chooses for all lanes: the step from 0, its arrows and the beliefs → the choices."""

_TEACHER = 2  # stream of random numbers, separate from those of the world


class StudyNumbers(NamedTuple):
    """Numbers of a study that compiled programs take as arguments.

    The same program serves other numbers.

    Attributes:
        lr: Step size η.
        start: Largest absolute reward of the first belief.
        seed: Seed of all draws.
    """

    lr: Any
    start: Any
    seed: Any


class ArmLane(NamedTuple):
    """The numbers of one participant on one map in one arm.

    The draws, the map, the teacher, the learner.

    Attributes:
        number: Number of the participant.
        code: Code of the map.
        target: The rewards w*.
        cumulative: Cumulative chances of the directions of arrows.
        rationality: ρ of the teacher.
        noise: 1 for a random choice, 0 for a deterministic one.
        stream: Number of the teacher's stream of random numbers.
        settings: Numbers of the learner.
        matched: Whether the robot is the control of matched steps.
        given: Choices that exist already; −1 where the teacher has to choose.
    """

    number: Any
    code: Any
    target: Any
    cumulative: Any
    rationality: Any
    noise: Any
    stream: Any
    settings: Any
    matched: Any
    given: Any


class Trace(NamedTuple):
    """What happened in lanes. The first axis are lanes, the second steps.

    Attributes:
        arrows: The candidates.
        choice: Index of the chosen arrow.
        machine_choice: Index of the machine's pick.
        length: Length of the step.
        beliefs: w⁰ … w^T, one more than steps.
    """

    arrows: Any
    choice: Any
    machine_choice: Any
    length: Any
    beliefs: Any


LaneMind = tuple[Array, Any]
"""Belief and memory of the robots of lanes."""


class StepInput(NamedTuple):
    """What a lane meets at a step.

    Attributes:
        number: Number of the step, from 0.
        arrows: The candidates.
        given: The choice if it exists already, else −1.
        key: The teacher's random numbers.
    """

    number: Any
    arrows: Arrows
    given: Any
    key: Any


class StepOutcome(NamedTuple):
    """What a lane did at a step, as in :class:`Trace`."""

    choice: Any
    machine_choice: Any
    length: Any


def choose(
    key: Array,
    volumes: Array,
    rationality: Array,
    noise: Array,
) -> Array:
    """Return argmax of ρ·TV + noise·Gumbel; ties take the lowest index."""
    gumbel = jax.random.gumbel(key, volumes.shape, volumes.dtype)
    return jnp.argmax(rationality * volumes + noise * gumbel)


def step(
    game: Game,
    rule: Any,
    lr: Array,
    lane: ArmLane,
    mind: LaneMind,
    now: StepInput,
) -> tuple[LaneMind, StepOutcome]:
    """Take one step of one lane: score, choose, learn.

    Args:
        game: The physics of the study.
        rule: Rule of the learner.
        lr: Step size η.
        lane: The lane.
        mind: Belief and memory of the robot before the step.
        now: What the lane meets.

    Returns:
        Belief and memory after the step, and what was done.
    """
    belief, memory = mind
    # The choice is filled in below: volumes do not depend on it.
    no_choice = jnp.zeros((), jnp.int32)
    lesson = world.lesson(game, lr, belief, now.arrows, no_choice, now.number)
    scores = world.volumes(lesson, belief, lane.target)
    chosen_by_teacher = choose(now.key, scores, lane.rationality, lane.noise)
    chosen = jnp.where(now.given < 0, chosen_by_teacher, now.given)
    lesson = lesson._replace(chosen=chosen)
    after, memory, _ = rule.update(lesson, lane.settings, belief, memory)
    length = jnp.linalg.norm(after - belief)
    # The control takes a step of the same length along the naive robot's gradient. Where that
    # gradient is zero, it stays.
    is_chosen = jnp.arange(scores.shape[0]) == lesson.chosen
    naive_gradient = lesson.here.weighted_sum(is_chosen.astype(scores.dtype))
    steepness = jnp.linalg.norm(naive_gradient)
    scale = -length / jnp.where(steepness > 0, steepness, jnp.inf)
    control = add_scaled(belief, scale, naive_gradient)
    new_belief = jnp.where(lane.matched, control, after)
    outcome = StepOutcome(
        choice=lesson.chosen,
        machine_choice=jnp.argmax(scores),
        length=length,
    )
    return (new_belief, memory), outcome


def run_lanes(
    game: Game,
    rule: Any,
    steps: int,
    count: int,
    numbers: StudyNumbers,
    lanes: ArmLane,
    pick: Pick | None = None,
) -> Trace:
    """Run all lanes in parallel.

    The compiled program is one step, so that studies of any length share it.

    Args:
        game: The physics of the study.
        rule: Rule of the learners of all lanes.
        steps: Number of steps.
        count: Number of candidates of a step.
        numbers: Numbers of the study.
        lanes: The lanes, stacked along the first axis.
        pick: Chooses for all lanes in place of their teachers.

    Returns:
        What happened.
    """
    given = lanes.given
    lanes = jax.device_put(lanes._replace(given=()))
    no_cell_used = np.zeros((len(given), game.dynamics.states), bool)
    draws_of = (lanes.number, lanes.code, lanes.cumulative)
    draw_block = functools.partial(_draw_lanes, game, count, numbers.seed, draws_of)
    arrows = world.all_arrows(draw_block, no_cell_used, steps)
    # As NumPy arrays, first minds have the types of minds after a step (none is weak): the program
    # compiles once.
    first_minds = _first_minds(game, rule, count, numbers, lanes)
    minds = jax.tree.map(np.asarray, first_minds)
    beliefs_now, _ = minds
    beliefs = [beliefs_now]
    outcomes = []
    for t in range(steps):
        arrows_now = Arrows(
            cells=arrows.cells[:, t],
            actions=arrows.actions[:, t],
        )
        if pick is None:
            choices = given[:, t]
        else:
            choices = pick(t, arrows_now, np.asarray(beliefs_now))
        minds, outcome = _step_lanes(
            game,
            rule,
            numbers,
            np.int32(t),
            lanes,
            arrows_now,
            choices,
            minds,
        )
        beliefs_now, _ = minds
        outcomes.append(outcome)
        beliefs.append(beliefs_now)
    # Outcomes of all steps, with the axis of steps after that of lanes.
    done = jax.tree.map(lambda *of_steps: np.stack(of_steps, axis=1), *outcomes)
    return Trace(
        arrows=arrows,
        choice=done.choice,
        machine_choice=done.machine_choice,
        length=done.length,
        beliefs=np.stack(beliefs, axis=1),
    )


@functools.partial(jax.jit, static_argnums=(0, 1))
def _draw_lanes(
    game: Game,
    count: int,
    seed: Array,
    draws_of: tuple[Array, Array, Array],
    first: Array,
    used: Array,
) -> tuple[Array, Arrows]:
    """Draw a block of steps for lanes, given their numbers, codes and cumulative chances."""

    def draw(
        number: Array,
        code: Array,
        cumulative: Array,
        used: Array,
    ) -> tuple[Array, Arrows]:
        key = world.key_of(seed, number, code)
        return world.draw_arrows(game, count, key, cumulative, first, used)

    return jax.vmap(draw)(*draws_of, used)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _first_minds(
    game: Game,
    rule: Any,
    count: int,
    numbers: StudyNumbers,
    lanes: ArmLane,
) -> LaneMind:
    """Return first beliefs and memories."""

    def first_mind(lane: ArmLane) -> LaneMind:
        key = world.key_of(numbers.seed, lane.number, lane.code)
        belief = world.first_belief(game, key, numbers.start)
        return world.first_mind(game, rule, count, belief, lane.settings)

    return jax.vmap(first_mind)(lanes)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _step_lanes(
    game: Game,
    rule: Any,
    numbers: StudyNumbers,
    number: Array,
    lanes: ArmLane,
    arrows: Arrows,
    given: Array,
    minds: LaneMind,
) -> tuple[LaneMind, StepOutcome]:
    """Take one step of all lanes."""

    def step_lane(
        lane: ArmLane,
        arrows: Arrows,
        given: Array,
        mind: LaneMind,
    ) -> tuple[LaneMind, StepOutcome]:
        key = world.key_of(numbers.seed, lane.number, lane.code)
        teacher_key = jax.random.fold_in(key, _TEACHER)
        stream = jax.random.fold_in(teacher_key, lane.stream)
        now = StepInput(
            number=number,
            arrows=arrows,
            given=given,
            key=jax.random.fold_in(stream, number),
        )
        return step(game, rule, numbers.lr, lane, mind, now)

    return jax.vmap(step_lane)(lanes, arrows, given, minds)
