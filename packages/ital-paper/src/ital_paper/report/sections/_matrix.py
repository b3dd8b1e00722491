"""Who believes what: every teacher with learners that assume another one."""

from ital import figures, report
from ital.experiments import Matrix
from ital_paper.report.sections._context import Context

LEAD = (
    "A learner may be wrong about its teacher. Each row is a real teacher; each column is a learner that assumes "
    "nothing (IMT), a helper or an adversary (ITAL with β of that sign), or that finds out (ITAL adaptive). Milli and "
    "Dragan (2019) ask this question of robots that learn from people, and predict an order of the pairs."
)


def build(context: Context) -> list[report.Block]:
    """A map per task, and whether the order of best responses holds on it."""
    tasks = list(dict.fromkeys(condition.task for condition in context.data.matrix))
    panels, lines = [], []
    for task in tasks:
        found = [
            evidence
            for condition, evidence in context.data.matrix.items()
            if condition.task == task
        ]
        made = Matrix(
            {evidence.condition.teacher: evidence.curves for evidence in found}, found[0].task
        )
        panels.append(figures.matrix_panel(made.runs, made.task, made.task.title))
        lines.append(
            f"{made.task.title}: {made.best_responses() or 'a teacher of the order is missing.'}"
        )
    if not panels:
        return []
    title, note = "Who believes what", context.scale.note
    shown = report.figure("matrix", title, panels, figures.MATRIX_NOTE, columns=2, note=note)
    return [report.paragraph(LEAD), *shown, *(report.paragraph(line) for line in lines)]
