"""The tidy table of steps, made from the stored steps."""

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from ital_study.config.load import parse_config
from ital_study.data import flags, table
from ital_study.robots.rules import StudyRules
from ital_study.store import operations
from ital_study.store.records import Participant, StoredStep
from ital_study.store.rows import read_timing
from ital_study.store.times import iso

if TYPE_CHECKING:
    import pandas as pd


def rules_of(connection: sa.Connection) -> Callable[[str], StudyRules]:
    """The rules by the hash of their configuration, each made once."""
    return functools.cache(
        lambda config: StudyRules(parse_config(operations.config_text(connection, config)))
    )


def blocks(connection: sa.Connection, mode: str, **who: Any) -> "Iterator[pd.DataFrame]":
    """Iterate over the table of steps, one participant at a time.

    Args:
        connection: The transaction.
        mode: Mode of the participants.
        **who: Values of columns by which they are selected.

    Yields:
        One table per participant; a table without rows if there are none.
    """
    rules, everyone = rules_of(connection), operations.everyone(connection, mode=mode, **who)
    yield from table.with_rows(
        (steps_of_person(connection, rules(each.config), each) for each in everyone),
        table.frame([]),
    )


def steps_of_person(
    connection: sa.Connection, rules: StudyRules, participant: Participant, *, measured: bool = True
) -> "pd.DataFrame":
    """The rows of one participant in the table of steps, with their flags.

    Args:
        connection: The transaction.
        rules: Rules of the participant's configuration.
        participant: The participant.
        measured: Whether to measure beliefs; flags do not need that.

    Returns:
        The table; the warm-up does not count.
    """
    rows = rows_of(
        rules, participant, operations.steps_of(connection, participant.number), measured=measured
    )
    return flags.flag_steps(table.frame(rows), rules.config.quality)


def rows_of(
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
        Rows by map and robot.
    """
    maps = [on.name for on in rules.config.maps]
    by_round: dict[tuple[int, int], list[StoredStep]] = {}
    for step in stored:
        if step.map in maps:
            by_round.setdefault((maps.index(step.map), step.robot), []).append(step)
    return [
        row
        for _, steps in sorted(by_round.items())
        for row in _rows_of_round(rules, participant, steps, measured)
    ]


def _rows_of_round(
    rules: StudyRules, participant: Participant, stored: list[StoredStep], measured: bool
) -> Iterator[dict[str, Any]]:
    stored = sorted(stored, key=lambda step: step.step)
    name = stored[0].map
    beliefs = np.stack(
        [
            rules.start(participant.number, name),
            *(operations.as_state(step.state) for step in stored),
        ]
    )
    unknown = dict.fromkeys(table.MEASURES, np.full(len(beliefs), np.nan))
    measures = rules.measures_many(name, beliefs) if measured else unknown
    candidates = rules.candidates(participant.number, name)
    for i, step in enumerate(stored):
        arrows = candidates[step.step - 1]
        yield {
            "participant": participant.number,
            **{
                column: getattr(participant, column)
                for column in ("mode", "teacher", "config", "code_version")
            },
            **{column: getattr(participant, column) for column in ("order", "usable")},
            **{
                column: getattr(step, column)
                for column in ("map", "learner", "robot", "step", "choice")
            },
            "cell": arrows[step.choice].cell,
            "action": arrows[step.choice].action,
            "machine_choice": rules.best(name, beliefs[i], arrows),
            "candidates": json.dumps([list(arrow) for arrow in arrows], separators=(",", ":")),
            **{metric: float(measures[metric][i + 1]) for metric in table.MEASURES},
            **{f"{metric}_before": float(measures[metric][i]) for metric in table.MEASURES},
            **table.UNKNOWN,
            **_times(read_timing(step.timing) or {}),
            "stored_at": iso(step.stored_at),
        }


def _times(timing: Mapping[str, Any]) -> dict[str, Any]:
    """Times of a step for the table; durations come from the page's monotonic clock if it sent them."""
    shown = timing.get("shown_at")

    def seconds(name: str, until: str) -> float:
        if name in timing:
            return float(timing[name])
        return (
            (timing[until] - shown) / 1000
            if shown is not None and until in timing
            else float("nan")
        )

    return {
        **{name: iso(timing.get(name)) for name in ("shown_at", "chosen_at", "confirmed_at")},
        "seconds_to_choice": seconds("seconds_to_choice", "chosen_at"),
        "seconds_to_confirm": seconds("seconds_to_confirm", "confirmed_at"),
        "choice_changes": timing.get("choice_changes", 0),
        "focus_losses": timing.get("focus_losses", 0),
        "input": timing.get("input", ""),
    }
