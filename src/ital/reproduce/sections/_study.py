"""The simulated arms of the human study: bars, learning curves, and the control of matched steps."""

from typing import Any

import numpy as np

from ital.reproduce import _blocks, _charts
from ital.reproduce._blocks import Block
from ital.reproduce._charts import Panel
from ital.reproduce._numbers import number, signed
from ital.reproduce.sections._context import Context
from ital.statistics import p_value

# Aware robots blue, naive ones orange, the control grey; paler if the teacher is random.
COLOURS = {
    ("machine", "aware"): "#3c7ebf",
    ("machine", "naive"): "#e87a24",
    ("machine", "imt-matched"): "#777777",
    ("random", "aware"): "#9fbcd8",
    ("random", "naive"): "#f0bd94",
    ("random", "imt-matched"): "#b8b8b8",
}
NAMES = {"aware": "ITAL", "naive": "IMT", "imt-matched": "IMT matched"}
STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
OUTCOMES = ("distance_first", "policy_tv_first", "reward_gain", "distance_last", "policy_tv_last", "reward")
WIDE = (4.8, 2.6)  # inches of a panel that shares its row with one other
MEASURES = {"distance": "Distance to the truth", "policy_tv": "Policy total variation", "reward": "Expected reward"}


def build(context: Context) -> list[Block]:
    """Everything the paper shows of its study, with programs in the place of people."""
    study, note = context.data.study, context.scale.note
    if study is None:
        return []
    lead = f"SIMULATED: {study.participants} programs per arm chose the arrows. No person took part."
    if study.control:
        lead += (
            f" Over all maps the distance falls by {number(study.control['mean_first'])} for machine-taught ITAL and "
            f"by {number(study.control['mean_second'])} for the control, whose steps are as long."
        )
    maps = list(study.references)
    said = "Simulated teachers; mean over participants, ± 1 SE."
    return [
        _blocks.paragraph(lead),
        table(study),
        *_blocks.figure(
            "study-outcomes", "What the robots learned (simulated)", [bars(study, one) for one in OUTCOMES],
            f"{said} Stars: ITAL against IMT, paired t-test (machine teacher, final distance).", note=note,
        ),
        *_blocks.folded("Learning curves on each map", _blocks.figure(
            "study-curves", "Learning curves (simulated)",
            [curves(study, where, measure) for measure in MEASURES for where in maps],
            f"{said} A column per map. Dashed grey: the reward of the true policy.", columns=5, note=note,
        )),
        *_blocks.figure(
            "study-control", "Is it only the length of the steps? (simulated)",
            [bars(study, one, ("aware", "imt-matched", "naive"), WIDE) for one in ("distance_last", "policy_tv_last")],
            f"{said} IMT matched: naive robots with the aware robots' step lengths.", columns=2, note=note,
        ),
    ]  # fmt: skip


def table(study: Any) -> Block:
    """The paired tests."""
    rows = [
        (
            row["map"],
            number(row["mean_first"]),
            number(row["mean_second"]),
            signed(row["difference"]),
            p_value(row["p"]),
        )
        for row in study.tests
    ]
    caption = "By how much the distance to the true rewards falls, machine teacher (simulated); paired t-test."
    return _blocks.table(("map", "ITAL", "IMT", "difference", "p"), rows, caption=caption, numbers_from=1)


def bars(
    study: Any, outcome: str, learners: tuple[str, ...] = ("aware", "naive"), size: tuple[float, float] = (3.6, 2.5)
) -> Panel:
    """A group of bars per map."""
    rows = {(row["teacher"], row["learner"], row["map"]): row for row in study.means if row["outcome"] == outcome}
    maps = list(dict.fromkeys(where for *_, where in rows))
    arms = [(teacher, learner) for teacher in ("machine", "random") for learner in learners]
    arms = [arm for arm in arms if all((*arm, where) in rows for where in maps)]
    stars = {row["map"]: next((mark for limit, mark in STARS if row["p"] < limit), "") for row in study.tests}
    width = 0.84 / max(len(arms), 1)
    marks = []
    for i, arm in enumerate(arms):
        own = [rows[(*arm, where)] for where in maps]
        tested = outcome == "distance_last" and arm == ("machine", "aware") and "naive" in learners[:2]
        marks.append(
            _charts.bars(
                f"{arm[0].capitalize()} {NAMES[arm[1]]}",
                COLOURS[arm],
                np.arange(len(maps)) + (i - (len(arms) - 1) / 2) * width,
                [row["mean"] for row in own],
                [row["sem"] for row in own],
                width=0.9 * width,
                marks=[stars.get(where, "") for where in maps] if tested else (),
            )
        )
    title = study.titles.get(outcome, outcome)
    return _charts.panel(title, marks, x="Map", x_ticks=(range(len(maps)), maps), size=size)


def curves(study: Any, where: str, measure: str) -> Panel:
    """One measure on one map, an arm per line."""
    marks = []
    for row in study.curves:
        arm = row["teacher"], row["learner"]
        if row["map"] != where or arm not in COLOURS or arm[1] not in ("aware", "naive"):
            continue
        error = [0.0 if value is None else value for value in row[f"{measure}_sem"]]
        dash = (1, 1.2) if arm[0] == "random" else ()
        name = f"{arm[0].capitalize()} {NAMES[arm[1]]}"
        marks.append(_charts.line(name, COLOURS[arm], row["step"], row[measure], error, dash=dash))
    if measure == "reward":
        marks.append(_charts.rule("y", study.references[where], "true policy"))
    return _charts.panel(f"Map {where}", marks, x="Arrows shown", y=MEASURES[measure], size=(2.7, 2.2))
