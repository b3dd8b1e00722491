"""The order of maps: that of the file, or balanced over participants.

Maps are balanced within the parts of a study, if it has several. Where they are, an order of robots
ends in :data:`MARK` and the number of a row: the order ``naive-aware@2`` has the maps of row 2, and
a naive robot first on the first map of the file.
"""

import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ital_study.config import lineup

if TYPE_CHECKING:
    from ital_study.config.configuration import Config

MARK = "@"


@functools.lru_cache(maxsize=32)
def rows(maps: int) -> tuple[tuple[int, ...], ...]:
    """List the orders of maps that balance: Williams' Latin square.

    Every map comes equally often at every place, and equally often directly after every other map.

    Args:
        maps: Number of maps.

    Returns:
        Indices of the maps in the file, in the order in which they are taught; as many rows as
        maps, or twice as many if that number is odd.
    """
    # 0, 1, n − 1, 2, n − 2, …: the differences of neighbours are all different.
    ups = range(1, maps // 2 + 1)
    zigzag = [0]
    for up in ups:
        zigzag += [up, maps - up]
    first = zigzag[:maps]
    shifted = [_shifted(first, shift) for shift in range(maps)]
    if maps % 2 == 1:
        shifted += [row[::-1] for row in shifted]
    # The only row of a single map would come twice.
    return tuple(dict.fromkeys(shifted))


@functools.lru_cache(maxsize=32)
def rows_of_parts(sizes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """List the orders of maps that balance within each part of a study.

    Args:
        sizes: Number of maps in each part.

    Returns:
        Indices of the maps in the file, in the order in which they are taught. Every part goes
        through its own rows in turn.
    """
    squares = [rows(size) for size in sizes]
    count = math.lcm(*map(len, squares))
    return tuple(_joined(squares, number) for number in range(count))


def _joined(squares: Sequence[Sequence[Sequence[int]]], number: int) -> tuple[int, ...]:
    """Return the maps of all parts, each in the row whose turn it is."""
    joined: list[int] = []
    for square in squares:
        before = len(joined)
        joined += [before + index for index in square[number % len(square)]]
    return tuple(joined)


def _shifted(row: Sequence[int], shift: int) -> tuple[int, ...]:
    return tuple((index + shift) % len(row) for index in row)


def robots_of(order: str) -> str:
    """Return the part of an order that says which robot is first on each map of the file."""
    return order.partition(MARK)[0]


def with_row(order: str, row: int) -> str:
    """Return an order of robots with the number of a row of maps."""
    return f"{order}{MARK}{row}"


def row_of(order: str | None) -> int | None:
    """Return the number of the row of maps in an order; None if maps come as in the file."""
    if order is None or MARK not in order:
        return None
    return int(order.partition(MARK)[2])


def taught(order: str | None, sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return in which order the maps are taught.

    Args:
        order: The order of a participant; None before it is assigned.
        sizes: Number of maps in each part of the study.

    Returns:
        Indices of the maps in the file.
    """
    row = row_of(order)
    if row is None:
        return tuple(range(sum(sizes)))
    return rows_of_parts(sizes)[row]


def numbers(order: str | None, config: "Config") -> dict[str, int]:
    """Return the number of each map as its participant sees it.

    Args:
        order: The order of the participant.
        config: The configuration that the participant saw.

    Returns:
        Numbers from 1, by the name of the map.
    """
    indices = taught(order, config.part_sizes)
    return {config.maps[index].name: number for number, index in enumerate(indices, start=1)}


def next_row(counted: Mapping[str, int], robots: str, sizes: tuple[int, ...]) -> int:
    """Choose the row of maps that balances best.

    The rarest row; among several, the one that came least often with the first robots of this
    order, so that the place of a map and its first robot stay independent.

    Args:
        counted: Number of participants by order.
        robots: The order of robots of the next participant.
        sizes: Number of maps in each part of the study.

    Returns:
        Number of the row.
    """
    taken = Counter[int]()
    together = Counter[tuple[int, int, str]]()  # by row, map and first robot
    for order, times in counted.items():
        row = row_of(order)
        if row is None:
            continue
        taken[row] += times
        for index, first in enumerate(lineup.first_robots(robots_of(order))):
            together[row, index, first] += times
    firsts = list(enumerate(lineup.first_robots(robots)))

    def cost(row: int) -> tuple[int, int]:
        seen = sum(together[row, index, first] for index, first in firsts)
        return taken[row], seen

    return min(range(len(rows_of_parts(sizes))), key=cost)
