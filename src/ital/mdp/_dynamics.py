"""Transitions: grids, and any world given as a table."""

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

FEWEST_SPARSE = 256  # below this number of states, a matrix product is as fast as lists of successors
Operator = Callable[[Array], Array]


class Dynamics(NamedTuple):
    """The transitions of a world.

    P_w is the table of transitions with actions weighted by ``w`` (A, S). The last three fields replace that table.

    Attributes:
        states: number of states S.
        actions: number of actions A.
        expect: ``expect(u)`` (A, S) is the mean of u over the next state, for each action in each state (death counts
            as 0).
        leave: ``leave(s, w)`` (S,) is Σₐ wₐ P(·|s,a): the transitions from state s with actions weighted by ``w`` (A,).
        survival: the largest probability of not dying in a step.
        even: whether that probability is the same everywhere.
        walk: ``walk(w)`` returns v ↦ P_w v and v ↦ v P_w, of a vector or of rows.
        eliminate: ``eliminate(w)`` returns v ↦ (I − P_w)⁻¹v and v ↦ v(I − P_w)⁻¹, exactly.
        degree: number of cells that a walk reads per state.
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

    An action moves in its direction, or with probability ``slip`` in each other direction, or dies. A move into a wall
    stays in place. Only the four neighbours are ever read.

    Args:
        size: number of cells along a side.
        slip: probability of moving in each other direction.
        death: probability of dying in a step.

    Returns:
        The dynamics; the same object for the same arguments.

    Raises:
        InputError: if the size or the probabilities are not valid.
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
        """v at ``cells + offset``, arbitrary beyond the ends; on a CPU a slice is several times as fast as a gather."""
        if not on_cpu():
            return v[..., np.clip(cells + offset, 0, states - 1)]
        padded = jnp.pad(v, [(0, 0)] * (v.ndim - 1) + [(size, size)])
        return padded[..., size + offset : size + offset + states]

    def slipping(straight: Any) -> list[Array]:
        """Combine the four straight moves into actions that sometimes slip."""
        anywhere = slip * functools.reduce(jnp.add, straight)
        return [(own_way - slip) * way + anywhere for way in straight]

    def expect(u: Array) -> Array:
        if not on_cpu():  # on a GPU sweeps are unrolled, and slices would take minutes to compile
            return jnp.stack(slipping([u[to] for to in towards]))
        ways = zip(bumps, offsets, strict=True)
        return jnp.stack(slipping([jnp.where(bump, u, beside(u, offset)) for bump, offset in ways]))

    def leave(state: Array, weights: Array) -> Array:
        ways = zip(jnp.asarray(towards), slipping(weights), strict=True)
        return functools.reduce(jnp.add, [jnp.where(jnp.arange(states) == to[state], way, 0.0) for to, way in ways])

    def diagonals(weights: Array) -> tuple[list[Array], list[Array]]:
        """P_w and its transpose: the weight of the cell itself, then of the cells above, below, left and right."""
        ways = slipping(weights)
        stays = functools.reduce(jnp.add, [jnp.where(bump, way, 0.0) for bump, way in zip(bumps, ways, strict=True)])
        goes = [jnp.where(bump, 0.0, way) for bump, way in zip(bumps, ways, strict=True)]
        opposites = [goes[a] for a in (1, 0, 3, 2)]
        comes = [jnp.where(bumps[a], 0.0, beside(way, offsets[a])) for a, way in enumerate(opposites)]
        return [stays, *goes], [stays, *comes]

    def times(diagonals: list[Array], v: Array) -> Array:
        stays, *reads = diagonals
        read = [weight * beside(v, offset) for weight, offset in zip(reads, offsets, strict=True)]
        return functools.reduce(jnp.add, read, stays * v)

    def both_ways(operation: Callable[[list[Array], Array], Array], weights: Array) -> tuple[Operator, Operator]:
        ahead, back = (functools.partial(operation, matrix) for matrix in diagonals(weights))
        return ahead, back

    walk, eliminate = functools.partial(both_ways, times), functools.partial(both_ways, _eliminate)
    return Dynamics(states, 4, expect, leave, 1.0 - death, True, walk, eliminate, degree=5)


def _eliminate(diagonals: list[Array], right: Array) -> Array:
    """Solve x = Px + b on a square grid by block elimination, in O(n⁴) instead of O(n⁶) for a table.

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
        """Do one round of Gauss–Jordan in place; I − P is diagonally dominant and needs no pivoting."""
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
    """Values as an array of real numbers.

    Args:
        what: what the values are, for the error message.
        values: anything that NumPy can convert to an array.

    Returns:
        The array.

    Raises:
        InputError: if they are not real numbers, or rows differ in length.
    """
    try:
        array = np.asarray(values)
        if not (np.issubdtype(array.dtype, np.floating) or np.issubdtype(array.dtype, np.integer)):
            raise ValueError
    except ValueError:
        raise InputError(f"{what} must be an array of real numbers, all rows of one length") from None
    return array.astype(float)


def tabular(transitions: ArrayLike) -> Dynamics:
    """The dynamics of any world: ``transitions[a, s, s′]`` = P(s′|s,a); a row sums to 1 minus the probability of dying.

    Args:
        transitions: the table (A, S, S).

    Returns:
        The dynamics.

    Raises:
        InputError: if the table has another shape or holds no probabilities.
    """
    p = real("transitions", transitions)
    if p.ndim != 3 or p.shape[1] != p.shape[2] or 0 in p.shape:
        raise InputError(f"transitions must have the shape (actions, states, states), not {p.shape}")
    if not np.isfinite(p).all() or (p < 0).any():
        raise InputError("transitions hold values that are not probabilities")
    rows = p.sum(axis=2)
    if (rows > 1 + 1e-6).any():
        action, state = np.unravel_index(np.argmax(rows), rows.shape)
        raise InputError(f"transitions of action {action} in state {state} sum to {rows.max():g}, more than 1")

    survival = float(rows.max()) if rows.max() < 1 - 1e-6 else 1.0  # rows that differ from 1 only by rounding: no death
    even = bool(np.ptp(rows) < 1e-6)
    linked = np.any(p > 0, axis=0)
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
    """Dynamics stored as lists, for a table in which each state has at most ``degree`` successors and predecessors."""
    states = len(linked)
    successors, predecessors = _lists(linked, degree), _lists(linked.T, degree)
    leads = np.take_along_axis(p, successors[None], axis=2) * np.take_along_axis(linked, successors, axis=1)
    comes = np.take_along_axis(p.swapaxes(1, 2), predecessors[None], axis=2)
    comes *= np.take_along_axis(linked.T, predecessors, axis=1)

    def probabilities(lists: np.ndarray) -> Array:
        return jnp.asarray(lists, jnp.result_type(float))

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
    """The states linked to each state (S, degree); short lists are padded with other states."""
    return np.argsort(~linked, axis=1, kind="stable")[:, :degree].astype(np.int32)


def following(dynamics: Dynamics, policy: Array) -> Array:
    """P_π (S, S), the transitions under ``policy`` (A, S): row s is for state s.

    Args:
        dynamics: the transitions.
        policy: probabilities of the actions (A, S).

    Returns:
        The table.
    """
    return jax.vmap(dynamics.leave, in_axes=(0, 1))(jnp.arange(dynamics.states), policy)
