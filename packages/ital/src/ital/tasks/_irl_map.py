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
        """Return a fingerprint of everything on the map."""
        content = self.rewards.tobytes()
        rows, columns = self.rewards.shape
        is_square = rows == columns
        # Squares without marks keep the fingerprint that stored results have.
        if self.goals or self.starts or not is_square:
            content += repr((self.rewards.shape, self.goals, self.starts)).encode()
        return hashlib.sha256(content).hexdigest()[:16]

    def marked(
        self, goals: Sequence[Sequence[int]], starts: Sequence[Sequence[int]]
    ) -> "RewardMap":
        """Return the map with more goals and starts, checked.

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
        """Return a cell as whole numbers; raise InputError if it is not on the map."""
        rows, columns = self.rewards.shape
        try:
            row, column = cell
        except (TypeError, ValueError):
            raise InputError(
                f"{self.name}: a {what} is a pair (row, column), not {cell!r}"
            ) from None
        are_whole = is_whole(row) and is_whole(column)
        if not (are_whole and 0 <= row < rows and 0 <= column < columns):
            raise InputError(
                f"{self.name}: {what} {cell!r} is not on a map of {rows} × {columns} cells; "
                "rows and columns count from 0"
            )
        return int(row), int(column)

    def _check(self) -> None:
        """Raise InputError unless the robot has somewhere to go, and can reach every cell."""
        is_wall = np.isnan(self.rewards)
        marked = {"goal": self.goals, "start": self.starts}
        for what, cells in marked.items():
            for cell in cells:
                if is_wall[cell]:
                    raise InputError(f"{self.name}: the {what} {cell} is a wall")
        for cell in self.starts:
            if cell in self.goals:
                raise InputError(f"{self.name}: the start {cell} is a goal, where everything ends")
        free = np.count_nonzero(~is_wall)
        if free < 2 or free == len(self.goals):
            raise InputError(
                f"{self.name} needs at least two cells without a wall, one of them without a goal"
            )
        if not self.starts:
            return
        unreached = _cells(np.argwhere(~is_wall & ~self._reached()))
        if unreached:
            raise InputError(
                f"{self.name}: no start leads to {unreached[0]}, so nothing can be learned about "
                "it; make it a wall, or add a start"
            )

    def _reached(self) -> np.ndarray:
        """Return whether a robot can reach each cell from a start (n, m)."""
        from scipy.ndimage import binary_dilation, binary_propagation

        is_free = ~np.isnan(self.rewards)
        leads_on = is_free.copy()
        for goal in self.goals:
            leads_on[goal] = False
        is_start = np.zeros(is_free.shape, bool)
        for start in self.starts:
            is_start[start] = True
        passed = binary_propagation(is_start, mask=leads_on)
        # A goal is reached from the cells beside it, but nothing leads on from there.
        return binary_dilation(passed) & is_free


def as_map(name: str, cells: ArrayLike) -> RewardMap:
    """Make a map from an array of numbers, or of texts as in a file.

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
    if array.size == 0:
        raise InputError(NO_REWARDS.format(name=name))
    if array.ndim != 2:
        shape = " × ".join(map(str, array.shape))
        raise InputError(f"{name} must be a rectangle of rewards, not {shape}")
    if array.dtype.kind == "U":
        rows = enumerate(array.tolist())
        lines = {f"{name}, row {row}": words for row, words in rows}
        return _map_of_words(name, lines)
    return _finite_map(name, mdp.real(name, array))


def read_map(file: Path | str) -> RewardMap:
    """Read a map from a text or CSV file with one line per row.

    Cells are separated by commas, semicolons or blanks. ``#`` is a wall, and so is an empty cell
    between commas or semicolons. ``1G`` is a goal with reward 1, ``0S`` a start. Empty lines are
    skipped, and so are lines that begin with ``#`` and hold words other than cells.

    Args:
        file: the file.

    Returns:
        The map.

    Raises:
        InputError: if it cannot be read, or is not a rectangle of numbers and walls.
    """
    text = files.read_text(file, f"the map {file}")
    lines: dict[str, list[str]] = {}  # the words of each row, by the line that messages name
    for number, line in enumerate(text.splitlines(), start=1):
        separator = None  # any blanks
        if "," in line:
            separator = ","
        elif ";" in line:
            separator = ";"
        words = [word.strip() for word in line.split(separator)]
        if not words or _is_comment(words):
            continue
        lines[f"{file}, line {number}"] = words
    if not lines:
        raise InputError(NO_REWARDS.format(name=file))
    _check_lengths(lines)
    return _map_of_words(str(file), lines)


def _check_lengths(lines: dict[str, list[str]]) -> None:
    """Raise InputError for a line that is longer or shorter than the first."""
    columns = len(next(iter(lines.values())))
    for line, words in lines.items():
        if len(words) != columns:
            raise InputError(f"{line}: {len(words)} cells, but {columns} in the rows above")


def _is_comment(words: list[str]) -> bool:
    """Tell whether a line begins with # and is no row of a map."""
    if not words[0].startswith(WALL):
        return False
    return words == [WALL] or not all(_is_cell(word) for word in words)


def _is_cell(word: str) -> bool:
    """Tell whether a word can be a cell."""
    try:
        _reward_in(word)
    except ValueError:
        return False
    return True


def _reward_in(word: str) -> float:
    """Return the reward of a cell as it is written; NaN for a wall."""
    if word in ("", WALL):
        return math.nan
    number = word.upper().rstrip("GS")
    if not number:  # a mark alone
        return 0.0
    reward = float(number)
    if math.isnan(reward):
        raise ValueError
    return reward


def _map_of_words(name: str, lines: dict[str, list[str]]) -> RewardMap:
    """Return a map from the words in its cells, row by row."""
    rewards: list[list[float]] = []
    goals = []
    starts = []
    for row, (line, words) in enumerate(lines.items()):
        rewards.append([])
        for column, word in enumerate(words):
            try:
                rewards[row].append(_reward_in(word.strip()))
            except ValueError:
                raise InputError(
                    f"{line}: {word!r} is not a number; a wall is #, a goal 1G, a start 0S"
                ) from None
            if "G" in word.upper():
                goals.append((row, column))
            if "S" in word.upper():
                starts.append((row, column))
    unmarked = _finite_map(name, np.array(rewards))
    return unmarked._replace(goals=tuple(goals), starts=tuple(starts))


def _finite_map(name: str, rewards: np.ndarray) -> RewardMap:
    """Return a map without marks; raise InputError if its rewards cannot be computed with."""
    if np.isinf(rewards).any():
        raise InputError(f"{name} holds rewards that are not finite numbers")
    return RewardMap(rewards, name=name)


def _cells(positions: np.ndarray) -> tuple[Cell, ...]:
    """Return positions (n, 2) as pairs of whole numbers."""
    return tuple((int(row), int(column)) for row, column in positions)
