"""Transitions: grids, and any world given as a table."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ital.errors import InputError
from ital.gradients import HIGHEST
from ital.tools.platform import on_cpu
from ital.tools.types import Array

FEWEST_SPARSE = (
    256  # below this number of states, a matrix product is as fast as lists of successors
)
Operator = Callable[[Array], Array]


class Dynamics(NamedTuple):
    """The transitions of a world.

    P_w is the table of transitions with actions weighted by ``w`` (A, S). ``walk`` and
    ``eliminate`` replace that table.

    Attributes:
        states: number of states S.
        actions: number of actions A.
        expect: ``expect(u)`` (A, S) is the mean of u over the next state, for each action in each
            state (death counts as 0).
        leave: ``leave(s, w)`` (S,) is Σₐ wₐ P(·|s,a): the transitions from state s with actions
            weighted by ``w`` (A,).
        survival: the largest probability of not dying in a step.
        even: whether that probability is the same everywhere.
        walk: ``walk(w)`` returns v ↦ P_w v and v ↦ v P_w, of a vector or of rows.
        eliminate: ``eliminate(w)`` returns v ↦ (I − P_w)⁻¹v and v ↦ v(I − P_w)⁻¹, exactly.
        degree: number of cells that a walk reads per state.
        columns: number of cells in a row, if ``eliminate`` takes a grid row by row.
        goals: states in which everything ends; their value is 0.
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
    columns: int = 0
    goals: tuple[int, ...] = ()

    def ended(self) -> np.ndarray:
        """Which states are goals.

        Returns:
            Whether each state is one (S,).
        """
        return np.isin(np.arange(self.states), self.goals)


OPPOSITE = (1, 0, 3, 2)  # of up, down, left and right
Cell = tuple[int, int]


@functools.cache
def grid(
    size: int | tuple[int, int],
    slip: float = 0.06,
    death: float = 0.02,
    *,
    walls: tuple[Cell, ...] = (),
    goals: tuple[Cell, ...] = (),
) -> Dynamics:
    """A grid with the actions up, down, left and right.

    An action moves in its direction, or with probability ``slip`` in each other direction, or dies.
    A move into a wall or off the grid stays in place. Nothing leads out of a goal: everything ends
    there. The states are the cells without a wall, row by row. Only the four neighbours are ever
    read.

    Args:
        size: number of cells along a side, or the numbers of rows and columns.
        slip: probability of moving in each other direction.
        death: probability of dying in a step.
        walls: cells that nobody can enter, as (row, column).
        goals: cells in which everything ends.

    Returns:
        The dynamics; the same object for the same arguments.

    Raises:
        InputError: if the size, the probabilities or the cells are not valid.
    """
    rows, columns = size if isinstance(size, tuple) else (size, size)
    if rows < 1 or columns < 1:
        raise InputError(f"a grid needs at least one cell, not size {size}")
    if not (slip >= 0 and death >= 0 and death + 3 * slip <= 1):
        raise InputError(
            f"slip {slip} and death {death} must be probabilities with death + 3·slip at most 1"
        )
    number = numbered(rows, columns, walls)
    if number.max() < 0:
        raise InputError("a grid needs at least one cell without a wall")
    own_way = 1.0 - death - 3 * slip
    states = int(number.max()) + 1
    bumps, towards = _straight_moves(number)
    ends = _ends(goals, number)
    ended = np.isin(np.arange(states), ends)
    offsets = (-columns, columns, -1, 1)

    def beside(v: Array, way: int) -> Array:
        """v at the neighbour in one direction, arbitrary where there is none.

        On a CPU a slice is several times as fast as a gather, but with walls neighbours are not at
        a fixed distance.
        """
        if walls or not on_cpu():
            return v[..., towards[way]]
        padded = jnp.pad(v, [(0, 0)] * (v.ndim - 1) + [(columns, columns)])
        first = columns + offsets[way]
        return padded[..., first : first + states]

    def slipping(straight: Any) -> list[Array]:
        """Combine the four straight moves into actions that sometimes slip."""
        anywhere = slip * functools.reduce(jnp.add, straight)
        return [(own_way - slip) * way + anywhere for way in straight]

    def unless_ended(values: Array) -> Array:
        return jnp.where(ended, 0.0, values) if ends else values

    def expect(u: Array) -> Array:
        if walls or not on_cpu():  # on a GPU sweeps are unrolled; slices would compile for minutes
            moved = [u[to] for to in towards]
        else:
            moved = [jnp.where(bump, u, beside(u, way)) for way, bump in enumerate(bumps)]
        return unless_ended(jnp.stack(slipping(moved)))

    def leave(state: Array, weights: Array) -> Array:
        ways = zip(jnp.asarray(towards), slipping(weights), strict=True)
        cells = jnp.arange(states)
        left = functools.reduce(
            jnp.add, [jnp.where(cells == to[state], way, 0.0) for to, way in ways]
        )
        return jnp.where(jnp.asarray(ended)[state], 0.0, left) if ends else left

    def diagonals(weights: Array) -> tuple[list[Array], list[Array]]:
        """P_w and its transpose: the weight of the cell itself, then of the cells around it."""
        ways = slipping(unless_ended(weights))
        stays = functools.reduce(
            jnp.add, [jnp.where(bump, way, 0.0) for bump, way in zip(bumps, ways, strict=True)]
        )
        goes = [jnp.where(bump, 0.0, way) for bump, way in zip(bumps, ways, strict=True)]
        opposites = [goes[way] for way in OPPOSITE]
        comes = [
            jnp.where(bumps[way], 0.0, beside(from_there, way))
            for way, from_there in enumerate(opposites)
        ]
        return [stays, *goes], [stays, *comes]

    def times(diagonals: list[Array], v: Array) -> Array:
        stays, *reads = diagonals
        read = [weight * beside(v, way) for way, weight in enumerate(reads)]
        return functools.reduce(jnp.add, read, stays * v)

    def both_ways(
        operation: Callable[[list[Array], Array], Array], weights: Array
    ) -> tuple[Operator, Operator]:
        ahead, back = (functools.partial(operation, matrix) for matrix in diagonals(weights))
        return ahead, back

    walk = functools.partial(both_ways, times)
    by_rows = functools.partial(_eliminate, columns)
    eliminate = None if walls else functools.partial(both_ways, by_rows)
    return Dynamics(
        states,
        actions=4,
        expect=expect,
        leave=leave,
        survival=1.0 - death,
        even=not ends,
        walk=walk,
        eliminate=eliminate,
        degree=5,
        columns=columns,
        goals=ends,
    )


def numbered(rows: int, columns: int, walls: Sequence[Cell]) -> np.ndarray:
    """The number of each cell's state on a grid, row by row; −1 for walls.

    Args:
        rows: number of rows.
        columns: number of columns.
        walls: cells that nobody can enter, as (row, column).

    Returns:
        The numbers (rows, columns).

    Raises:
        InputError: if a wall is not on the grid.
    """
    free = np.ones((rows, columns), bool)
    for cell in walls:
        free[_on_grid(cell, free)] = False
    return np.where(free, np.cumsum(free).reshape(free.shape) - 1, -1)


def _on_grid(cell: Cell, grid: np.ndarray) -> Cell:
    """A cell, if it is on the grid."""
    row, column = cell
    rows, columns = grid.shape
    if not (0 <= row < rows and 0 <= column < columns):
        raise InputError(f"cell {(row, column)} is not on a grid of {rows} × {columns} cells")
    return row, column


def _ends(goals: Sequence[Cell], number: np.ndarray) -> tuple[int, ...]:
    """The states of the goals."""
    ends = {int(number[_on_grid(cell, number)]) for cell in goals}
    if -1 in ends:
        raise InputError("a goal cannot be a wall")
    if len(ends) > number.max():
        raise InputError("a grid needs at least one cell that is no goal")
    return tuple(sorted(ends))


def _straight_moves(number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each straight move bumps into something, and the state it leads to, each (4, S)."""
    fenced = np.pad(number, 1, constant_values=-1)
    above, below = fenced[:-2, 1:-1], fenced[2:, 1:-1]
    left, right = fenced[1:-1, :-2], fenced[1:-1, 2:]
    free = number >= 0
    neighbours = np.stack([side[free] for side in (above, below, left, right)])
    bumps = neighbours < 0
    return bumps, np.where(bumps, number[free], neighbours).astype(np.int32)


def _eliminate(size: int, diagonals: list[Array], right: Array) -> Array:
    """Solve x = Px + b on a grid by block elimination; on a square in O(n⁴), a table needs O(n⁶).

    A row of the grid has ``size`` cells.

    With the cells of a row of the grid as a block, I − P is block tridiagonal: row i reads Tᵢxᵢ =
    bᵢ + uᵢ∘xᵢ₋₁ + dᵢ∘xᵢ₊₁, where Tᵢ holds the moves within the row and the other blocks are
    diagonal. From the first row down xᵢ = yᵢ + Gᵢxᵢ₊₁, with (Tᵢ − uᵢ∘Gᵢ₋₁)[yᵢ, Gᵢ] = [bᵢ + uᵢ∘yᵢ₋₁,
    dᵢ]; then back up. All blocks are written transposed, so that the rows of b stay rows.
    """
    rows = right.shape[-1] // size
    cells, identity = jnp.arange(size), jnp.eye(size, dtype=right.dtype)
    blocks = [diagonal.reshape(rows, size) for diagonal in diagonals]
    rights = jnp.moveaxis(right.reshape(-1, rows, size), 0, 1)

    def pivot(k: Array, block: Array) -> Array:
        """Do one round of Gauss–Jordan in place; I − P is diagonally dominant and needs no
        pivoting.
        """
        here = cells == k
        row = jnp.where(here, 1.0, block[k]) / block[k, k]
        return jnp.where(here[:, None], row, jnp.where(here, 0.0, block) - block[:, k, None] * row)

    def down(above: tuple[Array, Array], row: tuple[list[Array], Array]) -> tuple[Any, Any]:
        (passed_on, solved), ((stays, from_above, from_below, left, right), b) = above, row
        within = (
            identity * (1 - stays)
            - jnp.roll(identity, 1, 1) * left
            - jnp.roll(identity, -1, 1) * right
        )
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
        raise InputError(
            f"{what} must be an array of real numbers, all rows of one length"
        ) from None
    return array.astype(float)


def tabular(transitions: ArrayLike) -> Dynamics:
    """The dynamics of any world: ``transitions[a, s, s′]`` = P(s′|s,a); a row sums to 1 minus the
    probability of dying.

    Args:
        transitions: the table (A, S, S).

    Returns:
        The dynamics.

    Raises:
        InputError: if the table has another shape or holds no probabilities.
    """
    p = real("transitions", transitions)
    if p.ndim != 3 or p.shape[1] != p.shape[2] or 0 in p.shape:
        raise InputError(
            f"transitions must have the shape (actions, states, states), not {p.shape}"
        )
    if not np.isfinite(p).all() or (p < 0).any():
        raise InputError("transitions hold values that are not probabilities")
    rows = p.sum(axis=2)
    if (rows > 1 + 1e-6).any():
        action, state = np.unravel_index(np.argmax(rows), rows.shape)
        raise InputError(
            f"transitions of action {action} in state {state} sum to {rows.max():g}, more than 1"
        )

    survival = (
        float(rows.max()) if rows.max() < 1 - 1e-6 else 1.0
    )  # rows that differ from 1 only by rounding: no death
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


def _sparse(
    p: np.ndarray,
    linked: np.ndarray,
    degree: int,
    survival: float,
    even: bool,
) -> Dynamics:
    """Dynamics stored as lists, for a table in which each state has at most ``degree`` successors
    and predecessors.
    """
    states = len(linked)
    successors, predecessors = _lists(linked, degree), _lists(linked.T, degree)
    leads = np.take_along_axis(p, successors[None], axis=2) * np.take_along_axis(
        linked, successors, axis=1
    )
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
