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
_TEACHER = 2  # stream of random numbers, separate from those of the world


class ArmLane(NamedTuple):
    """The numbers of one participant on one map in one arm: the draws, the map, the teacher, the learner."""

    number: Any
    code: Any
    target: Any
    cumulative: Any
    rationality: Any
    noise: Any
    stream: Any
    settings: Any
    matched: Any
    given: Any  # choices that exist already, −1 where the teacher has to choose


class Trace(NamedTuple):
    """What happened in a lane: the candidates, the choices, the machine's picks, the lengths of the steps, w⁰ … w^T."""

    arrows: Any
    choice: Any
    machine_choice: Any
    length: Any
    beliefs: Any


def choose(key: Array, volumes: Array, rationality: Array, noise: Array) -> Array:
    """argmax of ρ·TV + noise·Gumbel; ties take the lowest index."""
    return jnp.argmax(
        rationality * volumes + noise * jax.random.gumbel(key, volumes.shape, volumes.dtype)
    )


def step(
    game: Game, rule: Any, lr: Array, lane: ArmLane, mind: tuple[Array, Any], number: Array, arrows: Arrows,
    given: Array, key: Array,
) -> tuple[tuple[Array, Any], tuple[Array, ...]]:  # fmt: skip
    """One step of one lane: score, choose, learn. Returns belief and memory; choice, machine's pick, step length."""
    belief, memory = mind
    lesson = world.lesson(game, lr, belief, arrows, jnp.zeros((), jnp.int32), number)
    scores = world.volumes(lesson, belief, lane.target)
    chosen = jnp.where(given < 0, choose(key, scores, lane.rationality, lane.noise), given)
    lesson = lesson._replace(chosen=chosen)
    after, memory, _ = rule.update(lesson, lane.settings, belief, memory)
    length = jnp.linalg.norm(after - belief)
    along = lesson.here.weighted_sum(
        (jnp.arange(scores.shape[0]) == lesson.chosen).astype(scores.dtype)
    )
    steepness = jnp.linalg.norm(along)
    control = add_scaled(belief, -length / jnp.where(steepness > 0, steepness, jnp.inf), along)
    return (jnp.where(lane.matched, control, after), memory), (
        lesson.chosen,
        jnp.argmax(scores),
        length,
    )


def run_lanes(
    game: Game, rule: Any, steps: int, count: int, lr: Any, scale: Any, seed: Any, lanes: ArmLane,
    pick: Pick | None = None,
) -> Trace:  # fmt: skip
    """Run all lanes in parallel, ``steps`` steps with ``count`` candidates each.

    The compiled program is one step, so that studies of any length share it. ``pick(t, arrows, beliefs)`` chooses for
    all lanes in place of their teachers.
    """
    given, lanes = lanes.given, jax.device_put(lanes._replace(given=()))
    nowhere = np.zeros((len(given), game.dynamics.states), bool)
    draws_of = seed, lanes.number, lanes.code, lanes.cumulative
    arrows = world.all_arrows(
        functools.partial(_draw_lanes, game, count, *draws_of), nowhere, steps
    )
    minds = jax.tree.map(
        np.asarray, _first_minds(game, rule, scale, seed, lanes)
    )  # same types as after a step
    start, done = minds[0], []
    for t in range(steps):
        shown = Arrows(arrows.cells[:, t], arrows.actions[:, t])
        choices = given[:, t] if pick is None else pick(t, shown, np.asarray(minds[0]))
        minds, outcome = _step_lanes(
            game, rule, lr, seed, np.int32(t), lanes, shown, choices, minds
        )
        done.append((*outcome, minds[0]))
    choice, machine_choice, length, beliefs = (
        np.stack(column, axis=1) for column in zip(*done, strict=True)
    )
    return Trace(
        arrows, choice, machine_choice, length, np.concatenate([start[:, None], beliefs], axis=1)
    )


@functools.partial(jax.jit, static_argnums=(0, 1))
def _draw_lanes(
    game: Game,
    count: int,
    seed: Array,
    numbers: Array,
    codes: Array,
    cumulative: Array,
    first: Array,
    used: Array,
) -> tuple[Array, Arrows]:
    def draw(number: Array, code: Array, cumulative: Array, used: Array) -> tuple[Array, Arrows]:
        return world.draw_arrows(
            game, count, world.key_of(seed, number, code), cumulative, first, used
        )

    return jax.vmap(draw)(numbers, codes, cumulative, used)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _first_minds(
    game: Game, rule: Any, scale: Array, seed: Array, lanes: ArmLane
) -> tuple[Array, Any]:
    def first_mind(lane: ArmLane) -> tuple[Array, Any]:
        start = world.first_belief(game, world.key_of(seed, lane.number, lane.code), scale)
        return start, rule.init(start, lane.settings)

    return jax.vmap(first_mind)(lanes)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _step_lanes(
    game: Game, rule: Any, lr: Array, seed: Array, number: Array, lanes: ArmLane, arrows: Arrows, given: Array,
    minds: tuple[Array, Any],
) -> tuple[tuple[Array, Any], tuple[Array, ...]]:  # fmt: skip
    def step_lane(lane: ArmLane, arrows: Arrows, given: Array, mind: tuple[Array, Any]) -> Any:
        key = world.key_of(seed, lane.number, lane.code)
        stream = jax.random.fold_in(jax.random.fold_in(key, _TEACHER), lane.stream)
        return step(
            game, rule, lr, lane, mind, number, arrows, given, jax.random.fold_in(stream, number)
        )

    return jax.vmap(step_lane)(lanes, arrows, given, minds)
