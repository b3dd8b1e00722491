"""Beliefs over finitely many hypotheses: how teachers draw data, and what learners conclude.

A likelihood matrix M(d,h) = P(d|h) has a row per datum and a column per hypothesis; each column is
a distribution. A teacher of hypothesis h* draws d ~ P_T(·|h*), and a learner with belief θ applies
Bayes' rule, θ ← θ·P_T(d|·)/Σ. Players differ only in P_T:

- :func:`literal`: P_T = M, the naive pair;
- :func:`pedagogical`: P_T(d|h) ∝ P_L(h|d)^α with P_L(h|d) ∝ P_T(d|h)·θ(h), some rounds of it
  (Shafto et al. 2014);
- :func:`scbi`: P_T(d|h) = T(d,h)/θ(h), T = M scaled to row sums 1/n and column sums θ (Wang et al.
  2020).

Matrices and beliefs are logarithms throughout: late in a run beliefs are far below the smallest
number of a float.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from ital.gradients import HIGHEST
from ital.tools.types import Array, Float, Scalar

LogMatrix = Float[Array, "n m"]
LogBelief = Float[Array, " m"]

# Log-odds of a learner without any doubt.
CERTAIN = 100.0
# The most iterations of Sinkhorn; a matrix that is nearly a permutation would need more.
MOST_SCALINGS = 1000


def posterior(belief: LogBelief, log_likelihoods: LogBelief) -> LogBelief:
    """Apply Bayes' rule: θ(h)·P(d|h)/Σ.

    Args:
        belief: log θ (m,).
        log_likelihoods: log P(d|h) of the datum under each hypothesis (m,).

    Returns:
        The logarithm of the new belief (m,).
    """
    return jax.nn.log_softmax(belief + log_likelihoods)


def literal(log_m: LogMatrix, belief: LogBelief) -> LogMatrix:
    """Return P_T = M: data are drawn from the hypothesis, with no intention.

    Args:
        log_m: log M (n, m).
        belief: log θ (m,), not used.

    Returns:
        log P_T (n, m).
    """
    return log_m


def pedagogical(
    log_m: LogMatrix, belief: LogBelief, alpha: Scalar | float, rounds: Scalar | int
) -> LogMatrix:
    """Return P_T(d|h) ∝ P_L(h|d)^α, P_L(h|d) ∝ P_T(d|h)·θ(h), begun with P_T = M.

    One round is a teacher of a naive learner, with rationality α. With α = 1 the rounds converge to
    :func:`scbi`. With α < 1 they forget M; with α > 1 they end in a code, in which each hypothesis
    is uniform over a few data.

    Args:
        log_m: log M (n, m).
        belief: log θ (m,).
        alpha: the rationality α.
        rounds: number of rounds.

    Returns:
        log P_T (n, m).
    """

    def one_round(_: Array, log_t: Array) -> Array:
        # θ(h)^α is a factor of a whole column, so only P(d) = Σ_h P_T(d|h)·θ(h) changes P_T.
        log_p = jax.nn.logsumexp(log_t + belief, axis=1, keepdims=True)
        return jax.nn.log_softmax(alpha * (log_t - log_p), axis=0)

    return jax.lax.fori_loop(0, jnp.asarray(rounds, int), one_round, log_m)


def scbi(log_m: LogMatrix, belief: LogBelief) -> LogMatrix:
    """Return P_T(d|h) = T(d,h)/θ(h), where T is M scaled to row sums 1/n and column sums θ.

    With T(d,h) = u(d)·M(d,h)·w(h)·θ(h), Sinkhorn's iteration is w ← 1/(Mᵀu), u ← 1/(n·M(θw)). It
    never divides by θ, so that hypotheses with a belief of practically zero keep their exact odds.
    It ends when the row sums are right up to rounding.

    Args:
        log_m: log M (n, m), finite.
        belief: log θ (m,), normalised.

    Returns:
        log P_T (n, m).
    """
    m = jnp.exp(log_m)
    theta = jnp.exp(belief)
    rows = m.shape[0]
    close = 10 * jnp.finfo(m.dtype).eps

    # The state is (u, the largest error of a row sum, number of iterations).
    def scaled(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        u, _, count = state
        w = 1 / jnp.matmul(u, m, precision=HIGHEST)
        row_sums = rows * u * jnp.matmul(m, theta * w, precision=HIGHEST)
        return u / row_sums, jnp.max(jnp.abs(row_sums - 1)), count + 1

    def unfinished(state: tuple[Array, Array, Array]) -> Array:
        _, error, count = state
        return (error > close) & (count < MOST_SCALINGS)

    first = (jnp.ones(rows, m.dtype), jnp.full((), jnp.inf, m.dtype), jnp.zeros((), int))
    u, _, _ = jax.lax.while_loop(unfinished, scaled, first)
    # w and θ are factors of whole columns: normalising each column replaces them.
    return jax.nn.log_softmax(jnp.log(u)[:, None] + log_m, axis=0)


def limiting_rate(
    drawn_from: Callable[[LogMatrix, LogBelief], LogMatrix], log_m: LogMatrix, target: int
) -> Float[Array, ""]:
    """Return the growth of the log-odds of h* per step, late in a run.

    Teacher and learner agree on P_T. The rate is the minimum over h′ of KL(P_T(·|h*) ‖ P_T(·|h′)),
    with P_T at a belief that is nearly certain of h*. For the naive pair this is KL(M_h* ‖ M_h′).
    For SCBI P_T(·|h*) is then uniform, and P_T(d|h′) ∝ M(d,h′)/M(d,h*).

    Args:
        drawn_from: ``drawn_from(log_m, belief)`` returns log P_T, e.g. :func:`literal` or
            :func:`scbi`.
        log_m: log M (n, m).
        target: h*.

    Returns:
        The rate, in nats per step.
    """
    is_target = jnp.arange(log_m.shape[1]) == target
    nearly_certain = jnp.where(is_target, 0.0, -CERTAIN)
    log_t = drawn_from(log_m, nearly_certain)
    log_of_target = log_t[:, target, None]
    divergences = jnp.sum(jnp.exp(log_of_target) * (log_of_target - log_t), axis=0)
    # The divergence of h* from itself is 0 and does not count.
    return jnp.min(jnp.where(is_target, jnp.inf, divergences))


__all__ = ["limiting_rate", "literal", "pedagogical", "posterior", "scbi"]
