"""Flags of data quality: pure functions of the step table, the page's events and the thresholds.

``docs/study/quality.md`` says what each flag can tell and what it cannot.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ital_study.config.configuration import Config
from ital_study.config.quality import FLAGS, Quality

if TYPE_CHECKING:
    import pandas as pd

PAGE_PAUSE = 0.5  # seconds; the page needs longer than that to show what a step did before it shows the next arrows
LARGEST_WINDOW = 100_000  # pixels; what says that it is larger is no page
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

    A script is recognised by what only the page knows how to send, the input device and the times, and by the time
    between two steps on the server's clock, which a script cannot forge. Steps that no server stored are not flagged.

    Args:
        steps: Step table, in the order in which the steps were taken.
        quality: The thresholds.

    Returns:
        The table with both columns.
    """
    seconds = steps["seconds_to_confirm"].astype(float)
    served = steps["stored_at"] != ""
    by_script = served
    if served.any():
        gap = _clock(steps).groupby([steps[name] for name in _ROUND]).diff()
        silent = (steps["input"] == "") | seconds.isna()
        too_soon = (gap >= 0) & (
            gap - seconds < PAGE_PAUSE
        )  # a gap below 0 is of a clock that stepped back
        by_script = served & (silent | (seconds < quality.script_seconds) | too_soon)
    return steps.assign(too_fast=seconds < quality.too_fast_seconds, by_script=by_script)


def in_order(steps: "pd.DataFrame", config: Config) -> "pd.DataFrame":
    """Sort a step table by the order in which the steps were taken.

    Args:
        steps: Step table.
        config: The study, whose maps come in the order of the file.

    Returns:
        The rows by participant, teacher, map, robot and step.
    """
    place = steps["map"].map({on.name: i for i, on in enumerate(config.maps)})
    keys = ["participant", "teacher", "place", "robot", "step"]
    return steps.assign(place=place).sort_values(keys, kind="stable").drop(columns="place")


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
    happened = list(happened)
    checks = [
        event.data for event in happened if (event.kind, event.source) == ("attention", "server")
    ]
    screens = [event.data for event in happened if event.kind == "screen"]
    share, run = lazy(steps, config.size)
    agreed, p = agreement(steps)
    return {
        "too_fast_share": _mean(steps["too_fast"]),
        "looked_away_share": _mean(steps["focus_losses"] > 0),
        "script_share": _mean(steps["by_script"]),
        "unseen_share": _unseen(steps, happened, config),
        "time_spread": _spread(steps["seconds_to_confirm"].dropna().to_numpy(float)),
        "same_place_share": share,
        "same_place_run": run,
        "machine_share": agreed,
        "chance_p": p,
        "longest_pause_minutes": _longest_pause(steps),
        "inputs": " ".join(sorted(set(steps["input"]) - {""})),
        "smallest_width": _smallest(screens, "width"),
        "smallest_height": _smallest(screens, "height"),
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
    n, q = numbers, quality
    enough = steps >= q.least_steps
    up = {
        "attention": n["attention_failed"] >= q.attention_failures,
        "by_script": enough
        and (
            n["script_share"] >= q.script_share
            or n["unseen_share"] >= q.unseen_share
            or n["time_spread"] < q.time_spread
        ),
        "too_fast": enough and n["too_fast_share"] >= q.too_fast_share,
        "same_place": n["same_place_run"] >= q.same_place_run
        or (enough and n["same_place_share"] >= q.same_place_share),
        "at_chance": enough and n["chance_p"] > q.chance_level,
        "looked_away": enough and n["looked_away_share"] >= q.looked_away_share,
        "long_pause": n["longest_pause_minutes"] > q.pause_minutes,
        "small_screen": n["small_screen_accepted"]
        or n["smallest_width"] < q.screen_width
        or n["smallest_height"] < q.screen_height,
    }
    return [name for name in FLAGS if up[name]]


def person(steps: "pd.DataFrame", happened: Iterable[PageEvent], config: Config) -> dict[str, Any]:
    """The columns of data quality of one participant.

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
    """The columns of data quality of everybody, as far as the step table tells.

    Args:
        steps: The step table.
        config: The study.

    Returns:
        One row per participant and teacher.
    """
    import pandas as pd

    each = in_order(steps, config).groupby(["participant", "teacher"], sort=False)
    rows = [
        {"participant": who[0], "teacher": who[1]} | person(own, (), config) for who, own in each
    ]
    return pd.DataFrame(rows, columns=["participant", "teacher", *COLUMNS])


def lazy(steps: "pd.DataFrame", size: int) -> tuple[float, int]:
    """Measure how closely choices follow a rule that needs no look at the map.

    The cells of a step never return in the next one, so nobody can click on one cell again and again. The rules are:
    the same index in the list, the same rank in reading order (the first arrow from the top left, say), and the
    arrow nearest to the one before, on which the page puts the keyboard's focus.

    Args:
        steps: Rows of one participant, in the order in which the steps were taken.
        size: Cells along one side of a map.

    Returns:
        The largest share of steps that follow one rule, and the longest run; NaN and 0 without steps.
    """
    if not len(steps):
        return float("nan"), 0
    choice, cell = steps["choice"].to_numpy(int), steps["cell"].to_numpy(int)
    cells = np.array([[arrow[0] for arrow in json.loads(text)] for text in steps["candidates"]])
    rank = (cells < cell[:, None]).sum(axis=1)
    last = np.concatenate([[0], cell[:-1]])[:, None]
    far = np.abs(cells // size - last // size) + np.abs(cells % size - last % size)
    nearest = far[np.arange(len(steps)), choice] == far.min(axis=1)
    nearest[0] = False  # nothing came before
    shares = [np.bincount(values).max() / len(values) for values in (choice, rank)]
    runs = [1 + _run(values[1:] == values[:-1]) for values in (choice, rank)]
    return float(max(*shares, nearest.mean())), max(*runs, _run(nearest))


def agreement(steps: "pd.DataFrame") -> tuple[float, float]:
    """Test whether a participant chose what the machine would have chosen more often than chance.

    Args:
        steps: Rows of one participant.

    Returns:
        The share of such steps, and the one-sided p of a binomial test; NaN without steps.
    """
    from scipy import stats

    if not len(steps):
        return float("nan"), float("nan")
    same = int((steps["choice"] == steps["machine_choice"]).sum())
    arrows = len(json.loads(steps["candidates"].iloc[0]))
    return same / len(steps), float(
        stats.binomtest(same, len(steps), 1 / arrows, alternative="greater").pvalue
    )


def _mean(values: "pd.Series") -> float:
    return float(values.mean()) if len(values) else float("nan")


def _smallest(screens: Sequence[Mapping[str, Any]], name: str) -> float:
    """The smallest number that a page sent under a name."""
    values = [screen.get(name) for screen in screens]
    numbers = [
        value for value in values if isinstance(value, int | float) and abs(value) < LARGEST_WINDOW
    ]
    return min(map(float, numbers), default=float("nan"))


def _run(values: np.ndarray) -> int:
    """Length of the longest run of true values."""
    longest = current = 0
    for value in values:
        current = current + 1 if value else 0
        longest = max(longest, current)
    return longest


def _spread(seconds: np.ndarray) -> float:
    """Interquartile range over median."""
    if len(seconds) < 4:  # quartiles need them
        return float("nan")
    low, middle, high = np.percentile(seconds, [25, 50, 75])
    return float((high - low) / middle) if middle > 0 else 0.0


def _unseen(steps: "pd.DataFrame", happened: Sequence[PageEvent], config: Config) -> float:
    """Share of steps for which the page did not report a pick; NaN if no server stored them."""
    if not len(steps) or (steps["stored_at"] == "").all():
        return float("nan")
    picked = {
        f"{event.data.get('round')} {event.data.get('step')}"
        for event in happened
        if event.kind == "chosen"
    }
    number = {on.name: i for i, on in enumerate(config.maps, start=1)}
    rows = zip(steps["map"], steps["robot"], steps["step"], strict=True)
    return float(
        np.mean(
            [f"{number.get(name)}-{robot} {step - 1}" not in picked for name, robot, step in rows]
        )
    )


def _longest_pause(steps: "pd.DataFrame") -> float:
    """Minutes between two stored steps, at most."""
    stored = _clock(steps).dropna()
    return float(stored.diff().max()) / 60 if len(stored) > 1 else float("nan")


def _clock(steps: "pd.DataFrame") -> "pd.Series[float]":
    """When the server stored each step, in seconds; NaN if it did not."""
    return steps["stored_at"].map(
        lambda at: datetime.fromisoformat(at).timestamp() if at else float("nan")
    )


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
        "Largest share of steps that follow one rule: same index, same rank in reading order, nearest to the last.",
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
        "Flags that leave the participant out of the filtered analysis by the configuration's rule.",
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
            f"Configuration `{config.hash}`; participants are left out of the filtered analysis by: {rule}.",
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
