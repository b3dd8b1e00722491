"""The course of the study as plain functions: rounds, pages of questions, and the stage that comes next.

Where a participant is follows from the configuration, the order, the number of stored steps and the number of answered
pages.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ital_study.config import orders
from ital_study.config.configuration import Config
from ital_study.config.questions import Questionnaire
from ital_study.store.records import Participant

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
    rounds_so_far = [
        Round("w", config.warm_up_map.name, 0, config.warm_up_learner, 1, config.warm_up_steps, 0)
    ]
    if order is None:
        return rounds_so_far
    for i, on in enumerate(config.maps):
        for robot, learner in enumerate(orders.robots(order, i, config.learners), start=1):
            first = rounds_so_far[-1].first + rounds_so_far[-1].steps
            rounds_so_far.append(
                Round(f"{i + 1}-{robot}", on.name, i + 1, learner, robot, config.steps, first)
            )
    return rounds_so_far


def where(all_rounds: Sequence[Round], done: int) -> tuple[Round, int] | None:
    """The round and the step in it (from 0) that come after ``done`` steps; None when all are done."""
    for current in all_rounds:
        if done < current.first + current.steps:
            return current, done - current.first
    return None


class Asked(NamedTuple):
    """A page of questions at a place: ``start``, a round, the number of a map, or ``end``.

    ``after`` is the number of steps before it; ``about`` is the robot or the last robot of the map that it follows.
    """

    page: Questionnaire
    place: str
    after: int
    about: Round | None


def asked(config: Config, order: str | None) -> list[Asked]:
    """All pages of questions in the order in which they come; pages of one place in the order of the file."""
    on_maps = rounds(config, order)[1:]
    last_robots = [each for each in on_maps if each.robot == len(config.learners)]
    places: dict[str, list[tuple[str, int, Round | None]]] = {
        "before": [("start", 0, None)],
        "after_robot": [(each.id, each.first + each.steps, each) for each in on_maps],
        "after_map": [
            (str(each.map_number), each.first + each.steps, each) for each in last_robots
        ],
        "end": [("end", config.total_steps, None)],
    }
    ranks = list(places)
    found = [Asked(page, *place) for page in config.questionnaires for place in places[page.when]]
    return sorted(found, key=lambda each: (each.after, ranks.index(each.page.when)))


def asked_next(config: Config, order: str | None, done: int, answered: int) -> Asked | None:
    """The page of questions after ``done`` steps and ``answered`` pages; None if a step or the end comes first."""
    due = [each for each in asked(config, order) if each.after <= done]
    return due[answered] if answered < len(due) else None


def stage_after(config: Config, order: str | None, done: int, answered: int) -> str:
    """The stage of a participant with an order who has stored ``done`` steps and answered ``answered`` pages."""
    if asked_next(config, order, done, answered) is not None:
        return "questions"
    if done < config.warm_up_steps:
        return "warm_up"
    return "teach" if done < config.total_steps else "comments"


def parts(config: Config) -> int:
    """Count what pages show progress in: instructions, the check, questions, steps, and the end."""
    maps = len(config.maps)
    times = {"before": 1, "after_robot": maps * len(config.learners), "after_map": maps, "end": 1}
    pages = sum(times[page.when] for page in config.questionnaires)
    return len(config.instructions) + 1 + pages + config.total_steps + 1


def no_progress(config: Config) -> dict[str, int]:
    """The progress of somebody who has not begun."""
    return {"done": 0, "total": config.total_steps, "passed": 0, "parts": parts(config)}


def progress(config: Config, participant: Participant) -> dict[str, int]:
    """The progress of a participant in steps and in parts.

    The page itself adds the instructions that it has shown.
    """
    passed = participant.answered + participant.done
    if participant.stage not in ("consent", "instructions"):
        passed += len(config.instructions)
    if participant.order is not None:  # it is given with the right answers to the check
        passed += 1
    if participant.stage == "finished":
        passed += 1
    return no_progress(config) | {"done": participant.done, "passed": passed}
