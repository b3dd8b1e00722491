"""Figures of the study: bars of every arm with stars, learning curves per map, and the matched-step control."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ital.study._analysis import CURVES, Analysis, arm, measures, robots, teachers_in_order
from ital.study._arms import MATCHED
from ital.study._config import ADAPTIVE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Aware robots blue, adaptive ones green, naive ones orange, the control grey; the further a teacher from a person,
# the paler, and the random one hatched: told apart in print and by colour-blind readers.
SHADES = {
    "aware": {"human": "#08306b", "machine": "#3c7ebf", "boltzmann": "#7fb2dd", "random": "#c3daee"},
    ADAPTIVE: {"human": "#00533a", "machine": "#1f9e77", "boltzmann": "#72c2a6", "random": "#bfe3d5"},
    "naive": {"human": "#a63a00", "machine": "#e87a24", "boltzmann": "#f3a868", "random": "#fad7b8"},
    MATCHED: {"human": "#333333", "machine": "#777777", "boltzmann": "#a0a0a0", "random": "#cfcfcf"},
}
HATCHES = {"random": "////", "boltzmann": ".."}
LINES = {
    "aware": "#5b9bd0",
    ADAPTIVE: "#4bb391",
    "naive": "#dd8f4e",
}  # of the random teacher: pale lines cannot be seen
DASHES: dict[str, Any] = {"random": (0, (1, 1.2)), "boltzmann": (0, (4, 1.5))}
WARNING = "#a63a00"  # of everything that says: these are no people
AXES = {"distance": "Distance ‖w − w*‖", "policy_tv": "Policy total variation", "reward": "Expected reward"}


def whose(analysis: Analysis) -> str:
    """Whose data these are, in a line."""
    if analysis.kind == "simulated":
        return "SIMULATED DATA: no person took part"
    people = analysis.participants["human"]
    text = f"Human data: {people} participant{'s' if people > 1 else ''}; machine and random arms are simulated"
    return f"{analysis.mode.upper()} RUNS, not data of the study. {text}" if analysis.mode != "live" else text


def shade(analysis: Analysis) -> str:
    """The colour of the line that says whose data these are."""
    return "0.1" if (analysis.kind, analysis.mode) == ("human", "live") else WARNING


def title(figure: Any, analysis: Analysis, text: str) -> None:
    """The figure's title, and under it whose data these are: a figure may travel alone."""
    figure.suptitle(f"{text}\n{whose(analysis)}", fontsize=11, color=shade(analysis))


SIZES = {"bars": (13.0, 6.6), "curves": (13.0, 7.4), "control": (13.0, 3.9)}


def draw(name: str, analysis: Analysis) -> "Figure":
    """The figure called ``bars``, ``curves`` or ``control``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZES[name], layout="constrained")
    DRAWINGS[name](figure, analysis)
    return figure


def colour(teacher: str, learner: str) -> str:
    """The colour of an arm."""
    return SHADES[learner][teacher.partition(":")[0]]


def star_colour(teacher: str, learner: str) -> str:
    """The colour of an arm's stars: pale ones cannot be seen."""
    if teacher != "random":
        return colour(teacher, learner)
    return "0.35" if learner == "aware" else LINES[learner]


def _bars(axis: Any, analysis: Analysis, outcome: str, learners: tuple[str, ...], *, test: bool = True) -> None:
    """One group per map, a bar per arm with ±1 standard error; stars compare with naive robots."""
    teachers = teachers_in_order(analysis.summary["teacher"].tolist())
    arms = [(teacher, learner) for teacher in teachers for learner in learners]
    maps = [on.name for on in analysis.config.maps]
    rows = analysis.summary[analysis.summary["outcome"] == outcome].set_index(["teacher", "learner", "map"])
    width = 0.84 / len(arms)
    tops: dict[tuple[str, str], float] = {}
    for i, (teacher, learner) in enumerate(arms):
        own = rows.loc[[(teacher, learner, name) for name in maps]]
        where = np.arange(len(maps)) + (i - (len(arms) - 1) / 2) * width
        mean, error = own["mean"].to_numpy(), own["sem"].fillna(0).to_numpy()
        axis.bar(
            where, mean, 0.92 * width, yerr=error, label=arm(teacher, learner), color=colour(teacher, learner),
            hatch=HATCHES.get(teacher.partition(":")[0]), edgecolor="white", linewidth=0.4,
            error_kw={"elinewidth": 0.9, "ecolor": "0.2", "capsize": 1.5},
        )  # fmt: skip
        for name, high in zip(maps, np.maximum(mean, 0) + error, strict=True):
            tops[teacher, name] = max(tops.get((teacher, name), 0.0), float(high))
    axis.axhline(0, color="0.3", lw=0.7)
    axis.set_xticks(range(len(maps)), maps)
    axis.set_xlabel("Map")
    axis.margins(y=0.12)
    axis.grid(axis="y", alpha=0.25, lw=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    if not test:
        return
    tests = analysis.tests
    tests = tests[(tests["outcome"] == outcome) & (tests["second"] == "naive")].set_index(["teacher", "map", "first"])
    for (teacher, name), high in tops.items():
        middle = teachers.index(teacher) * len(learners) + (len(learners) - 1) / 2
        centre = maps.index(name) + (middle - (len(arms) - 1) / 2) * width
        for row, first in enumerate(learner for learner in learners if learner != "naive"):  # one above the other
            mark = tests.loc[(teacher, name, first), "stars"] if (teacher, name, first) in tests.index else ""
            if mark:
                axis.annotate(
                    mark, (centre, high), xytext=(0, 1 + 6 * row), textcoords="offset points", ha="center",
                    va="bottom", fontsize=8, color=star_colour(teacher, first),
                )  # fmt: skip


def bars(figure: Any, analysis: Analysis) -> None:
    """Decreases after one and after all steps, gain in reward and final reward: a bar per arm and map."""
    axes = figure.subplots(2, 3)
    titles = measures(analysis.config.steps)
    panels = ("distance_first", "policy_tv_first", "reward_gain", "distance_last", "policy_tv_last", "reward")
    for axis, outcome in zip(axes.flat, panels, strict=True):
        _bars(axis, analysis, outcome, robots(analysis.config))
        axis.set_title(titles[outcome].title, fontsize=10)
    for i, on in enumerate(analysis.config.maps):
        reference = analysis.references[on.name]
        axes[1, 2].plot([i - 0.45, i + 0.45], [reference] * 2, color="0.35", ls="--", lw=1, zorder=1)
    axes[1, 2].plot([], [], color="0.35", ls="--", lw=1, label="true policy")
    handles, labels = axes[1, 2].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=7, frameon=False, fontsize=9)
    compared = "ITAL (lower) and ITAL adaptive (upper)" if analysis.config.adaptive else "ITAL"
    stars = f"stars: {compared} against IMT, paired t-test, Holm over maps"
    title(figure, analysis, f"What the robots learned: mean ± SE; {stars}")


def curves(figure: Any, analysis: Analysis) -> None:
    """Distance, policy distance and reward at every step, a column per map, bands of ±1 standard error."""
    maps = [on.name for on in analysis.config.maps]
    axes = figure.subplots(len(CURVES), len(maps), squeeze=False, sharex=True, sharey="row")
    table = analysis.curves.set_index(["teacher", "learner", "map"])
    for column, name in enumerate(maps):
        for axis, metric in zip(axes[:, column], CURVES, strict=True):
            for teacher in reversed(teachers_in_order(analysis.curves["teacher"].tolist())):
                for learner in reversed(robots(analysis.config)):
                    line = table.xs((teacher, learner, name))
                    step, mean = line["step"].to_numpy(), line[metric].to_numpy()
                    error = line[f"{metric}_sem"].fillna(0).to_numpy()
                    own = LINES[learner] if teacher == "random" else colour(teacher, learner)
                    axis.plot(
                        step, mean, color=own, lw=1.6, label=arm(teacher, learner),
                        ls=DASHES.get(teacher.partition(":")[0], "-"),
                    )  # fmt: skip
                    axis.fill_between(step, mean - error, mean + error, color=own, alpha=0.2, lw=0)
            if metric == "reward":
                axis.axhline(analysis.references[name], color="0.4", ls="--", lw=1, label="true policy")
            if column == 0:
                axis.set_ylabel(AXES[metric])
            axis.grid(alpha=0.25, lw=0.6)
            axis.spines[["top", "right"]].set_visible(False)
            axis.set_xlim(0, analysis.config.steps)
        axes[0, column].set_title(f"Map {name}", fontsize=10)
        axes[-1, column].set_xlabel("Arrows shown")
    handles, labels = axes[-1, 0].get_legend_handles_labels()
    order = [*range(len(labels) - 2, -1, -1), len(labels) - 1]
    figure.legend(
        [handles[i] for i in order], [labels[i] for i in order], loc="outside lower center", ncols=7, frameon=False,
        fontsize=9,
    )  # fmt: skip
    title(figure, analysis, "Learning curves: mean over participants, bands ± SE")


def control(figure: Any, analysis: Analysis) -> None:
    """Aware and naive robots beside the control of matched steps, and how far each robot went in all."""
    steps = analysis.config.steps
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.4, 1.4, 1))
    titles = measures(steps)
    for axis, outcome in ((left, "distance_last"), (middle, "policy_tv_last")):
        _bars(axis, analysis, outcome, ("aware", MATCHED, "naive"), test=False)
        axis.set_title(titles[outcome].title, fontsize=10)
    means = analysis.paths.groupby(["teacher", "learner"])["path"].mean()
    arms = [
        (teacher, learner)
        for teacher in teachers_in_order(analysis.paths["teacher"].tolist())
        for learner in ("aware", ADAPTIVE, MATCHED, "naive")
        if (teacher, learner) in means.index
    ]
    for i, (teacher, learner) in enumerate(reversed(arms)):
        length = means[teacher, learner]
        right.barh(
            i, length, color=colour(teacher, learner), hatch=HATCHES.get(teacher.partition(":")[0]), edgecolor="white",
            linewidth=0.4,
        )  # fmt: skip
        right.annotate(f"{length:.2g}", (length, i), xytext=(3, 0), textcoords="offset points", va="center", fontsize=8)
    start = analysis.paths["start"].mean()
    right.axvline(start, color="0.4", ls="--", lw=1)
    right.annotate(
        "distance at the start", (start, len(arms) - 0.45), xytext=(3, 0), textcoords="offset points", fontsize=8,
        va="bottom", color="0.3",
    )  # fmt: skip
    right.set_ylim(-0.6, len(arms) + 0.3)
    right.set_yticks(range(len(arms)), [arm(*each) for each in reversed(arms)], fontsize=8)
    right.set_title(f"Path of {steps} steps, added up", fontsize=10)
    right.margins(x=0.12)
    right.spines[["top", "right"]].set_visible(False)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    title(figure, analysis, "Is it only the length of the steps? Naive robots with the aware robots' step lengths")


DRAWINGS: dict[str, Callable[[Any, Analysis], None]] = {"bars": bars, "curves": curves, "control": control}
