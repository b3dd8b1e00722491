"""The world of the study as pure functions: beliefs, arrows, the robot's step, and measures.

This module defines no rule of its own. Planning and gradients come from online IRL; the step is
that of the core's learner, given a :class:`~ital.learners.Lesson`. Arrows point up, right, down or
left: 0, 1, 2, 3.

Shapes: S is the number of cells, A the number of directions, B the number of arrows of a step.
"""

import functools
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital import mdp, volume
from ital.gradients import add_scaled
from ital.learners import Beginning, Learner, Lesson, Rule, Situation
from ital.likelihoods import Likelihood
from ital.mdp import Dynamics, Planning
from ital.tasks import Demonstrations, TrueWorld, Truth, implicit_gradients, irl_rules
from ital.tools import randomness
from ital.tools.types import Array, Float, Int, PRNGKeyArray
from ital_study.config.configuration import Config
from ital_study.config.lineup import KINDS

CORE_ACTION = np.array([0, 3, 1, 2])  # up, right, down, left among the core's up, down, left, right
METRICS = ("distance", "distance_centred", "policy_tv", "policy_gap", "reward")

# Steps whose arrows are drawn per call. The number is fixed, so that studies of any length share
# one program.
DRAWN = 32

# Streams of random numbers, kept apart by fold_in.
_START = 0
_ARROWS = 1

Belief = Float[Array, " S"]


class Game(NamedTuple):
    """What all maps of a study share: where steps lead, and how robots plan."""

    dynamics: Dynamics
    planning: Planning

    @property
    def lenient(self) -> Planning:
        """Planning for beliefs of any size.

        Float32 cannot converge to 1e-6 if values are in the hundreds.
        """
        return self.planning._replace(tolerance=1e-4)


class Truths(NamedTuple):
    """The truth of a map.

    Attributes:
        target: The rewards w*, shape (S,).
        log_policy: log π*, shape (A, S), with directions in the core's order.
        cumulative: Σ_{b ≤ a} of the chance of arrow b, shape (S, A), with directions in the study's
            order.
    """

    target: Any
    log_policy: Any
    cumulative: Any


class Arrows(NamedTuple):
    """The candidates of one or many steps.

    Their cells and their directions, both of shape (…, B).
    """

    cells: Any
    actions: Any


def game(config: Config) -> Game:
    """Return the physics of a study."""
    physics = config.world
    return Game(
        dynamics=mdp.grid(config.size, physics.slip, physics.death),
        planning=Planning(physics.discount, physics.sharpness),
    )


def core_learners(config: Config) -> dict[str, Learner]:
    """Return the core's learner of every kind of robot, with its numbers filled in.

    All assume the study's volume. Naive and aware robots share one rule, and so one compiled
    program. Kinds that the study does not use are included, because simulations may use them.
    """

    # The adaptive learner knows only |β|: the sign is what it has to find out.
    def study_beta(imagine: Any, sign: float = 1.0) -> float:
        return sign * config.beta

    situation = Situation(
        beta=config.beta,
        beta_decay=0.0,
        batch_size=config.candidates,
        volume=config.volume,
        auto_beta=study_beta,
        # The standard deviation of U(−start, start), from which first beliefs are drawn.
        spread_of_start=config.start / np.sqrt(3.0),
    )
    robots = {}
    for name, kind in KINDS.items():
        learner = kind.core_learner(config)
        robot = learner.resolve(learner, situation)
        # As float32 arrays, settings are arguments of compiled programs, which serve other
        # numbers as well.
        settings = jax.tree.map(_as_float32, robot.settings)
        robots[name] = robot._replace(settings=settings)
    return robots


def _as_float32(number: Any) -> np.ndarray:
    return np.asarray(number, np.float32)


def key_of(seed: Any, number: Any, code: Any) -> PRNGKeyArray:
    """Return the random numbers of (study seed, participant, map): the same for all robots."""
    key = jax.random.fold_in(randomness.key(seed), number)
    return jax.random.fold_in(key, code)


def map_code(name: str) -> int:
    """Return a number from a map's name, so that other maps in the file do not change its draws."""
    return zlib.crc32(name.encode())


def first_belief(game: Game, key: PRNGKeyArray, scale: Array) -> Belief:
    """Draw w⁰ ~ U(−scale, scale) per cell."""
    stream = jax.random.fold_in(key, _START)
    cells = game.dynamics.states
    unit = jax.random.uniform(stream, (cells,), jnp.float32)
    return scale * (2 * unit - 1)


def first_mind(
    game: Game,
    rule: Rule,
    count: int,
    belief: Belief,
    settings: Any,
) -> tuple[Belief, Any]:
    """Return what a robot believes and remembers before its first step.

    Args:
        game: The physics of the study.
        rule: Rule of the robot's learner.
        count: Number of arrows of a step.
        belief: First belief of the participant's robots on the map.
        settings: Numbers of the learner.

    Returns:
        Belief and memory. A robot that keeps a belief over its target begins with the mean of its
        prior.
    """
    if rule.begin is None:
        return belief, rule.init(belief, settings)
    # Only the shapes of the arrows matter.
    some = jnp.zeros(count, jnp.int32)
    beginning = Beginning(
        params=belief,
        examples=Demonstrations(some, some, None, None),
        likelihood=_likelihood(game),
        rows=None,
        batch_size=count,
        choices=1,
    )
    return rule.begin(beginning, settings)


@functools.cache
def _likelihood(game: Game) -> Likelihood | None:
    """Return how probable arrows are for a robot that plans: that of online IRL."""
    return irl_rules(game.dynamics, game.lenient).likelihood


def draw_arrows(
    game: Game,
    count: int,
    key: PRNGKeyArray,
    cumulative: Array,
    first: Int[Array, ""],
    used: Array,
) -> tuple[Array, Arrows]:
    """Draw the candidates of ``DRAWN`` steps.

    Distinct cells, none from the step before, random directions.

    Args:
        game: The physics of the study.
        count: Number of arrows of a step.
        key: Random numbers of the participant on the map.
        cumulative: Cumulative chances of the directions, shape (S, A).
        first: The first of the steps, from 0.
        used: Whether the step before used a cell, shape (S,).

    Returns:
        ``used`` after the last step, and the arrows, of shape (``DRAWN``, ``count``).
    """
    stream = jax.random.fold_in(key, _ARROWS)

    def draw_step(used: Array, step: Array) -> tuple[Array, Arrows]:
        step_key = jax.random.fold_in(stream, step)
        cells_key, actions_key = jax.random.split(step_key)
        # The cells with the lowest tickets are drawn. Used cells get the highest bit, which sorts
        # them last.
        tickets = jax.random.bits(cells_key, used.shape, jnp.uint32) >> 1
        highest_bit = jnp.uint32(2**31)
        used_last = jnp.where(used, tickets | highest_bit, tickets)
        order = jnp.argsort(used_last)
        cells = order[:count].astype(jnp.int32)
        # The direction is the number of cumulative chances that a uniform draw reaches. The last
        # one is left out: rounding may leave it below 1, and there is no direction after it.
        chance = jax.random.uniform(actions_key, (count,), jnp.float32)
        is_reached = chance[:, None] >= cumulative[cells, :-1]
        actions = jnp.sum(is_reached, axis=1).astype(jnp.int32)
        nothing_used = jnp.zeros_like(used)
        used_now = nothing_used.at[cells].set(True)
        return used_now, Arrows(cells, actions)

    return jax.lax.scan(draw_step, used, first + jnp.arange(DRAWN))


def all_arrows(
    draw: Callable[[Any, Any], tuple[Any, Arrows]],
    used: np.ndarray,
    steps: int,
) -> Arrows:
    """Draw the candidates of all steps by repeated calls of ``draw(first, used)``.

    Args:
        draw: Draws ``DRAWN`` steps, as :func:`draw_arrows` does.
        used: Whether the step before used a cell; the last axis are cells.
        steps: Number of steps.

    Returns:
        The arrows. The axis of steps follows all axes of ``used`` but the last.
    """
    axis = used.ndim - 1
    parts = []
    for first in range(0, steps, DRAWN):
        used, drawn = draw(np.int32(first), used)
        parts.append(drawn)

    def join(*blocks: Array) -> np.ndarray:
        # The last call draws more steps than are left.
        return np.concatenate(blocks, axis).take(range(steps), axis)

    return jax.tree.map(join, *parts)


def lesson(
    game: Game,
    lr: Array,
    belief: Belief,
    arrows: Arrows,
    choice: Int[Array, ""],
    step: Int[Array, ""],
) -> Lesson:
    """Return what a robot sees of one step: the arrows, and the one that was chosen.

    Args:
        game: The physics of the study.
        lr: Step size η.
        belief: The robot's belief.
        arrows: The arrows of the step, of shape (B,).
        choice: Index of the chosen arrow.
        step: Number of the step, from 0.

    Returns:
        The lesson for the core's learner.
    """
    core_actions = jnp.asarray(CORE_ACTION)[arrows.actions]
    examples = Demonstrations(arrows.cells, core_actions, None, None)

    def gradients(elsewhere: Belief) -> Any:
        solution = mdp.plan(game.dynamics, game.lenient, elsewhere)
        return implicit_gradients(game.dynamics, game.planning, solution, examples)

    count = arrows.cells.shape[0]
    # Robots see all arrows of a step and follow none at random, so any order and any index will do.
    bystander = jnp.zeros((), jnp.int32)
    return Lesson(
        step=step,
        lr=lr,
        examples=examples,
        here=gradients(belief),
        gradients=gradients,
        chosen=choice,
        order=jnp.arange(count),
        bystander=bystander,
        likelihood=_likelihood(game),
    )


def volumes(lesson: Lesson, belief: Belief, target: Belief) -> Float[Array, " B"]:
    """Return the exact teaching volume of every arrow, eq. (teaching-volume)."""
    progress = lesson.here.inner(add_scaled(belief, -1.0, target))
    return volume.exact(lesson.lr, lesson.here.squared_norms, progress)


def imitated_volumes(lesson: Lesson, truth: Truths) -> Float[Array, " B"]:
    """Return the imitated teaching volume of every arrow, eq. (imit-teaching-volume).

    Losses stand for the inner products of the exact volume.
    """
    examples = lesson.examples
    here = lesson.here
    # How probable the true policy finds each arrow.
    log_chances = jnp.asarray(truth.log_policy)[examples.actions, examples.states]
    target_losses = -log_chances
    return volume.imitated(lesson.lr, here.squared_norms, here.losses, target_losses)


def measure(game: Game, belief: Belief, truth: Truths) -> dict[str, Array]:
    """Measure distances to the truth and the reward of acting on the belief, as online IRL does."""
    true_world = TrueWorld(truth.target, truth.log_policy, None)
    rules = irl_rules(game.dynamics, game.lenient)
    return rules.measure(belief, Truth(truth.target, true_world))


def best_action(game: Game, belief: Belief) -> Int[Array, " S"]:
    """Return the most probable action in every cell; ties take the lowest index."""
    solution = mdp.plan(game.dynamics, game.lenient, belief)
    # Shape (A, S), with directions in the study's order.
    values = solution.q[CORE_ACTION]
    return jnp.argmax(values, axis=0)


def truths(game: Game, rewards: np.ndarray, arrows: str) -> Truths:
    """Return the truth of a map.

    Args:
        game: The physics of the study.
        rewards: Rewards of the cells.
        arrows: ``boltzmann`` if directions are drawn from the true policy, ``optimal`` if they are
            its best ones.

    Returns:
        w*, the true policy and the chances of arrows.
    """
    target = np.asarray(rewards, np.float32).ravel()
    log_policy = np.asarray(_true_log_policy(game, target))
    # Chances of shape (S, A). Sums are taken in float64: the cumulative chances have to end at 1.
    log_chances = log_policy[CORE_ACTION].T
    chances = np.exp(log_chances.astype(float))
    if arrows == "optimal":
        best = chances.argmax(axis=1)
        chances = np.eye(4)[best]
    sums = chances.sum(axis=1, keepdims=True)
    cumulative = np.cumsum(chances / sums, axis=1)
    return Truths(target, log_policy, cumulative.astype(np.float32))


@functools.partial(jax.jit, static_argnums=0)
def _true_log_policy(game: Game, target: Array) -> Array:
    solution = mdp.plan(game.dynamics, game.lenient, target)
    return mdp.log_policy(solution.q)
