"""The paper's adversarial figure: all panels of all tasks."""

from ital import report
from ital.figures import charts
from ital.statistics import number
from ital_paper.experiments import figures
from ital_paper.experiments.data import Evidence
from ital_paper.experiments.plan import PAPER, STARTS, as_file_name
from ital_paper.report.sections._context import Context
from ital_paper.report.sections._main import six_tasks

LEAD = (
    "The adversarial teacher chooses the example that helps the learner least, or leads it away "
    "from the target. Batch and SGD ignore the teacher's choice: their curves show what the "
    "mini-batches alone teach. An aware learner has a negative β, and so learns the opposite of "
    "what the choice suggests."
)
METHODS = ("batch", "sgd", "imt", "ital-2", "ital-5", "ital")  # of the table
COLUMNS = 3
SIZE = (3.3, 2.2)


def adversary_section(context: Context) -> list[report.Block]:
    """Show the distance left, the tasks of the main figure, and every panel behind a fold."""
    experiments = list(context.data.every("adversarial", "batch", "imt", "ital"))
    if not experiments:
        return []
    # The same tasks as in the main figure, so that the two can be compared.
    tasks = six_tasks(context.data, "adversarial")
    six = context.data.of_tasks(tasks, STARTS[0], "adversarial")
    content = [
        report.paragraph(LEAD),
        *report.figure(
            "adversarial",
            "Adversarial teacher: distance to the target",
            [figures.metric_panel(each, "distance", each.task.title) for each in six],
            "The tasks of the main figure, uniform start, mean over seeds, bands ± 1 SE.",
            note=context.scale.note,
        ),
        _left_table(experiments),
    ]
    for start in STARTS:
        figure = report.figure(
            f"adversarial-{as_file_name(start)}",
            f"Adversarial teacher, {start} start",
            _panels_of_tasks(context, start),
            "One row per task; mean over seeds, bands ± 1 SE.",
            columns=COLUMNS,
            note=context.scale.note,
        )
        content += report.folded(f"Every panel of every task, {start} start", figure)
    return content


def _left_table(experiments: list[Evidence]) -> report.Block:
    """Make a table of the distance left."""
    first = experiments[0]
    methods = [name for name in METHODS if first.has(name)]
    rows = []
    for evidence in experiments:
        left = [number(float(evidence.left(name).mean())) for name in methods]
        rows.append((evidence.condition.task, evidence.condition.start, *left))
    heads = ("task", "start", *(first.label(name) for name in methods))
    caption = (
        "Share of the initial distance that is left at the end; above 1, the learner was led away."
    )
    return report.table(heads, rows, caption=caption, numbers_from=2)


def _panels_of_tasks(context: Context, start: str) -> list[charts.Panel]:
    """Draw all panels of all tasks, one row per task."""
    panels = []
    for evidence in context.data.of_tasks(PAPER, start, "adversarial"):
        row = [
            figures.metric_panel(evidence, metric, evidence.condition.task, size=SIZE)
            for metric in evidence.panels()
        ]
        # Blank panels fill the row, so that the next task begins a new one.
        panels += row + [charts.blank(SIZE)] * (-len(row) % COLUMNS)
    return panels
