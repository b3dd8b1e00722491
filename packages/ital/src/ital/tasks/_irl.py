"""Online inverse reinforcement learning: the learner infers the rewards that explain actions.

From top to bottom: what the players know; rewards in a player's encoding; feedback, which is a
plan, and the gradients of a soft policy; the likelihood of demonstrations; the rules of the task;
worlds, on a grid or any other; and the paper's two tasks. ``_irl_own`` has maps and tables of a
user's own.
"""

import dataclasses
import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital import mdp, views, volume
from ital.errors import InputError, PrecisionWarning
from ital.gradients import HIGHEST, Gradients
from ital.likelihoods import Evaluation, Likelihood, Quadratic, Statistics
from ital.mdp import Dynamics, Planning, Solution
from ital.models import Init
from ital.tasks._base import (
    Metric,
    Picture,
    Rules,
    Task,
    TeacherSide,
    Truth,
    World,
    as_float,
)
from ital.tasks._irl_map import Cell
from ital.tools.checks import require_whole
from ital.tools.types import Array, Float, Int, PRNGKeyArray, Scalar

COARSE = 0.1  # error of Q at which π ∝ exp(Q) is wrong by a tenth


class Side(NamedTuple):
    """What a player knows: its encoding of the states, and for the teacher log π* (A, S).

    An encoding is a matrix of features (S, d). For one-hot features it is the index of each state
    in the weights (S,), or None if they are in order.
    """

    encoding: Any
    log_policy: Any = None


class TrueWorld(NamedTuple):
    """What measurements need.

    Attributes:
        reward: reward of every state (S,).
        log_policy: log π* (A, S).
        encoding: the learner's encoding of the states.
    """

    reward: Any
    log_policy: Any
    encoding: Any


class Demonstrations(NamedTuple):
    """A mini-batch: states, the actions shown there, and what the player knows of the world.

    Attributes:
        states: the states (B,).
        actions: the actions shown (B,).
        encoding: the player's encoding of the states.
        log_policy: log π* (A, S) for the teacher, None for the learner.
    """

    states: Array
    actions: Array
    encoding: Any
    log_policy: Any


def one_hot(encoding: Any) -> bool:
    """Tell whether the weights are the rewards, in some order."""
    return encoding is None or encoding.ndim == 1


def reward_of(encoding: Any, params: Array) -> Array:
    """Return the reward of every state (S,), r(s) = features(s)·w."""
    if encoding is None:
        return params
    if encoding.ndim == 1:
        return params[encoding]
    return jnp.matmul(encoding, params, precision=HIGHEST)


def along_weights(encoding: Any, per_state: Array) -> Array:
    """Return gradients (…, S) with respect to the rewards as gradients (…, d) with respect to the
    weights.
    """
    if encoding is None:
        return per_state
    if encoding.ndim == 1:
        zeros = jnp.zeros_like(per_state)
        return zeros.at[..., encoding].set(per_state)
    return jnp.matmul(per_state, encoding, precision=HIGHEST)


def in_encoding(encoding: Any, per_state: Array) -> Array:
    """Return Σ_s x(s)·features(s) of numbers x (S,): the transpose of :func:`reward_of`."""
    if encoding is None:
        return per_state
    if encoding.ndim == 1:
        zeros = jnp.zeros_like(per_state)
        return zeros.at[encoding].set(per_state)
    return jnp.matmul(encoding.T, per_state, precision=HIGHEST)


class RewardReport(NamedTuple):
    """The learner's feedback: its estimate of every state's reward, and everything that follows
    from it.

    Attributes:
        reward: the estimate (S,).
        values: the resulting values V (S,).
        q: Q (A, S).
        losses: −log π(a|s) of each demonstration (B,).
        gradients: the gradients (B, S) of the losses with respect to the rewards.
    """

    reward: Array
    values: Array
    q: Array
    losses: Array
    gradients: Array


def report(
    dynamics: Dynamics,
    planning: Planning,
    solution: Solution,
    examples: Demonstrations,
) -> RewardReport:
    """Return the losses of demonstrations and their gradients with respect to the rewards.

    The gradients differentiate the fixed point of planning implicitly. The gradient of −log π(a|s)
    is −(I − γP_μᵀ)⁻¹c, with c = P_a(s,·) − Σ_b π(b|s)P_b(s,·) and P_μ the transitions under
    μ = softmax(kQ). It is derived in docs/explanation/irl.md.
    """
    log_pi = mdp.log_policy(solution.q)
    soft_greedy = jax.nn.softmax(planning.sharpness * solution.q, axis=0)  # μ (A, S)
    onward = mdp.onward(dynamics, planning, soft_greedy)

    def surprise(state: Array, action: Array) -> Array:
        """Return −c (S,)."""
        probabilities = jnp.exp(log_pi[:, state])
        is_taken = jnp.arange(dynamics.actions) == action
        return dynamics.leave(state, probabilities - is_taken)

    sources = jax.vmap(surprise)(examples.states, examples.actions)  # (B, S)
    return RewardReport(
        solution.reward,
        solution.values,
        solution.q,
        losses=-log_pi[examples.actions, examples.states],
        gradients=onward.back(sources),
    )


def in_weights(reported: RewardReport, encoding: Any) -> Gradients:
    """Return the losses of a report, and their gradients with respect to a player's weights."""
    by_reward = reported.gradients  # (B, S)
    by_weight = by_reward
    if not one_hot(encoding):
        by_weight = jnp.matmul(by_reward, encoding, precision=HIGHEST)  # (B, d)

    # Only the norms need the gradients in the encoding: a product with v is one with its rewards.
    def inner(v: Array) -> Array:
        return jnp.matmul(by_reward, reward_of(encoding, v), precision=HIGHEST)

    def weighted_sum(weights: Array) -> Array:
        return in_encoding(encoding, jnp.matmul(weights, by_reward, precision=HIGHEST))

    squared_norms = jnp.sum(by_weight**2, axis=1)
    return Gradients(reported.losses, squared_norms, inner, weighted_sum)


def implicit_gradients(
    dynamics: Dynamics,
    planning: Planning,
    solution: Solution,
    shown: Demonstrations,
) -> Gradients:
    """Return −log π(a|s) of each demonstration, and its gradients for the reward weights.

    Args:
        dynamics: the transitions.
        planning: how teacher and learner plan.
        solution: the solution of planning with the reward.
        shown: the demonstrations, with the player's encoding.

    Returns:
        The losses and three operations on their gradients.
    """
    return in_weights(report(dynamics, planning, solution, shown), shown.encoding)


class KeptActions(NamedTuple):
    """What is kept of demonstrations: the states and the actions shown there, both (N,)."""

    states: Int[Array, " N"]
    actions: Int[Array, " N"]


def q_gradients(dynamics: Dynamics, planning: Planning, q: Array) -> Float[Array, "A S S"]:
    """Return ∂Q(s,a)/∂r = P_a(s,·)(I − γP_μ)⁻¹ for every action and state, with μ = softmax(kQ)."""
    soft_greedy = jax.nn.softmax(planning.sharpness * q, axis=0)
    onward = mdp.onward(dynamics, planning, soft_greedy)
    # Column j of the inverse is what a reward in state j is worth from everywhere, (S, S).
    worth = onward.back(jnp.eye(dynamics.states, dtype=q.dtype))
    expect_columns = jax.vmap(dynamics.expect, in_axes=1, out_axes=2)
    return expect_columns(worth)


def fisher(
    visits: Float[Array, " S"],
    pi: Float[Array, "A S"],
    of_loss: Float[Array, "A S D"],
) -> Float[Array, "D D"]:
    """Return the curvature of the losses of (weighted) visits, whatever was shown there."""
    size = of_loss.shape[-1]
    weights = jnp.sqrt(visits * pi)
    weighted = weights[:, :, None] * of_loss
    rows = weighted.reshape(-1, size)  # (A·S, D)
    return jnp.matmul(rows.T, rows, precision=HIGHEST)


@functools.cache  # one object per world, so that equal tasks share one compiled program
def demonstrations_likelihood(dynamics: Dynamics, planning: Planning) -> Likelihood:
    """Return the likelihood of actions under the policy π ∝ exp Q of a learner who plans.

    Args:
        dynamics: the transitions.
        planning: how to plan.

    Returns:
        The likelihood; the same object for the same arguments.
    """

    def at(params: Array, examples: Any) -> Evaluation:
        reward = reward_of(examples.encoding, params)
        solution = mdp.plan(dynamics, planning, reward)
        log_pi = mdp.log_policy(solution.q)  # (A, S)
        pi = jnp.exp(log_pi)
        in_rewards = q_gradients(dynamics, planning, solution.q)
        of_q = along_weights(examples.encoding, in_rewards)  # (A, S, D)
        # The gradient of −log π(a|s): the mean of those of Q under π, less its own, (A, S, D).
        mean = jnp.sum(pi[:, :, None] * of_q, axis=0)
        of_loss = mean - of_q

        def losses(kept: KeptActions) -> Array:
            return -log_pi[kept.actions, kept.states]

        def gradients(kept: KeptActions) -> Array:
            return of_loss[kept.actions, kept.states]

        def curvature(kept: KeptActions, weights: Array) -> Array:
            no_visits = jnp.zeros_like(log_pi[0])
            visits = no_visits.at[kept.states].add(weights)
            return fisher(visits, pi, of_loss)

        def counted(counts: Array, wrong: Scalar) -> Quadratic:
            # p(a) = (1 − p)·π(a|s) + p/A: the log of the mixture, and the share of it that is π.
            right = (1 - wrong) * pi
            mixture = right + wrong / dynamics.actions
            share = right / mixture
            value = -jnp.sum(counts * jnp.log(mixture))
            right_counts = counts * share
            gradient = jnp.sum(right_counts[:, :, None] * of_loss, axis=(0, 1))
            visits = jnp.sum(right_counts, axis=0)
            return Quadratic(value, gradient, fisher(visits, pi, of_loss))

        return Evaluation(losses, gradients, curvature, counted)

    def keep(examples: Any) -> KeptActions:
        return KeptActions(examples.states, examples.actions)

    def empty(params: Array, kept: KeptActions) -> Array:
        return jnp.zeros((dynamics.actions, dynamics.states), params.dtype)

    def add(counts: Array, kept: KeptActions, weights: Array) -> Array:
        return counts.at[kept.actions, kept.states].add(weights)

    statistics = Statistics(empty, add, numbers=jnp.sum)
    return Likelihood(keep, at, statistics, mixes=True)


def draw_weights(key: PRNGKeyArray, init: Init, world: World) -> Array:
    """Return the weights ν⁰ (d,)."""
    return init.draw(key, world.truth.target.shape)


def show_demonstrations(side: Side, drawn: tuple[Array, Array]) -> Demonstrations:
    """Return a mini-batch as a player sees it."""
    states, actions = drawn
    return Demonstrations(states, actions, side.encoding, side.log_policy)


def demonstration_volumes(
    reported: RewardReport,
    examples: Demonstrations,
    target: Array,
    lr: Scalar,
) -> Array:
    """Return eq. (imit-teacher) with the loss of a demonstration, in the teacher's encoding."""
    target_losses = -examples.log_policy[examples.actions, examples.states]
    imitated = in_weights(reported, examples.encoding)
    return volume.imitated(lr, imitated.squared_norms, imitated.losses, target_losses)


def reported_gradients(
    params: Array,
    examples: Demonstrations,
    reported: RewardReport,
) -> Gradients:
    """Return the learner's losses and gradients: its report holds them already."""
    return in_weights(reported, examples.encoding)


def keep_values(reported: RewardReport) -> Array:
    """Return the values with which the next plan begins (S,)."""
    return reported.values


def features_risk(world: World) -> float:
    """Return how much of the target the learner's features cannot express."""
    learner_features = world.learner.encoding
    if one_hot(learner_features):
        return 0.0  # a weight per state expresses every reward
    teacher_features = world.teacher.examples.encoding
    return views.feature_risk(learner_features, teacher_features, world.teacher.target)


# Compared by identity: equal arguments make one object anyway.
@dataclasses.dataclass(frozen=True, eq=False)
class _OnlineIrl:
    """The rules that depend on the world and on how everybody plans.

    Attributes:
        dynamics: the transitions.
        planning: how to plan.
        starts: the states in which the robot may start; () for all but the goals.
        teachable: the states in which actions are shown (n,).
    """

    dynamics: Dynamics
    planning: Planning
    starts: tuple[int, ...]
    teachable: np.ndarray

    def plan(self, reward: Array) -> Solution:
        """Plan with a reward (S,)."""
        return mdp.plan(self.dynamics, self.planning, reward)

    def earned(self, solution: Solution, reward: Array) -> Array:
        """Return what the plan earns of a reward (S,)."""
        return mdp.expected_return(self.dynamics, self.planning, solution.q, reward, self.starts)

    def draw(self, key: PRNGKeyArray, world: World, batch_size: int) -> tuple[Array, Array]:
        """Draw states uniformly with replacement, each with an action from the teacher's policy."""
        state_key, action_key = jax.random.split(key)
        states = jax.random.randint(state_key, (batch_size,), 0, len(self.teachable))
        if self.dynamics.goals:
            states = jnp.asarray(self.teachable)[states]
        log_pi = world.teacher.examples.log_policy[:, states]  # (A, B)
        actions = jax.random.categorical(action_key, log_pi, axis=0)
        return states, actions

    def feedback(
        self,
        params: Array,
        examples: Demonstrations,
        previous: Array,
    ) -> RewardReport:
        """Return what the learner makes of the demonstrations, with its reward as it is now."""
        reward = reward_of(examples.encoding, params)
        solution = mdp.replan(self.dynamics, self.planning, reward, previous)
        return report(self.dynamics, self.planning, solution, examples)

    def measure(self, params: Array, truth: Truth) -> dict[str, Array]:
        """Return the distances of weights and rewards, of policies, and the return."""
        world = truth.test
        reward = reward_of(world.encoding, params)
        solution = self.plan(reward)
        gap = reward - world.reward
        policy = jnp.exp(mdp.log_policy(solution.q))
        differences = jnp.abs(policy - jnp.exp(world.log_policy))  # (A, S)
        return {
            "distance": jnp.linalg.norm(params - truth.target),
            "distance_centred": jnp.linalg.norm(gap - jnp.mean(gap)),
            "policy_tv": self._mean_over_teachable(0.5 * jnp.sum(differences, axis=0)),
            "policy_gap": self._mean_over_teachable(jnp.max(differences, axis=0)),
            "reward": self.earned(solution, world.reward),
        }

    def _mean_over_teachable(self, per_state: Array) -> Array:
        if self.dynamics.goals:
            per_state = per_state[self.teachable]
        return jnp.mean(per_state)

    def references(self, start: Array, truth: Truth) -> dict[str, dict[str, Array]]:
        """Return the best return, and the floor of the distance if there is one."""
        reward = truth.test.reward
        best = self.earned(self.plan(reward), reward)
        lines = {"reward": {"reference": best}}
        # Where all steps survive equally often, a constant added to all rewards changes no policy:
        # demonstrations say nothing about the mean reward.
        if self.dynamics.even and one_hot(truth.test.encoding):
            mean_gap = jnp.mean(start - truth.target)
            floor = jnp.sqrt(self.dynamics.states) * jnp.abs(mean_gap)
            lines["distance"] = {"floor": floor}
        return lines

    def first_values(self, start: Array, world: World) -> Array:
        """Return the values with which the first plan begins (S,)."""
        reward = reward_of(world.learner.encoding, start)
        return self.plan(reward).values


@functools.cache  # equal tasks share one compiled program
def irl_rules(
    dynamics: Dynamics,
    planning: Planning,
    starts: tuple[int, ...] = (),
) -> Rules:
    """Return the rules of online IRL in a world.

    In goals nothing is shown and no policies are compared.

    Args:
        dynamics: the transitions.
        planning: how to plan.
        starts: the states in which the robot may start, for ``reward``; () for all but the goals.

    Returns:
        The rules; the same object for the same arguments.
    """
    teachable = np.flatnonzero(~dynamics.ended())
    online = _OnlineIrl(dynamics, planning, starts, teachable)
    return Rules(
        start=draw_weights,
        draw=online.draw,
        show=show_demonstrations,
        feedback=online.feedback,
        volumes=demonstration_volumes,
        gradients=reported_gradients,
        measure=online.measure,
        references=online.references,
        first_previous=online.first_values,
        keep=keep_values,
        risk=features_risk,
        likelihood=demonstrations_likelihood(dynamics, planning),
    )


def from_rewards(  # noqa: PLR0913
    name: str,
    weights: Callable[[np.random.Generator], np.ndarray],
    dynamics: Dynamics,
    *,
    beta: float,
    title: str,
    planning: Planning,
    features: np.ndarray | None = None,
    settings: dict[str, Any] | None = None,
    picture: Picture | None = None,
    starts: tuple[int, ...] = (),
) -> Task:
    """Make an online IRL task from a function that draws the reward weights for a seed.

    r = features · weights; without ``features``, one weight per state. The teacher has the same
    features in another order. The robot starts in one of ``starts``, or anywhere but in a goal.
    """
    try:
        mdp.check(dynamics, planning)
    except InputError as error:
        raise InputError(f"task {name!r}: {error}") from None
    planned = jax.jit(functools.partial(mdp.plan, dynamics, planning))

    def world(seed: int) -> World:
        rng = np.random.default_rng(seed)
        # The teacher's weight ``order[i]`` is the learner's weight i.
        if features is None:
            order = rng.permutation(dynamics.states)
            learner_encoding = None
            teacher_encoding = order.astype(np.int32)
        else:
            order = rng.permutation(features.shape[1])
            learner_encoding = as_float(features)
            teacher_encoding = learner_encoding[:, np.argsort(order)]
        target = as_float(weights(rng))
        teacher_target = np.empty_like(target)
        teacher_target[order] = target
        reward = np.asarray(reward_of(learner_encoding, jnp.asarray(target)))
        solution = planned(reward)
        check_precision(name, solution.values)
        log_pi = np.asarray(mdp.log_policy(solution.q))
        return World(
            learner=Side(learner_encoding),
            teacher=TeacherSide(Side(teacher_encoding, log_pi), teacher_target),
            truth=Truth(target, TrueWorld(reward, log_pi, learner_encoding)),
        )

    stored: dict[str, Any] = {"states": dynamics.states, **planning._asdict()}
    if settings is not None:
        stored |= settings
    return Task(
        name=name,
        title=title,
        world=world,
        rules=irl_rules(dynamics, planning, starts),
        beta=beta,
        metrics={
            "distance": Metric("Distance to the target"),
            "distance_centred": Metric("Distance to the target, centred"),
            "policy_tv": Metric("Policy total variation"),
            "policy_gap": Metric("Largest difference of policies"),
            "reward": Metric(
                "Expected reward", higher_is_better=True, reference="teacher's own policy"
            ),
        },
        panels=("distance", "policy_tv", "reward"),
        init=Init("uniform", 2.0),
        settings=stored,
        picture=picture,
        offers=("gradients", "likelihood", "target losses"),
    )


def check_precision(name: str, values: Array) -> None:
    """Raise for values that are not finite, warn of values too large to tell actions apart."""
    largest = float(jnp.max(jnp.abs(values)))
    kind = values.dtype.name
    remedy = "lower the discount, raise the probability of death, or scale the rewards down"
    if not math.isfinite(largest):
        raise InputError(
            f"task {name!r}: the values of these rewards are too large for {kind}: {remedy}"
        )
    # The error of Q, as measured against float64.
    coarseness = 32 * float(jnp.finfo(values.dtype).eps) * largest
    if coarseness > COARSE:
        warnings.warn(
            f"task {name!r}: values reach {largest:.2g}, so {kind} tells actions apart only to "
            f"about {coarseness:.1g}: {remedy}",
            PrecisionWarning,
            stacklevel=3,
        )


def on_grid(  # noqa: PLR0913
    name: str,
    reward: Callable[[np.random.Generator], np.ndarray],
    size: int | tuple[int, int],
    *,
    slip: float = 0.06,
    death: float = 0.02,
    walls: tuple[Cell, ...] = (),
    goals: tuple[Cell, ...] = (),
    starts: tuple[Cell, ...] = (),
    planning: Planning,
    **options: Any,
) -> Task:
    """Make an online IRL task on a grid.

    It can be drawn as a map of rewards with the policy as arrows. ``reward`` draws the rewards of
    the cells without a wall, row by row.
    """
    if isinstance(size, tuple):
        rows, columns = size
    else:
        rows = columns = size
    require_whole(size=rows)
    try:
        dynamics = mdp.grid(size, slip, death, walls=walls, goals=goals)
        number = mdp.numbered(rows, columns, walls)  # the state of each cell, −1 for walls
    except InputError as error:
        raise InputError(f"task {name!r}: {error}") from None
    is_wall = number < 0
    without_arrows = is_wall | np.isin(number, dynamics.goals)

    @jax.jit
    def policy(reward: Array) -> Array:
        return jnp.exp(mdp.log_policy(mdp.plan(dynamics, planning, reward).q))

    def on_map(values: np.ndarray, missing: np.ndarray) -> np.ndarray:
        """Return values (…, S) as (…, rows, columns), masked where there are none."""
        if not missing.any():
            return np.reshape(values, (*values.shape[:-1], rows, columns))
        # Walls have the number −1: they get the last state's value, which the mask hides.
        everywhere = values[..., number]
        return np.ma.masked_array(everywhere, np.broadcast_to(missing, everywhere.shape))

    def cells(params: Any) -> tuple[np.ndarray, np.ndarray]:
        arrows = np.asarray(policy(jnp.asarray(params)))
        return on_map(np.asarray(params), is_wall), on_map(arrows, without_arrows)

    caption = (
        "Reward of entering each cell; arrows: where the policy leads, longer if more certain."
    )
    if goals:
        caption += " Framed: everything ends here."
    if starts:
        caption += " Dotted: the robot starts here."
    return from_rewards(
        name,
        reward,
        dynamics,
        planning=planning,
        picture=Picture(cells, "reward", caption, goals=goals, starts=starts),
        starts=tuple(int(number[cell]) for cell in starts),
        **options,
    )


def irl_dense(size: int = 8) -> Task:
    """Online IRL on an 8 × 8 grid, every cell's reward ~ U[−2, 2];
    the teacher's encoding is shuffled. β = 25000.

    Args:
        size: number of cells along a side.

    Returns:
        The task.
    """
    return on_grid(
        "irl-dense",
        lambda rng: rng.uniform(-2, 2, size * size),
        size,
        beta=25000.0,
        title="Online IRL, dense rewards",
        planning=Planning(sharpness=220.0),
    )


def irl_sparse(size: int = 8) -> Task:
    """Online IRL on an 8 × 8 grid, three random cells with reward 1, else 0; encoding shuffled. β =
    30000.

    Args:
        size: number of cells along a side.

    Returns:
        The task.

    Raises:
        InputError: if the grid is too small for three cells.
    """
    require_whole(size=size)
    if size < 2:
        raise InputError(f"three rewarding cells need a grid of size at least 2, not {size}")

    def reward(rng: np.random.Generator) -> np.ndarray:
        cells = np.zeros(size * size)
        cells[rng.choice(size * size, 3, replace=False)] = 1.0
        return cells

    return on_grid(
        "irl-sparse",
        reward,
        size,
        beta=30000.0,
        title="Online IRL, sparse rewards",
        planning=Planning(sharpness=200.0),
    )
