"""The rules of online inverse reinforcement learning: feedback is a plan, and gradients are those
of a soft policy.
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
    """Whether the weights are the rewards, in some order."""
    return encoding is None or encoding.ndim == 1


def reward_of(encoding: Any, params: Array) -> Array:
    """r(s) = features(s)·w."""
    if encoding is None:
        return params
    return (
        params[encoding] if encoding.ndim == 1 else jnp.matmul(encoding, params, precision=HIGHEST)
    )


def in_encoding(encoding: Any, per_state: Array) -> Array:
    """The transpose of :func:`reward_of`."""
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
    shown: Demonstrations,
) -> RewardReport:
    """The losses of demonstrations and their gradients, by implicit differentiation of the fixed
    point.

    With c = P_a(s,·) − Σ_b π(b|s)P_b(s,·) and P_μ the transitions under μ = softmax(kQ), the
    gradient of −log π(a|s) with respect to the rewards is −(I − γP_μᵀ)⁻¹c (derived in
    docs/explanation/irl.md).
    """
    log_pi = mdp.log_policy(solution.q)
    soft_greedy = jax.nn.softmax(planning.sharpness * solution.q, axis=0)
    onward = mdp.onward(dynamics, planning, soft_greedy)

    def surprise(state: Array, action: Array) -> Array:
        """−c."""
        return dynamics.leave(
            state, jnp.exp(log_pi[:, state]) - (jnp.arange(dynamics.actions) == action)
        )

    sources = jax.vmap(surprise)(shown.states, shown.actions)  # (B, S)
    return RewardReport(*solution, -log_pi[shown.actions, shown.states], onward.back(sources))


def in_weights(reported: RewardReport, encoding: Any) -> Gradients:
    """The losses of a report, and their gradients with respect to the weights of a player's
    encoding.
    """
    gradients = reported.gradients
    own = gradients if one_hot(encoding) else jnp.matmul(gradients, encoding, precision=HIGHEST)

    def inner(v: Array) -> Array:
        return jnp.matmul(gradients, reward_of(encoding, v), precision=HIGHEST)

    def weighted_sum(weights: Array) -> Array:
        return in_encoding(encoding, jnp.matmul(weights, gradients, precision=HIGHEST))

    return Gradients(reported.losses, jnp.sum(own**2, axis=1), inner, weighted_sum)


def implicit_gradients(
    dynamics: Dynamics,
    planning: Planning,
    solution: Solution,
    shown: Demonstrations,
) -> Gradients:
    """−log π(a|s) of each demonstration, and its gradients with respect to the reward weights.

    Args:
        dynamics: the transitions.
        planning: how teacher and learner plan.
        solution: the solution of planning with the reward.
        shown: the demonstrations, with the player's encoding.

    Returns:
        The losses and three operations on their gradients.

    """
    return in_weights(report(dynamics, planning, solution, shown), shown.encoding)


@functools.cache
def irl_rules(dynamics: Dynamics, planning: Planning, starts: tuple[int, ...] = ()) -> Rules:
    """The rules of online IRL in a world.

    Nothing is shown in goals, and policies are compared elsewhere.

    Args:
        dynamics: the transitions.
        planning: how to plan.
        starts: the states in which the robot may start, for ``reward``; () for all but the goals.

    Returns:
        The rules; the same object for the same arguments.
    """
    plan = functools.partial(mdp.plan, dynamics, planning)
    lessons = np.flatnonzero(~dynamics.ended())  # the states in which actions are shown

    def start(key: PRNGKeyArray, init: Init, world: World) -> Array:
        return init.draw(key, world.truth.target.shape)

    def where_shown(per_state: Array) -> Array:
        return per_state[lessons] if dynamics.goals else per_state

    def draw(key: PRNGKeyArray, world: World, batch_size: int) -> tuple[Array, Array]:
        """Draw states uniformly with replacement, each with an action from the teacher's policy."""
        state_key, action_key = jax.random.split(key)
        states = jax.random.randint(state_key, (batch_size,), 0, len(lessons))
        if dynamics.goals:
            states = jnp.asarray(lessons)[states]
        actions = jax.random.categorical(
            action_key, world.teacher.examples.log_policy[:, states], axis=0
        )
        return states, actions

    def show(side: Side, drawn: tuple[Array, Array]) -> Demonstrations:
        return Demonstrations(*drawn, *side)

    def feedback(params: Array, examples: Demonstrations, previous: Array) -> RewardReport:
        solution = mdp.replan(dynamics, planning, reward_of(examples.encoding, params), previous)
        return report(dynamics, planning, solution, examples)

    def volumes(
        reported: RewardReport,
        examples: Demonstrations,
        target: Array,
        lr: Scalar,
    ) -> Array:
        """Eq. (imit-teacher) with the loss of a demonstration, in the teacher's encoding."""
        target_losses = -examples.log_policy[examples.actions, examples.states]
        here = in_weights(reported, examples.encoding)
        return volume.imitated(lr, here.squared_norms, here.losses, target_losses)

    def gradients(params: Array, examples: Demonstrations, reported: RewardReport) -> Gradients:
        return in_weights(reported, examples.encoding)

    def measure(params: Array, truth: Truth) -> dict[str, Array]:
        world = truth.test
        reward = reward_of(world.encoding, params)
        solution = plan(reward)
        gap = reward - world.reward
        differences = jnp.abs(jnp.exp(mdp.log_policy(solution.q)) - jnp.exp(world.log_policy))
        return {
            "distance": jnp.linalg.norm(params - truth.target),
            "distance_centred": jnp.linalg.norm(gap - jnp.mean(gap)),
            "policy_tv": jnp.mean(where_shown(0.5 * jnp.sum(differences, axis=0))),
            "policy_gap": jnp.mean(where_shown(jnp.max(differences, axis=0))),
            "reward": mdp.expected_return(dynamics, planning, solution.q, world.reward, starts),
        }

    def references(start: Array, truth: Truth) -> dict[str, dict[str, Array]]:
        reward = truth.test.reward
        own = mdp.expected_return(dynamics, planning, plan(reward).q, reward, starts)
        lines = {"reward": {"reference": own}}
        if dynamics.even and one_hot(
            truth.test.encoding
        ):  # demonstrations say nothing about the mean reward
            lines["distance"] = {
                "floor": jnp.sqrt(dynamics.states) * jnp.abs(jnp.mean(start - truth.target))
            }
        return lines

    def first_values(start: Array, world: World) -> Array:
        return plan(reward_of(world.learner.encoding, start)).values

    def values(reported: RewardReport) -> Array:
        return reported.values

    def risk(world: World) -> float:
        if one_hot(world.learner.encoding):
            return 0.0  # a weight per state expresses every reward
        return views.feature_risk(
            world.learner.encoding, world.teacher.examples.encoding, world.teacher.target
        )

    return Rules(
        start,
        draw,
        show,
        feedback,
        volumes,
        gradients,
        measure,
        references,
        first_values,
        values,
        risk=risk,
    )
