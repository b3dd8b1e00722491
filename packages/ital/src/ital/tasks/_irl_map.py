"""Maps of rewards with walls, goals and starts: from arrays, text and CSV files."""

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ital import mdp
from ital.errors import InputError
from ital.tools import files
from ital.tools.checks import is_whole

Cell = tuple[int, int]
WALL = "#"
NO_REWARDS = "{name} holds no rewards"


class RewardMap(NamedTuple):
    """A rectangle of rewards.

    Attributes:
        rewards: the reward of entering each cell (n, m); NaN is a wall.
        goals: cells in which everything ends, as (row, column).
        starts: cells in which the robot may start.
        name: what messages call the map.
    """

    rewards: np.ndarray
    goals: tuple[Cell, ...] = ()
    starts: tuple[Cell, ...] = ()
    name: str = "the map"

    @property
    def walls(self) -> tuple[Cell, ...]:
        """The walls, row by row."""
        return _cells(np.argwhere(np.isnan(self.rewards)))

    def digest(self) -> str:
        """A fingerprint of everything on the map."""
        content = self.rewards.tobytes()
        is_square = self.rewards.shape[0] == self.rewards.shape[1]
        if self.goals or self.starts or not is_square:
            content += repr((self.rewards.shape, self.goals, self.starts)).encode()
        return hashlib.sha256(content).hexdigest()[:16]

    def marked(
        self, goals: Sequence[Sequence[int]], starts: Sequence[Sequence[int]]
    ) -> "RewardMap":
        """The map with more goals and starts, checked.

        Raises:
            InputError: if a cell is not on the map, or cannot be what it is said to be.
        """
        more_goals = [self._cell("goal", cell) for cell in goals]
        more_starts = [self._cell("start", cell) for cell in starts]
        both = self._replace(
            goals=tuple(sorted({*self.goals, *more_goals})),
            starts=tuple(sorted({*self.starts, *more_starts})),
        )
        both._check()
        return both

    def _cell(self, what: str, cell: Sequence[int]) -> Cell:
        """A cell as whole numbers, if it is on the map."""
        rows, columns = self.rewards.shape
        try:
            row, column = cell
        except (TypeError, ValueError):
            raise InputError(
                f"{self.name}: a {what} is a pair (row, column), not {cell!r}"
            ) from None
        if not (is_whole(row) and is_whole(column) and 0 <= row < rows and 0 <= column < columns):
            raise InputError(
                f"{self.name}: {what} {cell!r} is not on a map of {rows} × {columns} cells; "
                "rows and columns count from 0"
            )
        return int(row), int(column)

    def _check(self) -> None:
        """Raise InputError unless the robot has somewhere to go, and can reach every cell."""
        for what, marked in (("goal", self.goals), ("start", self.starts)):
            for cell in marked:
                if np.isnan(self.rewards[cell]):
                    raise InputError(f"{self.name}: the {what} {cell} is a wall")
        for cell in self.starts:
            if cell in self.goals:
                raise InputError(f"{self.name}: the start {cell} is a goal, where everything ends")
        free = ~np.isnan(self.rewards)
        if free.sum() < 2 or free.sum() == len(self.goals):
            raise InputError(
                f"{self.name} needs at least two cells without a wall, one of them without a goal"
            )
        if self.starts:
            unreached = _cells(np.argwhere(free & ~self._reached()))
            if unreached:
                raise InputError(
                    f"{self.name}: no start leads to {unreached[0]}, so nothing can be learned about it; "
                    "make it a wall, or add a start"
                )

    def _reached(self) -> np.ndarray:
        """The cells that a robot can reach from a start."""
        rows, columns = self.rewards.shape
        reached = np.zeros((rows, columns), bool)
        waiting = list(self.starts)
        while waiting:
            row, column = waiting.pop()
            off = not (0 <= row < rows and 0 <= column < columns)
            if off or reached[row, column] or np.isnan(self.rewards[row, column]):
                continue
            reached[row, column] = True
            if (row, column) not in self.goals:
                around = [
                    (row - 1, column),
                    (row + 1, column),
                    (row, column - 1),
                    (row, column + 1),
                ]
                waiting.extend(around)
        return reached


def as_map(name: str, cells: ArrayLike) -> RewardMap:
    """A map from an array of numbers, or of texts as in a file.

    Args:
        name: what messages call the map.
        cells: rewards (n, m); NaN and None are walls.

    Returns:
        The map.

    Raises:
        InputError: if it is not a rectangle of numbers and walls.
    """
    try:
        array = np.asarray(cells)
        if array.dtype == object:  # None among numbers
            array = array.astype(float)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} must be an array of real numbers, all rows of one length"
        ) from None
    if array.ndim != 2 or array.size == 0:
        if array.size == 0:
            raise InputError(NO_REWARDS.format(name=name))
        shape = " × ".join(map(str, array.shape))
        raise InputError(f"{name} must be a rectangle of rewards, not {shape}")
    if array.dtype.kind == "U":
        rows = [[str(word) for word in row] for row in array]
        return _map_of(name, rows, [f"{name}, row {row}" for row in range(len(rows))])
    return _checked(name, mdp.real(name, array))


def read_map(file: Path | str) -> RewardMap:
    """Read a map from a text or CSV file: one line per row, separated by commas, semicolons or
    blanks.

    ``#`` is a wall, and so is an empty cell between commas or semicolons. ``1G`` is a goal with
    reward 1, ``0S`` a start. Empty lines are skipped, and so are lines that begin with ``#`` and
    hold words other than cells.

    Args:
        file: the file.

    Returns:
        The map.

    Raises:
        InputError: if it cannot be read, or is not a rectangle of numbers and walls.
    """
    text = files.read_text(file, f"the map {file}")
    rows: list[list[str]] = []
    places: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        comma = next((mark for mark in ",;" if mark in line), None)
        words = [word.strip() for word in line.split(comma)]
        if not words or _is_comment(words):
            continue
        place = f"{file}, line {number}"
        if rows and len(words) != len(rows[0]):
            raise InputError(f"{place}: {len(words)} cells, but {len(rows[0])} in the rows above")
        rows.append(words)
        places.append(place)
    if not rows:
        raise InputError(NO_REWARDS.format(name=file))
    return _map_of(str(file), rows, places)


def _is_comment(words: list[str]) -> bool:
    """Whether a line begins with # and is no row of a map."""
    if not words[0].startswith(WALL):
        return False
    return words == [WALL] or not all(_is_cell(word) for word in words)


def _is_cell(word: str) -> bool:
    try:
        _reward(word)
    except ValueError:
        return False
    return True


def _reward(word: str) -> float:
    """The reward of a cell as it is written; NaN for a wall."""
    if word in ("", WALL):
        return math.nan
    number = word.upper().rstrip("GS")
    if not number:  # a mark alone
        return 0.0
    reward = float(number)
    if math.isnan(reward):
        raise ValueError
    return reward


def _map_of(name: str, rows: list[list[str]], places: list[str]) -> RewardMap:
    """A map from the words in its cells."""
    rewards = np.empty((len(rows), len(rows[0])))
    goals = []
    starts = []
    for row, words in enumerate(rows):
        for column, word in enumerate(words):
            try:
                rewards[row, column] = _reward(word.strip())
            except ValueError:
                raise InputError(
                    f"{places[row]}: {word!r} is not a number; a wall is #, a goal 1G, a start 0S"
                ) from None
            if "G" in word.upper():
                goals.append((row, column))
            if "S" in word.upper():
                starts.append((row, column))
    return _checked(name, rewards)._replace(goals=tuple(goals), starts=tuple(starts))


def _checked(name: str, rewards: np.ndarray) -> RewardMap:
    """A map without marks, if its rewards can be computed with."""
    if np.isinf(rewards).any():
        raise InputError(f"{name} holds rewards that are not finite numbers")
    return RewardMap(rewards, name=name)


def _cells(positions: np.ndarray) -> tuple[Cell, ...]:
    """Positions (n, 2) as pairs of whole numbers."""
    return tuple((int(row), int(column)) for row, column in positions)
