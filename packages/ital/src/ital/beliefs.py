"""Beliefs over finitely many hypotheses: how teachers draw data, and what learners conclude.

A likelihood matrix M(d,h) = P(d|h) has a row per datum and a column per hypothesis; each column is
a distribution. A teacher of hypothesis h* draws d ~ P_T(·|h*), and a learner with belief θ applies
Bayes' rule, θ ← θ·P_T(d|·)/Σ. Players differ only in P_T:

- :func:`literal`: P_T = M, the naive pair;
- :func:`pedagogical`: P_T(d|h) ∝ P_L(h|d)^α with P_L(h|d) ∝ P_T(d|h)·θ(h), some rounds of it
  (Shafto et al. 2014);
- :func:`scbi`: P_T(d|h) = T(d,h)/θ(h), T = M scaled to row sums 1/n and column sums θ (Wang et al.
  2020);
- :func:`unsure`: pedagogy by a teacher that mixes over what the learner may believe.

Data may be preferred whatever they say: an :class:`Offer` adds a base measure and a cost per datum.

Matrices and beliefs are logarithms throughout: late in a run beliefs are far below the smallest
number of a float.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital.gradients import HIGHEST
from ital.tools.platform import double_precision
from ital.tools.types import Array, Float, Scalar

LogMatrix = Float[Array, "n m"]
LogBelief = Float[Array, " m"]

# Log-odds of a learner without any doubt.
CERTAIN = 100.0
# The most iterations of Sinkhorn; a matrix that is nearly a permutation would need more.
MOST_SCALINGS = 1000
# Log-likelihood of an impossible datum: a sum of beliefs stays finite.
IMPOSSIBLE = -1e5
# Of a row in the scaling, against the smallest: rows that cannot get their sum end here.
LARGEST_FACTOR = 1e30


class Offer(NamedTuple):
    """The data that a teacher may show, where some are preferred whatever they say.

    Attributes:
        log_m: log M (n, m).
        log_base: the logarithm of the base measure b over data (n,).
        cost: the cost c of showing each datum (n,), in units of log belief.
    """

    log_m: Any
    log_base: Any
    cost: Any


class Lessons(NamedTuple):
    """Lessons of several data, in any order.

    Attributes:
        counts: how often each lesson shows each datum (lessons, n).
        size: the number of data in each lesson (lessons,).
        likelihoods: P(lesson|h) (lessons, m), all sizes equally likely.
    """

    counts: np.ndarray
    size: np.ndarray
    likelihoods: np.ndarray


def lessons(likelihoods: Any, sizes: Sequence[int]) -> Lessons:
    """Return all lessons of some sizes: which data they show, and how likely each hypothesis makes
    them.

    Args:
        likelihoods: M (n, m), each column a distribution over data.
        sizes: the numbers of data that a lesson may have.

    Returns:
        The lessons, the smallest first. P(lesson|h) is multinomial within a size.

    Example:
        >>> turtles = ital.beliefs.lessons([[0.7, 0.3], [0.3, 0.7]], sizes=[1, 2])
        >>> turtles.counts.tolist()
        [[1, 0], [0, 1], [2, 0], [1, 1], [0, 2]]
    """
    from scipy.special import gammaln, xlogy

    matrix = np.asarray(likelihoods, float)
    data = np.arange(len(matrix))
    shown: list[tuple[int, ...]] = []
    for number in sizes:
        shown += itertools.combinations_with_replacement(data, number)
    counts = np.array([np.bincount(chosen, minlength=len(data)) for chosen in shown])
    size = counts.sum(axis=1)
    # The logarithm of the number of orders in which a lesson can be shown (lessons,).
    log_orders = gammaln(size + 1) - gammaln(counts + 1).sum(axis=1)
    # 0·log 0 is 0: a lesson without an impossible datum is possible.
    log_of_order = xlogy(counts[:, :, None], matrix).sum(axis=1)  # (lessons, m)
    logs = log_of_order + log_orders[:, None]
    return Lessons(counts, size, likelihoods=np.exp(logs) / len(sizes))


def log_likelihoods(likelihoods: Any) -> np.ndarray:
    """Return log M, with a very small number in the place of log 0.

    Beliefs are then those of the limit of small likelihoods: an impossible datum excludes a
    hypothesis as long as others make it possible; if none does, those hypotheses stay that it
    contradicts least often.

    Args:
        likelihoods: M (n, m).

    Returns:
        log M (n, m), at least ``IMPOSSIBLE``.
    """
    return _logs(likelihoods, IMPOSSIBLE)


def _logs(values: Any, of_zero: float = -np.inf) -> np.ndarray:
    """Return logarithms of numbers, with a number for log 0."""
    given = np.asarray(values, float)
    return np.log(given, where=given > 0, out=np.full(given.shape, of_zero))


def offered(data: Any) -> Offer:
    """Return what may be shown with its base measure and its cost, None where there is neither.

    Args:
        data: log M (n, m), or an :class:`Offer`.

    Returns:
        The three parts.
    """
    if isinstance(data, Offer):
        return data
    return Offer(log_m=data, log_base=None, cost=None)


def posterior(belief: LogBelief, log_likelihoods: LogBelief) -> LogBelief:
    """Apply Bayes' rule: θ(h)·P(d|h)/Σ.

    Args:
        belief: log θ (m,).
        log_likelihoods: log P(d|h) of the datum under each hypothesis (m,).

    Returns:
        The logarithm of the new belief (m,).
    """
    return jax.nn.log_softmax(belief + log_likelihoods)


def literal(log_m: LogMatrix | Offer, belief: LogBelief) -> LogMatrix:
    """Return P_T = M: data are drawn from the hypothesis, with no intention.

    Args:
        log_m: log M (n, m), or an offer; base measure and cost have no effect.
        belief: log θ (m,), not used.

    Returns:
        log P_T (n, m).
    """
    return offered(log_m).log_m


def pedagogical(
    log_m: LogMatrix | Offer,
    belief: LogBelief,
    alpha: Scalar | float,
    rounds: Scalar | int,
) -> LogMatrix:
    """Return P_T(d|h) ∝ P_L(h|d)^α, P_L(h|d) ∝ P_T(d|h)·θ(h), begun with P_T = M.

    One round is a teacher of a naive learner, with rationality α. With α = 1 the rounds converge to
    :func:`scbi`. With α < 1 they forget M; with α > 1 they end in a code, in which each hypothesis
    is uniform over a few data. A base measure b and a cost c make it
    P_T(d|h) ∝ b(d)·exp(α·(log P_L(h|d) − c(d))).

    Args:
        log_m: log M (n, m), or an offer.
        belief: log θ (m,).
        alpha: the rationality α.
        rounds: number of rounds.

    Returns:
        log P_T (n, m).
    """

    def one_round(_: Array, log_t: Array) -> Array:
        # θ(h)^α is a factor of a whole column, so only P(d) = Σ_h P_T(d|h)·θ(h) changes P_T.
        log_p = jax.nn.logsumexp(log_t + belief, axis=1, keepdims=True)
        scores = _preferred(offer, alpha, log_t - log_p)
        return jax.nn.log_softmax(scores, axis=0)

    offer = offered(log_m)
    number = jnp.asarray(rounds, int)
    return jax.lax.fori_loop(0, number, one_round, offer.log_m)


def unsure(
    log_m: LogMatrix | Offer,
    beliefs: Float[Array, "k m"],
    log_weights: Float[Array, " k"],
    alpha: Scalar | float,
) -> LogMatrix:
    """Return P_T(d|h) ∝ b(d)·exp(α·(Σ_k w_k log P_L^k(h|d) − c(d))): one round, with K beliefs that
    the learner may have.

    The teacher weighs the learners that it may have before it, and shows what helps them on average
    (after Chen, Palacci, Vélez, Hawkins and Gershman 2024). With one belief it is
    :func:`pedagogical`.

    Args:
        log_m: log M (n, m), or an offer.
        beliefs: log θ_k of each possible learner (K, m).
        log_weights: log w_k (K,), normalised.
        alpha: the rationality α.

    Returns:
        log P_T (n, m).
    """
    offer = offered(log_m)
    # θ_k(h) is a factor of a whole column, so log P_L^k(h|d) may do without it.
    log_p = jax.nn.logsumexp(offer.log_m[None] + beliefs[:, None, :], axis=2)
    expected = jnp.exp(log_weights) @ log_p  # over the learners (n,)
    scores = _preferred(offer, alpha, offer.log_m - expected[:, None])
    return jax.nn.log_softmax(scores, axis=0)


def _preferred(offer: Offer, alpha: Scalar | float, log_learned: Array) -> Array:
    """Return α·(log P_L − c) + log b, up to a constant of each column."""
    if offer.log_base is None:
        return alpha * log_learned
    cost = offer.cost[:, None]
    log_base = offer.log_base[:, None]
    return alpha * (log_learned - cost) + log_base


def scbi(log_m: LogMatrix | Offer, belief: LogBelief) -> LogMatrix:
    """Return P_T(d|h) = T(d,h)/θ(h), where T is M scaled to row sums 1/n and column sums θ.

    With T(d,h) = u(d)·M(d,h)·w(h)·θ(h), Sinkhorn's iteration is w ← 1/(Mᵀu), u ← 1/(n·M(θw)). It
    never divides by θ, so that hypotheses with a belief of practically zero keep their exact odds.
    It ends when the row sums are right up to rounding. With an offer the row sums are
    ∝ b(d)·exp(−c(d)) instead of 1/n.

    Impossible data may leave no scaling: a row gets no more mass than its hypotheses have belief.
    The result is then the limit of the iteration, in which such rows take all they can get.

    Args:
        log_m: log M (n, m), finite, or an offer.
        belief: log θ (m,), normalised.

    Returns:
        log P_T (n, m).
    """
    offer = offered(log_m)
    m = jnp.exp(offer.log_m)
    theta = jnp.exp(belief)
    rows: Any = m.shape[0]
    if offer.log_base is not None:
        # 1 over the sum of each row, which is n without an offer.
        log_sums = jax.nn.log_softmax(offer.log_base - offer.cost)
        rows = jnp.exp(-log_sums)
    close = 10 * jnp.finfo(m.dtype).eps

    def scaled(before: _Scaling) -> _Scaling:
        u = before.u
        column_sums = jnp.matmul(u, m, precision=HIGHEST)
        w = 1 / column_sums
        row_sums = rows * u * jnp.matmul(m, theta * w, precision=HIGHEST)
        bounded, error = _bounded(u, u / row_sums, row_sums)
        return _Scaling(bounded, error, before.iterations + 1)

    def unfinished(scaling: _Scaling) -> Array:
        return (scaling.error > close) & (scaling.iterations < MOST_SCALINGS)

    first = _Scaling(
        u=jnp.ones(m.shape[0], m.dtype),
        error=jnp.full((), jnp.inf, m.dtype),
        iterations=jnp.zeros((), int),
    )
    last = jax.lax.while_loop(unfinished, scaled, first)
    # w and θ are factors of whole columns: normalising each column replaces them.
    log_u = jnp.log(last.u)
    log_scaled = log_u[:, None] + offer.log_m
    return jax.nn.log_softmax(log_scaled, axis=0)


class _Scaling(NamedTuple):
    """The state of Sinkhorn's iteration.

    Attributes:
        u: the factors of the rows (n,).
        error: the largest error of a row sum.
        iterations: the number of iterations.
    """

    u: Array
    error: Array
    iterations: Array


def _bounded(before: Array, after: Array, row_sums: Array) -> tuple[Array, Array]:
    """Return row factors that stay finite, and how far the rows are from their sums.

    The factor of a row that cannot get its sum grows forever, against all others. It ends at a
    bound, and the others count as settled when they no longer change against each other. Without
    such rows nothing is rescaled.
    """
    smallest = jnp.min(after)
    unbounded = after > LARGEST_FACTOR * smallest
    any_unbounded = jnp.any(unbounded)
    rescaled = after / jnp.where(any_unbounded, smallest, 1.0)
    bounded = jnp.where(unbounded, LARGEST_FACTOR, rescaled)
    changes = jnp.abs(bounded / before - 1)
    errors = jnp.abs(row_sums - 1)
    gaps = jnp.where(any_unbounded, changes, errors)
    return bounded, jnp.max(jnp.where(unbounded, 0.0, gaps))


def learned(likelihoods: Any, beliefs: Any, targets: Any) -> np.ndarray:
    """Return what naive learners conclude from each datum, Σ_k log P_L^k(h*|d)/K.

    Args:
        likelihoods: M (n, m); data may be impossible.
        beliefs: θ_k, K beliefs that each learner may have, equally likely (V, K, m).
        targets: h* of each teacher (V,).

    Returns:
        The mean log belief in h* (V, n), in double precision; −∞ where h* is impossible.
    """
    from scipy.special import logsumexp

    log_m = _logs(likelihoods)
    found = []
    for of_learner, target in zip(_logs(beliefs), targets, strict=True):
        log_joint = log_m + of_learner[:, None]  # (K, n, m)
        with np.errstate(invalid="ignore"):  # impossible under all that is believed
            log_share = log_joint[:, :, target] - logsumexp(log_joint, axis=2)
        found.append(np.where(np.isnan(log_share), -np.inf, log_share).mean(axis=0))
    return np.array(found)


def taught(
    likelihoods: Any,
    beliefs: Any,
    targets: Any,
    *,
    alpha: Any = 1.0,
    rounds: int | None = 1,
    base: Any = None,
    costs: Any = 0.0,
) -> np.ndarray:
    """Return which data teachers of different learners show, in double precision.

    Args:
        likelihoods: M (n, m); data may be impossible.
        beliefs: θ of each learner (V, m).
        targets: h* of each teacher (V,).
        alpha: the rationality α of each teacher (V,).
        rounds: rounds of :func:`pedagogical`; None for :func:`scbi`.
        base: a base measure over data (n,); None for 1.
        costs: the cost of each datum to each teacher (V, n).

    Returns:
        log P_T(d|h*) (V, n); −∞ where h* is impossible.
    """
    matrix = np.asarray(likelihoods, float)
    cases = len(beliefs)
    log_base = np.zeros(len(matrix)) if base is None else np.log(base)

    def one(belief: Array, target: Array, alpha: Array, cost: Array) -> Array:
        offer = Offer(log_likelihoods(matrix), log_base, cost)
        if rounds is None:
            return scbi(offer, belief)[:, target]
        return pedagogical(offer, belief, alpha, rounds)[:, target]

    with double_precision():
        each_alpha = np.broadcast_to(alpha, cases)
        each_cost = np.broadcast_to(costs, (cases, len(matrix)))
        log_t = jax.jit(jax.vmap(one))(_logs(beliefs), np.asarray(targets), each_alpha, each_cost)
    return np.where(matrix[:, targets].T > 0, np.asarray(log_t), -np.inf)


def limiting_rate(
    drawn_from: Callable[[LogMatrix, LogBelief], LogMatrix],
    log_m: LogMatrix,
    target: int,
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
    of_data = jnp.exp(log_of_target) * (log_of_target - log_t)  # (n, m)
    divergences = jnp.sum(of_data, axis=0)
    # The divergence of h* from itself is 0 and does not count.
    of_others = jnp.where(is_target, jnp.inf, divergences)
    return jnp.min(of_others)


__all__ = [
    "IMPOSSIBLE",
    "Lessons",
    "Offer",
    "learned",
    "lessons",
    "limiting_rate",
    "literal",
    "log_likelihoods",
    "offered",
    "pedagogical",
    "posterior",
    "scbi",
    "taught",
    "unsure",
]
