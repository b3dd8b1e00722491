"""The course of the study as plain functions: rounds, pages of questions, and the next stage.

Where a participant is follows from the configuration, the order, the number of stored steps and the
number of answered pages. Nothing else is stored, so there is nothing that could contradict it. Only
the dates of the next part of a study are columns of their own.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ital_study.config import lineup, map_orders
from ital_study.config.configuration import Config
from ital_study.config.questions import Questionnaire
from ital_study.store import operations
from ital_study.store.records import Event, Participant
from ital_study.store.times import iso

TRIES = 2  # at the comprehension check
DAY = 24 * 3600 * 1000  # milliseconds
# States of the next part.
EARLY = "early"
OPEN = "open"
LATE = "late"


class Round(NamedTuple):
    """One robot on one map; ``first`` is the number of earlier steps. Map 0 is the warm-up map."""

    id: str
    map: str
    map_number: int
    learner: str
    robot: int
    steps: int
    first: int

    @property
    def end(self) -> int:
        """The number of steps until the round is over, with those of earlier rounds."""
        return self.first + self.steps


class NextStep(NamedTuple):
    """A round, and a step in it (from 0)."""

    round: Round
    step: int


def rounds(config: Config, order: str | None) -> list[Round]:
    """Return the warm-up and, once an order is assigned, all robots on every map."""
    warm_up = Round(
        id="w",
        map=config.warm_up_map.name,
        map_number=0,
        learner=config.warm_up_learner,
        robot=1,
        steps=config.warm_up_steps,
        first=0,
    )
    found = [warm_up]
    if order is None:
        return found
    for number, index in enumerate(map_orders.taught(order, config.part_sizes), start=1):
        study_map = config.maps[index]
        learners = lineup.robots(order, index, config.learners)
        for robot, learner in enumerate(learners, start=1):
            found.append(
                Round(
                    id=f"{number}-{robot}",
                    map=study_map.name,
                    map_number=number,
                    learner=learner,
                    robot=robot,
                    steps=config.steps,
                    first=found[-1].end,
                )
            )
    return found


def next_step(all_rounds: Sequence[Round], done: int) -> NextStep | None:
    """Return the step that comes after ``done`` steps; None when all are done."""
    for current in all_rounds:
        if done < current.end:
            return NextStep(current, done - current.first)
    return None


class Asked(NamedTuple):
    """A page of questions at a place: ``start``, a round, the number of a map, or ``end``.

    ``after`` is the number of steps before it; ``about`` is the robot or the last robot of the map
    that it follows.
    """

    page: Questionnaire
    place: str
    after: int
    about: Round | None


def asked(config: Config, order: str | None) -> list[Asked]:
    """Return all pages of questions in the order in which they come.

    Pages of one place come in the order of the file.
    """
    on_maps = rounds(config, order)[1:]
    found: list[Asked] = []
    # Pages that follow the same step come in this order: sorting is stable, so it keeps them so.
    for when in ("before", "after_robot", "after_map", "end"):
        for page in config.questionnaires:
            if page.when == when:
                found += _occasions(config, page, on_maps)
    return sorted(found, key=lambda each: each.after)


def _occasions(config: Config, page: Questionnaire, on_maps: Sequence[Round]) -> list[Asked]:
    """Return a page as often as it is asked."""
    if page.when == "before":
        return [Asked(page, "start", 0, None)]
    if page.when == "after_robot":
        return [Asked(page, each.id, each.end, each) for each in on_maps]
    if page.when == "after_map":
        last_robots = [each for each in on_maps if each.robot == len(config.learners)]
        return [Asked(page, str(each.map_number), each.end, each) for each in last_robots]
    return [Asked(page, "end", config.total_steps, None)]


def asked_next(config: Config, order: str | None, done: int, answered: int) -> Asked | None:
    """Return the page of questions after ``done`` steps and ``answered`` pages.

    It is None if a step or the end comes first.
    """
    due = [each for each in asked(config, order) if each.after <= done]
    if answered >= len(due):
        return None
    return due[answered]


def part_of(config: Config, done: int) -> int:
    """Return the number of the part, from 1, to which the step after ``done`` steps belongs."""
    end = config.warm_up_steps
    for number, maps in enumerate(config.part_sizes, start=1):
        end += maps * len(config.learners) * config.steps
        if done < end:
            return number
    return len(config.part_sizes)


def stage_after(config: Config, order: str | None, done: int, answered: int, begun: int = 1) -> str:
    """Return the stage of a participant with an order.

    It follows from the stored steps, the answered pages and the parts that have begun.
    """
    if asked_next(config, order, done, answered) is not None:
        return "questions"
    if done < config.warm_up_steps:
        return "warm_up"
    if done < config.total_steps and part_of(config, done) > begun:
        return "waiting"
    if done < config.total_steps:
        return "teach"
    return "comments"


def parts_of_progress(config: Config) -> int:
    """Count what pages show progress in: instructions, the check, questions, steps, and the end.

    Pages call these parts too; they are not the parts of a study in several sessions.
    """
    maps = len(config.maps)
    times = {"before": 1, "after_robot": maps * len(config.learners), "after_map": maps, "end": 1}
    pages = sum(times[page.when] for page in config.questionnaires)
    return len(config.instructions) + 1 + pages + config.total_steps + 1


def no_progress(config: Config) -> dict[str, int]:
    """Return the progress of somebody who has not begun."""
    parts = parts_of_progress(config)
    return {"done": 0, "total": config.total_steps, "passed": 0, "parts": parts}


def progress(config: Config, participant: Participant) -> dict[str, int]:
    """Return the progress of a participant in steps and in parts.

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


# The time between two parts of a study: when the next one is open, and what its page shows


def waiting(config: Config, participant: Participant, now: int) -> dict[str, Any]:
    """Return the columns of somebody who waits for the next part.

    Only live participants wait: whoever tries the study out may begin it at once.
    """
    part = config.parts[participant.part]  # the next one: they count from 0 there
    if participant.mode != "live":
        return {"stage": operations.WAITING, "opens_at": now, "closes_at": None}
    opens_at = now + round(part.after_days * DAY)
    closes_at = None
    if part.within_days is not None:
        closes_at = opens_at + round(part.within_days * DAY)
    return {"stage": operations.WAITING, "opens_at": opens_at, "closes_at": closes_at}


def moved_on(
    config: Config, participant: Participant, done: int, answered: int
) -> tuple[dict[str, Any], list[Event]]:
    """Return the changed columns after a step or a page of questions, and what happened.

    At the end of a part, the participant waits for the next one.
    """
    stage = stage_after(config, participant.order, done, answered, participant.part)
    if stage != operations.WAITING:
        return {"stage": stage}, []
    ended = Event("part_ended", {"part": participant.part})
    return waiting(config, participant, operations.now()), [ended]


def begin_part(config: Config, participant: Participant) -> tuple[dict[str, Any], list[Event]]:
    """Return the changed columns of somebody who begins the next part, and what happened."""
    part = participant.part + 1
    stage = stage_after(config, participant.order, participant.done, participant.answered, part)
    changes = {"stage": stage, "part": part, "opens_at": None, "closes_at": None}
    return changes, [Event("part_begun", {"part": part})]


def part_state(participant: Participant) -> str:
    """Return whether the next part is not yet open, open, or over."""
    now = operations.now()
    if participant.closes_at is not None and participant.closes_at < now:
        return LATE
    if participant.opens_at is not None and participant.opens_at > now:
        return EARLY
    return OPEN


def is_late(participant: Participant) -> bool:
    """Return whether somebody waited for too long, so that their part in the study is over."""
    return participant.stage == operations.WAITING and part_state(participant) == LATE


def page_part(config: Config, participant: Participant) -> dict[str, Any]:
    """Return what the page of somebody who waits needs."""
    return {
        "next": participant.part + 1,
        "parts": len(config.parts),
        "state": part_state(participant),
        "opens_at": iso(participant.opens_at),
        "closes_at": iso(participant.closes_at),
    }
