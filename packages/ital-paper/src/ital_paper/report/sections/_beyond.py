"""Beyond the paper: a learner that infers what kind of teacher it has, and a neural one."""

import itertools

import numpy as np

from ital import report
from ital.figures import charts, colours
from ital.results import mean_and_error
from ital.statistics import number
from ital_paper.experiments import figures
from ital_paper.experiments.data import Evidence, by_task
from ital_paper.experiments.plan import NEURAL
from ital_paper.report.sections._context import Context

ADAPTIVE = "ital-adaptive"
LEAD = (
    "ITAL must be told whether its teacher helps and how much. ITAL adaptive is told nothing: it "
    "compares the teacher's choices with its own predictions, and trusts the teacher as far as "
    "they agree. The switching teacher helps for half of the run and then becomes an adversary."
)
FARTHER = (
    "More than 100 % means that a learner ends farther from the target than it started. It takes "
    "long steps where the teacher's choices mislead it or say nothing, and its errors grow from "
    "step to step. The farthest is {label} on {task} with the {teacher} teacher: {times}. Such a "
    "number says that the method fails there; its size says nothing more."
)
TRUST = (
    "Trust of ITAL adaptive: 1 if the teacher helps, 0 if its choices say nothing, −1 if it harms. "
    "One line per teacher; mean over seeds, bands ± 1 standard error."
)
NETWORK = (
    "A neural network, all layers learning, taught on MNIST pictures by a teacher with another "
    "network. The matched controls take steps as long as ITAL's in the naive directions."
)


def beyond_section(context: Context) -> list[report.Block]:
    """Show every method with every teacher, trust over time, and the network."""
    experiments = context.data.beyond.values()
    linear = [evidence for evidence in experiments if evidence.condition.task != NEURAL]
    neural = [evidence for evidence in experiments if evidence.condition.task == NEURAL]
    note = context.scale.note
    return [*_linear_blocks(linear, note), *_neural_figure(neural, note)]


def _linear_blocks(experiments: list[Evidence], note: str) -> list[report.Block]:
    if not experiments:
        return []
    panels = [_trust_panel(on_task) for on_task in by_task(experiments).values()]
    return [
        report.paragraph(LEAD),
        _kept_table(experiments),
        *_farther_than_the_start(experiments),
        *report.figure("trust", "What the learner thinks of its teacher", panels, TRUST, note=note),
    ]


def _neural_figure(experiments: list[Evidence], note: str) -> list[report.Block]:
    panels = [
        figures.metric_panel(
            evidence, metric, f"{evidence.condition.teacher} teacher", methods=evidence.methods
        )
        for evidence, metric in itertools.product(experiments, ("accuracy", "loss"))
    ]
    return report.figure("neural", "A neural learner", panels, NETWORK, columns=2, note=note)


def _of_start(left: float) -> str:
    """Say a share in per cent; a share that is not finite has a word of its own."""
    return f"{number(100 * left)} %" if np.isfinite(left) else number(left)


def _kept_table(experiments: list[Evidence]) -> report.Block:
    """Make a table of the distance left: one row per task and teacher, one column per method."""
    first = experiments[0]
    rows = []
    best = []  # (row, column) of cells to print in bold
    for row, evidence in enumerate(experiments):
        means = np.array([float(evidence.left(method).mean()) for method in first.methods])
        task, teacher = evidence.condition.task, evidence.condition.teacher
        rows.append([task, teacher, *map(_of_start, means.tolist())])
        # A mean may be NaN, which argmin would take for the smallest.
        smallest = int(np.argmin(np.where(np.isfinite(means), means, np.inf)))
        best.append((row, 2 + smallest))
    heads = ["Task", "Teacher", *(first.label(method) for method in first.methods)]
    caption = (
        "Share of the initial distance that is left at the end, mean over seeds; "
        "the smallest in bold."
    )
    return report.table(heads, rows, caption=caption, numbers_from=2, best=best)


def _farther_than_the_start(experiments: list[Evidence]) -> list[report.Block]:
    """Comment on learners that end farther from the target than they started, if any do."""
    ends = []
    for evidence in experiments:
        ends += [(float(evidence.left(name).mean()), name, evidence) for name in evidence.methods]
    left, method, evidence = max(ends, key=lambda end: end[0])
    if left <= 1:
        return []
    times = "a value that is not finite"
    if np.isfinite(left):
        times = f"{number(left)} times the initial distance"
    _, task, teacher = evidence.condition
    label = evidence.label(method)
    words = FARTHER.format(label=label, task=task, teacher=teacher, times=times)
    return [report.paragraph(words)]


def _trust_panel(experiments: list[Evidence]) -> charts.Panel:
    """Draw trust over time on one task, one line per teacher."""
    teachers = [evidence.condition.teacher for evidence in experiments]
    colour_of = colours(teachers)
    marks = [charts.rule("y", 0.0, "no trust")]
    for teacher, evidence in zip(teachers, experiments, strict=True):
        steps, values = evidence.curve(ADAPTIVE, "trust")
        mean, error = mean_and_error(values)
        marks.append(charts.line(teacher, colour_of[teacher], steps, mean, error))
    title = experiments[0].task.title
    return charts.panel(title, marks, x="Training iteration", y="Trust", y_range=(-1.05, 1.05))
