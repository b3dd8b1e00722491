"""The order of robots: which robot comes first on each map, counterbalanced over participants.

The others follow.
"""

import functools
import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ital_study.config.kinds import KINDS, LEARNERS

# With more maps, the pattern of first robots repeats: 64 orders of two robots are enough for
# balance.
LONGEST = 6


# Names of robots may hold hyphens themselves: the longest name that fits is meant.
_NAMES = re.compile("|".join(sorted(map(re.escape, KINDS), key=len, reverse=True)))


def first_robots(order: str) -> list[str]:
    """Return the learner that is robot 1 on each map.

    Args:
        order: An order from :func:`orders`.

    Returns:
        One learner per map.
    """
    return _NAMES.findall(order)


@functools.lru_cache(maxsize=16)
def orders(maps: int, learners: tuple[str, ...] = LEARNERS) -> tuple[str, ...]:
    """List every order of robots over the maps of a study.

    Args:
        maps: Number of maps.
        learners: Kinds of robot on every map.

    Returns:
        For each order the learner that is robot 1 on each map, joined by hyphens. Orders that
        change often come first.
    """
    patterns = itertools.product(learners, repeat=min(maps, LONGEST))

    # Sorting keeps the order of equals, and so the order of orders in published data.
    def repeats(pattern: tuple[str, ...]) -> int:
        return sum(first == second for first, second in itertools.pairwise(pattern))

    return tuple("-".join((pattern * maps)[:maps]) for pattern in sorted(patterns, key=repeats))


def robots(order: str, map_index: int, learners: Sequence[str] = LEARNERS) -> tuple[str, ...]:
    """Return the learners behind robot 1, robot 2, … on a map: a cyclic Latin square.

    Learners that are first equally often are also second, and third, equally often.

    Args:
        order: An order from :func:`orders`.
        map_index: Index of the map, from 0.
        learners: Kinds of robot on every map.

    Returns:
        The learners, beginning with the one that the order names; the others follow in turn.
    """
    first = learners.index(first_robots(order)[map_index])
    return (*learners[first:], *learners[:first])


@functools.lru_cache(maxsize=4096)
def turns(order: str, learners: tuple[str, ...] = LEARNERS) -> tuple[str, ...]:
    """Return the orders in which the first robot of every map is shifted by 0, 1, … places.

    Args:
        order: An order from :func:`orders`.
        learners: Kinds of robot on every map.

    Returns:
        As many orders as there are learners, ``order`` first. For two learners: an order and its
        opposite.
    """
    maps = range(len(first_robots(order)))
    robots_of_maps = [robots(order, index, learners) for index in maps]
    # The first robots of all maps, the second ones, …
    shifts = zip(*robots_of_maps, strict=True)
    return tuple("-".join(firsts_of_maps) for firsts_of_maps in shifts)


def firsts(
    counted: Mapping[str, int], maps: int, learners: Sequence[str] = LEARNERS
) -> list[dict[str, int]]:
    """Count how often each learner came first on each map.

    Args:
        counted: Number of participants by order.
        maps: Number of maps.
        learners: Kinds of robot on every map.

    Returns:
        For each map a dictionary from learner to count.
    """
    table = [dict.fromkeys(learners, 0) for _ in range(maps)]
    for order, times in counted.items():
        for row, first in zip(table, first_robots(order), strict=True):
            row[first] += times
    return table


def next_order(counted: Mapping[str, int], maps: int, learners: tuple[str, ...] = LEARNERS) -> str:
    """Choose the order that balances best.

    On every map the learner that was first least often, then the rarest order.

    Without drop-outs an order is followed by its shifts, so the counts of all orders, and of first
    robots on any map, never differ by more than one. After drop-outs, balance on the maps is
    restored first.

    Args:
        counted: Number of participants by order.
        maps: Number of maps.
        learners: Kinds of robot on every map.

    Returns:
        The order for the next participant.
    """
    first_so_far = firsts(counted, maps, learners)
    taken = Counter(counted)

    def times_first(order: str) -> int:
        """Count how often the robots that this order would begin with came first already."""
        firsts_of_maps = first_robots(order)
        return sum(row[first] for row, first in zip(first_so_far, firsts_of_maps, strict=True))

    def taken_shifts(order: str) -> int:
        return sum(taken[shifted] for shifted in turns(order, learners))

    def least(among: Sequence[str], cost: Callable[[str], int]) -> list[str]:
        cost_of = {order: cost(order) for order in among}
        lowest = min(cost_of.values())
        return [order for order in among if cost_of[order] == lowest]

    even = least(orders(maps, learners), times_first)
    rare = least(even, lambda order: taken[order])
    # Among these, complete a set of shifts that has begun.
    return least(rare, lambda order: -taken_shifts(order))[0]


__all__ = ["first_robots", "firsts", "next_order", "orders", "robots", "turns"]
