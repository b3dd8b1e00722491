"""Runs of tasks that are not the paper's: the user's own, and those of other packages."""

from ital import report
from ital.results import mean_and_error
from ital_paper.experiments import figures
from ital_paper.experiments.data import Evidence
from ital_paper.report.sections._context import Context
from ital_paper.report.sections._tables import spread

LEAD = (
    "Runs in this folder on tasks that are not in the paper, each with its own settings. The claims above are the "
    "paper's and do not include them."
)


def build(context: Context) -> list[report.Block]:
    """Every panel of each run and its last step in numbers; the first task is visible, the others are folded."""
    runs = context.data.others
    content: list[report.Block] = []
    for task in dict.fromkeys(evidence.condition.task for evidence in runs):
        own = [evidence for evidence in runs if evidence.condition.task == task]
        blocks = [block for evidence in own for block in (*figure(evidence), table(evidence))]
        content += report.folded(own[0].task.title, blocks, unfolded=not content)
    return [report.paragraph(LEAD), *content] if content else []


def figure(evidence: Evidence) -> list[report.Block]:
    """All panels of one run; controls are in the table."""
    start, task, teacher = evidence.condition
    size = f"{evidence.curves.sizes['seed']} seeds, {evidence.steps} steps"
    methods = figures.shown_methods(evidence) or evidence.methods
    panels = [figures.curves(evidence, metric, methods=methods) for metric in evidence.panels()]
    name, title = (
        f"{task}-{teacher}-{figures.name(start)}",
        f"{task}: {teacher} teacher, {start} start",
    )
    return report.figure(
        name,
        title,
        panels,
        "Mean over seeds, bands ± 1 SE.",
        columns=max(3, len(panels)),
        note=size,
    )


def table(evidence: Evidence) -> report.Block:
    """All methods of one run."""
    metrics = evidence.panels()
    rows = []
    for method in evidence.methods:
        last = [evidence.curve(method, metric)[1][:, -1] for metric in metrics]
        rows.append((evidence.label(method), *(spread(*mean_and_error(values)) for values in last)))
    heads = ("method", *(metric.replace("_", " ") for metric in metrics))
    caption = (
        f"{evidence.condition.title}, step {evidence.steps}: mean ± standard error over seeds."
    )
    return report.table(heads, rows, caption=caption, numbers_from=1)
