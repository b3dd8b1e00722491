"""The world of the study as pure functions: beliefs, arrows, the robot's step, and measures.

This module defines no rule of its own. Planning and gradients come from online IRL; the step is that of the core's
learner, given a :class:`~ital.learners.Lesson`. Arrows point up, right, down or left: 0, 1, 2, 3.
"""

import functools
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital import learners, mdp, volume
from ital.gradients import add_scaled
from ital.learners import Learner, Lesson, Situation
from ital.mdp import Dynamics, Planning
from ital.tasks import Demonstrations, TrueWorld, Truth, implicit_gradients, irl_rules
from ital.tools import randomness
from ital.tools.types import Array, Float, Int, PRNGKeyArray
from ital_study.config.configuration import ADAPTIVE, Config

CORE_ACTION = np.array([0, 3, 1, 2])  # up, right, down, left among the core's up, down, left, right
METRICS = ("distance", "distance_centred", "policy_tv", "policy_gap", "reward")

DRAWN = 32  # steps whose arrows are drawn per call; a fixed number, so that studies of any length share one program
_START, _ARROWS = 0, 1  # streams of random numbers, kept apart by fold_in

Belief = Float[Array, " S"]


class Game(NamedTuple):
    """What all maps of a study share: where steps lead, and how robots plan."""

    dynamics: Dynamics
    planning: Planning

    @property
    def lenient(self) -> Planning:
        """Planning for beliefs of any size: float32 cannot converge to 1e-6 if values are in the hundreds."""
        return self.planning._replace(tolerance=1e-4)


class Truths(NamedTuple):
    """The truth of a map: w*, log π* (A, S) in the core's order, and Σ_{b ≤ a} of the chance of arrow b (S, A)."""

    target: Any
    log_policy: Any
    cumulative: Any


class Arrows(NamedTuple):
    """The candidates of one or many steps: their cells and their directions."""

    cells: Any
    actions: Any


def game(config: Config) -> Game:
    """The physics of a study."""
    physics = config.world
    return Game(
        mdp.grid(config.size, physics.slip, physics.death),
        Planning(physics.discount, physics.sharpness),
    )


def robots(config: Config) -> dict[str, Learner]:
    """The learners with their numbers filled in. All assume the study's volume; naive and aware share one rule.

    The adaptive learner is included even if the study does not use it, because simulations may. It knows only |β|.
    """
    auto_beta = lambda imagine, sign=1.0: sign * config.beta  # noqa: E731
    situation = Situation(config.beta, 0.0, config.candidates, config.volume, auto_beta)
    kinds = {
        "naive": learners.imt(),
        "aware": learners.teacher_aware(beta=config.beta, volume=config.volume),
        ADAPTIVE: learners.adaptive(),
    }
    resolved = {kind: learner.resolve(learner, situation) for kind, learner in kinds.items()}
    as_float = lambda number: np.asarray(number, np.float32)  # noqa: E731
    return {
        kind: robot._replace(settings=jax.tree.map(as_float, robot.settings))
        for kind, robot in resolved.items()
    }


def key_of(seed: Any, number: Any, code: Any) -> PRNGKeyArray:
    """The random numbers of (study seed, participant, map): the same for all robots."""
    key = jax.random.fold_in(randomness.key(seed), number)
    return jax.random.fold_in(key, code)


def map_code(name: str) -> int:
    """A number from a map's name, so that other maps in the file do not change its draws."""
    return zlib.crc32(name.encode())


def first_belief(game: Game, key: PRNGKeyArray, scale: Array) -> Belief:
    """w⁰ ~ U(−scale, scale) per cell."""
    unit = jax.random.uniform(jax.random.fold_in(key, _START), (game.dynamics.states,), jnp.float32)
    return scale * (2 * unit - 1)


def draw_arrows(
    game: Game, count: int, key: PRNGKeyArray, cumulative: Array, first: Int[Array, ""], used: Array
) -> tuple[Array, Arrows]:
    """Draw the candidates of ``DRAWN`` steps from ``first`` on: distinct cells, none from the step before, each with a
    random direction. Takes the cells of the step before, and also returns those of the last step.
    """
    stream = jax.random.fold_in(key, _ARROWS)

    def draw_step(used: Array, step: Array) -> tuple[Array, Arrows]:
        where, which_way = jax.random.split(jax.random.fold_in(stream, step))
        tickets = jax.random.bits(where, used.shape, jnp.uint32) >> 1
        order = jnp.argsort(jnp.where(used, tickets | jnp.uint32(2**31), tickets))
        cells = order[:count].astype(jnp.int32)
        chance = jax.random.uniform(which_way, (count,), jnp.float32)
        actions = jnp.sum(chance[:, None] >= cumulative[cells, :-1], axis=1).astype(jnp.int32)
        return jnp.zeros_like(used).at[cells].set(True), Arrows(cells, actions)

    return jax.lax.scan(draw_step, used, first + jnp.arange(DRAWN))


def all_arrows(
    draw: Callable[[Any, Any], tuple[Any, Arrows]], used: np.ndarray, steps: int
) -> Arrows:
    """Draw the candidates of all steps by repeated calls of ``draw(first, used)``. The axis of steps follows all axes
    of ``used`` but the last.
    """
    parts, axis = [], used.ndim - 1
    for first in range(0, steps, DRAWN):
        used, drawn = draw(np.int32(first), used)
        parts.append(drawn)
    return jax.tree.map(lambda *each: np.concatenate(each, axis).take(range(steps), axis), *parts)


def lesson(
    game: Game,
    lr: Array,
    belief: Belief,
    arrows: Arrows,
    choice: Int[Array, ""],
    step: Int[Array, ""],
) -> Lesson:
    """What a robot sees of one step (from 0): the arrows, and the one that was shown."""
    shown = Demonstrations(arrows.cells, jnp.asarray(CORE_ACTION)[arrows.actions], None, None)

    def gradients(elsewhere: Belief) -> Any:
        solution = mdp.plan(game.dynamics, game.lenient, elsewhere)
        return implicit_gradients(game.dynamics, game.planning, solution, shown)

    count = arrows.cells.shape[0]
    bystander = jnp.zeros((), jnp.int32)
    return Lesson(
        step, lr, shown, gradients(belief), gradients, choice, jnp.arange(count), bystander
    )


def volumes(lesson: Lesson, belief: Belief, target: Belief) -> Float[Array, " B"]:
    """The exact teaching volume of every arrow, eq. (teaching-volume)."""
    progress = lesson.here.inner(add_scaled(belief, -1.0, target))
    return volume.exact(lesson.lr, lesson.here.squared_norms, progress)


def imitated_volumes(lesson: Lesson, truth: Truths) -> Float[Array, " B"]:
    """The imitated teaching volume of every arrow, eq. (imit-teaching-volume): losses stand for the inner products."""
    target_losses = -jnp.asarray(truth.log_policy)[lesson.examples.actions, lesson.examples.states]
    return volume.imitated(lesson.lr, lesson.here.squared_norms, lesson.here.losses, target_losses)


def measure(game: Game, belief: Belief, truth: Truths) -> dict[str, Array]:
    """Distances to the truth, and the reward of acting on the belief: the metrics of online IRL."""
    world = Truth(truth.target, TrueWorld(truth.target, truth.log_policy, None))
    return irl_rules(game.dynamics, game.lenient).measure(belief, world)


def best_action(game: Game, belief: Belief) -> Int[Array, " S"]:
    """The most probable action in every cell; ties take the lowest index."""
    return jnp.argmax(mdp.plan(game.dynamics, game.lenient, belief).q[CORE_ACTION], axis=0)


def truths(game: Game, rewards: np.ndarray, arrows: str) -> Truths:
    """The truth of a map; ``arrows`` says whether directions are drawn from the true policy or are its best ones."""
    target = np.asarray(rewards, np.float32).ravel()
    log_policy = np.asarray(_true_log_policy(game, target))
    chances = np.exp(log_policy[CORE_ACTION].T.astype(float))
    if arrows == "optimal":
        chances = np.eye(4)[chances.argmax(axis=1)]
    cumulative = np.cumsum(chances / chances.sum(axis=1, keepdims=True), axis=1)
    return Truths(target, log_policy, cumulative.astype(np.float32))


@functools.partial(jax.jit, static_argnums=0)
def _true_log_policy(game: Game, target: Array) -> Array:
    return mdp.log_policy(mdp.plan(game.dynamics, game.lenient, target).q)
