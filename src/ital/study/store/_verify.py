"""Is what is stored what the rules give? Every choice is replayed."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sqlalchemy as sa

from ital.study import _orders
from ital.study._rules import Rules
from ital.study.store import _operations as operations
from ital.study.store._export import Measured
from ital.study.store._operations import Participant, Step
from ital.study.store._tables import participants

if TYPE_CHECKING:
    from ital.study.store._store import Store

TOLERANCE = 1e-3  # between machines


class Report(NamedTuple):
    """What was looked at, and what is wrong with it."""

    participants: int
    steps: int
    problems: list[str]


def verify(store: "Store") -> Report:
    """Replays every participant's choices: beliefs, numbers of steps, and their order must be as stored."""
    count, problems = 0, []
    with store.reading() as connection:
        rules = Measured(connection)
        everyone = [Participant(*row) for row in connection.execute(sa.select(participants).order_by("number"))]
        for one in everyone:
            taken = operations.steps_of(connection, one.number)
            count += len(taken)
            problems += [f"participant {one.number}: {text}" for text in problems_of(rules(one.config), one, taken)]
    return Report(len(everyone), count, problems)


def problems_of(rules: Rules, one: Participant, taken: list[Step]) -> list[str]:
    """What is wrong with the steps of one participant."""
    found = []
    if len(taken) != one.done:
        found.append(f"{len(taken)} steps are stored, but {one.done} were counted")
    by_round: dict[tuple[str, str], list[Step]] = {}
    for step in sorted(taken, key=lambda step: step.step):
        by_round.setdefault((step.map, step.learner), []).append(step)
    maps = [each.name for each in rules.config.maps]
    for (name, learner), steps in by_round.items():
        if [step.step for step in steps] != list(range(1, len(steps) + 1)):
            found.append(f"map {name}, {learner}: a step is missing")
            continue
        if name in maps and one.order and steps[0].robot != _robot(rules, one.order, maps.index(name), learner):
            found.append(f"map {name}, {learner}: not the robot that the order says")
        replayed = rules.replay(one.number, name, learner, [step.choice for step in steps])[1:]
        stored = [operations.as_state(step.state) for step in steps]
        if not np.allclose([mind.belief for mind in replayed], stored, rtol=TOLERANCE, atol=TOLERANCE):
            found.append(f"map {name}, {learner}: the replay differs from what is stored")
    return found


def _robot(rules: Rules, order: str, map_index: int, learner: str) -> int:
    return 1 + _orders.robots(order, map_index, rules.config.learners).index(learner)
