"""Figures of the study: bars of every arm with stars, learning curves per map, and the matched-step control."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ital import report
from ital.figures import charts
from ital.figures.charts import Panel
from ital.statistics import rounded
from ital_study.analysis.measures import (
    ALL_MAPS,
    CURVES,
    Analysis,
    arm,
    measures,
    robots,
    teachers_in_order,
)
from ital_study.config.configuration import Config
from ital_study.config.kinds import ADAPTIVE
from ital_study.robots.rules import StudyRules
from ital_study.simulation.arms import MATCHED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Aware robots are blue, adaptive ones green, naive ones orange, the control grey. The less a teacher is like a person,
# the paler its colour; the random teacher is hatched. This works in print and for colour-blind readers.
SHADES = {
    "aware": {
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
    "naive": {
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
LINES = {
    "aware": "#5b9bd0",
    ADAPTIVE: "#4bb391",
    "naive": "#dd8f4e",
}  # of the random teacher: pale lines are invisible
DASHES = {"random": (1, 1.2), "boltzmann": (4, 1.5)}
WARNING = "#a63a00"  # of every label that marks data as not from people
AXES = {
    "distance": "Distance ‖w − w*‖",
    "policy_tv": "Policy total variation",
    "reward": "Expected reward",
}
PANEL, SMALL, MAP = (4.3, 2.7), (2.6, 2.0), (2.4, 2.4)  # inches
MAPS_CAPTION = (
    "Reward of entering each cell, which the robots should learn. Arrows show the true policy, from which candidate "
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
    """A figure without its label: its title, its panels, the number of panels in a row, and its caption.

    A figure that is not ``of_data`` shows the study itself, whoever took part.
    """

    title: str
    panels: list[Panel]
    columns: int
    caption: str
    of_data: bool = True


def whose(analysis: Analysis) -> str:
    """One line about the source of the data."""
    if analysis.left_out.everybody:
        return nobody(analysis)
    if analysis.kind == "simulated":
        return "SIMULATED DATA: no person took part"
    people = analysis.participants["human"]
    text = f"Human data: {people} participant{'s' if people > 1 else ''}; machine and random arms are simulated"
    return (
        f"{analysis.mode.upper()} RUNS, not data of the study. {text}"
        if analysis.mode != "live"
        else text
    )


def nobody(analysis: Analysis) -> str:
    """The headline of a study of which nobody remains."""
    count = len(analysis.left_out.people)
    who = f"All {count} people who finished are" if count > 1 else "The only person who finished is"
    return f"NOBODY IS LEFT TO ANALYSE: {who} excluded ({analysis.mode} data)."


def drawings(analysis: Analysis) -> list[str]:
    """The figures that can be drawn: without people, only that of the maps."""
    return ["maps"] if analysis.left_out.everybody else list(DRAWINGS)


def of_people(analysis: Analysis) -> bool:
    """Whether these are data of the study itself: from people, and not from trial runs."""
    return (analysis.kind, analysis.mode) == ("human", "live")


def shade(analysis: Analysis) -> str:
    """The colour of the line about the source of the data."""
    return "0.1" if of_people(analysis) else WARNING


def draw(name: str, analysis: Analysis) -> "Figure":
    """Draw the figure called ``maps``, ``bars``, ``curves`` or ``control``.

    A figure of data names their source, because it may be shown without the report.

    Args:
        name: the name of the figure.
        analysis: the numbers to show.

    Returns:
        A matplotlib figure.

    """
    shown = DRAWINGS[name](analysis)
    note = whose(analysis) if shown.of_data else ""
    figure = charts.chart(shown.panels, shown.title, columns=shown.columns, note=note)
    figure.suptitle(figure.get_suptitle(), fontsize=11, color=shade(analysis) if note else "0.1")
    return figure


def block(name: str, analysis: Analysis) -> list[report.Block]:
    """The same figure as a block of the report."""
    shown = DRAWINGS[name](analysis)
    note = whose(analysis) if shown.of_data else ""
    return report.figure(
        name, shown.title, shown.panels, shown.caption, columns=shown.columns, note=note
    )


def figure_rows(analysis: Analysis) -> dict[str, Any]:
    """Return the numbers of the figures as plain rows.

    Args:
        analysis: the numbers of a study.

    Returns:
        ``means`` of every arm, map and outcome, ``titles`` of the outcomes, ``curves`` of every arm and map,
        ``references``, the reward of the true policy on each map, and ``paths`` of every arm.

    """
    arm_and_map = ["teacher", "learner", "map"]
    means, curves = analysis.summary, analysis.curves.groupby(arm_and_map, sort=False)
    return {
        "means": means[means["map"] != ALL_MAPS][[*arm_and_map, "outcome", "mean", "sem"]].to_dict(
            "records"
        ),
        "titles": {
            name: measure.title for name, measure in measures(analysis.config.steps).items()
        },
        "curves": [
            dict(zip(arm_and_map, place, strict=True))
            | {name: rounded(rows[name]) for name in rows.columns if name not in arm_and_map}
            for place, rows in curves
        ],
        "references": analysis.references,
        "paths": analysis.paths.groupby(arm_and_map[:2])[["path", "start"]]
        .mean()
        .reset_index()
        .to_dict("records"),
    }


def colour(teacher: str, learner: str) -> str:
    """The colour of an arm."""
    return SHADES[learner][teacher.partition(":")[0]]


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
        means: rows of :func:`figure_rows`.
        outcome: the outcome to show.
        learners: the kinds of robot to show.
        title: text above the panel.
        stars: text above a bar, by teacher, robot and map.
        references: a dashed line for each map.
        size: inches.

    Returns:
        The panel.

    """
    rows = {
        (row["teacher"], row["learner"], row["map"]): row
        for row in means
        if row["outcome"] == outcome
    }
    maps = list(dict.fromkeys(name for *_, name in rows))
    teachers = teachers_in_order([teacher for teacher, *_ in rows])
    arms = [
        (teacher, learner)
        for teacher in teachers
        for learner in learners
        if (teacher, learner, maps[0]) in rows
    ]
    width, middle = 0.84 / len(arms), (len(arms) - 1) / 2
    marks = [
        charts.bars(
            arm(*each), colour(*each), np.arange(len(maps)) + (i - middle) * width,
            [rows[*each, name]["mean"] for name in maps], [rows[*each, name]["sem"] for name in maps],
            width=0.92 * width, marks=[stars.get((*each, name), "") for name in maps] if stars else (),
            hatch=HATCHES.get(each[0].partition(":")[0], ""),
        )
        for i, each in enumerate(arms)
    ]  # fmt: skip
    for i, name in enumerate(maps if references else ()):
        level = [(references or {})[name]] * 2
        marks.append(
            charts.line(
                "true policy", charts.SOFT, [i - 0.45, i + 0.45], level, dash=(4, 2), width=1.0
            )
        )
    return charts.panel(title, marks, x="Map", x_ticks=(range(len(maps)), maps), size=size)


def curve_panel(
    curves: Rows,
    where: str,
    metric: str,
    learners: Sequence[str],
    *,
    references: Mapping[str, float] | None = None,
    size: tuple[float, float] = SMALL,
) -> Panel:
    """Make a panel of one metric on one map: one line per arm, bands of ±1 standard error. Maps share the y range.

    Args:
        curves: rows of :func:`figure_rows`.
        where: the map.
        metric: the metric to show.
        learners: the kinds of robot to show.
        references: the reward of the true policy on each map, if the metric is the reward.
        size: inches.

    Returns:
        The panel.

    """
    shown = [row for row in curves if row["learner"] in learners]
    marks = []
    for row in (row for row in shown if row["map"] == where):
        teacher, learner = row["teacher"], row["learner"]
        own = LINES[learner] if teacher == "random" else colour(teacher, learner)
        error = np.nan_to_num(np.array(row[f"{metric}_sem"], float))
        dash = DASHES.get(teacher.partition(":")[0], ())
        marks.append(
            charts.line(arm(teacher, learner), own, row["step"], row[metric], error, dash=dash)
        )
    if references:
        marks.append(charts.rule("y", references[where], "true policy"))
    values = np.concatenate(
        [list((references or {}).values()), *(np.array(row[metric], float) for row in shown)]
    )
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return charts.panel(
        f"Map {where}", marks, x="Arrows shown", y=AXES[metric], size=size, x_range=(0, shown[0]["step"][-1]),
        y_range=(low - 0.06 * (high - low), high + 0.06 * (high - low)),
    )  # fmt: skip


def map_panels(config: Config) -> list[Panel]:
    """Make the panels of a study's maps: the reward of every cell, and the policy that follows from it.

    Args:
        config: the study.

    Returns:
        One panel per map.

    """
    rules, strongest = (
        StudyRules(config),
        max(abs(cell) for on in config.maps for row in on.rewards for cell in row),
    )
    panels = []
    for on in config.maps:
        policy = np.exp(rules.truth(on.name).log_policy).reshape(-1, config.size, config.size)
        marks = [charts.rewards(np.array(on.rewards), policy, strongest)]
        panels.append(charts.panel(f"Map {on.name}", marks, size=MAP))
    return panels


def maps(analysis: Analysis) -> StudyFigure:
    """The maps that were taught, one panel each."""
    return StudyFigure(
        "The maps",
        map_panels(analysis.config),
        len(analysis.config.maps),
        MAPS_CAPTION,
        of_data=False,
    )


def bars(analysis: Analysis) -> StudyFigure:
    """Decreases after one step and after all steps, gain in reward, final reward: one bar per arm and map."""
    rows, tests = figure_rows(analysis), analysis.tests
    panels = []
    for outcome in OUTCOMES:
        own = tests[(tests["outcome"] == outcome) & (tests["second"] == "naive")].to_dict("records")
        panels.append(
            bar_panel(
                rows["means"], outcome, robots(analysis.config), rows["titles"][outcome],
                stars={(row["teacher"], row["first"], row["map"]): row["stars"] for row in own},
                references=rows["references"] if outcome == "reward" else None,
            )
        )  # fmt: skip
    compared = "ITAL and ITAL adaptive" if analysis.config.adaptive else "ITAL"
    stars = f"stars: {compared} against IMT, paired t-test, Holm over maps"
    caption = "Decreases of distance and policy distance, gain in reward and final reward, of every arm on every map."
    return StudyFigure(f"What the robots learned: mean ± SE; {stars}", panels, 3, caption)


def curves(analysis: Analysis) -> StudyFigure:
    """Distance, policy distance and reward at every step: one column per map, bands of ±1 standard error."""
    rows = figure_rows(analysis)
    truth, learners = rows["references"], robots(analysis.config)
    panels = [
        curve_panel(
            rows["curves"], name, metric, learners, references=truth if metric == "reward" else None
        )
        for metric in CURVES
        for name in truth
    ]
    caption = "Learning curves of every arm; one column per map. Dashed grey: the reward of the true policy."
    return StudyFigure(
        "Learning curves: mean over participants, bands ± SE", panels, len(truth), caption
    )


def control(analysis: Analysis) -> StudyFigure:
    """Aware and naive robots, the control of matched steps, and the path length of each robot."""
    rows, learners = figure_rows(analysis), ("aware", ADAPTIVE, MATCHED, "naive")
    panels = [
        bar_panel(rows["means"], outcome, ("aware", MATCHED, "naive"), rows["titles"][outcome])
        for outcome in ("distance_last", "policy_tv_last")
    ]
    order = teachers_in_order([row["teacher"] for row in rows["paths"]])
    paths = sorted(
        rows["paths"], key=lambda row: (order.index(row["teacher"]), learners.index(row["learner"]))
    )
    marks = [
        charts.rule("x", float(np.mean([row["start"] for row in paths])), "distance at the start")
    ]
    names = []
    for i, row in enumerate(paths):
        marks.append(
            charts.points("", colour(row["teacher"], row["learner"]), [row["path"]], [i], size=7)
        )
        names.append(f"{arm(row['teacher'], row['learner'])}: {row['path']:.2g}")
    panels.append(
        charts.panel(
            f"Path length of {analysis.config.steps} steps", marks, y_ticks=(range(len(names)), names), size=PANEL,
            x_range=(0, 1.1 * max(row["path"] for row in paths)), y_range=(len(names) - 0.4, -0.6),
        )
    )  # fmt: skip
    title = "Is it only the length of the steps? Naive robots with the aware robots' step lengths"
    caption = "Aware and naive robots, naive robots with matched step lengths, and the lengths of their paths."
    return StudyFigure(title, panels, 3, caption)


DRAWINGS: dict[str, Callable[[Analysis], StudyFigure]] = {
    "maps": maps,
    "bars": bars,
    "curves": curves,
    "control": control,
}
