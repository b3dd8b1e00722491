"""Verification: replays every choice and compares the result with what is stored."""

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sqlalchemy as sa

from ital_study.config import lineup
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
    """Replay every participant's choices.

    Beliefs, orders, numbers of steps and of answered pages must match.

    Args:
        store: The database.

    Returns:
        Counts, and the problems.
    """
    count = 0
    problems: list[str] = []
    skipped: dict[int, int] = {}
    with store.reading() as connection:
        rules_by_config = rules_of(connection)
        everyone = operations.everyone(connection)
        for participant in everyone:
            number = participant.number
            rules = rules_by_config(participant.config)
            steps = operations.steps_of(connection, number)
            count += len(steps)
            skipped[number] = count_unreadable(connection, rules.config, participant)
            wrong = [
                *problems_of(rules, participant, steps),
                *_problems_of_answers(connection, participant),
            ]
            problems += [f"participant {number}: {text}" for text in wrong]
    return Report(len(everyone), count, problems, skipped)


def _problems_of_answers(connection: sa.Connection, participant: Participant) -> list[str]:
    pages = operations.events_of(connection, participant.number, "answers")
    answered = sum(event.source == "server" for event in pages)
    if answered == participant.answered:
        return []
    return [f"{answered} pages of answers are stored, but {participant.answered} were counted"]


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
        everyone = operations.everyone(connection, mode=mode)
        return {
            each.number: count_unreadable(connection, configs[each.config], each)
            for each in everyone
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
    problems: list[str] = []
    if len(stored_steps) != participant.done:
        problems.append(
            f"{len(stored_steps)} steps are stored, but {participant.done} were counted"
        )
    by_round: dict[tuple[str, str], list[StoredStep]] = defaultdict(list)
    for step in sorted(stored_steps, key=lambda step: step.step):
        by_round[step.map, step.learner].append(step)
    for (map_name, learner), steps in by_round.items():
        wrong = _problems_of_round(rules, participant, steps)
        problems += [f"map {map_name}, {learner}: {text}" for text in wrong]
    return problems


def _problems_of_round(
    rules: StudyRules, participant: Participant, steps: list[StoredStep]
) -> list[str]:
    """Return problems of one robot on one map; its steps come in order."""
    numbers = [step.step for step in steps]
    if numbers != list(range(1, len(steps) + 1)):
        return ["a step is missing"]  # nothing after it could be replayed
    wrong = []
    robot = _robot_by_order(rules, participant, steps[0])
    if robot is not None and steps[0].robot != robot:
        wrong.append("the robot does not match the order")
    minds = rules.replay(
        participant.number,
        steps[0].map,
        steps[0].learner,
        [step.choice for step in steps],
    )
    # The first of the minds is the robot at its start, which is not stored.
    replayed = [mind.belief for mind in minds[1:]]
    stored = [operations.as_state(step.state) for step in steps]
    if not np.allclose(replayed, stored, rtol=TOLERANCE, atol=TOLERANCE):
        wrong.append("the replay differs from what is stored")
    return wrong


def _robot_by_order(rules: StudyRules, participant: Participant, step: StoredStep) -> int | None:
    """Return the number of the robot that the order gives a learner; None for the warm-up."""
    maps = [study_map.name for study_map in rules.config.maps]
    if not participant.order or step.map not in maps:
        return None
    learners = lineup.robots(
        participant.order,
        maps.index(step.map),
        rules.config.learners,
    )
    return 1 + learners.index(step.learner)
