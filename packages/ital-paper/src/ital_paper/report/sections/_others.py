"""Runs of tasks that are not the paper's: the user's own, and those of other packages."""

from ital import report
from ital.results import mean_and_error
from ital_paper.experiments import figures
from ital_paper.experiments.data import Evidence, by_task
from ital_paper.experiments.plan import as_file_name
from ital_paper.report.sections._context import Context
from ital_paper.report.sections._tables import mean_in_words

LEAD = (
    "Runs in this folder on tasks that are not in the paper, each with its own settings. The "
    "claims above are the paper's and do not include them."
)


def others_section(context: Context) -> list[report.Block]:
    """Show every panel of each run and its last step in numbers.

    The first task is visible, the others are folded.
    """
    content: list[report.Block] = []
    for runs in by_task(context.data.others).values():
        blocks = []
        for evidence in runs:
            blocks += [*_run_figure(evidence), _run_table(evidence)]
        content += report.folded(runs[0].task.title, blocks, unfolded=not content)
    return [report.paragraph(LEAD), *content] if content else []


def _run_figure(evidence: Evidence) -> list[report.Block]:
    """Draw all panels of one run; controls are in the table."""
    start, task, teacher = evidence.condition
    # A run of controls alone has no methods of the paper's figures.
    methods = figures.drawn_methods(evidence) or evidence.methods
    metrics = evidence.panels()
    return report.figure(
        f"{task}-{teacher}-{as_file_name(start)}",
        f"{task}: {teacher} teacher, {start} start",
        [figures.metric_panel(evidence, metric, methods=methods) for metric in metrics],
        "Mean over seeds, bands ± 1 SE.",
        columns=max(3, len(metrics)),
        note=f"{evidence.curves.sizes['seed']} seeds, {evidence.steps} steps",
    )


def _run_table(evidence: Evidence) -> report.Block:
    """Make a table of all methods of one run."""
    metrics = evidence.panels()
    rows = []
    for method in evidence.methods:
        curves = [evidence.curve(method, metric)[1] for metric in metrics]  # (seed, step) each
        last = [mean_in_words(*mean_and_error(values[:, -1])) for values in curves]
        rows.append((evidence.label(method), *last))
    heads = ("method", *(metric.replace("_", " ") for metric in metrics))
    caption = (
        f"{evidence.condition.title}, step {evidence.steps}: mean ± standard error over seeds."
    )
    return report.table(heads, rows, caption=caption, numbers_from=1)
