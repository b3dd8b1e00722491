"""Planning: values and policies from a reward, the return of a policy.

Behind both are linear systems of discounted transitions.
"""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital.errors import InputError
from ital.gradients import HIGHEST
from ital.mdp._dynamics import Dynamics, Operator, following
from ital.tools.platform import on_cpu
from ital.tools.types import Array

SMALLER = 5000  # how many times smaller sweeps must make any change
MOST_SWEEPS = 16  # of value iteration on an accelerator; worlds that need more are slow
# Rounds of policy iteration: grids take about ten from values of zero, two or three from similar.
MOST_ROUNDS = 60
MOST_UNROLLED = 24  # terms of a series without a loop, on an accelerator
MOST_UNROLLED_ON_CPU = 6
MOST_ON_TABLE = 512  # states; estimated from a GPU's launch and arithmetic costs
CALL = 1000  # the work of starting a product on a GPU, in rows


class Planning(NamedTuple):
    """How teacher and learner plan.

    Attributes:
        discount: the discount γ.
        sharpness: sharpness k of the soft maximum.
        tolerance: largest change at which planning stops, if rounding lets the values come so
            close.
    """

    discount: float = 0.5
    sharpness: float = 220.0
    tolerance: float = 1e-6


def check(dynamics: Dynamics, planning: Planning) -> None:
    """Raise InputError if values would be infinite, or a number is not valid.

    Args:
        dynamics: the transitions.
        planning: how to plan.

    Raises:
        InputError: if sharpness, discount or tolerance is not valid.
    """
    if not (planning.sharpness > 0 and math.isfinite(planning.sharpness)):
        raise InputError(f"the sharpness k must be positive, not {planning.sharpness}")
    if not (planning.discount >= 0 and planning.discount * dynamics.survival < 1):
        raise InputError(
            "the discount must be below 1 unless every step can end in death, "
            f"not {planning.discount}"
        )
    if not planning.tolerance > 0:
        raise InputError(f"the tolerance of planning must be positive, not {planning.tolerance}")


class Solution(NamedTuple):
    """The solution of planning with a reward.

    Attributes:
        reward: reward of every state (S,).
        values: the values V (S,).
        q: Q (A, S).
    """

    reward: Array
    values: Array
    q: Array


def bellman(
    dynamics: Dynamics,
    planning: Planning,
    reward: Array,
    values: Array,
) -> tuple[Array, Array]:
    """Do a soft backup: Q(s,a) = Σ P(s′|s,a)[r(s′)+γV(s′)], V(s) = (1/k) log Σₐ exp(kQ(s,a)).

    Args:
        dynamics: the transitions.
        planning: how to plan.
        reward: reward of every state (S,).
        values: the values V before the backup (S,).

    Returns:
        V (S,) and Q (A, S).
    """
    worth = reward + planning.discount * values  # of entering each state
    q = dynamics.expect(worth)
    values = soft_maximum(planning.sharpness, q)
    if dynamics.goals:  # a soft maximum of zeros is not zero
        values = jnp.where(dynamics.ended(), 0.0, values)
    return values, q


def soft_maximum(k: float, q: Array) -> Array:
    """Return (1/k) log Σₐ exp(kQ(·,a)).

    It goes action by action, so that the compiler fuses a whole sweep into one pass.
    """
    largest = functools.reduce(jnp.maximum, q)
    # Without the largest value, the exponential would overflow.
    powers = [jnp.exp(k * (action - largest)) for action in q]
    total = functools.reduce(jnp.add, powers)
    return largest + jnp.log(total) / k


def plan(dynamics: Dynamics, planning: Planning, reward: Array) -> Solution:
    """Plan with a reward, starting from values of zero.

    Value iteration, or policy iteration if :func:`is_slow`. Both stop where no change is larger
    than the tolerance, or where rounding keeps the values from coming closer.

    Args:
        dynamics: the transitions.
        planning: how to plan.
        reward: reward of every state (S,).

    Returns:
        The plan.
    """
    values = jnp.zeros_like(reward)
    if is_slow(dynamics, planning):
        return _improve(dynamics, planning, reward, values)
    return _sweep(dynamics, planning, reward, values, blindly=23)


def replan(
    dynamics: Dynamics,
    planning: Planning,
    reward: Array,
    values: Array,
) -> Solution:
    """Plan from the ``values`` of a similar reward.

    On a GPU, testing for convergence takes longer than sweeping. There, value iteration makes a
    fixed number of sweeps, enough to make any change 5000 times smaller (12 sweeps at γ = 0.5),
    without testing.

    Args:
        dynamics: the transitions.
        planning: how to plan.
        reward: reward of every state (S,).
        values: the values V to start from (S,).

    Returns:
        The plan.
    """
    if is_slow(dynamics, planning):
        return _improve(dynamics, planning, reward, values)
    if on_cpu():
        return _sweep(dynamics, planning, reward, values)
    for _ in range(_sweeps(dynamics, planning)):
        values, _ = bellman(dynamics, planning, reward, values)
    return _solution(dynamics, planning, reward, values)


def _solution(
    dynamics: Dynamics,
    planning: Planning,
    reward: Array,
    values: Array,
) -> Solution:
    """Return the solution with these values: Q is one backup of them."""
    _, q = bellman(dynamics, planning, reward, values)
    return Solution(reward, values, q)


def is_slow(dynamics: Dynamics, planning: Planning) -> bool:
    """Tell whether value iteration converges slowly, as it does for discounts above 0.6.

    Args:
        dynamics: the transitions.
        planning: how to plan.

    Returns:
        Whether it needs more than 16 sweeps to make any change 5000 times smaller.
    """
    return _sweeps(dynamics, planning) > MOST_SWEEPS


def _sweeps(dynamics: Dynamics, planning: Planning) -> int:
    """Return the number of sweeps that makes any change 5000 times smaller."""
    rate = planning.discount * dynamics.survival
    if not rate:
        return 1
    return math.ceil(math.log(1 / SMALLER) / math.log(rate))


def _sweep(
    dynamics: Dynamics,
    planning: Planning,
    reward: Array,
    values: Array,
    blindly: int = 0,
) -> Solution:
    """Iterate values; the first ``blindly`` sweeps do not test for convergence."""

    def sweep(values: Array) -> Array:
        better, _ = bellman(dynamics, planning, reward, values)
        return better

    # Large values cannot settle to the tolerance in this precision. After enough sweeps to make any
    # change 10³⁰ times smaller, all that still changes is rounding.
    most = blindly + 1
    rate = planning.discount * dynamics.survival
    if rate:
        most += math.ceil(-30 / math.log10(rate))

    def unfinished(state: _Swept) -> Array:
        return (state.change > planning.tolerance) & (state.sweeps < most)

    def another(state: _Swept) -> _Swept:
        better = sweep(state.values)
        change = jnp.max(jnp.abs(better - state.values))
        return _Swept(state.sweeps + 1, change, better)

    if blindly:
        values = jax.lax.fori_loop(
            0,
            blindly,
            lambda _, values: sweep(values),
            values,
            # On an accelerator a loop's rounds cost launches.
            unroll=not on_cpu(),
        )
    start = _Swept(
        sweeps=jnp.full((), blindly),
        change=jnp.full((), jnp.inf, values.dtype),  # none is known yet
        values=values,
    )
    last = jax.lax.while_loop(unfinished, another, start)
    return _solution(dynamics, planning, reward, last.values)


class _Swept(NamedTuple):
    """The state of value iteration.

    Attributes:
        sweeps: the number of sweeps so far.
        change: the largest change of a value in the last sweep.
        values: the values after it (S,).
    """

    sweeps: Array
    change: Array
    values: Array


class _Improved(NamedTuple):
    """The state of policy iteration.

    Attributes:
        rounds: the number of rounds so far.
        error: the largest change of a backup in the last round.
        error_before: that of the round before.
        values: the values after the last round (S,).
    """

    rounds: Array
    error: Array
    error_before: Array
    values: Array


def _improve(
    dynamics: Dynamics,
    planning: Planning,
    reward: Array,
    values: Array,
) -> Solution:
    """Iterate policies: V ← V + (I − γP_μ)⁻¹(TV − V), with T the soft backup and μ = softmax(kQ).

    This is Newton's method for V = TV, since T has the derivative γP_μ. T is convex and monotone,
    so it converges from anywhere. It takes a few rounds at any discount, where value iteration
    takes thousands of sweeps near γ = 1.
    """
    # The rounding error of a backup, in units of the largest value, is at most a few times the
    # machine's precision.
    rounding = 16 * jnp.finfo(values.dtype).eps

    def unfinished(state: _Improved) -> Array:
        # Each comparison is false for values that are not finite, which end the iteration.
        large = state.error > planning.tolerance
        more_than_rounding = state.error > rounding * jnp.max(jnp.abs(state.values))
        falling = state.error < state.error_before / 2
        return large & (more_than_rounding | falling) & (state.rounds < MOST_ROUNDS)

    def another(state: _Improved) -> _Improved:
        backup, q = bellman(dynamics, planning, reward, state.values)
        change = backup - state.values
        # The maximum is taken off before k multiplies: values may be large.
        advantage = q - jnp.max(q, axis=0)
        soft_greedy = jax.nn.softmax(planning.sharpness * advantage, axis=0)
        solvers = onward(dynamics, planning, soft_greedy)
        return _Improved(
            values=state.values + solvers.ahead(change),
            rounds=state.rounds + 1,
            error=jnp.max(jnp.abs(change)),
            error_before=state.error,
        )

    unknown = jnp.full((), jnp.inf, values.dtype)
    start = _Improved(jnp.full((), 0), unknown, unknown, values)
    values = jax.lax.while_loop(unfinished, another, start).values
    return _solution(dynamics, planning, reward, values)


def log_policy(q: Array) -> Array:
    """Return log π(a|s) with π ∝ exp Q, the policy of teacher and learner.

    Args:
        q: Q (A, S).

    Returns:
        The logarithms (A, S).
    """
    return jax.nn.log_softmax(q, axis=0)


class Onward(NamedTuple):
    """Discounted sums over the future (``ahead``) and the past (``back``), of a vector or of rows.

    Attributes:
        ahead: ``ahead(v)`` returns (I − γP_π)⁻¹v.
        back: ``back(v)`` returns v(I − γP_π)⁻¹.
    """

    ahead: Operator
    back: Operator


def onward(dynamics: Dynamics, planning: Planning, policy: Array) -> Onward:
    """Return the operators (I − γP_π)⁻¹ of a policy (A, S).

    Args:
        dynamics: the transitions.
        planning: how to plan.
        policy: probabilities of the actions (A, S).

    Returns:
        The two operators.
    """
    return solver(
        dynamics,
        planning.discount * policy,
        planning.discount * dynamics.survival,
        planning.tolerance,
    )


def solver(
    dynamics: Dynamics,
    weights: Array,
    rate: float,
    tolerance: float,
) -> Onward:
    """Return solvers with I − P_w for actions weighted by ``weights`` and ‖P_w‖ ≤ ``rate``.

    They take :func:`cheapest_way`.
    """
    terms = _terms(rate, tolerance)

    def solve(v: Array, back: bool) -> Array:
        rows = v.size // dynamics.states
        way = cheapest_way(dynamics, rate, tolerance, rows)
        if way == "walk" and dynamics.walk:
            return _series(dynamics.walk(weights)[back], v, terms)
        if way == "eliminate" and dynamics.eliminate:
            return dynamics.eliminate(weights)[back](v)
        # v(I − P)⁻¹ uses the table as it is; (I − P)⁻¹v is v(I − Pᵀ)⁻¹.
        table = following(dynamics, weights)
        if not back:
            table = table.T
        return geometric_solve(table, v, rate, tolerance)

    return Onward(
        ahead=functools.partial(solve, back=False),
        back=functools.partial(solve, back=True),
    )


def cheapest_way(
    dynamics: Dynamics,
    rate: float,
    tolerance: float,
    rows: int,
) -> str:
    """Choose how to solve for ``rows`` right-hand sides.

    The ways are ``walk`` (the series), ``eliminate`` and ``table``. On a CPU, it is the one with
    the least work; the two numbers are the costs of a multiplication in a walk and in an
    elimination, relative to a matrix product (docs/reference/performance.md). On a GPU every round
    costs a launch: it uses a table for everything that is small or slow to converge, except for a
    single vector.
    """
    terms = _terms(rate, tolerance)
    states = dynamics.states
    if not on_cpu():
        is_short = rows == 1 and terms <= MOST_UNROLLED
        if dynamics.walk and (is_short or states > MOST_ON_TABLE):
            return "walk"
        return "table"
    doublings, remaining = _cheapest_split(rate, tolerance, states, rows)
    of_doublings = doublings * (states + rows)
    of_terms = (remaining - 1) * rows
    work = {"table": states * (of_doublings + of_terms)}
    if dynamics.walk:
        work["walk"] = 6 * dynamics.degree * terms * rows
    if dynamics.eliminate:
        size = dynamics.columns
        work["eliminate"] = 16 * (size**2 + 2 * size * rows)
    return min(work, key=lambda way: work[way])


def geometric_solve(
    matrix: Array,
    right: Array,
    rate: float,
    tolerance: float,
) -> Array:
    """Return b(I − A)⁻¹ = b + bA + bA² + … for ‖A‖ ≤ rate < 1; b is one row or several.

    It uses only matrix products. It does a few doublings, b ← b + bA and A ← A², then sums the
    remaining terms one by one.
    """
    product = functools.partial(jnp.matmul, precision=HIGHEST)
    rows = right.size // len(matrix)
    doublings, terms = _cheapest_split(rate, tolerance, len(matrix), rows)
    for _ in range(doublings):
        right = right + product(right, matrix)
        matrix = product(matrix, matrix)
    return _series(lambda solution: product(solution, matrix), right, terms)


def _series(apply: Operator, right: Array, terms: int) -> Array:
    """Sum the first ``terms`` of b + Ab + A²b + … = b + A(b + A(b + …)).

    Long sums use a loop, on a CPU from 7 terms on.
    """
    most_unrolled = MOST_UNROLLED
    if on_cpu():
        most_unrolled = MOST_UNROLLED_ON_CPU

    def one_more_term(_: Array, solution: Array) -> Array:
        return right + apply(solution)

    unroll = terms <= most_unrolled
    return jax.lax.fori_loop(1, terms, one_more_term, right, unroll=unroll)


def _terms(rate: float, tolerance: float) -> int:
    """Return the number of terms n after which the rest of the series is small.

    The rest, rateⁿ/(1 − rate), is then below twice the tolerance.
    """
    if not rate:
        return 1
    within = tolerance * min(1.0, 2 * (1 - rate))
    return math.ceil(max(1.0, math.log(within) / math.log(rate)))


def _cheapest_split(
    rate: float,
    tolerance: float,
    states: int,
    rows: int,
) -> tuple[int, int]:
    """Return the numbers of doublings and of terms that reach the tolerance with the least work.

    On a GPU these are the fewest calls.
    """
    needed = _terms(rate, tolerance)
    per_call = CALL
    if on_cpu():
        per_call = 0

    def terms_after(doublings: int) -> int:
        return math.ceil(needed / 2**doublings)

    def work(doublings: int) -> int:
        # A doubling multiplies the rows and the table, a term the rows alone.
        of_doublings = doublings * (states + rows + 2 * per_call)
        of_terms = (terms_after(doublings) - 1) * (rows + per_call)
        return of_doublings + of_terms

    most_doublings = math.ceil(math.log2(needed))
    doublings = min(range(most_doublings + 1), key=work)
    return doublings, terms_after(doublings)


def expected_return(
    dynamics: Dynamics,
    planning: Planning,
    q: Array,
    reward: Array,
    starts: tuple[int, ...] = (),
) -> Array:
    """Return what the policy that is greedy in Q earns until death or a goal, by a linear solve.

    It is not discounted if every step can end in death; otherwise the sum could be infinite, and γ
    discounts it. So the greedy policy of the true reward, which discounts, need not have the
    highest return.

    Args:
        dynamics: the transitions.
        planning: how to plan.
        q: Q of the plan (A, S).
        reward: reward of every state (S,).
        starts: the states to start from, all equally likely; () for all but the goals.

    Returns:
        The return, a scalar.
    """
    actions = jnp.arange(q.shape[0])
    is_best = actions[:, None] == jnp.argmax(q, axis=0)
    greedy = is_best.astype(reward.dtype)  # probabilities of the actions (A, S)
    by_action = dynamics.expect(reward)  # the mean reward of the next state (A, S)
    next_reward = jnp.sum(greedy * by_action, axis=0)
    discount = 1.0
    if dynamics.survival >= 1:
        discount = planning.discount
    rate = discount * dynamics.survival
    solvers = solver(dynamics, discount * greedy, rate, tolerance=1e-9)
    returns = solvers.ahead(next_reward)
    if not starts and dynamics.goals:
        starts = tuple(np.flatnonzero(~dynamics.ended()).tolist())
    if starts:
        returns = returns[np.array(starts)]
    return jnp.mean(returns)
