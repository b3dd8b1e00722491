"""Beyond the paper: a learner that infers what kind of teacher it has, and a neural one."""

import numpy as np

from ital import report
from ital.figures import charts, colours
from ital.results import mean_and_error
from ital.statistics import number
from ital_paper.experiments import figures
from ital_paper.experiments.data import Evidence
from ital_paper.experiments.plan import NEURAL
from ital_paper.report.sections._context import Context

ADAPTIVE = "ital-adaptive"
LEAD = (
    "ITAL must be told whether its teacher helps and how much. ITAL adaptive is told nothing: it compares the "
    "teacher's choices with its own predictions, and trusts the teacher as far as they agree. The switching teacher "
    "helps for half of the run and then becomes an adversary."
)

FARTHER = (
    "More than 100 % means that a learner ends farther from the target than it started. It takes long steps where the "
    "teacher's choices mislead it or say nothing, and its errors grow from step to step. The farthest is {label} on "
    "{task} with the {teacher} teacher: {times}. Such a number says that the method fails there; its size says nothing "
    "more."
)


def build(context: Context) -> list[report.Block]:
    """The best method with every teacher, trust over time, and the network."""
    experiments = list(context.data.beyond.values())
    linear = [evidence for evidence in experiments if evidence.condition.task != NEURAL]
    neural = [evidence for evidence in experiments if evidence.condition.task == NEURAL]
    note = context.scale.note
    content: list[report.Block] = []
    if linear:
        content += [report.paragraph(LEAD), _left(linear), *_farther_than_the_start(linear)]
        caption = (
            "Trust of ITAL adaptive: 1 if the teacher helps, 0 if its choices say nothing, −1 if it harms. One line "
            "per teacher; mean over seeds, bands ± 1 standard error."
        )
        tasks = list(dict.fromkeys(evidence.condition.task for evidence in linear))
        panels = [
            _trust([evidence for evidence in linear if evidence.condition.task == task])
            for task in tasks
        ]
        content += report.figure(
            "trust", "What the learner thinks of its teacher", panels, caption, note=note
        )
    caption = (
        "A neural network, all layers learning, taught on MNIST pictures by a teacher with another network. The "
        "matched controls take steps as long as ITAL's in the naive directions."
    )
    panels = [
        figures.curves(
            evidence, metric, f"{evidence.condition.teacher} teacher", methods=evidence.methods
        )
        for evidence in neural
        for metric in ("accuracy", "loss")
    ]
    return content + report.figure(
        "neural", "A neural learner", panels, caption, columns=2, note=note
    )


def _of_start(left: float) -> str:
    return f"{number(100 * left)} %" if np.isfinite(left) else number(left)


def _left(experiments: list[Evidence]) -> report.Block:
    """The distance left: one row per task and teacher, one column per method."""
    methods = experiments[0].methods
    rows, best = [], []
    for row, evidence in enumerate(experiments):
        means = [float(evidence.left(method).mean()) for method in methods]
        rows.append(
            [
                evidence.condition.task,
                evidence.condition.teacher,
                *(_of_start(mean) for mean in means),
            ]
        )
        best.append(
            (row, 2 + int(np.argmin([mean if np.isfinite(mean) else np.inf for mean in means])))
        )
    heads = ["Task", "Teacher", *(experiments[0].label(method) for method in methods)]
    caption = "Share of the initial distance that is left at the end, mean over seeds; the smallest in bold."
    return report.table(heads, rows, caption=caption, numbers_from=2, best=best)


def _farther_than_the_start(experiments: list[Evidence]) -> list[report.Block]:
    """A comment on learners that end farther from the target than they started, if there are any."""
    ends = [
        (float(evidence.left(method).mean()), evidence.label(method), evidence)
        for evidence in experiments
        for method in evidence.methods
    ]
    left, label, evidence = max(ends, key=lambda end: end[0])
    if left <= 1:
        return []
    condition = evidence.condition
    times = (
        f"{number(left)} times the initial distance"
        if np.isfinite(left)
        else "a value that is not finite"
    )
    words = FARTHER.format(label=label, task=condition.task, teacher=condition.teacher, times=times)
    return [report.paragraph(words)]


def _trust(experiments: list[Evidence]) -> charts.Panel:
    """Trust over time, one line per teacher."""
    shades = colours([evidence.condition.teacher for evidence in experiments])
    marks = [charts.rule("y", 0.0, "no trust")]
    for evidence in experiments:
        steps, values = evidence.curve(ADAPTIVE, "trust")
        teacher, (mean, error) = evidence.condition.teacher, mean_and_error(values)
        marks.append(charts.line(teacher, shades[teacher], steps, mean, error))
    return charts.panel(
        experiments[0].task.title, marks, x="Training iteration", y="Trust", y_range=(-1.05, 1.05)
    )
