"""The supplement's figures, task by task, from both starts; and reward maps if a task has some."""

from ital import report
from ital.results import questions_of
from ital.statistics import number
from ital_paper.experiments import figures
from ital_paper.experiments import maps as _maps
from ital_paper.experiments.data import Evidence
from ital_paper.experiments.plan import PAPER, STARTS, as_file_name
from ital_paper.report.sections._context import Context
from ital_paper.report.sections._target_loss import target_loss_table

FEW = 5  # measured steps; with fewer, the lines between them are not curves
IN_TITLE = ("batch", "imt", "ital-2", "ital")  # methods whose distance left a title gives
LEAD = (
    "The cooperative teacher: every panel of the paper's main and supplementary figures, and the "
    "same from the other start. Each title gives the share of the initial distance that is left at "
    "the end, uniform start."
)
MAPS = (
    "Reward of entering each cell, with the policy that follows from it, for one seed; "
    "the truth is last."
)


def tasks_section(context: Context) -> list[report.Block]:
    """Show every task with the cooperative teacher, from both starts.

    The first task is visible, the others are folded.
    """
    content: list[report.Block] = []
    for task in PAPER:
        found = (context.data.get(start, task, "cooperative") for start in STARTS)
        experiments = [evidence for evidence in found if evidence is not None]
        blocks: list[report.Block] = []
        title = ""
        if experiments:
            first = experiments[0]
            title = f"{first.task.title}. Left of the distance: {_left_in_words(first)}"
            for evidence in experiments:
                blocks += _experiment_figure(evidence, context.scale.note)
            blocks += _maps_figure(context, task)
        blocks += target_loss_table(context, task)
        content += report.folded(title, blocks, unfolded=not content)
    return [report.paragraph(LEAD), *content] if content else []


def _maps_figure(context: Context, task: str) -> list[report.Block]:
    return report.figure(
        f"maps-{task}",
        "The rewards that a naive and an aware learner infer",
        _maps.stored(context.out, task),
        MAPS,
        columns=3,
        note=context.scale.note,
    )


def _left_in_words(evidence: Evidence) -> str:
    """Say the distance left at the end, for some methods."""
    return ", ".join(
        f"{evidence.label(method)} {number(float(evidence.left(method).mean()))}"
        for method in IN_TITLE
        if evidence.has(method)
    )


def _experiment_figure(evidence: Evidence, note: str) -> list[report.Block]:
    """Draw all panels of one experiment, with the distance left in words."""
    start, task, teacher = evidence.condition
    metrics = evidence.panels()
    return report.figure(
        f"{task}-{teacher}-{as_file_name(start)}",
        f"{task}: {teacher} teacher, {start} start",
        [figures.metric_panel(evidence, metric) for metric in metrics],
        _caption(evidence),
        columns=max(3, len(metrics)),
        note=note,
    )


def _caption(evidence: Evidence) -> str:
    start, _, teacher = evidence.condition
    caption = (
        f"{evidence.task.title}: {teacher} teacher, {start} start; "
        f"mean over {evidence.curves.sizes['seed']} seeds, bands ± 1 SE. "
        f"Left of the distance at the end: {_left_in_words(evidence)}."
    )
    first_method = figures.drawn_methods(evidence)[0]
    measured_steps, _ = evidence.curve(first_method)
    if len(measured_steps) <= FEW:
        caption += " It has few points because its exam is slow."
    if any(questions_of(evidence.curves, metric) for metric in evidence.panels()):
        caption += " The band of an exam includes the variation from its choice of questions."
    return caption
