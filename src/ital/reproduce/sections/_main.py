"""The paper's main figure: six tasks with the cooperative teacher, and the bars of the study."""

from ital import report
from ital.reproduce import _figures
from ital.reproduce._plan import STARTS
from ital.reproduce.sections._context import Context
from ital.reproduce.sections._study import WIDE, bars

TASKS = ("regression", "gaussian", "cifar10-6", "tiny-imagenet-lite0", "equation-40", "irl-dense")


def build(context: Context) -> list[report.Block]:
    """Distances of six tasks, and the study's bars."""
    data, note = context.data, context.scale.note
    experiments = [evidence for task in TASKS if (evidence := data.get(STARTS[0], task, "cooperative"))]
    panels = [_figures.curves(evidence, "distance", evidence.task.title) for evidence in experiments]
    if not panels:
        return []
    caption = (
        "Distance to the target with a cooperative teacher, who sees other features than the learner; uniform start, "
        "mean over seeds, bands ± 1 standard error. Dashed grey: a floor that no method can go below. The Tiny "
        "ImageNet panel is that of the Lite networks, which stand for the paper's VGG."
    )
    content = report.figure("main", "Cooperative teacher: distance to the target", panels, caption, note=note)
    if data.study is not None:
        about = (
            "SIMULATED teachers: no person took part. Left: by how much the distance to the true rewards falls; "
            "right: expected reward. Mean ± SE over participants; stars compare ITAL with IMT, paired t-test (* p < "
            "0.05, ** p < 0.01, *** p < 0.001)."
        )
        shown = [bars(data.study, outcome, size=WIDE) for outcome in ("distance_last", "reward")]
        content += report.figure("study-bars", "The study's arms, simulated", shown, about, columns=2, note=note)
    return content
