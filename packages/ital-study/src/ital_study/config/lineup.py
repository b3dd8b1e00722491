"""The robots of a study: their kinds, and the order in which participants meet them.

This is the one place where kinds of robots are declared. To add a kind, add a function that makes
its learner and an entry of :data:`KINDS`. Studies include it by the key ``robots``. Colours of
figures stand in ``report/figures.py`` and ``pages/static/charts.css``.

Orders say which robot comes first on each map, counterbalanced over participants; the others
follow.
"""

import functools
import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

# Configurations are read by commands that must start quickly: the core's learners load when a robot
# is made.
if TYPE_CHECKING:
    from ital.learners import Learner
    from ital_study.config.configuration import Config


class RobotKind(NamedTuple):
    """A kind of robot.

    Attributes:
        label: Name in figures and reports.
        core_learner: Makes the core's learner for a study; numbers that it leaves open are filled
            in later.
        about: What it does, in a few words for researchers.
        believes: Whether it keeps a belief over its target. Such a robot begins with the mean of
            its prior, not with the participant's first belief, and its memory is large.
    """

    label: str
    core_learner: "Callable[[Config], Learner]"
    about: str
    believes: bool = False


def _naive(config: "Config") -> "Learner":
    from ital import learners

    return learners.imt()


def _aware(config: "Config") -> "Learner":
    from ital import learners

    return learners.teacher_aware(beta=config.beta, volume=config.volume)


def _adaptive(config: "Config") -> "Learner":
    from ital import learners

    return learners.adaptive()


def _posterior(config: "Config") -> "Learner":
    from ital import learners

    return learners.posterior()


def _aware_posterior(config: "Config") -> "Learner":
    from ital import learners

    teacher = config.assumed_teacher
    return learners.aware_posterior(rho=teacher.rho, unit=teacher.unit, lapse=teacher.lapse)


NAIVE = "naive"
AWARE = "aware"
ADAPTIVE = "adaptive"
POSTERIOR = "posterior"
AWARE_POSTERIOR = "ital-posterior"

# The order is that of robots in a study: orders of robots, and with them published data, depend on
# it.
KINDS = {
    NAIVE: RobotKind("IMT", _naive, "takes each arrow at face value"),
    AWARE: RobotKind("ITAL", _aware, "asks why its teacher chose this arrow"),
    ADAPTIVE: RobotKind("ITAL adaptive", _adaptive, "finds out whether its teacher helps"),
    POSTERIOR: RobotKind(
        label="Posterior",
        core_learner=_posterior,
        about="keeps a belief, from all arrows of each step",
        believes=True,
    ),
    AWARE_POSTERIOR: RobotKind(
        label="ITAL posterior",
        core_learner=_aware_posterior,
        about="keeps a belief, from arrows and choices",
        believes=True,
    ),
}
LEARNERS = (NAIVE, AWARE)  # of a study that names no robots


def study_kinds(robots: Sequence[str] = (), *, adaptive: bool = False) -> tuple[str, ...]:
    """Return the kinds of robot on every map of a study.

    Args:
        robots: Those that the study names; none: :data:`LEARNERS`.
        adaptive: Whether a study that names no robots includes the adaptive one.

    Returns:
        Their names, in the order of :data:`KINDS`.
    """
    if robots:
        return tuple(name for name in KINDS if name in robots)
    if adaptive:
        return (*LEARNERS, ADAPTIVE)
    return LEARNERS


# Orders

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

    def repeats(pattern: tuple[str, ...]) -> int:
        return sum(first == second for first, second in itertools.pairwise(pattern))

    # Sorting keeps the order of equals, and so the order of orders in published data.
    listed = []
    for pattern in sorted(patterns, key=repeats):
        firsts_of_maps = itertools.islice(itertools.cycle(pattern), maps)
        listed.append("-".join(firsts_of_maps))
    return tuple(listed)


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
    named = first_robots(order)[map_index]
    first = learners.index(named)
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
    counted: Mapping[str, int],
    maps: int,
    learners: Sequence[str] = LEARNERS,
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


def next_order(
    counted: Mapping[str, int],
    maps: int,
    learners: tuple[str, ...] = LEARNERS,
) -> str:
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
