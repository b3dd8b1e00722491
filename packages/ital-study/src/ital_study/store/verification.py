"""Verification: replays every choice and compares the result with what is stored."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ital_study.config import orders
from ital_study.robots.rules import StudyRules
from ital_study.store import operations
from ital_study.store.records import Participant, StoredStep
from ital_study.store.rows import count_unreadable
from ital_study.store.step_rows import rules_of

if TYPE_CHECKING:
    from ital_study.store._store import Store

TOLERANCE = 1e-3  # largest difference between machines


class Report(NamedTuple):
    """What was checked, and the problems found.

    Attributes:
        participants: Number of participants.
        steps: Number of replayed steps.
        problems: One line per problem.
        skipped: Number of rows that cannot be read, by participant; readers skip them.
    """

    participants: int
    steps: int
    problems: list[str]
    skipped: dict[int, int]


def verify(store: "Store") -> Report:
    """Replay every participant's choices: beliefs, orders, numbers of steps and of answered pages must match.

    Args:
        store: The database.

    Returns:
        Counts, and the problems.
    """
    count, problems, skipped = 0, [], {}
    with store.reading() as connection:
        rules, everyone = rules_of(connection), operations.everyone(connection)
        for participant in everyone:
            steps = operations.steps_of(connection, participant.number)
            count += len(steps)
            own_rules = rules(participant.config)
            wrong = problems_of(own_rules, participant, steps)
            skipped[participant.number] = count_unreadable(
                connection, own_rules.config, participant
            )
            pages = operations.events_of(connection, participant.number, "answers")
            answered = sum(event.source == "server" for event in pages)
            if answered != participant.answered:
                wrong.append(
                    f"{answered} pages of answers are stored, but {participant.answered} were counted"
                )
            problems += [f"participant {participant.number}: {text}" for text in wrong]
    return Report(len(everyone), count, problems, skipped)


def unreadable(store: "Store", mode: str) -> dict[int, int]:
    """Count the stored rows that readers skip, because no page of this version sends them.

    Args:
        store: The database.
        mode: ``live``, ``pilot``, ``preview``, ``trial`` or ``simulated``.

    Returns:
        The numbers by participant.
    """
    configs = store.configs()
    with store.reading() as connection:
        return {
            each.number: count_unreadable(connection, configs[each.config], each)
            for each in operations.everyone(connection, mode=mode)
        }


def problems_of(
    rules: StudyRules, participant: Participant, stored_steps: list[StoredStep]
) -> list[str]:
    """Find problems in the steps of one participant.

    Args:
        rules: Rules of the participant's configuration.
        participant: The participant.
        stored_steps: The stored steps.

    Returns:
        One line per problem.
    """
    number, order, problems = participant.number, participant.order, []
    if len(stored_steps) != participant.done:
        problems.append(
            f"{len(stored_steps)} steps are stored, but {participant.done} were counted"
        )
    by_round: dict[tuple[str, str], list[StoredStep]] = {}
    for step in sorted(stored_steps, key=lambda step: step.step):
        by_round.setdefault((step.map, step.learner), []).append(step)
    maps = [on.name for on in rules.config.maps]
    for (name, learner), steps in by_round.items():
        if [step.step for step in steps] != list(range(1, len(steps) + 1)):
            problems.append(f"map {name}, {learner}: a step is missing")
            continue
        if (
            name in maps
            and order
            and steps[0].robot != _robot(rules, order, maps.index(name), learner)
        ):
            problems.append(f"map {name}, {learner}: the robot does not match the order")
        replayed = rules.replay(number, name, learner, [step.choice for step in steps])[1:]
        stored = [operations.as_state(step.state) for step in steps]
        if not np.allclose(
            [mind.belief for mind in replayed], stored, rtol=TOLERANCE, atol=TOLERANCE
        ):
            problems.append(f"map {name}, {learner}: the replay differs from what is stored")
    return problems


def _robot(rules: StudyRules, order: str, map_index: int, learner: str) -> int:
    return 1 + orders.robots(order, map_index, rules.config.learners).index(learner)
