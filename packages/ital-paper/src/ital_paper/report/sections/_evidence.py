"""Choices as evidence: a belief from labels and choices beside one from labels alone."""

from ital import report
from ital.figures import charts
from ital.statistics import number, p_value
from ital_paper.claims import catalogue
from ital_paper.claims.judging import adjusted
from ital_paper.experiments import figures
from ital_paper.experiments.data import Evidence
from ital_paper.experiments.plan import BELIEFS, MOST_NUMBERS, NUMBERS, PAPER
from ital_paper.report.sections._context import Context

LEAD = (
    "ITAL uses the teacher's choice as one more gradient step. Here the choice is evidence about "
    "the target, as a label is. Both learners keep a belief over the target and show its mean: "
    "Posterior from the labels of every mini-batch, ITAL posterior from the same labels and the "
    "choices. Neither has a step size or a β, and neither is told whether the teacher helps. The "
    "difference between them is what the choices say."
)
EXACT = (
    "Where labels follow from the target without noise and the learner can represent it, labels "
    "alone determine the target after about d/B steps (d numbers, B labels a step). The choice "
    "then has nothing to add."
)
CAPTION = "Mean over seeds, bands ± 1 standard error, cooperative teacher."
HEADS = ("task", "numbers", "seeds", "step", "Posterior", "ITAL posterior", "ratio", "p (Holm)")


def evidence_section(context: Context) -> list[report.Block]:
    """Show curves of both beliefs on every task, the tests in a table, and what is left out."""
    experiments = list(context.data.evidence.values())
    if not experiments:
        return []
    panels = [_panel(evidence) for evidence in experiments]
    steps = experiments[0].steps
    note = ""
    if context.scale.quick:
        note = f"quick run: {context.scale.seeds} seeds, {steps} steps"
    title = "What choices add to labels"
    return [
        report.paragraph(LEAD),
        *report.figure("evidence", title, panels, CAPTION, columns=3, note=note),
        _tests_table(context, experiments),
        report.paragraph(f"{EXACT} {_left_out(context, experiments)}"),
    ]


def _panel(evidence: Evidence) -> charts.Panel:
    """Draw both beliefs on a logarithmic axis: one may be a hundred times closer."""
    linear = figures.metric_panel(evidence, evidence.main, evidence.task.title, methods=BELIEFS)
    return linear | {"log": "y", "zero": False}


def _tests_table(context: Context, experiments: list[Evidence]) -> report.Block:
    """Make a table of the claim's checks: a row per task and step."""
    checks = adjusted(list(catalogue.awareness_as_evidence(context.data)))
    places = []
    for evidence in experiments:
        judged = [step for step in catalogue.EVIDENCE_STEPS if evidence.steps >= step]
        places += [(evidence, step) for step in judged]
    rows = []
    for (evidence, step), check in zip(places, checks, strict=True):
        then = evidence.until(step)
        means = [number(float(then.final(method).mean())) for method in BELIEFS]
        task = evidence.condition.task
        seeds = evidence.curves.sizes["seed"]
        rows.append(
            (task, NUMBERS[task], seeds, step, *means, number(check.value), p_value(check.p))
        )
    caption = (
        "Distance to the target, mean over seeds, with the paired test of the claim. A ratio below "
        "1 means that choices helped."
    )
    return report.table(HEADS, rows, caption=caption, numbers_from=1)


def _left_out(context: Context, experiments: list[Evidence]) -> str:
    """Name the tasks that a belief cannot hold, and those that have no results yet."""
    shown = {evidence.condition.task for evidence in experiments}
    absent = [task for task in PAPER if task not in shown]
    too_large = [f"{task} ({NUMBERS[task]})" for task in absent if NUMBERS[task] > MOST_NUMBERS]
    words = (
        f"Left out, because a belief holds matrices of all pairs of its numbers and so at most "
        f"{MOST_NUMBERS} numbers: {', '.join(too_large)}."
    )
    not_run = [
        task for task in absent if task in context.scale.evidence and NUMBERS[task] <= MOST_NUMBERS
    ]
    if not_run:
        words += f" Without results in this run: {', '.join(not_run)}."
    return words
