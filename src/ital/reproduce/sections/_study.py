"""The simulated arms of the human study: bars, learning curves, and the control of matched steps."""

from collections.abc import Sequence

from ital import report
from ital.figures import charts
from ital.reproduce._study import SimulatedStudy
from ital.reproduce.sections._context import Context
from ital.statistics import number, p_value, signed, stars
from ital.study import bar_panel, curve_panel

ROBOTS, BESIDE_CONTROL = ("aware", "naive"), ("aware", "imt-matched", "naive")
OUTCOMES = ("distance_first", "policy_tv_first", "reward_gain", "distance_last", "policy_tv_last", "reward")
WIDE = (4.8, 2.6)  # inches of a panel that shares its row with one other
METRICS = ("distance", "policy_tv", "reward")


def build(context: Context) -> list[report.Block]:
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
    said = "Simulated teachers; mean over participants, ± 1 SE."
    return [
        report.paragraph(lead),
        table(study),
        *report.figure(
            "study-outcomes", "What the robots learned (simulated)", [bars(study, outcome) for outcome in OUTCOMES],
            f"{said} Stars: ITAL against IMT, paired t-test (machine teacher, final distance).", note=note,
        ),
        *report.folded("Learning curves on each map", report.figure(
            "study-curves", "Learning curves (simulated)",
            [curves(study, where, metric) for metric in METRICS for where in study.references],
            f"{said} A column per map. Dashed grey: the reward of the true policy.", columns=5, note=note,
        )),
        *report.figure(
            "study-control", "Is it only the length of the steps? (simulated)",
            [bars(study, name, BESIDE_CONTROL, WIDE) for name in ("distance_last", "policy_tv_last")],
            f"{said} IMT, matched steps: naive robots with the aware robots' step lengths.", columns=2, note=note,
        ),
    ]  # fmt: skip


def table(study: SimulatedStudy) -> report.Block:
    """The paired tests."""
    rows = []
    for row in study.tests:
        means = number(row["mean_first"]), number(row["mean_second"])
        rows.append((row["map"], *means, signed(row["difference"]), p_value(row["p"])))
    caption = "By how much the distance to the true rewards falls, machine teacher (simulated); paired t-test."
    return report.table(("map", "ITAL", "IMT", "difference", "p"), rows, caption=caption, numbers_from=1)


def bars(
    study: SimulatedStudy, outcome: str, learners: Sequence[str] = ROBOTS, size: tuple[float, float] = (3.6, 2.5)
) -> charts.Panel:
    """A group of bars per map."""
    tested = outcome == "distance_last" and learners == ROBOTS
    marks = {("machine", "aware", row["map"]): stars(row["p"]) for row in study.tests} if tested else {}
    return bar_panel(study.means, outcome, learners, study.titles[outcome], stars=marks, size=size)


def curves(study: SimulatedStudy, where: str, metric: str) -> charts.Panel:
    """One metric on one map, an arm per line."""
    truth = study.references if metric == "reward" else None
    return curve_panel(study.curves, where, metric, ROBOTS, references=truth, size=(2.7, 2.2))
