"""Worlds of states and actions: where actions lead, what planning makes of a reward, how a policy does."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ital._types import Array
from ital.errors import InputError
from ital.gradients import HIGHEST

MOST_SWEEPS = 10_000
MOST_UNROLLED = 24
Operator = Callable[[Array], Array]


class Dynamics(NamedTuple):
    """Where actions lead.

    ``expect(u)`` (A, S) is the mean of u over the next state, for each action in each state (nothing if it dies);
    ``leave(s, w)`` (S,) is Σₐ wₐ P(·|s,a): where state s leads when its actions count ``w`` (A,).
    ``survival`` is the largest probability of not dying in a step; ``even`` says that it is the same everywhere.
    ``walk(w)`` is v ↦ P_w v and v ↦ v P_w when actions count ``w`` (A, S), where that takes less than a table P_w.
    """

    states: int
    actions: int
    expect: Callable[[Array], Array]
    leave: Callable[[Array, Array], Array]
    survival: float
    even: bool
    walk: Callable[[Array], tuple[Operator, Operator]] | None = None


@functools.cache
def grid(size: int, slip: float = 0.06, death: float = 0.02) -> Dynamics:
    """A size × size grid with the actions up, down, left and right.

    An action goes its way, or with probability ``slip`` in each other direction, or dies; bumping into the wall
    stays. Only the four neighbours are ever looked at.
    """
    if size < 1:
        raise InputError(f"a grid needs at least one cell, not size {size}")
    if not (slip >= 0 and death >= 0 and death + 3 * slip <= 1):
        raise InputError(f"slip {slip} and death {death} must be probabilities with death + 3·slip at most 1")
    own_way = 1.0 - death - 3 * slip
    row, column = np.divmod(np.arange(size * size), size)
    towards = np.stack(
        [
            np.maximum(row - 1, 0) * size + column,
            np.minimum(row + 1, size - 1) * size + column,
            row * size + np.maximum(column - 1, 0),
            row * size + np.minimum(column + 1, size - 1),
        ]
    ).astype(np.int32)

    def slipping(straight: Any) -> list[Array]:
        """What an action amounts to that mostly goes straight."""
        anywhere = slip * functools.reduce(jnp.add, straight)
        return [(own_way - slip) * way + anywhere for way in straight]

    def expect(u: Array) -> Array:
        return jnp.stack(slipping([u[cells] for cells in towards]))

    def leave(state: Array, weights: Array) -> Array:
        cells = jnp.arange(size * size)
        ways = zip(jnp.asarray(towards), slipping(weights), strict=True)
        return functools.reduce(jnp.add, [jnp.where(cells == to[state], way, 0.0) for to, way in ways])

    before = towards[[1, 0, 3, 2]]  # the neighbour from whom an action leads here, unless there is a wall
    bumps, enters = towards == np.arange(size * size), before != np.arange(size * size)

    def walk(weights: Array) -> tuple[Operator, Operator]:
        ways = slipping(weights)
        staying = functools.reduce(jnp.add, [jnp.where(bumps[a], way, 0.0) for a, way in enumerate(ways)])
        entering = [jnp.where(enters[a], way[before[a]], 0.0) for a, way in enumerate(ways)]

        def ahead(v: Array) -> Array:
            return functools.reduce(jnp.add, [way * v[to] for way, to in zip(ways, towards, strict=True)])

        def back(v: Array) -> Array:
            arrived = [way * v[start] for way, start in zip(entering, before, strict=True)]
            return functools.reduce(jnp.add, arrived, staying * v)

        return ahead, back

    return Dynamics(size * size, 4, expect, leave, 1.0 - death, True, walk)


def real(what: str, values: ArrayLike) -> np.ndarray:
    """Values as an array of real numbers; refuses anything else in a line."""
    try:
        array = np.asarray(values)
        if not (np.issubdtype(array.dtype, np.floating) or np.issubdtype(array.dtype, np.integer)):
            raise ValueError
    except ValueError:
        raise InputError(f"{what} must be an array of real numbers, all rows of one length") from None
    return array.astype(float)


def tabular(transitions: ArrayLike) -> Dynamics:
    """Any world: ``transitions[a, s, s′]`` = P(s′|s,a); what a row lacks to 1 is the probability of dying."""
    p = real("transitions", transitions)
    if p.ndim != 3 or p.shape[1] != p.shape[2] or 0 in p.shape:
        raise InputError(f"transitions must have the shape (actions, states, states), not {p.shape}")
    if not np.isfinite(p).all() or (p < 0).any():
        raise InputError("transitions hold values that are not probabilities")
    rows = p.sum(axis=2)
    if (rows > 1 + 1e-6).any():
        action, state = np.unravel_index(np.argmax(rows), rows.shape)
        raise InputError(f"transitions of action {action} in state {state} sum to {rows.max():g}, more than 1")

    def table() -> Array:
        return jnp.asarray(p, jnp.result_type(float))

    def expect(u: Array) -> Array:
        return jnp.matmul(table(), u, precision=HIGHEST)

    def leave(state: Array, weights: Array) -> Array:
        return jnp.einsum("a,at->t", weights, table()[:, state], precision=HIGHEST)

    survival = float(rows.max()) if rows.max() < 1 - 1e-6 else 1.0  # rows that miss 1 by rounding: nobody dies
    return Dynamics(p.shape[1], p.shape[0], expect, leave, survival, bool(np.ptp(rows) < 1e-6))


def following(dynamics: Dynamics, policy: Array) -> Array:
    """P_π (S, S): row s says where ``policy`` (A, S) leads from state s."""
    return jax.vmap(dynamics.leave, in_axes=(0, 1))(jnp.arange(dynamics.states), policy)


class Planning(NamedTuple):
    """How everybody plans: discount γ, sharpness k of the soft maximum, and when value iteration stops."""

    discount: float = 0.5
    sharpness: float = 220.0
    tolerance: float = 1e-6


def check(dynamics: Dynamics, planning: Planning) -> None:
    """Refuses worlds in which planning has no end."""
    if not (planning.sharpness > 0 and math.isfinite(planning.sharpness)):
        raise InputError(f"the sharpness k must be positive, not {planning.sharpness}")
    if not (planning.discount >= 0 and planning.discount * dynamics.survival < 1):
        raise InputError(f"the discount must be below 1 where not every step can end in death, not {planning.discount}")
    if not planning.tolerance > 0:
        raise InputError(f"the tolerance of value iteration must be positive, not {planning.tolerance}")


class Plan(NamedTuple):
    """What follows from a reward: the values V, and Q (A, S)."""

    reward: Array
    values: Array
    q: Array


def bellman(dynamics: Dynamics, planning: Planning, reward: Array, values: Array) -> tuple[Array, Array]:
    """Soft Bellman backup: Q(s,a) = Σ P(s′|s,a)[r(s′)+γV(s′)], V(s) = (1/k) log Σₐ exp(kQ(s,a)); returns V, Q."""
    q = dynamics.expect(reward + planning.discount * values)
    return soft_maximum(planning.sharpness, q), q


def soft_maximum(k: float, q: Array) -> Array:
    """(1/k) log Σₐ exp(kQ(·,a)), action by action: the compiler then makes one pass of a whole sweep."""
    largest = functools.reduce(jnp.maximum, q)
    return largest + jnp.log(functools.reduce(jnp.add, [jnp.exp(k * (action - largest)) for action in q])) / k


def plan(dynamics: Dynamics, planning: Planning, reward: Array) -> Plan:
    """Value iteration from zero until the largest change is below the tolerance (NaN if it never is)."""
    return _sweep(dynamics, planning, reward, jnp.zeros_like(reward), blindly=23)


def replan(dynamics: Dynamics, planning: Planning, reward: Array, values: Array) -> Plan:
    """Value iteration from the ``values`` of a reward that was much the same.

    A GPU loses more time with asking whether it has converged than with sweeping. So there it sweeps as often as it
    takes to make any change 5000 times smaller (12 times at γ = 0.5) and does not ask, if that is not too often.
    """
    rate = planning.discount * dynamics.survival
    enough = math.ceil(math.log(1 / 5000) / math.log(rate)) if rate else 1
    if jax.default_backend() == "cpu" or enough > 16:
        return _sweep(dynamics, planning, reward, values)
    for _ in range(enough):
        values, _ = bellman(dynamics, planning, reward, values)
    return Plan(reward, values, bellman(dynamics, planning, reward, values)[1])


def _sweep(dynamics: Dynamics, planning: Planning, reward: Array, values: Array, blindly: int = 0) -> Plan:
    """Sweeps until converged, the first few times without asking."""

    def sweep(values: Array) -> Array:
        return bellman(dynamics, planning, reward, values)[0]

    # What has not converged when any change should be 10³⁰ times smaller never will: its values are too large to
    # stand still in this precision.
    rate = planning.discount * dynamics.survival
    most = min(MOST_SWEEPS, blindly + 1 + math.ceil(-30 / math.log10(rate))) if 0 < rate < 1 else MOST_SWEEPS

    def go_on(state: tuple[Array, Array, Array]) -> Array:
        sweeps, change, _ = state
        return (change > planning.tolerance) & (sweeps < most)

    def another(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        sweeps, _, values = state
        better = sweep(values)
        return sweeps + 1, jnp.max(jnp.abs(better - values)), better

    if blindly:
        loops_cost = jax.default_backend() != "cpu"
        values = jax.lax.fori_loop(0, blindly, lambda _, values: sweep(values), values, unroll=loops_cost)
    begun = jnp.full((), blindly), jnp.full((), jnp.inf, values.dtype), values
    _, change, values = jax.lax.while_loop(go_on, another, begun)
    values = jnp.where(change <= planning.tolerance, values, jnp.nan)
    return Plan(reward, values, bellman(dynamics, planning, reward, values)[1])


def log_policy(q: Array) -> Array:
    """log π(a|s), π ∝ exp Q: the policy of everyone."""
    return jax.nn.log_softmax(q, axis=0)


class Onward(NamedTuple):
    """All that follows, discounted: ``ahead(v)`` is (I − γP_π)⁻¹v and ``back(v)`` is v(I − γP_π)⁻¹, also of rows."""

    ahead: Operator
    back: Operator


def onward(dynamics: Dynamics, planning: Planning, policy: Array) -> Onward:
    """Solves by matrix products; where there is a GPU and no need for a table, those of one vector by walking."""
    matrix = planning.discount * following(dynamics, policy)
    rate = planning.discount * dynamics.survival
    solve = functools.partial(geometric_solve, rate=rate, tolerance=planning.tolerance)
    solved = Onward(lambda v: solve(matrix.T, v), lambda v: solve(matrix, v))
    terms = _terms(rate, planning.tolerance)
    if dynamics.walk is None or jax.default_backend() == "cpu" or terms > MOST_UNROLLED:
        return solved
    ahead, back = dynamics.walk(planning.discount * policy)
    return Onward(
        ahead=lambda v: _series(ahead, v, terms),
        back=lambda v: _series(back, v, terms) if v.ndim == 1 else solved.back(v),
    )


def geometric_solve(matrix: Array, right: Array, rate: float, tolerance: float) -> Array:
    """b(I − A)⁻¹ = b + bA + bA² + … for ‖A‖ ≤ rate < 1, by matrix products alone; b is a row or several.

    A few doublings, b ← b + bA and A ← A², then as many terms of what is left as it takes.
    """
    product = functools.partial(jnp.matmul, precision=HIGHEST)
    doublings, terms = _cheapest(rate, tolerance, len(matrix), right.size // len(matrix))
    for _ in range(doublings):
        right = right + product(right, matrix)
        matrix = product(matrix, matrix)
    return _series(lambda solution: product(solution, matrix), right, terms)


def _series(apply: Operator, right: Array, terms: int) -> Array:
    """The first ``terms`` of b + Ab + A²b + … = b + A(b + A(b + …)); long ones are a loop, on a CPU sooner."""
    unroll = terms <= (6 if jax.default_backend() == "cpu" else MOST_UNROLLED)
    return jax.lax.fori_loop(1, terms, lambda _, x: right + apply(x), right, unroll=unroll)


def _terms(rate: float, tolerance: float) -> int:
    """How many terms of the series leave less than the tolerance."""
    return math.ceil(max(1.0, math.log(tolerance) / math.log(rate))) if rate else 1


def _cheapest(rate: float, tolerance: float, states: int, rows: int) -> tuple[int, int]:
    """How many doublings and terms reach the tolerance with the least work: rows of products, or on a GPU calls."""
    needed = _terms(rate, tolerance)
    per_call = 0 if jax.default_backend() == "cpu" else 1000

    def work(doublings: int) -> int:
        terms = math.ceil(needed / 2**doublings)
        return doublings * (states + rows + 2 * per_call) + (terms - 1) * (rows + per_call)

    best = min(range(math.ceil(math.log2(needed)) + 1), key=work)
    return best, math.ceil(needed / 2**best)


def expected_return(dynamics: Dynamics, planning: Planning, q: Array, reward: Array) -> Array:
    """The exact return until death of the policy greedy in Q, from a uniform start: a linear solve.

    Undiscounted, but where nobody need die, and the sum would have no end, discounted by γ.
    """
    greedy = (jnp.arange(q.shape[0])[:, None] == jnp.argmax(q, axis=0)).astype(reward.dtype)
    leading = following(dynamics, greedy)
    first = jnp.matmul(leading, reward, precision=HIGHEST)
    discount = 1.0 if dynamics.survival < 1 else planning.discount
    return jnp.mean(geometric_solve(discount * leading.T, first, discount * dynamics.survival, 1e-6))
