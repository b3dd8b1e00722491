"""The simulated arms of the human study: bars, learning curves, and the matched control."""

import itertools
from collections.abc import Sequence
from typing import Any

from ital import report
from ital.figures import charts
from ital.statistics import number, p_value, signed, stars
from ital_paper.experiments.study import SimulatedStudy
from ital_paper.report.sections._context import Context
from ital_study import CLAIMED, MAPS_CAPTION, bar_panel, curve_panel, interface, load_config

ROBOTS = ("aware", "naive")
BESIDE_CONTROL = ("aware", "imt-matched", "naive")
OUTCOMES = (
    "distance_first",
    "policy_tv_first",
    "reward_gain",
    "distance_last",
    "policy_tv_last",
    "reward",
)
WIDE = (4.8, 2.6)  # inches of a panel that shares its row with one other
METRICS = ("distance", "policy_tv", "reward")
STARS = (
    "Stars: ITAL against IMT with the machine teacher, paired t-test, Holm over maps "
    "(* p < 0.05, ** p < 0.01, *** p < 0.001)."
)


def study_section(context: Context) -> list[report.Block]:
    """Show everything that the paper shows of its study, with programs instead of people."""
    study = context.data.study
    note = context.scale.study_note
    if study is None:
        return []
    over_participants = (
        f"Simulated teachers; mean over {study.participants} participants per arm, ± 1 SE."
    )
    maps = report.figure("study-maps", "The maps", study.maps, MAPS_CAPTION, columns=5, note=note)
    learned = report.figure(
        "study-outcomes",
        "What the robots learned (simulated)",
        [outcome_bars(study, outcome) for outcome in OUTCOMES],
        f"{over_participants} {STARS}",
        note=note,
    )
    curves = report.figure(
        "study-curves",
        "Learning curves (simulated)",
        [
            map_curves(study, name, metric)
            for metric, name in itertools.product(METRICS, study.references)
        ],
        f"{over_participants} One column per map. Dashed grey: the reward of the true policy.",
        columns=5,
        note=note,
    )
    control = report.figure(
        "study-control",
        "Is it only the length of the steps? (simulated)",
        [
            outcome_bars(study, outcome, BESIDE_CONTROL, WIDE)
            for outcome in ("distance_last", "policy_tv_last")
        ],
        f"{over_participants} "
        "IMT, matched steps: naive robots with the aware robots' step lengths.",
        columns=2,
        note=note,
    )
    taught = [*maps, interface(load_config())]
    return [
        report.paragraph(_lead(study)),
        *report.folded("What is taught, and what participants see", taught),
        tests_table(study),
        *learned,
        *report.folded("Learning curves on each map", curves),
        *control,
    ]


def _lead(study: SimulatedStudy) -> str:
    """Say that nobody took part, and how ITAL compares with steps of the same length."""
    simulated = (
        f"SIMULATED: {study.participants} programs per arm chose the arrows. No person took part."
    )
    if not study.control:
        return simulated
    return (
        f"{simulated} Over all maps the distance falls by {number(study.control['mean_first'])} "
        f"for machine-taught ITAL and by {number(study.control['mean_second'])} for the control, "
        "whose steps are equally long."
    )


def tests_table(study: SimulatedStudy) -> report.Block:
    """Make a table of the paired tests of the claim's measures."""
    rows = []
    for outcome in CLAIMED:
        tests = [row for row in study.tests if row["outcome"] == outcome]
        rows += [_test_row(study.titles[outcome], row) for row in tests]
    caption = (
        "Machine teacher (simulated): ITAL against IMT, paired t-test, p adjusted over maps (Holm)."
    )
    heads = ("measure", "map", "ITAL", "IMT", "difference", "p", "p (Holm)")
    return report.table(heads, rows, caption=caption, numbers_from=2)


def _test_row(title: str, row: dict[str, Any]) -> tuple[str, ...]:
    return (
        title,
        row["map"],
        number(row["mean_first"]),
        number(row["mean_second"]),
        signed(row["difference"]),
        p_value(row["p"]),
        f"{p_value(row['p_holm'])} {stars(row['p_holm'])}".strip(),
    )


def outcome_bars(
    study: SimulatedStudy,
    outcome: str,
    learners: Sequence[str] = ROBOTS,
    size: tuple[float, float] = (3.6, 2.5),
) -> charts.Panel:
    """Draw one group of bars per map."""
    marks = {}
    # The stars compare ITAL with IMT alone: beside the control they would be misread.
    if learners == ROBOTS:
        marks = {
            ("machine", "aware", row["map"]): stars(row["p_holm"])
            for row in study.tests
            if row["outcome"] == outcome
        }
    return bar_panel(study.means, outcome, learners, study.titles[outcome], stars=marks, size=size)


def map_curves(
    study: SimulatedStudy,
    name: str,
    metric: str,
) -> charts.Panel:
    """Draw one metric on one map, one line per arm."""
    # Only the reward has a value that the true policy would reach.
    truth = study.references if metric == "reward" else None
    return curve_panel(study.curves, name, metric, ROBOTS, references=truth, size=(2.7, 2.2))
