"""The paper's adversarial figure: all panels of all tasks."""

from ital import report
from ital.figures import charts
from ital.statistics import number
from ital_paper.experiments import figures
from ital_paper.experiments.data import Evidence
from ital_paper.experiments.plan import PAPER, STARTS
from ital_paper.report.sections._context import Context
from ital_paper.report.sections._main import six_tasks

LEAD = (
    "The adversarial teacher chooses the example that helps the learner least, or leads it away from the target. Batch "
    "and SGD ignore the teacher's choice: their curves show what the mini-batches alone teach. An aware learner has a "
    "negative β, and so learns the opposite of what the choice suggests."
)
COLUMNS = 3
SIZE = (3.3, 2.2)


def build(context: Context) -> list[report.Block]:
    """The distance left, the six tasks of the main figure, and every panel of every task behind a fold."""
    experiments = list(context.data.every("adversarial", "batch", "imt", "ital"))
    if not experiments:
        return []
    note = context.scale.note
    six = [
        evidence
        for task in six_tasks(context.data, "adversarial")
        if (evidence := context.data.get(STARTS[0], task, "adversarial"))
    ]
    return [
        report.paragraph(LEAD),
        *report.figure(
            "adversarial", "Adversarial teacher: distance to the target",
            [figures.curves(evidence, "distance", evidence.task.title) for evidence in six],
            "The tasks of the main figure, uniform start, mean over seeds, bands ± 1 SE.", note=note,
        ),
        table(experiments),
        *(
            block
            for start in STARTS
            for block in report.folded(
                f"Every panel of every task, {start} start",
                report.figure(
                    f"adversarial-{figures.name(start)}", f"Adversarial teacher, {start} start",
                    panels(context, start), "One row per task; mean over seeds, bands ± 1 SE.",
                    columns=COLUMNS, note=note,
                ),
            )
        ),
    ]  # fmt: skip


def table(experiments: list[Evidence]) -> report.Block:
    """A table of the distance left."""
    methods = [
        name
        for name in ("batch", "sgd", "imt", "ital-2", "ital-5", "ital")
        if experiments[0].has(name)
    ]
    rows = [
        (
            each.condition.task,
            each.condition.start,
            *(number(float(each.left(name).mean())) for name in methods),
        )
        for each in experiments
    ]
    heads = ("task", "start", *(experiments[0].label(name) for name in methods))
    caption = (
        "Share of the initial distance that is left at the end; above 1, the learner was led away."
    )
    return report.table(heads, rows, caption=caption, numbers_from=2)


def panels(context: Context, start: str) -> list[charts.Panel]:
    """All panels of all tasks, one row per task."""
    shown = []
    for evidence in [
        evidence for task in PAPER if (evidence := context.data.get(start, task, "adversarial"))
    ]:
        row = [
            figures.curves(evidence, metric, evidence.condition.task, size=SIZE)
            for metric in evidence.panels()
        ]
        shown += row + [charts.blank(SIZE)] * (-len(row) % COLUMNS)
    return shown
