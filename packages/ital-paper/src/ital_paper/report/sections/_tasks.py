"""The supplement's figures, task by task, from both starts; and reward maps where there are any."""

from typing import Any

from ital import report
from ital.results import questions_of
from ital.statistics import number
from ital_paper.experiments import figures
from ital_paper.experiments import maps as _maps
from ital_paper.experiments.data import Evidence
from ital_paper.experiments.plan import PAPER, STARTS
from ital_paper.report.sections import _target_loss
from ital_paper.report.sections._context import Context

FEW = 5  # measured steps; with fewer, the lines between them are not curves
LEAD = (
    "The cooperative teacher: every panel of the paper's main and supplementary figures, and the same from the other "
    "start. Each title gives the share of the initial distance that is left at the end, uniform start."
)


def build(context: Context) -> list[report.Block]:
    """Every task with the cooperative teacher, from both starts; the first is visible, the others are folded."""
    content: list[report.Block] = []
    for task in PAPER:
        starts = [
            evidence
            for start in STARTS
            if (evidence := context.data.get(start, task, "cooperative"))
        ]
        shown = [block for evidence in starts for block in figure(evidence, context.scale.note)]
        maps: list[dict[str, Any]] = _maps.stored(context.out, task) if starts else []
        shown += report.figure(
            f"maps-{task}", "The rewards that a naive and an aware learner infer", maps,
            "Reward of entering each cell, with the policy that follows from it, for one seed; the truth is last.",
            columns=3, note=context.scale.note,
        )  # fmt: skip
        shown += _target_loss.build(context, task)
        title = f"{starts[0].task.title}. Left of the distance: {left(starts[0])}" if starts else ""
        content += report.folded(title, shown, unfolded=not content)
    return [report.paragraph(LEAD), *content] if content else []


def left(evidence: Evidence) -> str:
    """The distance left at the end, for some methods, in words."""
    methods = [method for method in ("batch", "imt", "ital-2", "ital") if evidence.has(method)]
    return ", ".join(
        f"{evidence.label(method)} {number(float(evidence.left(method).mean()))}"
        for method in methods
    )


def figure(evidence: Evidence, note: str) -> list[report.Block]:
    """All panels of one experiment, with the distance left in words."""
    start, task, teacher = evidence.condition
    caption = (
        f"{evidence.task.title}: {teacher} teacher, {start} start; mean over {evidence.curves.sizes['seed']} seeds, "
        f"bands ± 1 SE. Left of the distance at the end: {left(evidence)}."
    )
    if len(evidence.curve(figures.shown_methods(evidence)[0])[0]) <= FEW:
        caption += " It has few points because its exam is slow."
    if any(questions_of(evidence.curves, metric) for metric in evidence.panels()):
        caption += " The band of an exam includes the variation from its choice of questions."
    panels = [figures.curves(evidence, metric) for metric in evidence.panels()]
    name, title = (
        f"{task}-{teacher}-{figures.name(start)}",
        f"{task}: {teacher} teacher, {start} start",
    )
    return report.figure(name, title, panels, caption, columns=max(3, len(panels)), note=note)
