"""The tidy table of steps, made from the stored steps."""

import functools
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from ital_study.config import map_orders
from ital_study.config.load import parse_config
from ital_study.data import flags, table
from ital_study.robots.rules import StudyRules
from ital_study.store import operations
from ital_study.store.records import Participant, StoredStep
from ital_study.store.rows import read_timing
from ital_study.store.times import iso

if TYPE_CHECKING:
    import pandas as pd

# Columns that are copied from the rows of the participant and of the step.
OF_PERSON = ("mode", "teacher", "config", "code_version", "order", "usable")
OF_STEP = ("map", "learner", "robot", "step", "choice")


def rules_of(connection: sa.Connection) -> Callable[[str], StudyRules]:
    """Return the rules by the hash of their configuration, each made once."""

    @functools.cache
    def rules(config: str) -> StudyRules:
        text = operations.config_text(connection, config)
        return StudyRules(parse_config(text))

    return rules


def step_blocks(connection: sa.Connection, mode: str, **who: Any) -> "Iterator[pd.DataFrame]":
    """Iterate over the table of steps, one participant at a time.

    Args:
        connection: The transaction.
        mode: Mode of the participants.
        **who: Values of columns by which they are selected.

    Yields:
        One table per participant; a table without rows if there are none.
    """
    rules = rules_of(connection)
    everyone = operations.everyone(connection, mode=mode, **who)
    tables = (steps_of_person(connection, rules(each.config), each) for each in everyone)
    yield from table.with_rows(tables, table.frame([]))


def steps_of_person(
    connection: sa.Connection,
    rules: StudyRules,
    participant: Participant,
    *,
    measured: bool = True,
) -> "pd.DataFrame":
    """Return the rows of one participant in the table of steps, with their flags.

    Args:
        connection: The transaction.
        rules: Rules of the participant's configuration.
        participant: The participant.
        measured: Whether to measure beliefs; flags do not need that.

    Returns:
        The table; the warm-up does not count.
    """
    stored = operations.steps_of(connection, participant.number)
    rows = step_rows(rules, participant, stored, measured=measured)
    return flags.flag_steps(table.frame(rows), rules.config.quality)


def step_rows(
    rules: StudyRules,
    participant: Participant,
    stored: Iterable[StoredStep],
    *,
    measured: bool = True,
) -> list[dict[str, Any]]:
    """Convert a participant's steps to rows of the table; the warm-up does not count.

    Args:
        rules: Rules of the participant's configuration.
        participant: The participant.
        stored: The stored steps.
        measured: Whether to measure beliefs; if not, the measures are NaN.

    Returns:
        Rows by map and robot, in the order in which they were taught.
    """
    map_numbers = map_orders.numbers(participant.order, rules.config)
    # By map and robot, which is the order of the rows.
    by_round: dict[tuple[int, int], list[StoredStep]] = defaultdict(list)
    for step in stored:
        if step.map in map_numbers:
            key = (map_numbers[step.map], step.robot)
            by_round[key].append(step)
    rows: list[dict[str, Any]] = []
    for _, steps in sorted(by_round.items()):
        in_order = sorted(steps, key=lambda step: step.step)
        rows += _round_rows(rules, participant, in_order, measured)
    return rows


def _round_rows(
    rules: StudyRules,
    participant: Participant,
    steps: list[StoredStep],
    measured: bool,
) -> Iterator[dict[str, Any]]:
    """Return the rows of one robot on one map; its steps come in order."""
    number = participant.number
    map_name = steps[0].map
    start = rules.first_mind(number, map_name, steps[0].learner).belief
    after_steps = [operations.as_state(step.state) for step in steps]
    # (1 + step, cell): the belief before the first step, then after each.
    beliefs = np.stack([start, *after_steps])
    measures = _measures_of(rules, map_name, beliefs, measured)
    candidates = rules.candidates(number, map_name)
    of_person = {name: getattr(participant, name) for name in OF_PERSON}
    for i, step in enumerate(steps):
        arrows = candidates[step.step - 1]
        chosen = arrows[step.choice]
        pairs = [list(arrow) for arrow in arrows]
        of_step = {name: getattr(step, name) for name in OF_STEP}
        before = {}
        after = {}
        for metric in table.MEASURES:
            values = measures[metric]
            before[f"{metric}_before"] = float(values[i])
            after[metric] = float(values[i + 1])
        timing = read_timing(step.timing) or {}
        yield {
            "participant": number,
            **of_person,
            **of_step,
            "cell": chosen.cell,
            "action": chosen.action,
            "machine_choice": rules.best(map_name, beliefs[i], arrows),
            "candidates": json.dumps(pairs, separators=(",", ":")),
            **after,
            **before,
            **table.UNKNOWN,
            **_times_of_step(timing),
            "stored_at": iso(step.stored_at),
        }


def _measures_of(
    rules: StudyRules,
    map_name: str,
    beliefs: np.ndarray,
    measured: bool,
) -> Mapping[str, np.ndarray]:
    if not measured:
        unknown = np.full(len(beliefs), np.nan)
        return dict.fromkeys(table.MEASURES, unknown)
    return rules.measures_many(map_name, beliefs)


def _times_of_step(timing: Mapping[str, Any]) -> dict[str, Any]:
    """Return the times of a step for the table."""
    return {
        "shown_at": iso(timing.get("shown_at")),
        "chosen_at": iso(timing.get("chosen_at")),
        "confirmed_at": iso(timing.get("confirmed_at")),
        "seconds_to_choice": _duration(timing, "seconds_to_choice", "chosen_at"),
        "seconds_to_confirm": _duration(timing, "seconds_to_confirm", "confirmed_at"),
        "choice_changes": timing.get("choice_changes", 0),
        "focus_losses": timing.get("focus_losses", 0),
        "input": timing.get("input", ""),
    }


def _duration(timing: Mapping[str, Any], name: str, until: str) -> float:
    """Return the seconds since the arrows were shown; NaN if the page did not tell."""
    # By the page's monotonic clock if it sent them: its other clock may be set meanwhile.
    if name in timing:
        return float(timing[name])
    if "shown_at" not in timing or until not in timing:
        return float("nan")
    milliseconds = timing[until] - timing["shown_at"]
    return milliseconds / 1000
