"""Who believes what: every teacher with learners that assume another one."""

from ital import figures, report
from ital.experiments import Matrix
from ital_paper.experiments.data import by_task
from ital_paper.report.sections._context import Context

LEAD = (
    "A learner may be wrong about its teacher. Each row is a real teacher; each column is a "
    "learner that assumes nothing (IMT), a helper or an adversary (ITAL with β of that sign), or "
    "that finds out (ITAL adaptive). Milli and Dragan (2019) ask this question of robots that "
    "learn from people, and predict an order of the pairs."
)


def matrix_section(context: Context) -> list[report.Block]:
    """Draw a map per task, and say whether the order of best responses holds on it."""
    if not context.data.matrix:
        return []
    panels = []
    verdicts = []
    for experiments in by_task(context.data.matrix.values()).values():
        task = experiments[0].task
        by_teacher = {each.condition.teacher: each.curves for each in experiments}
        verdict = Matrix(by_teacher, task).best_responses()
        panels.append(figures.matrix_panel(by_teacher, task, task.title))
        verdicts.append(f"{task.title}: {verdict or 'a teacher of the order is missing.'}")
    figure = report.figure(
        "matrix",
        "Who believes what",
        panels,
        figures.MATRIX_NOTE,
        columns=2,
        note=context.scale.note,
    )
    return [report.paragraph(LEAD), *figure, *map(report.paragraph, verdicts)]
