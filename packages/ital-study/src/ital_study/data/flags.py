"""Flags of data quality: pure functions of the step table, the page's events and the thresholds.

``docs/study/quality.md`` says what each flag can tell and what it cannot.
"""

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ital_study.config import map_orders
from ital_study.config.configuration import Config
from ital_study.config.quality import FLAGS, Quality

if TYPE_CHECKING:
    import pandas as pd

# Seconds. The page needs longer than that to show what a step did before it shows the next arrows.
PAGE_PAUSE = 0.5

# Pixels. What says that it is larger is no page.
LARGEST_WINDOW = 100_000

# Columns that identify a robot of a participant on a map: the steps of one round.
_ROUND = ["participant", "teacher", "map", "learner"]


class PageEvent(NamedTuple):
    """An event of a participant.

    Attributes:
        kind: What happened.
        data: Details. Those of a page are anything that a browser may send.
        source: ``server`` or ``client``.
    """

    kind: str
    data: Mapping[str, Any]
    source: str = "client"


# Steps


def flag_steps(steps: "pd.DataFrame", quality: Quality) -> "pd.DataFrame":
    """Add the flags of single steps, ``too_fast`` and ``by_script``, to a step table.

    A script is recognised by what only the page knows how to send, the input device and the times,
    and by the time between two steps on the server's clock, which a script cannot forge. Steps that
    no server stored are not flagged.

    Args:
        steps: Step table, in the order in which the steps were taken.
        quality: The thresholds.

    Returns:
        The table with both columns.
    """
    seconds = steps["seconds_to_confirm"].astype(float)
    is_stored = steps["stored_at"] != ""
    by_script = is_stored
    if is_stored.any():
        rounds = [steps[name] for name in _ROUND]
        gap = _stored_seconds(steps).groupby(rounds).diff()
        is_silent = (steps["input"] == "") | seconds.isna()
        is_too_fast = seconds < quality.script_seconds
        # A gap below 0 is that of a clock that stepped back.
        is_too_soon = (gap >= 0) & (gap - seconds < PAGE_PAUSE)
        by_script = is_stored & (is_silent | is_too_fast | is_too_soon)
    return steps.assign(
        too_fast=seconds < quality.too_fast_seconds,
        by_script=by_script,
    )


def in_order(steps: "pd.DataFrame", config: Config) -> "pd.DataFrame":
    """Sort a step table by the order in which the steps were taken.

    Args:
        steps: Step table.
        config: The study.

    Returns:
        The rows by participant, teacher, map, robot and step.
    """
    import pandas as pd

    numbers_by_order = {
        order: map_orders.numbers(order, config) for order in steps["order"].unique()
    }
    places = [
        numbers_by_order[order].get(name)
        for order, name in zip(steps["order"], steps["map"], strict=True)
    ]
    indexed = steps.assign(map_number=pd.Series(places, index=steps.index))
    keys = ["participant", "teacher", "map_number", "robot", "step"]
    return indexed.sort_values(keys, kind="stable").drop(columns="map_number")


# Participants


def numbers_of(
    steps: "pd.DataFrame", happened: Iterable[PageEvent], config: Config
) -> dict[str, Any]:
    """Compute what the flags of one participant depend on.

    Args:
        steps: The participant's rows of the step table, in the order in which the steps were taken.
        happened: The participant's events.
        config: The configuration that the participant saw.

    Returns:
        Values by column, as :data:`NUMBERS` explains them; NaN or empty where there are no data.
    """
    events = list(happened)
    # A page cannot say that it passed a check: the server judges them.
    checks = [
        event.data for event in events if (event.kind, event.source) == ("attention", "server")
    ]
    screens = [event.data for event in events if event.kind == "screen"]
    lazy_share, lazy_run = lazy(steps, config.size)
    machine_share, chance_p = agreement(steps)
    return {
        "too_fast_share": _mean(steps["too_fast"]),
        "looked_away_share": _mean(steps["focus_losses"] > 0),
        "script_share": _mean(steps["by_script"]),
        "unseen_share": _unseen_share(steps, events, config),
        "time_spread": _relative_spread(steps["seconds_to_confirm"].dropna().to_numpy(float)),
        "same_place_share": lazy_share,
        "same_place_run": lazy_run,
        "machine_share": machine_share,
        "chance_p": chance_p,
        "longest_pause_minutes": _longest_pause(steps, config),
        "inputs": " ".join(sorted(set(steps["input"]) - {""})),
        "smallest_width": _smallest_sent(screens, "width"),
        "smallest_height": _smallest_sent(screens, "height"),
        "small_screen_accepted": any(screen.get("small_accepted") is True for screen in screens),
        "attention_checks": len(checks),
        "attention_failed": sum(check.get("passed") is not True for check in checks),
    }


def flags_of(numbers: Mapping[str, Any], steps: int, quality: Quality) -> list[str]:
    """Judge a participant by the thresholds.

    Args:
        numbers: From :func:`numbers_of`.
        steps: Number of the participant's steps.
        quality: The thresholds.

    Returns:
        Names of the flags that are up, in the order of :data:`~ital_study.config.quality.FLAGS`.
    """
    # Numbers without data are NaN, which no comparison holds for: they raise no flag.
    up = {
        "attention": numbers["attention_failed"] >= quality.attention_failures,
        "same_place": numbers["same_place_run"] >= quality.same_place_run,
        "long_pause": numbers["longest_pause_minutes"] > quality.pause_minutes,
        "small_screen": _has_small_screen(numbers, quality),
    }
    # A share of few steps says little.
    if steps >= quality.least_steps:
        up["by_script"] = _looks_like_script(numbers, quality)
        up["too_fast"] = numbers["too_fast_share"] >= quality.too_fast_share
        up["same_place"] |= numbers["same_place_share"] >= quality.same_place_share
        up["at_chance"] = numbers["chance_p"] > quality.chance_level
        up["looked_away"] = numbers["looked_away_share"] >= quality.looked_away_share
    return [name for name in FLAGS if up.get(name, False)]


def _has_small_screen(numbers: Mapping[str, Any], quality: Quality) -> bool:
    is_small = (
        numbers["smallest_width"] < quality.screen_width
        or numbers["smallest_height"] < quality.screen_height
    )
    return bool(numbers["small_screen_accepted"] or is_small)


def _looks_like_script(numbers: Mapping[str, Any], quality: Quality) -> bool:
    return bool(
        numbers["script_share"] >= quality.script_share
        or numbers["unseen_share"] >= quality.unseen_share
        or numbers["time_spread"] < quality.time_spread
    )


def person(steps: "pd.DataFrame", happened: Iterable[PageEvent], config: Config) -> dict[str, Any]:
    """Return the columns of data quality of one participant.

    Args:
        steps: The participant's rows of the step table, in the order in which the steps were taken.
        happened: The participant's events.
        config: The configuration that the participant saw; its thresholds count.

    Returns:
        Values by column, as :data:`COLUMNS` explains them.
    """
    numbers = numbers_of(steps, happened, config)
    up = flags_of(numbers, len(steps), config.quality)
    return {
        **numbers,
        **{f"flag_{name}": name in up for name in FLAGS},
        "excluded_by_rule": " ".join(name for name in up if name in config.quality.exclude),
    }


def people(steps: "pd.DataFrame", config: Config) -> "pd.DataFrame":
    """Return the columns of data quality of everybody, as far as the step table tells.

    Args:
        steps: The step table.
        config: The study.

    Returns:
        One row per participant and teacher.
    """
    import pandas as pd

    by_person = in_order(steps, config).groupby(["participant", "teacher"], sort=False)
    rows = [
        {"participant": number, "teacher": teacher, **person(own, (), config)}
        for (number, teacher), own in by_person
    ]
    return pd.DataFrame(rows, columns=["participant", "teacher", *COLUMNS])


def lazy(steps: "pd.DataFrame", size: int) -> tuple[float, int]:
    """Measure how closely choices follow a rule that needs no look at the map.

    The cells of a step never return in the next one, so nobody can click on one cell again and
    again. The rules are: the same index in the list, the same rank in reading order (the first
    arrow from the top left, say), and the arrow nearest to the one before, on which the page puts
    the keyboard's focus.

    Args:
        steps: Rows of one participant, in the order in which the steps were taken.
        size: Cells along one side of a map.

    Returns:
        The largest share of steps that follow one rule, and the longest run; NaN and 0 without
        steps.
    """
    if not len(steps):
        return math.nan, 0
    choice = steps["choice"].to_numpy(int)
    cell = steps["cell"].to_numpy(int)
    # Cells of the candidates, shape (steps, candidates).
    cells = np.array([_cells_on_offer(text) for text in steps["candidates"]])
    rank = (cells < cell[:, None]).sum(axis=1)
    nearest = _chose_nearest(cells, cell, choice, size)
    shares = [nearest.mean()]
    runs = [_longest_run(nearest)]
    for values in (choice, rank):
        most_frequent = np.bincount(values).max()
        shares.append(most_frequent / len(values))
        # Choices that equal the one before them are one fewer than the steps of a run.
        is_repeated = values[1:] == values[:-1]
        runs.append(1 + _longest_run(is_repeated))
    return float(max(shares)), max(runs)


def _cells_on_offer(candidates: str) -> list[int]:
    """Return the cells of a step's arrows, which the table holds as JSON."""
    return [cell for cell, _ in json.loads(candidates)]


def _chose_nearest(
    cells: np.ndarray,
    cell: np.ndarray,
    choice: np.ndarray,
    size: int,
) -> np.ndarray:
    """Say for every step whether the chosen arrow is nearest to the arrow that was chosen before.

    Args:
        cells: Cells of the candidates, shape (steps, candidates).
        cell: Cells of the chosen arrows, shape (steps,).
        choice: Indices of the chosen arrows, shape (steps,).
        size: Cells along one side of a map.

    Returns:
        Truth values, shape (steps,).
    """
    row, column = np.divmod(cells, size)
    cell_before = np.concatenate([[0], cell[:-1]])
    # Shape (steps, 1).
    row_before, column_before = np.divmod(cell_before[:, None], size)
    distance = np.abs(row - row_before) + np.abs(column - column_before)
    steps = np.arange(len(cells))
    distance_of_chosen = distance[steps, choice]
    nearest = distance_of_chosen == distance.min(axis=1)
    nearest[0] = False  # nothing came before
    return nearest


def agreement(steps: "pd.DataFrame") -> tuple[float, float]:
    """Test whether a participant chose what the machine would have chosen more often than chance.

    Args:
        steps: Rows of one participant.

    Returns:
        The share of such steps, and the one-sided p of a binomial test; NaN without steps.
    """
    from scipy import stats

    if not len(steps):
        return math.nan, math.nan
    count = len(steps)
    is_same = steps["choice"] == steps["machine_choice"]
    same = int(is_same.sum())
    first_candidates = json.loads(steps["candidates"].iloc[0])
    chance = 1 / len(first_candidates)
    test = stats.binomtest(same, count, chance, alternative="greater")
    return same / count, float(test.pvalue)


def _mean(values: "pd.Series") -> float:
    if not len(values):
        return math.nan
    return float(values.mean())


def _smallest_sent(screens: Sequence[Mapping[str, Any]], name: str) -> float:
    """Return the smallest number that a page sent under a name; NaN without any."""
    numbers = []
    for screen in screens:
        # A browser may send anything.
        value = screen.get(name)
        if isinstance(value, int | float) and abs(value) < LARGEST_WINDOW:
            numbers.append(float(value))
    return min(numbers, default=math.nan)


def _longest_run(values: np.ndarray) -> int:
    """Return the length of the longest run of true values."""
    runs = (len(list(run)) for value, run in itertools.groupby(values) if value)
    return max(runs, default=0)


def _relative_spread(seconds: np.ndarray) -> float:
    """Return interquartile range over median; NaN for times too few to have quartiles."""
    if len(seconds) < 4:
        return math.nan
    low, middle, high = np.percentile(seconds, [25, 50, 75])
    if middle <= 0:
        return 0.0
    return float((high - low) / middle)


def _unseen_share(steps: "pd.DataFrame", events: Sequence[PageEvent], config: Config) -> float:
    """Return the share of steps for which the page did not report a pick.

    NaN if no server stored them.
    """
    if not len(steps) or (steps["stored_at"] == "").all():
        return math.nan
    # Pages name a round by the numbers of map and robot, and count steps from 0.
    picked = set()
    for event in events:
        if event.kind == "chosen":
            place = (str(event.data.get("round")), str(event.data.get("step")))
            picked.add(place)
    number_of = map_orders.numbers(_order_in_table(steps), config)
    unseen = []
    for name, robot, step in zip(steps["map"], steps["robot"], steps["step"], strict=True):
        place = (f"{number_of.get(name)}-{robot}", str(step - 1))
        unseen.append(place not in picked)
    return float(np.mean(unseen))


def _order_in_table(steps: "pd.DataFrame") -> str | None:
    """Return the order of one participant's maps and robots; None if the table does not say it."""
    orders = steps.get("order")
    if orders is None:
        return None
    return str(orders.iloc[0])


def _longest_pause(steps: "pd.DataFrame", config: Config) -> float:
    """Return the largest number of minutes between two stored steps of a part."""
    seconds = _stored_seconds(steps).dropna()
    if len(seconds) < 2:
        return math.nan
    if not config.parts:
        return float(seconds.diff().max()) / 60
    # The days between two parts are no pause.
    part_of: dict[str, int] = {}
    for number, part in enumerate(config.parts):
        part_of |= dict.fromkeys(part.maps, number)
    parts = steps["map"].map(part_of).loc[seconds.index]
    return float(seconds.groupby(parts).diff().max()) / 60


def _stored_seconds(steps: "pd.DataFrame") -> "pd.Series[float]":
    """Return when the server stored each step, in seconds; NaN if it did not."""

    def seconds(stored_at: str) -> float:
        if not stored_at:
            return math.nan
        return datetime.fromisoformat(stored_at).timestamp()

    return steps["stored_at"].map(seconds)


# Codebook: name → kind and meaning, as for the step table

NUMBERS = {
    "too_fast_share": ("number", "Share of the participant's steps that were too fast."),
    "looked_away_share": ("number", "Share of steps during which the page lost the focus."),
    "script_share": (
        "number",
        "Share of steps that look as if a program had taken them (`by_script`).",
    ),
    "unseen_share": (
        "number",
        "Share of steps for which the page reported no pick; empty without a server.",
    ),
    "time_spread": ("number", "Interquartile range of `seconds_to_confirm` over its median."),
    "same_place_share": (
        "number",
        "Largest share of steps that follow one rule: same index, same rank in reading order, "
        "nearest to the last.",
    ),
    "same_place_run": ("whole", "Longest run of steps that follow one of these rules."),
    "machine_share": (
        "number",
        "Share of steps on which the participant chose the machine's pick.",
    ),
    "chance_p": ("number", "One-sided p of a binomial test of that share against chance."),
    "longest_pause_minutes": ("number", "Longest time between two stored steps, in minutes."),
    "inputs": ("text", "Input devices that were used: keyboard, mouse, touch."),
    "smallest_width": (
        "number",
        "Width of the window in CSS pixels, the smallest that was reported.",
    ),
    "smallest_height": (
        "number",
        "Height of the window in CSS pixels, the smallest that was reported.",
    ),
    "small_screen_accepted": (
        "yes-no",
        "Whether the participant continued on a small screen despite the advice.",
    ),
    "attention_checks": ("whole", "Number of attention checks that were answered."),
    "attention_failed": ("whole", "Number of attention checks that were answered wrongly."),
}
COLUMNS: dict[str, tuple[str, str]] = {
    **NUMBERS,
    **{
        f"flag_{name}": ("yes-no", f"Flag `{name}`: see below, with its thresholds.")
        for name in FLAGS
    },
    "excluded_by_rule": (
        "text",
        "Flags that leave the participant out of the filtered analysis by the configuration's "
        "rule.",
    ),
}


def codebook_lines(configs: Iterable[Config]) -> list[str]:
    """State the flags with their thresholds, for every configuration that participants saw.

    Args:
        configs: The configurations.

    Returns:
        Lines of Markdown.
    """
    lines = [
        "",
        "## Flags",
        "",
        "A participant's flags use the thresholds of the configuration that they saw.",
    ]
    for config in configs:
        rule = ", ".join(f"`{name}`" for name in config.quality.exclude) or "no flag"
        lines += [
            "",
            f"Configuration `{config.hash}`; "
            f"participants are left out of the filtered analysis by: {rule}.",
            "",
            "| flag | the participant … |",
            "|---|---|",
            *(f"| `{name}` | {text} |" for name, text in config.quality.texts().items()),
        ]
    return lines


__all__ = [
    "COLUMNS",
    "PageEvent",
    "agreement",
    "codebook_lines",
    "flag_steps",
    "flags_of",
    "in_order",
    "lazy",
    "numbers_of",
    "people",
    "person",
]
