"""The course of the study as plain functions: rounds, and the stage after a number of steps."""

from collections.abc import Sequence
from typing import NamedTuple

from ital.study import _orders
from ital.study._config import Config

TRIES = 2  # at the comprehension check


class Round(NamedTuple):
    """One robot on one map; ``first`` is the number of earlier steps. Map 0 is the warm-up map."""

    id: str
    map: str
    map_number: int
    learner: str
    robot: int
    steps: int
    first: int


def rounds(config: Config, order: str | None) -> list[Round]:
    """The warm-up and, once an order is assigned, all robots on every map."""
    rounds_so_far = [Round("w", config.warm_up_map.name, 0, config.warm_up_learner, 1, config.warm_up_steps, 0)]
    if order is None:
        return rounds_so_far
    for i, on in enumerate(config.maps):
        for robot, learner in enumerate(_orders.robots(order, i, config.learners), start=1):
            first = rounds_so_far[-1].first + rounds_so_far[-1].steps
            rounds_so_far.append(Round(f"{i + 1}-{robot}", on.name, i + 1, learner, robot, config.steps, first))
    return rounds_so_far


def where(all_rounds: Sequence[Round], done: int) -> tuple[Round, int] | None:
    """The round and the step in it (from 0) that come after ``done`` steps; None when all are done."""
    for current in all_rounds:
        if done < current.first + current.steps:
            return current, done - current.first
    return None


def stage_after(config: Config, done: int) -> str:
    """The stage of a participant who has stored ``done`` steps."""
    if done < config.warm_up_steps:
        return "warm_up"
    return "teach" if done < config.total_steps else "comments"
