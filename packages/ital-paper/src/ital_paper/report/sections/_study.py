"""The simulated arms of the human study: bars, learning curves, and the control of matched steps."""

from collections.abc import Sequence

from ital import report
from ital.figures import charts
from ital.statistics import number, p_value, signed, stars
from ital_paper.experiments.study import SimulatedStudy
from ital_paper.report.sections._context import Context
from ital_study import CLAIMED, MAPS_CAPTION, bar_panel, curve_panel, interface, load_config

ROBOTS, BESIDE_CONTROL = ("aware", "naive"), ("aware", "imt-matched", "naive")
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
    "Stars: ITAL against IMT with the machine teacher, paired t-test, Holm over maps (* p < 0.05, ** p < 0.01, *** p < "
    "0.001)."
)


def build(context: Context) -> list[report.Block]:
    """Everything that the paper shows of its study, with programs instead of people."""
    study, note = context.data.study, context.scale.study_note
    if study is None:
        return []
    lead = (
        f"SIMULATED: {study.participants} programs per arm chose the arrows. No person took part."
    )
    if study.control:
        lead += (
            f" Over all maps the distance falls by {number(study.control['mean_first'])} for machine-taught ITAL and "
            f"by {number(study.control['mean_second'])} for the control, whose steps are equally long."
        )
    said = f"Simulated teachers; mean over {study.participants} participants per arm, ± 1 SE."
    return [
        report.paragraph(lead),
        *report.folded("What is taught, and what participants see", [
            *report.figure("study-maps", "The maps", study.maps, MAPS_CAPTION, columns=5, note=note),
            interface(load_config()),
        ]),
        table(study),
        *report.figure(
            "study-outcomes", "What the robots learned (simulated)", [bars(study, outcome) for outcome in OUTCOMES],
            f"{said} {STARS}", note=note,
        ),
        *report.folded("Learning curves on each map", report.figure(
            "study-curves", "Learning curves (simulated)",
            [curves(study, where, metric) for metric in METRICS for where in study.references],
            f"{said} One column per map. Dashed grey: the reward of the true policy.", columns=5, note=note,
        )),
        *report.figure(
            "study-control", "Is it only the length of the steps? (simulated)",
            [bars(study, name, BESIDE_CONTROL, WIDE) for name in ("distance_last", "policy_tv_last")],
            f"{said} IMT, matched steps: naive robots with the aware robots' step lengths.", columns=2, note=note,
        ),
    ]  # fmt: skip


def table(study: SimulatedStudy) -> report.Block:
    """A table of the paired tests of the claim's measures."""
    rows = []
    for row in (row for outcome in CLAIMED for row in study.tests if row["outcome"] == outcome):
        means = number(row["mean_first"]), number(row["mean_second"])
        tested = p_value(row["p"]), f"{p_value(row['p_holm'])} {stars(row['p_holm'])}".strip()
        rows.append(
            (study.titles[row["outcome"]], row["map"], *means, signed(row["difference"]), *tested)
        )
    caption = (
        "Machine teacher (simulated): ITAL against IMT, paired t-test, p adjusted over maps (Holm)."
    )
    heads = ("measure", "map", "ITAL", "IMT", "difference", "p", "p (Holm)")
    return report.table(heads, rows, caption=caption, numbers_from=2)


def bars(
    study: SimulatedStudy,
    outcome: str,
    learners: Sequence[str] = ROBOTS,
    size: tuple[float, float] = (3.6, 2.5),
) -> charts.Panel:
    """One group of bars per map."""
    tests = [row for row in study.tests if row["outcome"] == outcome] if learners == ROBOTS else []
    marks = {("machine", "aware", row["map"]): stars(row["p_holm"]) for row in tests}
    return bar_panel(study.means, outcome, learners, study.titles[outcome], stars=marks, size=size)


def curves(study: SimulatedStudy, where: str, metric: str) -> charts.Panel:
    """One metric on one map, one line per arm."""
    truth = study.references if metric == "reward" else None
    return curve_panel(study.curves, where, metric, ROBOTS, references=truth, size=(2.7, 2.2))
