"""The paper's main figure: six tasks with the cooperative teacher, and the bars of the study."""

from ital import report
from ital_paper.experiments import figures
from ital_paper.experiments.data import Data
from ital_paper.experiments.plan import STAND_INS, STARTS
from ital_paper.experiments.study import SimulatedStudy
from ital_paper.report.sections._context import Context
from ital_paper.report.sections._study import STARS, WIDE, outcome_bars

VGG = "tiny-imagenet-13"
SIX = ("regression", "gaussian", "cifar10-6", VGG, "equation-40", "irl-dense")
CAPTION = (
    "Distance to the target with a cooperative teacher, which sees other features than the "
    "learner; uniform start, mean over seeds, bands ± 1 standard error. "
    "Dashed grey: the smallest distance that any method can reach."
)
LITE = " The Tiny ImageNet panel shows the Lite networks, which replace the paper's VGG."


def six_tasks(data: Data, teacher: str) -> list[str]:
    """Return the tasks of the main figure; Lite networks replace VGG if it has no results."""
    if data.get(STARTS[0], VGG, teacher) is not None:
        return list(SIX)
    return [STAND_INS[task] if task == VGG else task for task in SIX]


def main_section(context: Context) -> list[report.Block]:
    """Show the distances of six tasks, and the study's bars."""
    data = context.data
    tasks = six_tasks(data, "cooperative")
    experiments = data.of_tasks(tasks, STARTS[0], "cooperative")
    # The bars of the study alone are in a section of their own.
    if not experiments:
        return []
    content = report.figure(
        "main",
        "Cooperative teacher: distance to the target",
        [figures.metric_panel(each, "distance", each.task.title) for each in experiments],
        CAPTION if VGG in tasks else CAPTION + LITE,
        note=context.scale.note,
    )
    if data.study is not None:
        content += _study_bars(data.study, context.scale.study_note)
    return content


def _study_bars(study: SimulatedStudy, note: str) -> list[report.Block]:
    caption = (
        "SIMULATED teachers: no person took part. "
        "Left: decrease of the distance to the true rewards; right: expected reward. "
        f"Mean ± SE over {study.participants} participants per arm. {STARS}"
    )
    panels = [outcome_bars(study, outcome, size=WIDE) for outcome in ("distance_last", "reward")]
    return report.figure(
        "study-bars", "The study's arms, simulated", panels, caption, columns=2, note=note
    )
