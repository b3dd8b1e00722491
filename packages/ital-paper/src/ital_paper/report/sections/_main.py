"""The paper's main figure: six tasks with the cooperative teacher, and the bars of the study."""

from ital import report
from ital_paper.experiments import figures
from ital_paper.experiments.data import Data
from ital_paper.experiments.plan import STAND_INS, STARTS
from ital_paper.report.sections._context import Context
from ital_paper.report.sections._study import STARS, WIDE, bars

VGG = "tiny-imagenet-13"
SIX = ("regression", "gaussian", "cifar10-6", VGG, "equation-40", "irl-dense")
LITE = " The Tiny ImageNet panel shows the Lite networks, which replace the paper's VGG."


def six_tasks(data: Data, teacher: str) -> list[str]:
    """The tasks of the main figure; Lite networks replace VGG if it has no results."""
    has_vgg = data.get(STARTS[0], VGG, teacher) is not None
    return [STAND_INS[task] if task == VGG and not has_vgg else task for task in SIX]


def build(context: Context) -> list[report.Block]:
    """Distances of six tasks, and the study's bars."""
    data, note = context.data, context.scale.note
    six = six_tasks(data, "cooperative")
    experiments = [
        evidence for task in six if (evidence := data.get(STARTS[0], task, "cooperative"))
    ]
    panels = [figures.curves(evidence, "distance", evidence.task.title) for evidence in experiments]
    if not panels:
        return []
    caption = (
        "Distance to the target with a cooperative teacher, which sees other features than the learner; uniform start, "
        "mean over seeds, bands ± 1 standard error. Dashed grey: the smallest distance that any method can reach."
    ) + ("" if VGG in six else LITE)
    content = report.figure(
        "main", "Cooperative teacher: distance to the target", panels, caption, note=note
    )
    if data.study is not None:
        about = (
            "SIMULATED teachers: no person took part. Left: decrease of the distance to the true rewards; "
            f"right: expected reward. Mean ± SE over {data.study.participants} participants per arm. {STARS}"
        )
        shown = [bars(data.study, outcome, size=WIDE) for outcome in ("distance_last", "reward")]
        content += report.figure(
            "study-bars",
            "The study's arms, simulated",
            shown,
            about,
            columns=2,
            note=context.scale.study_note,
        )
    return content
