"""Transitions: grids, and any world given as a table."""

import dataclasses
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

# Below this number of states, a matrix product is as fast as lists of successors.
FEWEST_SPARSE = 256
# Sums of probabilities that differ by less differ only by rounding.
ROUNDING = 1e-6
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
        """Tell which states are goals.

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
    """Make a grid with the actions up, down, left and right.

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
    rows, columns = _checked_shape(size)
    _check_slip(slip, death)
    number = numbered(rows, columns, walls)
    if number.max() < 0:
        raise InputError("a grid needs at least one cell without a wall")
    ends = _goal_states(goals, number)
    moves = _moves_on_grid(number, ends, slip, own_way=1.0 - death - 3 * slip)
    eliminate = None
    if not walls:  # with walls, rows of cells are not blocks of one size
        eliminate = moves.eliminate
    return Dynamics(
        states=moves.states,
        actions=4,
        expect=moves.expect,
        leave=moves.leave,
        survival=1.0 - death,
        even=not ends,
        walk=moves.walk,
        eliminate=eliminate,
        degree=5,
        columns=columns,
        goals=ends,
    )


def _checked_shape(size: int | tuple[int, int]) -> tuple[int, int]:
    """Return the numbers of rows and columns; raise InputError for a grid without cells."""
    if isinstance(size, tuple):
        rows, columns = size
    else:
        rows = columns = size
    if rows < 1 or columns < 1:
        raise InputError(f"a grid needs at least one cell, not size {size}")
    return rows, columns


def _check_slip(slip: float, death: float) -> None:
    """Raise InputError unless the ways that an action may go are probabilities."""
    if not (slip >= 0 and death >= 0 and death + 3 * slip <= 1):
        raise InputError(
            f"slip {slip} and death {death} must be probabilities with death + 3·slip at most 1"
        )


# Compared by identity: it holds arrays, and equal grids are one object anyway.
@dataclasses.dataclass(frozen=True, eq=False)
class _GridMoves:
    """The moves on a grid.

    Attributes:
        states: number of states S.
        columns: number of cells in a row.
        slip: probability of moving in each other direction.
        own_way: probability of moving in the direction of the action.
        has_walls: whether there are cells without a state.
        bumps: whether each straight move bumps into something (4, S).
        towards: the state that each straight move leads to (4, S).
        has_ends: whether there are goals.
        is_end: whether each state is a goal (S,).
    """

    states: int
    columns: int
    slip: float
    own_way: float
    has_walls: bool
    bumps: np.ndarray
    towards: np.ndarray
    has_ends: bool
    is_end: np.ndarray

    def expect(self, u: Array) -> Array:
        """Return the mean of u over the next state (A, S)."""
        if self.has_walls or not on_cpu():
            # On a GPU sweeps are unrolled; slices would compile for minutes.
            moved = [u[to] for to in self.towards]
        else:
            moved = [self._moved(u, way) for way in range(4)]
        by_action = self._slipping(moved)
        return self._unless_ended(jnp.stack(by_action))

    def leave(self, state: Array, weights: Array) -> Array:
        """Return the transitions from a state with actions weighted by ``weights`` (S,)."""
        towards = jnp.asarray(self.towards)
        by_way = self._slipping(weights)
        cells = jnp.arange(self.states)
        arriving = [
            jnp.where(cells == to[state], weight, 0.0)
            for to, weight in zip(towards, by_way, strict=True)
        ]
        left = functools.reduce(jnp.add, arriving)
        if not self.has_ends:
            return left
        has_ended = jnp.asarray(self.is_end)[state]
        return jnp.where(has_ended, 0.0, left)

    def walk(self, weights: Array) -> tuple[Operator, Operator]:
        """Return v ↦ P_w v and v ↦ v P_w."""
        ahead, back = self._diagonals(weights)
        return functools.partial(self._times, ahead), functools.partial(self._times, back)

    def eliminate(self, weights: Array) -> tuple[Operator, Operator]:
        """Return v ↦ (I − P_w)⁻¹v and v ↦ v(I − P_w)⁻¹."""
        ahead, back = self._diagonals(weights)
        return (
            functools.partial(_eliminate, self.columns, ahead),
            functools.partial(_eliminate, self.columns, back),
        )

    def _moved(self, v: Array, way: int) -> Array:
        """Return v at the cell that a straight move leads to."""
        return jnp.where(self.bumps[way], v, self._beside(v, way))

    def _beside(self, v: Array, way: int) -> Array:
        """Return v at the neighbour in one direction, arbitrary where there is none.

        On a CPU a slice is several times as fast as a gather, but with walls neighbours are not at
        a fixed distance.
        """
        if self.has_walls or not on_cpu():
            return v[..., self.towards[way]]
        # Rows above and below the grid let the slice begin in either direction.
        row = self.columns
        other_axes = [(0, 0)] * (v.ndim - 1)
        padded = jnp.pad(v, [*other_axes, (row, row)])
        offsets = (-row, row, -1, 1)
        first = row + offsets[way]
        return padded[..., first : first + self.states]

    def _slipping(self, straight: Any) -> list[Array]:
        """Combine the four straight moves into actions that sometimes slip."""
        anywhere = self.slip * functools.reduce(jnp.add, straight)
        # The own way is among "anywhere" already, so only the rest is added.
        rest = self.own_way - self.slip
        return [rest * way + anywhere for way in straight]

    def _unless_ended(self, values: Array) -> Array:
        """Return the values, 0 in goals."""
        if not self.has_ends:
            return values
        return jnp.where(self.is_end, 0.0, values)

    def _diagonals(self, weights: Array) -> tuple[list[Array], list[Array]]:
        """Return P_w and its transpose: the weight of the cell itself, then of those around it."""
        weights = self._unless_ended(weights)
        by_way = list(zip(self.bumps, self._slipping(weights), strict=True))
        stopped = [jnp.where(bump, weight, 0.0) for bump, weight in by_way]
        stays = functools.reduce(jnp.add, stopped)
        goes = [jnp.where(bump, 0.0, weight) for bump, weight in by_way]
        comes = [self._coming(goes, way) for way in range(4)]
        return [stays, *goes], [stays, *comes]

    def _coming(self, goes: list[Array], way: int) -> Array:
        """Return the weight with which one comes from the neighbour in one direction."""
        # From the cell above one comes by going down.
        from_there = goes[OPPOSITE[way]]
        return jnp.where(self.bumps[way], 0.0, self._beside(from_there, way))

    def _times(self, diagonals: list[Array], v: Array) -> Array:
        """Return Pv for the diagonals of P."""
        stays, *around = diagonals
        read = [weight * self._beside(v, way) for way, weight in enumerate(around)]
        own = stays * v
        return functools.reduce(jnp.add, read, own)


def _moves_on_grid(
    number: np.ndarray,
    ends: tuple[int, ...],
    slip: float,
    own_way: float,
) -> _GridMoves:
    """Return the moves between the numbered cells of a grid.

    Args:
        number: the state of each cell (rows, columns), −1 for walls.
        ends: the states of the goals.
        slip: probability of moving in each other direction.
        own_way: probability of moving in the direction of the action.
    """
    _, columns = number.shape
    states = int(number.max()) + 1
    bumps, towards = _straight_moves(number)
    return _GridMoves(
        states=states,
        columns=columns,
        slip=slip,
        own_way=own_way,
        has_walls=bool((number < 0).any()),
        bumps=bumps,
        towards=towards,
        has_ends=bool(ends),
        is_end=np.isin(np.arange(states), ends),
    )


def numbered(rows: int, columns: int, walls: Sequence[Cell]) -> np.ndarray:
    """Number the states of the cells on a grid, row by row; −1 for walls.

    Args:
        rows: number of rows.
        columns: number of columns.
        walls: cells that nobody can enter, as (row, column).

    Returns:
        The numbers (rows, columns).

    Raises:
        InputError: if a wall is not on the grid.
    """
    is_free = np.ones((rows, columns), bool)
    for cell in walls:
        is_free[_checked_cell(cell, is_free)] = False
    number = np.full((rows, columns), -1)
    number[is_free] = np.arange(is_free.sum())
    return number


def _checked_cell(cell: Cell, grid: np.ndarray) -> Cell:
    """Return a cell; raise InputError if it is not on the grid."""
    row, column = cell
    rows, columns = grid.shape
    if not (0 <= row < rows and 0 <= column < columns):
        raise InputError(f"cell {(row, column)} is not on a grid of {rows} × {columns} cells")
    return row, column


def _goal_states(goals: Sequence[Cell], number: np.ndarray) -> tuple[int, ...]:
    """Return the states of the goals, in order."""
    states = {int(number[_checked_cell(cell, number)]) for cell in goals}
    if -1 in states:
        raise InputError("a goal cannot be a wall")
    if len(states) > number.max():
        raise InputError("a grid needs at least one cell that is no goal")
    return tuple(sorted(states))


def _straight_moves(number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where each straight move bumps into something, and where it leads to, each (4, S)."""
    # A fence of walls around the grid, so that each cell has four neighbours.
    fenced = np.pad(number, 1, constant_values=-1)
    above = np.roll(fenced, 1, axis=0)
    below = np.roll(fenced, -1, axis=0)
    left = np.roll(fenced, 1, axis=1)
    right = np.roll(fenced, -1, axis=1)
    is_free = fenced >= 0
    itself = fenced[is_free]  # (S,)
    neighbours = np.stack([side[is_free] for side in (above, below, left, right)])
    bumps = neighbours < 0
    towards = np.where(bumps, itself, neighbours)
    return bumps, towards.astype(np.int32)


def _eliminate(size: int, diagonals: list[Array], right: Array) -> Array:
    """Solve x = Px + b on a grid by block elimination; on a square in O(n⁴), a table needs O(n⁶).

    A row of the grid has ``size`` cells.

    With the cells of a row of the grid as a block, I − P is block tridiagonal: row i reads

        Tᵢxᵢ = bᵢ + uᵢ∘xᵢ₋₁ + dᵢ∘xᵢ₊₁,

    where Tᵢ holds the moves within the row and the other blocks are diagonal. From the first row
    down,

        xᵢ = yᵢ + Gᵢxᵢ₊₁  with  (Tᵢ − uᵢ∘Gᵢ₋₁)[yᵢ, Gᵢ] = [bᵢ + uᵢ∘yᵢ₋₁, dᵢ];

    then back up. All blocks are written transposed, so that the rows of b stay rows.
    """
    rows = right.shape[-1] // size
    cells = jnp.arange(size)
    identity = jnp.eye(size, dtype=right.dtype)
    blocks = [diagonal.reshape(rows, size) for diagonal in diagonals]
    by_side = right.reshape(-1, rows, size)
    rights = jnp.moveaxis(by_side, 0, 1)  # (rows, right-hand sides, size)

    def pivot(k: Array, block: Array) -> Array:
        """Do one round of Gauss–Jordan in place.

        I − P is diagonally dominant, so the pivot is never small and no rows are exchanged.
        """
        is_pivot = cells == k
        row = jnp.where(is_pivot, 1.0, block[k])
        row = row / block[k, k]
        column = block[:, k, None]
        others = jnp.where(is_pivot, 0.0, block)
        others = others - column * row
        return jnp.where(is_pivot[:, None], row, others)

    def down(above: tuple[Array, Array], row: tuple[list[Array], Array]) -> tuple[Any, Any]:
        """Eliminate the row above: from (Gᵢ₋₁, yᵢ₋₁) and the diagonals of row i to (Gᵢ, yᵢ)."""
        passed_on, solved = above
        diagonals_of_row, b = row
        stays, from_above, from_below, left, right = diagonals_of_row
        to_left = jnp.roll(identity, 1, 1) * left
        to_right = jnp.roll(identity, -1, 1) * right
        within = identity * (1 - stays) - to_left - to_right
        remaining = within - passed_on * from_above
        inverse = jax.lax.fori_loop(0, size, pivot, remaining)
        known = b + from_above * solved
        solved = jnp.matmul(known, inverse, precision=HIGHEST)
        eliminated = (from_below[:, None] * inverse, solved)
        return eliminated, eliminated

    def up(below: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        """Insert the row below: xᵢ = yᵢ + Gᵢxᵢ₊₁."""
        passed_on, solved = row
        x = solved + jnp.matmul(below, passed_on, precision=HIGHEST)
        return x, x

    # Nothing comes from above the first row, nor from below the last.
    no_block = jnp.zeros_like(identity)
    no_row = jnp.zeros_like(rights[0])
    _, eliminated = jax.lax.scan(down, (no_block, no_row), (blocks, rights))
    _, x = jax.lax.scan(up, no_row, eliminated, reverse=True)
    return jnp.moveaxis(x, 0, 1).reshape(right.shape)


def real(what: str, values: ArrayLike) -> np.ndarray:
    """Convert values to an array of real numbers.

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
        if array.dtype.kind not in "iuf":  # whole numbers and floating-point numbers
            raise ValueError
    except ValueError:
        raise InputError(
            f"{what} must be an array of real numbers, all rows of one length"
        ) from None
    return array.astype(float)


def tabular(transitions: ArrayLike) -> Dynamics:
    """Make the dynamics of any world: ``transitions[a, s, s′]`` = P(s′|s,a).

    A row sums to 1 minus the probability of dying.

    Args:
        transitions: the table (A, S, S).

    Returns:
        The dynamics.

    Raises:
        InputError: if the table has another shape or holds no probabilities.
    """
    p = real("transitions", transitions)
    _check_probabilities(p)
    survival = p.sum(axis=2)  # the probability of not dying, by action and state
    largest = 1.0
    if survival.max() < 1 - ROUNDING:
        largest = float(survival.max())
    is_even = bool(np.ptp(survival) < ROUNDING)

    actions, states, _ = p.shape
    is_linked = np.any(p > 0, axis=0)  # whether any action leads from a state to another (S, S)
    successors = is_linked.sum(axis=1)
    predecessors = is_linked.sum(axis=0)
    degree = int(max(successors.max(), predecessors.max()))
    if states >= FEWEST_SPARSE and 16 * degree <= states:
        return _sparse(p, is_linked, degree, largest, is_even)

    def table() -> Array:
        # Converted when it is traced: the precision may change after the table was made.
        return jnp.asarray(p, jnp.result_type(float))

    def expect(u: Array) -> Array:
        return jnp.matmul(table(), u, precision=HIGHEST)

    def leave(state: Array, weights: Array) -> Array:
        from_state = table()[:, state]  # (A, S)
        return jnp.einsum("a,at->t", weights, from_state, precision=HIGHEST)

    return Dynamics(
        states=states,
        actions=actions,
        expect=expect,
        leave=leave,
        survival=largest,
        even=is_even,
    )


def _check_probabilities(p: np.ndarray) -> None:
    """Raise InputError unless a table (A, S, S) holds probabilities that sum to at most 1."""
    is_table = p.ndim == 3 and p.shape[1] == p.shape[2]
    if not is_table or p.size == 0:
        raise InputError(
            f"transitions must have the shape (actions, states, states), not {p.shape}"
        )
    if not np.isfinite(p).all() or (p < 0).any():
        raise InputError("transitions hold values that are not probabilities")
    survival = p.sum(axis=2)
    if (survival > 1 + ROUNDING).any():
        action, state = np.unravel_index(np.argmax(survival), survival.shape)
        raise InputError(
            f"transitions of action {action} in state {state} sum to {survival.max():g}, "
            "more than 1"
        )


def _sparse(
    p: np.ndarray,
    is_linked: np.ndarray,
    degree: int,
    survival: float,
    even: bool,
) -> Dynamics:
    """Make dynamics stored as lists.

    Each state has at most ``degree`` successors and predecessors. Shorter lists are padded with
    states that are not linked: their probability is 0.
    """
    states = len(is_linked)
    backwards = p.swapaxes(1, 2)
    successors = _linked_states(is_linked, degree)
    predecessors = _linked_states(is_linked.T, degree)
    leads = _listed(p, is_linked, successors)
    comes = _listed(backwards, is_linked.T, predecessors)

    def probabilities(lists: np.ndarray) -> Array:
        return jnp.asarray(lists, jnp.result_type(float))

    def expect(u: Array) -> Array:
        products = probabilities(leads) * u[successors]
        return jnp.sum(products, axis=-1)

    def leave(state: Array, weights: Array) -> Array:
        from_state = probabilities(leads)[:, state]  # (A, degree)
        ways = jnp.matmul(weights, from_state, precision=HIGHEST)
        nowhere = jnp.zeros(states, ways.dtype)
        reached = jnp.asarray(successors)[state]
        return nowhere.at[reached].add(ways)

    def walk(weights: Array) -> tuple[Operator, Operator]:
        by_action = weights[..., None] * probabilities(leads)  # (A, S, degree)
        going = jnp.sum(by_action, axis=0)
        by_action = weights[:, predecessors] * probabilities(comes)
        coming = jnp.sum(by_action, axis=0)

        def ahead(v: Array) -> Array:
            products = going * v[..., successors]
            return jnp.sum(products, axis=-1)

        def back(v: Array) -> Array:
            products = coming * v[..., predecessors]
            return jnp.sum(products, axis=-1)

        return ahead, back

    return Dynamics(
        states=states,
        actions=len(p),
        expect=expect,
        leave=leave,
        survival=survival,
        even=even,
        walk=walk,
        degree=3 * degree,
    )


def _linked_states(is_linked: np.ndarray, degree: int) -> np.ndarray:
    """Return the states linked to each state (S, degree), then others as padding."""
    linked_first = np.argsort(~is_linked, axis=1, kind="stable")
    return linked_first[:, :degree].astype(np.int32)


def _listed(p: np.ndarray, is_linked: np.ndarray, states: np.ndarray) -> np.ndarray:
    """Return the probabilities (A, S, degree) of the listed transitions, 0 for the padding."""
    listed = np.take_along_axis(p, states[None], axis=2)
    listed *= np.take_along_axis(is_linked, states, axis=1)
    return listed


def following(dynamics: Dynamics, policy: Array) -> Array:
    """Return P_π (S, S), the transitions under ``policy`` (A, S): row s is for state s.

    Args:
        dynamics: the transitions.
        policy: probabilities of the actions (A, S).

    Returns:
        The table.
    """
    leave_all = jax.vmap(dynamics.leave, in_axes=(0, 1))
    return leave_all(jnp.arange(dynamics.states), policy)
