"""The rules of online inverse reinforcement learning.

Feedback is a plan, and gradients are those of a soft policy.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital import mdp, views, volume
from ital.gradients import HIGHEST, Gradients
from ital.mdp import Dynamics, Planning, Solution
from ital.models import Init
from ital.tasks._base import Rules, Truth, World
from ital.tasks._irl_likelihood import demonstrations_likelihood, reward_of
from ital.tools.types import Array, PRNGKeyArray, Scalar


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


def in_encoding(encoding: Any, per_state: Array) -> Array:
    """Return Σ_s x(s)·features(s) of numbers x (S,): the transpose of :func:`reward_of`."""
    if encoding is None:
        return per_state
    if encoding.ndim == 1:
        return jnp.zeros_like(per_state).at[encoding].set(per_state)
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

    The gradients differentiate the fixed point of planning implicitly. With c = P_a(s,·) −
    Σ_b π(b|s)P_b(s,·) and P_μ the transitions under μ = softmax(kQ), the gradient of −log π(a|s)
    is −(I − γP_μᵀ)⁻¹c (derived in docs/explanation/irl.md).
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


@functools.cache  # equal tasks share one compiled program
def irl_rules(  # noqa: C901
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
    plan = functools.partial(mdp.plan, dynamics, planning)
    teachable = np.flatnonzero(~dynamics.ended())  # the states in which actions are shown

    def start(key: PRNGKeyArray, init: Init, world: World) -> Array:
        return init.draw(key, world.truth.target.shape)

    def draw(key: PRNGKeyArray, world: World, batch_size: int) -> tuple[Array, Array]:
        """Draw states uniformly with replacement, each with an action from the teacher's policy."""
        state_key, action_key = jax.random.split(key)
        states = jax.random.randint(state_key, (batch_size,), 0, len(teachable))
        if dynamics.goals:
            states = jnp.asarray(teachable)[states]
        log_pi = world.teacher.examples.log_policy[:, states]  # (A, B)
        actions = jax.random.categorical(action_key, log_pi, axis=0)
        return states, actions

    def show(side: Side, drawn: tuple[Array, Array]) -> Demonstrations:
        states, actions = drawn
        return Demonstrations(states, actions, side.encoding, side.log_policy)

    def feedback(params: Array, examples: Demonstrations, previous: Array) -> RewardReport:
        reward = reward_of(examples.encoding, params)
        solution = mdp.replan(dynamics, planning, reward, previous)
        return report(dynamics, planning, solution, examples)

    def volumes(
        reported: RewardReport,
        examples: Demonstrations,
        target: Array,
        lr: Scalar,
    ) -> Array:
        """Eq. (imit-teacher) with the loss of a demonstration, in the teacher's encoding."""
        target_losses = -examples.log_policy[examples.actions, examples.states]
        imitated = in_weights(reported, examples.encoding)
        return volume.imitated(lr, imitated.squared_norms, imitated.losses, target_losses)

    def gradients(params: Array, examples: Demonstrations, reported: RewardReport) -> Gradients:
        return in_weights(reported, examples.encoding)

    def mean_over_teachable(per_state: Array) -> Array:
        if dynamics.goals:
            per_state = per_state[teachable]
        return jnp.mean(per_state)

    def measure(params: Array, truth: Truth) -> dict[str, Array]:
        world = truth.test
        reward = reward_of(world.encoding, params)
        solution = plan(reward)
        gap = reward - world.reward
        # Differences of the probabilities (A, S) between the learner's policy and π*.
        differences = jnp.abs(jnp.exp(mdp.log_policy(solution.q)) - jnp.exp(world.log_policy))
        return {
            "distance": jnp.linalg.norm(params - truth.target),
            "distance_centred": jnp.linalg.norm(gap - jnp.mean(gap)),
            "policy_tv": mean_over_teachable(0.5 * jnp.sum(differences, axis=0)),
            "policy_gap": mean_over_teachable(jnp.max(differences, axis=0)),
            "reward": mdp.expected_return(dynamics, planning, solution.q, world.reward, starts),
        }

    def references(start: Array, truth: Truth) -> dict[str, dict[str, Array]]:
        reward = truth.test.reward
        best_plan = plan(reward)
        best = mdp.expected_return(dynamics, planning, best_plan.q, reward, starts)
        lines = {"reward": {"reference": best}}
        # Where all steps survive equally often, a constant added to all rewards changes no policy:
        # demonstrations say nothing about the mean reward.
        if dynamics.even and one_hot(truth.test.encoding):
            mean_gap = jnp.mean(start - truth.target)
            lines["distance"] = {"floor": jnp.sqrt(dynamics.states) * jnp.abs(mean_gap)}
        return lines

    def first_values(start: Array, world: World) -> Array:
        return plan(reward_of(world.learner.encoding, start)).values

    def keep_values(reported: RewardReport) -> Array:
        return reported.values

    def risk(world: World) -> float:
        learner_features = world.learner.encoding
        if one_hot(learner_features):
            return 0.0  # a weight per state expresses every reward
        teacher_features = world.teacher.examples.encoding
        return views.feature_risk(learner_features, teacher_features, world.teacher.target)

    return Rules(
        start=start,
        draw=draw,
        show=show,
        feedback=feedback,
        volumes=volumes,
        gradients=gradients,
        measure=measure,
        references=references,
        first_previous=first_values,
        keep=keep_values,
        risk=risk,
        likelihood=demonstrations_likelihood(dynamics, planning),
    )
