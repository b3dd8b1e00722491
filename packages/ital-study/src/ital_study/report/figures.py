"""Figures of the study.

Bars of every arm with stars, learning curves per map, and the matched-step control.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ital import report
from ital.figures import charts
from ital.figures.charts import Panel
from ital.statistics import rounded
from ital_study.analysis.measures import (
    ALL_MAPS,
    ARM_AND_MAP,
    CURVES,
    LABELS,
    Analysis,
    arm,
    compared_robots,
    measures,
    robots,
    teachers_in_order,
)
from ital_study.config.configuration import Config
from ital_study.config.lineup import ADAPTIVE, AWARE, AWARE_POSTERIOR, NAIVE, POSTERIOR
from ital_study.robots.rules import StudyRules
from ital_study.simulation.arms import MATCHED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Aware robots are blue, adaptive ones green, those that keep a belief ochre, or magenta if they
# read choices as well, naive ones orange, the control grey. The less a teacher is like a person,
# the paler its colour; the random teacher is hatched. This works in print and for colour-blind
# readers.
SHADES = {
    AWARE: {
        "human": "#08306b",
        "machine": "#3c7ebf",
        "boltzmann": "#7fb2dd",
        "random": "#c3daee",
    },
    ADAPTIVE: {
        "human": "#00533a",
        "machine": "#1f9e77",
        "boltzmann": "#72c2a6",
        "random": "#bfe3d5",
    },
    POSTERIOR: {
        "human": "#5c4700",
        "machine": "#b08a00",
        "boltzmann": "#d3b862",
        "random": "#ebdfb8",
    },
    AWARE_POSTERIOR: {
        "human": "#6d0838",
        "machine": "#c23a7c",
        "boltzmann": "#dd8db3",
        "random": "#f2cfe0",
    },
    NAIVE: {
        "human": "#a63a00",
        "machine": "#e87a24",
        "boltzmann": "#f3a868",
        "random": "#fad7b8",
    },
    MATCHED: {
        "human": "#333333",
        "machine": "#777777",
        "boltzmann": "#a0a0a0",
        "random": "#cfcfcf",
    },
}
HATCHES = {"random": "////", "boltzmann": ".."}
# Lines of the random teacher: its colours of bars are too pale for them.
LINES = {
    AWARE: "#5b9bd0",
    ADAPTIVE: "#4bb391",
    POSTERIOR: "#c2a33c",
    AWARE_POSTERIOR: "#cf6b9c",
    NAIVE: "#dd8f4e",
}
DASHES = {"random": (1, 1.2), "boltzmann": (4, 1.5)}

# The colour of every label that marks data as not from people.
WARNING = "#a63a00"

AXES = {
    "distance": "Distance ‖w − w*‖",
    "policy_tv": "Policy total variation",
    "reward": "Expected reward",
}

# Sizes of panels in inches.
PANEL = (4.3, 2.7)
SMALL = (2.6, 2.0)
MAP = (2.4, 2.4)

MAPS_CAPTION = (
    "Reward of entering each cell, which the robots should learn. Arrows show the true policy, "
    "from which candidate "
    "arrows are drawn; longer arrows are more probable."
)
OUTCOMES = (
    "distance_first",
    "policy_tv_first",
    "reward_gain",
    "distance_last",
    "policy_tv_last",
    "reward",
)
Rows = Sequence[Mapping[str, Any]]


class StudyFigure(NamedTuple):
    """A figure without its label.

    Its title, its panels, the number of panels in a row, and its caption.

    Attributes:
        title: Text above the figure.
        panels: Its panels.
        columns: Number of panels in a row.
        caption: Text below the figure in the report.
        of_data: Whether it shows data; if not, it shows the study itself, whoever took part.
    """

    title: str
    panels: list[Panel]
    columns: int
    caption: str
    of_data: bool = True


def whose(analysis: Analysis) -> str:
    """Return one line about the source of the data."""
    if analysis.left_out.everybody:
        return nobody(analysis)
    if analysis.kind == "simulated":
        return "SIMULATED DATA: no person took part"
    people = analysis.participants["human"]
    participants = "participants" if people > 1 else "participant"
    text = f"Human data: {people} {participants}; machine and random arms are simulated"
    if analysis.mode == "live":
        return text
    return f"{analysis.mode.upper()} RUNS, not data of the study. {text}"


def nobody(analysis: Analysis) -> str:
    """Return the headline of a study of which nobody remains."""
    count = len(analysis.left_out.people)
    who = f"All {count} people who finished are" if count > 1 else "The only person who finished is"
    return f"NOBODY IS LEFT TO ANALYSE: {who} excluded ({analysis.mode} data)."


def drawings(analysis: Analysis) -> list[str]:
    """Return the figures that can be drawn: without people, only that of the maps."""
    if analysis.left_out.everybody:
        return ["maps"]
    return [name for name in DRAWINGS if name != "control" or AWARE in analysis.config.learners]


def of_people(analysis: Analysis) -> bool:
    """Say whether these are data of the study itself: from people, and not from trial runs."""
    return (analysis.kind, analysis.mode) == ("human", "live")


def shade(analysis: Analysis) -> str:
    """Return the colour of the line about the source of the data."""
    return "0.1" if of_people(analysis) else WARNING


def draw(name: str, analysis: Analysis) -> "Figure":
    """Draw the figure called ``maps``, ``bars``, ``curves`` or ``control``.

    A figure of data names their source, because it may be shown without the report.

    Args:
        name: The name of the figure.
        analysis: The numbers to show.

    Returns:
        A matplotlib figure.
    """
    drawing = DRAWINGS[name](analysis)
    note = ""
    colour_of_title = "0.1"
    if drawing.of_data:
        note = whose(analysis)
        colour_of_title = shade(analysis)
    figure = charts.chart(drawing.panels, drawing.title, columns=drawing.columns, note=note)
    # The chart's title includes the note.
    figure.suptitle(figure.get_suptitle(), fontsize=11, color=colour_of_title)
    return figure


def block(name: str, analysis: Analysis) -> list[report.Block]:
    """Return the same figure as a block of the report."""
    drawing = DRAWINGS[name](analysis)
    return report.figure(
        name,
        drawing.title,
        drawing.panels,
        drawing.caption,
        columns=drawing.columns,
        note=whose(analysis) if drawing.of_data else "",
    )


def figure_rows(analysis: Analysis) -> dict[str, Any]:
    """Return the numbers of the figures as plain rows.

    Args:
        analysis: The numbers of a study.

    Returns:
        ``means`` of every arm, map and outcome, ``titles`` of the outcomes, ``curves`` of every arm
        and map, ``references``, the reward of the true policy on each map, and ``paths`` of every
        arm.
    """
    summary = analysis.summary
    means = summary[summary["map"] != ALL_MAPS]
    outcomes = measures(analysis.config.steps)
    curves_of_arms = []
    for arm_and_map, rows in analysis.curves.groupby(ARM_AND_MAP, sort=False):
        curve: dict[str, Any] = dict(zip(ARM_AND_MAP, arm_and_map, strict=True))
        values = rows.drop(columns=ARM_AND_MAP)
        for name in values.columns:
            curve[name] = rounded(values[name])
        curves_of_arms.append(curve)
    paths = analysis.paths.groupby(["teacher", "learner"])[["path", "start"]].mean()
    return {
        "means": means[[*ARM_AND_MAP, "outcome", "mean", "sem"]].to_dict("records"),
        "titles": {name: measure.title for name, measure in outcomes.items()},
        "curves": curves_of_arms,
        "references": analysis.references,
        "paths": paths.reset_index().to_dict("records"),
    }


def colour(teacher: str, learner: str) -> str:
    """Return the colour of an arm."""
    return SHADES[learner][_kind_of(teacher)]


def bar_panel(
    means: Rows,
    outcome: str,
    learners: Sequence[str],
    title: str,
    *,
    stars: Mapping[tuple[str, str, str], str] | None = None,
    references: Mapping[str, float] | None = None,
    size: tuple[float, float] = PANEL,
) -> Panel:
    """Make a panel with one group per map and one bar per arm, with ±1 standard error.

    Args:
        means: Rows of :func:`figure_rows`.
        outcome: The outcome to show.
        learners: The kinds of robot to show.
        title: Text above the panel.
        stars: Text above a bar, by teacher, robot and map.
        references: A dashed line for each map.
        size: Inches.

    Returns:
        The panel.
    """
    rows = _rows_of_outcome(means, outcome)
    maps = list(dict.fromkeys(name for *_, name in rows))
    teachers = teachers_in_order([teacher for teacher, *_ in rows])
    arms = [each for each in itertools.product(teachers, learners) if (*each, maps[0]) in rows]
    # The bars of a map stand side by side, centred on it, with a gap to the next map.
    width = 0.84 / len(arms)
    middle = (len(arms) - 1) / 2
    places = np.arange(len(maps))
    marks = []
    for index, (teacher, learner) in enumerate(arms):
        of_maps = [rows[teacher, learner, name] for name in maps]
        stars_of_maps: list[str] = []
        if stars:
            stars_of_maps = [stars.get((teacher, learner, name), "") for name in maps]
        bars = charts.bars(
            arm(teacher, learner),
            colour(teacher, learner),
            places + (index - middle) * width,
            [row["mean"] for row in of_maps],
            [row["sem"] for row in of_maps],
            width=0.92 * width,
            marks=stars_of_maps,
            hatch=HATCHES.get(_kind_of(teacher), ""),
        )
        marks.append(bars)
    if references:
        marks += _reference_lines(maps, references)
    return charts.panel(title, marks, x="Map", x_ticks=(range(len(maps)), maps), size=size)


def _rows_of_outcome(means: Rows, outcome: str) -> dict[tuple[str, str, str], Mapping[str, Any]]:
    """Return the rows of an outcome by teacher, robot and map."""
    rows = {}
    for row in means:
        if row["outcome"] == outcome:
            arm_on_map = (row["teacher"], row["learner"], row["map"])
            rows[arm_on_map] = row
    return rows


def _reference_lines(maps: Sequence[str], references: Mapping[str, float]) -> list[Any]:
    """Return a dashed line across each map, at its reference."""
    lines = []
    for index, name in enumerate(maps):
        across_map = [index - 0.45, index + 0.45]
        level = [references[name]] * 2
        line = charts.line(
            "true policy",
            charts.SOFT,
            across_map,
            level,
            dash=(4, 2),
            width=1.0,
        )
        lines.append(line)
    return lines


def curve_panel(
    curves: Rows,
    where: str,
    metric: str,
    learners: Sequence[str],
    *,
    references: Mapping[str, float] | None = None,
    size: tuple[float, float] = SMALL,
) -> Panel:
    """Make a panel of one metric on one map: one line per arm, bands of ±1 standard error.

    Maps share the y range.

    Args:
        curves: Rows of :func:`figure_rows`.
        where: The map.
        metric: The metric to show.
        learners: The kinds of robot to show.
        references: The reward of the true policy on each map, if the metric is the reward.
        size: Inches.

    Returns:
        The panel.
    """
    of_learners = [row for row in curves if row["learner"] in learners]
    marks = []
    for row in of_learners:
        if row["map"] != where:
            continue
        teacher, learner = row["teacher"], row["learner"]
        line_colour = LINES[learner] if teacher == "random" else colour(teacher, learner)
        # A single participant has no standard error.
        error = np.nan_to_num(np.array(row[f"{metric}_sem"], float))
        dash = DASHES.get(_kind_of(teacher), ())
        marks.append(
            charts.line(
                arm(teacher, learner), line_colour, row["step"], row[metric], error, dash=dash
            )
        )
    if references:
        marks.append(charts.rule("y", references[where], "true policy"))
    # The range of the values on all maps.
    best_rewards = list((references or {}).values())
    values = [np.array(row[metric], float) for row in of_learners]
    low, high = _range_of(np.concatenate([best_rewards, *values]))
    margin = 0.06 * (high - low)
    return charts.panel(
        f"Map {where}",
        marks,
        x="Arrows shown",
        y=AXES[metric],
        size=size,
        x_range=(0, of_learners[0]["step"][-1]),
        y_range=(low - margin, high + margin),
    )


def _range_of(values: np.ndarray) -> tuple[float, float]:
    return float(np.nanmin(values)), float(np.nanmax(values))


def _kind_of(teacher: str) -> str:
    """Return the kind of a teacher, such as boltzmann for boltzmann:30."""
    return teacher.partition(":")[0]


def map_panels(config: Config) -> list[Panel]:
    """Make the panels of a study's maps.

    The reward of every cell, and the policy that follows from it.

    Args:
        config: The study.

    Returns:
        One panel per map.
    """
    rules = StudyRules(config)
    # All maps share the scale of colours.
    cells: list[float] = []
    for each in config.maps:
        cells += each.cells
    strongest = max(map(abs, cells))
    panels = []
    for each in config.maps:
        chances = np.exp(rules.truth(each.name).log_policy)
        # Shape (direction, row, column).
        policy = chances.reshape(-1, config.size, config.size)
        rewards = charts.rewards(np.array(each.rewards), policy, strongest)
        panels.append(charts.panel(f"Map {each.name}", [rewards], size=MAP))
    return panels


def _maps(analysis: Analysis) -> StudyFigure:
    """Return the maps that were taught, one panel each."""
    panels = map_panels(analysis.config)
    return StudyFigure("The maps", panels, len(panels), MAPS_CAPTION, of_data=False)


def _bars(analysis: Analysis) -> StudyFigure:
    """Return decreases after one step and after all steps, gain in reward, final reward.

    One bar per arm and map.
    """
    rows = figure_rows(analysis)
    baseline = compared_robots(analysis.config)[0][1]
    of_baseline = analysis.tests["second"] == baseline
    # Tests of the same robot with two teachers have no bar of their own.
    of_baseline &= analysis.tests["first"] != baseline
    against = analysis.tests[of_baseline]
    panels = []
    for outcome in OUTCOMES:
        tests = against[against["outcome"] == outcome].to_dict("records")
        panels.append(
            bar_panel(
                rows["means"],
                outcome,
                robots(analysis.config),
                rows["titles"][outcome],
                stars={(row["teacher"], row["first"], row["map"]): row["stars"] for row in tests},
                references=rows["references"] if outcome == "reward" else None,
            )
        )
    compared = " and ".join(LABELS[first] for first in robots(analysis.config) if first != baseline)
    stars = f"stars: {compared} against {LABELS[baseline]}, paired t-test, Holm over maps"
    caption = (
        "Decreases of distance and policy distance, gain in reward and final reward, of every arm "
        "on every map."
    )
    return StudyFigure(f"What the robots learned: mean ± SE; {stars}", panels, 3, caption)


def _curves_figure(analysis: Analysis) -> StudyFigure:
    """Return distance, policy distance and reward at every step.

    One column per map, bands of ±1 standard error.
    """
    rows = figure_rows(analysis)
    best_rewards = rows["references"]
    learners = robots(analysis.config)
    panels = []
    for metric, name in itertools.product(CURVES, best_rewards):
        references = best_rewards if metric == "reward" else None
        panels.append(curve_panel(rows["curves"], name, metric, learners, references=references))
    caption = (
        "Learning curves of every arm; one column per map. "
        "Dashed grey: the reward of the true policy."
    )
    title = "Learning curves: mean over participants, bands ± SE"
    return StudyFigure(title, panels, len(best_rewards), caption)


def _control(analysis: Analysis) -> StudyFigure:
    """Return aware and naive robots, the control, and the path length of each robot."""
    rows = figure_rows(analysis)
    panels = [
        bar_panel(rows["means"], outcome, (AWARE, MATCHED, NAIVE), rows["titles"][outcome])
        for outcome in ("distance_last", "policy_tv_last")
    ]
    panels.append(_path_panel(rows["paths"], analysis.config.steps))
    title = "Is it only the length of the steps? Naive robots with the aware robots' step lengths"
    caption = (
        "Aware and naive robots, naive robots with matched step lengths, "
        "and the lengths of their paths."
    )
    return StudyFigure(title, panels, 3, caption)


def _path_panel(paths: Rows, steps: int) -> Panel:
    """Return the path lengths of robots beside the distance that they had to go."""
    teachers = teachers_in_order([row["teacher"] for row in paths])
    learners = (
        AWARE_POSTERIOR,
        POSTERIOR,
        AWARE,
        ADAPTIVE,
        MATCHED,
        NAIVE,
    )

    def rank(row: Mapping[str, Any]) -> tuple[int, int]:
        teacher = row["teacher"]
        learner = row["learner"]
        return teachers.index(teacher), learners.index(learner)

    paths = sorted(paths, key=rank)
    distance = float(np.mean([row["start"] for row in paths]))
    marks = [charts.rule("x", distance, "distance at the start")]
    names = []
    for index, row in enumerate(paths):
        teacher = row["teacher"]
        learner = row["learner"]
        path = row["path"]
        point = charts.points("", colour(teacher, learner), [path], [index], size=7)
        marks.append(point)
        names.append(f"{arm(teacher, learner)}: {path:.2g}")
    count = len(names)
    longest = max(row["path"] for row in paths)
    return charts.panel(
        f"Path length of {steps} steps",
        marks,
        y_ticks=(range(count), names),
        size=PANEL,
        x_range=(0, 1.1 * longest),
        # The first robot is at the top.
        y_range=(count - 0.4, -0.6),
    )


DRAWINGS: dict[str, Callable[[Analysis], StudyFigure]] = {
    "maps": _maps,
    "bars": _bars,
    "curves": _curves_figure,
    "control": _control,
}
