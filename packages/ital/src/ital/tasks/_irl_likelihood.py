"""The likelihood of demonstrations: one plan gives the losses and gradients of all actions in all
states.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ital import mdp
from ital.gradients import HIGHEST
from ital.likelihoods import Evaluation, Likelihood, Quadratic, Statistics
from ital.mdp import Dynamics, Planning
from ital.tools.types import Array, Float, Int, Scalar


class KeptActions(NamedTuple):
    """What is kept of demonstrations: the states and the actions shown there, both (N,)."""

    states: Int[Array, " N"]
    actions: Int[Array, " N"]


def q_gradients(dynamics: Dynamics, planning: Planning, q: Array) -> Float[Array, "A S S"]:
    """Return ∂Q(s,a)/∂r = P_a(s,·)(I − γP_μ)⁻¹ for every action and state, with μ = softmax(kQ)."""
    soft_greedy = jax.nn.softmax(planning.sharpness * q, axis=0)
    # Column j of the inverse is what a reward in state j is worth from everywhere, (S, S).
    worth = mdp.onward(dynamics, planning, soft_greedy).back(
        jnp.eye(dynamics.states, dtype=q.dtype)
    )
    return jax.vmap(dynamics.expect, in_axes=1, out_axes=2)(worth)


def reward_of(encoding: Any, params: Array) -> Array:
    """Return the reward of every state (S,), r(s) = features(s)·w."""
    if encoding is None:
        return params
    if encoding.ndim == 1:
        return params[encoding]
    return jnp.matmul(encoding, params, precision=HIGHEST)


def in_weights(encoding: Any, per_state: Array) -> Array:
    """Return gradients (…, S) with respect to the rewards as gradients (…, d) with respect to the
    weights.
    """
    if encoding is None:
        return per_state
    if encoding.ndim == 1:
        return jnp.zeros_like(per_state).at[..., encoding].set(per_state)
    return jnp.matmul(per_state, encoding, precision=HIGHEST)


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
        solution = mdp.plan(dynamics, planning, reward_of(examples.encoding, params))
        log_pi = mdp.log_policy(solution.q)  # (A, S)
        pi = jnp.exp(log_pi)
        of_q = in_weights(examples.encoding, q_gradients(dynamics, planning, solution.q))
        # The gradient of −log π(a|s): the mean of those of Q under π, less its own, (A, S, D).
        of_loss = jnp.sum(pi[:, :, None] * of_q, axis=0) - of_q

        def losses(kept: KeptActions) -> Array:
            return -log_pi[kept.actions, kept.states]

        def gradients(kept: KeptActions) -> Array:
            return of_loss[kept.actions, kept.states]

        def fisher(visits: Array) -> Array:
            """The curvature of the losses of (weighted) visits (S,), whatever was shown there."""
            rows = (jnp.sqrt(visits * pi)[:, :, None] * of_loss).reshape(-1, of_loss.shape[-1])
            return jnp.matmul(rows.T, rows, precision=HIGHEST)

        def curvature(kept: KeptActions, weights: Array) -> Array:
            return fisher(jnp.zeros_like(log_pi[0]).at[kept.states].add(weights))

        def counted(counts: Array, wrong: Scalar) -> Quadratic:
            # p(a) = (1 − p)·π(a|s) + p/A: the log of the mixture, and the share of it that is π.
            right = (1 - wrong) * pi
            mixture = right + wrong / dynamics.actions
            share = right / mixture
            value = -jnp.sum(counts * jnp.log(mixture))
            gradient = jnp.sum((counts * share)[:, :, None] * of_loss, axis=(0, 1))
            return Quadratic(value, gradient, fisher(jnp.sum(counts * share, axis=0)))

        return Evaluation(losses, gradients, curvature, counted)

    def keep(examples: Any) -> KeptActions:
        return KeptActions(examples.states, examples.actions)

    def empty(params: Array, kept: KeptActions) -> Array:
        return jnp.zeros((dynamics.actions, dynamics.states), params.dtype)

    def add(counts: Array, kept: KeptActions, weights: Array) -> Array:
        return counts.at[kept.actions, kept.states].add(weights)

    return Likelihood(keep, at, Statistics(empty, add, jnp.sum), mixes=True)
