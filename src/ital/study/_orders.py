"""Which robot comes first on each map: counterbalanced over participants."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence

LONGEST = 6  # beyond so many maps the pattern of who comes first repeats: 64 orders are enough to balance


def orders(maps: int, learners: Sequence[str] = ("naive", "aware")) -> list[str]:
    """Every order: the learner that is robot 1 on each map, joined by hyphens; those that change often come first."""
    patterns = itertools.product(learners, repeat=min(maps, LONGEST))

    def repeats(pattern: tuple[str, ...]) -> int:
        return sum(one == other for one, other in itertools.pairwise(pattern))

    return ["-".join((pattern * maps)[:maps]) for pattern in sorted(patterns, key=repeats)]


def robots(order: str, map_index: int, learners: Sequence[str] = ("naive", "aware")) -> tuple[str, str]:
    """The learners behind robot 1 and robot 2 on a map."""
    first = order.split("-")[map_index]
    return first, learners[1] if first == learners[0] else learners[0]


def firsts(counted: Mapping[str, int], maps: int, learners: Sequence[str] = ("naive", "aware")) -> list[dict[str, int]]:
    """For each map, how often each learner came first."""
    table = [dict.fromkeys(learners, 0) for _ in range(maps)]
    for order, times in counted.items():
        for row, first in zip(table, order.split("-"), strict=True):
            row[first] += times
    return table


def next_order(counted: Mapping[str, int], maps: int, learners: Sequence[str] = ("naive", "aware")) -> str:
    """The order that balances best: on every map the learner that came first less often, then the rarest order.

    ``counted`` says how often each order is taken. Without drop-outs orders come in pairs of opposites, so the
    counts of all orders, and of who came first on any map, never differ by more than one. After drop-outs the maps are
    brought back into balance first.
    """
    table = firsts(counted, maps, learners)
    taken = Counter(counted)

    def cost(order: str) -> tuple[int, int]:
        return sum(row[first] for row, first in zip(table, order.split("-"), strict=True)), taken[order]

    return min(orders(maps, learners), key=cost)


__all__ = ["firsts", "next_order", "orders", "robots"]
