"""Worlds of states and actions: where actions lead, what planning makes of a reward, how a policy does."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ital._platform import on_cpu
from ital._types import Array
from ital.errors import InputError
from ital.gradients import HIGHEST

MOST_SWEEPS = 10_000
MOST_UNROLLED = 24
FEWEST_SPARSE = 256  # states of a table, below which a matrix product is as fast as lists of successors
MOST_ON_TABLE = 512  # states; an estimate from the launches and the arithmetic of a GPU
Operator = Callable[[Array], Array]


class Dynamics(NamedTuple):
    """Where actions lead.

    ``expect(u)`` (A, S) is the mean of u over the next state, for each action in each state (nothing if it dies);
    ``leave(s, w)`` (S,) is Σₐ wₐ P(·|s,a): where state s leads when its actions count ``w`` (A,).
    ``survival`` is the largest probability of not dying in a step; ``even`` says that it is the same everywhere.

    Three fields make a table P_w of where actions lead that count ``w`` (A, S) unnecessary. ``walk(w)`` is v ↦ P_w v
    and v ↦ v P_w, of a vector or of rows; ``eliminate(w)`` is v ↦ (I − P_w)⁻¹v and v ↦ v(I − P_w)⁻¹, exactly;
    ``degree`` is the number of cells that a walk reads per state.
    """

    states: int
    actions: int
    expect: Callable[[Array], Array]
    leave: Callable[[Array, Array], Array]
    survival: float
    even: bool
    walk: Callable[[Array], tuple[Operator, Operator]] | None = None
    eliminate: Callable[[Array], tuple[Operator, Operator]] | None = None
    degree: int = 0


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
    states, cells = size * size, np.arange(size * size)
    row, column = np.divmod(cells, size)
    offsets = (-size, size, -1, 1)
    bumps = np.stack([row == 0, row == size - 1, column == 0, column == size - 1])
    towards = np.where(bumps, cells, cells + np.reshape(offsets, (4, 1))).astype(np.int32)

    def beside(v: Array, offset: int) -> Array:
        """v at ``cells + offset``, anything beyond the ends; on a CPU a slice is several times as fast as a gather."""
        if not on_cpu():
            return v[..., np.clip(cells + offset, 0, states - 1)]
        padded = jnp.pad(v, [(0, 0)] * (v.ndim - 1) + [(size, size)])
        return padded[..., size + offset : size + offset + states]

    def slipping(straight: Any) -> list[Array]:
        """What an action amounts to that mostly goes straight."""
        anywhere = slip * functools.reduce(jnp.add, straight)
        return [(own_way - slip) * way + anywhere for way in straight]

    def expect(u: Array) -> Array:
        return jnp.stack(slipping([u[to] for to in towards]))

    def leave(state: Array, weights: Array) -> Array:
        ways = zip(jnp.asarray(towards), slipping(weights), strict=True)
        return functools.reduce(jnp.add, [jnp.where(jnp.arange(states) == to[state], way, 0.0) for to, way in ways])

    def diagonals(weights: Array) -> tuple[list[Array], list[Array]]:
        """P_w and its transpose: what each cell reads of itself, then of those above, below, left and right."""
        ways = slipping(weights)
        stays = functools.reduce(jnp.add, [jnp.where(bump, way, 0.0) for bump, way in zip(bumps, ways, strict=True)])
        goes = [jnp.where(bump, 0.0, way) for bump, way in zip(bumps, ways, strict=True)]
        comes = [
            jnp.where(bumps[a], 0.0, beside(goes[opposite], offsets[a])) for a, opposite in enumerate((1, 0, 3, 2))
        ]
        return [stays, *goes], [stays, *comes]

    def times(diagonals: list[Array], v: Array) -> Array:
        stays, *reads = diagonals
        read = [weight * beside(v, offset) for weight, offset in zip(reads, offsets, strict=True)]
        return functools.reduce(jnp.add, read, stays * v)

    def both(operation: Callable[[list[Array], Array], Array]) -> Callable[[Array], tuple[Operator, Operator]]:
        def operators(weights: Array) -> tuple[Operator, Operator]:
            ahead, back = (functools.partial(operation, matrix) for matrix in diagonals(weights))
            return ahead, back

        return operators

    return Dynamics(states, 4, expect, leave, 1.0 - death, True, both(times), both(_eliminate), degree=5)


def _eliminate(diagonals: list[Array], right: Array) -> Array:
    """Solves x = Px + b on a square grid by block elimination: n⁴ for n⁶ of a table.

    With the cells of a row of the grid as a block, I − P is block tridiagonal: row i reads
    Tᵢxᵢ = bᵢ + uᵢ∘xᵢ₋₁ + dᵢ∘xᵢ₊₁, where Tᵢ holds the moves within the row and the other blocks are diagonal. From the
    first row down xᵢ = yᵢ + Gᵢxᵢ₊₁, with (Tᵢ − uᵢ∘Gᵢ₋₁)[yᵢ, Gᵢ] = [bᵢ + uᵢ∘yᵢ₋₁, dᵢ]; then back up. All blocks are
    written transposed, so that the rows of b stay rows.
    """
    size = math.isqrt(right.shape[-1])
    cells, identity = jnp.arange(size), jnp.eye(size, dtype=right.dtype)
    blocks = [diagonal.reshape(size, size) for diagonal in diagonals]
    rights = jnp.moveaxis(right.reshape(-1, size, size), 0, 1)

    def pivot(k: Array, block: Array) -> Array:
        """A round of Gauss–Jordan in place; I − P is diagonally dominant and needs no other pivots."""
        here = cells == k
        row = jnp.where(here, 1.0, block[k]) / block[k, k]
        return jnp.where(here[:, None], row, jnp.where(here, 0.0, block) - block[:, k, None] * row)

    def down(above: tuple[Array, Array], row: tuple[list[Array], Array]) -> tuple[Any, Any]:
        (passed_on, solved), ((stays, from_above, from_below, left, right), b) = above, row
        within = identity * (1 - stays) - jnp.roll(identity, 1, 1) * left - jnp.roll(identity, -1, 1) * right
        inverse = jax.lax.fori_loop(0, size, pivot, within - passed_on * from_above)
        solved = jnp.matmul(b + from_above * solved, inverse, precision=HIGHEST)
        return (from_below[:, None] * inverse, solved), (from_below[:, None] * inverse, solved)

    def up(below: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        passed_on, solved = row
        x = solved + jnp.matmul(below, passed_on, precision=HIGHEST)
        return x, x

    none = jnp.zeros_like(identity), jnp.zeros_like(rights[0])
    _, eliminated = jax.lax.scan(down, none, (blocks, rights))
    _, x = jax.lax.scan(up, none[1], eliminated, reverse=True)
    return jnp.moveaxis(x, 0, 1).reshape(right.shape)


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

    survival = float(rows.max()) if rows.max() < 1 - 1e-6 else 1.0  # rows that miss 1 by rounding: nobody dies
    even = bool(np.ptp(rows) < 1e-6)
    linked = np.any(p > 0, axis=0, keepdims=True)[0]
    degree = int(max(linked.sum(axis=0).max(), linked.sum(axis=1).max()))
    if len(linked) >= FEWEST_SPARSE and 16 * degree <= len(linked):
        return _sparse(p, linked, degree, survival, even)

    def table() -> Array:
        return jnp.asarray(p, jnp.result_type(float))

    def expect(u: Array) -> Array:
        return jnp.matmul(table(), u, precision=HIGHEST)

    def leave(state: Array, weights: Array) -> Array:
        return jnp.einsum("a,at->t", weights, table()[:, state], precision=HIGHEST)

    return Dynamics(p.shape[1], p.shape[0], expect, leave, survival, even)


def _sparse(p: np.ndarray, linked: np.ndarray, degree: int, survival: float, even: bool) -> Dynamics:
    """A table of which each state has at most ``degree`` successors and predecessors: lists of them, no table."""
    states = len(linked)
    successors, predecessors = _lists(linked, degree), _lists(linked.T, degree)
    leads = np.take_along_axis(p, successors[None], axis=2) * np.take_along_axis(linked, successors, axis=1)
    comes = np.take_along_axis(p.swapaxes(1, 2), predecessors[None], axis=2)
    comes *= np.take_along_axis(linked.T, predecessors, axis=1)

    def probabilities(listed: np.ndarray) -> Array:
        return jnp.asarray(listed, jnp.result_type(float))

    def expect(u: Array) -> Array:
        return jnp.sum(probabilities(leads) * u[successors], axis=-1)

    def leave(state: Array, weights: Array) -> Array:
        ways = jnp.matmul(weights, probabilities(leads)[:, state], precision=HIGHEST)
        return jnp.zeros(states, ways.dtype).at[jnp.asarray(successors)[state]].add(ways)

    def walk(weights: Array) -> tuple[Operator, Operator]:
        going = jnp.sum(weights[..., None] * probabilities(leads), axis=0)
        coming = jnp.sum(weights[:, predecessors] * probabilities(comes), axis=0)
        return (
            lambda v: jnp.sum(going * v[..., successors], axis=-1),
            lambda v: jnp.sum(coming * v[..., predecessors], axis=-1),
        )

    return Dynamics(states, len(p), expect, leave, survival, even, walk, degree=3 * degree)


def _lists(linked: np.ndarray, degree: int) -> np.ndarray:
    """The states linked to each state (S, degree); lists that are too short are filled up with others."""
    return np.argsort(~linked, axis=1, kind="stable")[:, :degree].astype(np.int32)


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


class Solution(NamedTuple):
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


def plan(dynamics: Dynamics, planning: Planning, reward: Array) -> Solution:
    """Value iteration from zero until the largest change is below the tolerance (NaN if it never is)."""
    return _sweep(dynamics, planning, reward, jnp.zeros_like(reward), blindly=23)


def replan(dynamics: Dynamics, planning: Planning, reward: Array, values: Array) -> Solution:
    """Value iteration from the ``values`` of a reward that was much the same.

    A GPU loses more time with asking whether it has converged than with sweeping. So there it sweeps as often as it
    takes to make any change 5000 times smaller (12 times at γ = 0.5) and does not ask, if that is not too often.
    """
    rate = planning.discount * dynamics.survival
    enough = math.ceil(math.log(1 / 5000) / math.log(rate)) if rate else 1
    if on_cpu() or enough > 16:
        return _sweep(dynamics, planning, reward, values)
    for _ in range(enough):
        values, _ = bellman(dynamics, planning, reward, values)
    return Solution(reward, values, bellman(dynamics, planning, reward, values)[1])


def _sweep(dynamics: Dynamics, planning: Planning, reward: Array, values: Array, blindly: int = 0) -> Solution:
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
        loops_cost = not on_cpu()
        values = jax.lax.fori_loop(0, blindly, lambda _, values: sweep(values), values, unroll=loops_cost)
    begun = jnp.full((), blindly), jnp.full((), jnp.inf, values.dtype), values
    _, change, values = jax.lax.while_loop(go_on, another, begun)
    values = jnp.where(change <= planning.tolerance, values, jnp.nan)
    return Solution(reward, values, bellman(dynamics, planning, reward, values)[1])


def log_policy(q: Array) -> Array:
    """log π(a|s), π ∝ exp Q: the policy of everyone."""
    return jax.nn.log_softmax(q, axis=0)


class Onward(NamedTuple):
    """All that follows, discounted: ``ahead(v)`` is (I − γP_π)⁻¹v and ``back(v)`` is v(I − γP_π)⁻¹, also of rows."""

    ahead: Operator
    back: Operator


def onward(dynamics: Dynamics, planning: Planning, policy: Array) -> Onward:
    """Everything that follows from the actions of a policy (A, S), discounted by γ."""
    return solver(dynamics, planning.discount * policy, planning.discount * dynamics.survival, planning.tolerance)


def solver(dynamics: Dynamics, weights: Array, rate: float, tolerance: float) -> Onward:
    """Solves with I − P_w, where actions count ``weights`` and ‖P_w‖ ≤ ``rate``: by :func:`cheapest_way`."""
    terms = _terms(rate, tolerance)

    def solve(v: Array, back: bool) -> Array:
        way = cheapest_way(dynamics, rate, tolerance, v.size // dynamics.states)
        if way == "walk" and dynamics.walk:
            return _series(dynamics.walk(weights)[back], v, terms)
        if way == "eliminate" and dynamics.eliminate:
            return dynamics.eliminate(weights)[back](v)
        table = following(dynamics, weights)
        return geometric_solve(table if back else table.T, v, rate, tolerance)

    return Onward(functools.partial(solve, back=False), functools.partial(solve, back=True))


def cheapest_way(dynamics: Dynamics, rate: float, tolerance: float, rows: int) -> str:
    """How to solve for ``rows`` right-hand sides: ``walk`` along the series, ``eliminate``, or a ``table``.

    On a CPU the way with the least work; the two numbers are the cost of a multiplication in a walk and in an
    elimination, measured in those of a matrix product (docs/performance.md). On a GPU, where every round costs a
    launch, a table for all that is small or slow to converge, but for one vector.
    """
    terms = _terms(rate, tolerance)
    if not on_cpu():
        short = rows == 1 and terms <= MOST_UNROLLED
        return "walk" if dynamics.walk and (short or dynamics.states > MOST_ON_TABLE) else "table"
    doublings, remaining = _cheapest(rate, tolerance, dynamics.states, rows)
    size = math.isqrt(dynamics.states)
    work = {"table": dynamics.states * (doublings * (dynamics.states + rows) + (remaining - 1) * rows)}
    if dynamics.walk:
        work["walk"] = 6 * dynamics.degree * terms * rows
    if dynamics.eliminate:
        work["eliminate"] = 16 * (size**2 + 2 * size * rows)
    return min(work, key=lambda way: work[way])


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
    unroll = terms <= (6 if on_cpu() else MOST_UNROLLED)
    return jax.lax.fori_loop(1, terms, lambda _, x: right + apply(x), right, unroll=unroll)


def _terms(rate: float, tolerance: float) -> int:
    """How many terms of the series leave less than the tolerance."""
    return math.ceil(max(1.0, math.log(tolerance) / math.log(rate))) if rate else 1


def _cheapest(rate: float, tolerance: float, states: int, rows: int) -> tuple[int, int]:
    """How many doublings and terms reach the tolerance with the least work: rows of products, or on a GPU calls."""
    needed = _terms(rate, tolerance)
    per_call = 0 if on_cpu() else 1000

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
    first = jnp.sum(greedy * dynamics.expect(reward), axis=0)
    discount = 1.0 if dynamics.survival < 1 else planning.discount
    return jnp.mean(solver(dynamics, discount * greedy, discount * dynamics.survival, 1e-9).ahead(first))
