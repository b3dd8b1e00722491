"""Theorem 1, its corollary, and the sharpness of q."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ital import report, theory
from ital.figures import charts
from ital.statistics import number, share
from ital_paper.experiments.data import Data
from ital_paper.experiments.figures import START_COLOURS
from ital_paper.report.sections._context import Context

EXPLAIN = (
    "Theorem 1 promises: if the chosen example also maximises the volume that the learner "
    "imagines, and beats the runner-up in the right direction, then for β large enough the aware "
    "step is at least as good as the naive one. How large matters. At moderate β the step may "
    "overshoot; at huge β it improves, but hardly moves."
)
GUARANTEE = (
    "Share of sampled steps on which the aware step ends closer to the target than the naive one, "
    "by β: where the conditions of Theorem 1 hold (solid), and where they do not (dotted). "
    "Large β recovers the guarantee."
)
SHARPNESS = (
    "The probability that q, the learner's guess at the choice, gives to its favourite example at "
    "the start, by β. The dots are the values that --beta auto takes: it aims at 0.8 (grey line), "
    "but takes at most 50/η."
)
SAMPLED = (
    "On sampled steps: how often the conditions of Theorem 1 hold; how often the aware step is "
    "then the better one at the largest β tried; the share of sampled pairs that violate teaching "
    "monotonicity, which the corollary assumes. Then β: the value of auto, the task's own, and the "
    "sharpness of q at the task's own."
)
TAUGHT = (
    "While learning, with diagnostics on: the share of steps on which the conditions of Theorem 1 "
    "held, the share on which the aware step was better than the naive one, and the distance left."
)
COROLLARY = (
    "The corollary's assumptions, between the starts and the target. L: the largest rate at which "
    "the loss and the squared gradient norm change with the example (pairs of 200 sampled "
    "examples; of one-hot states in IRL). δ: the largest distance of these examples to the nearest "
    "one of a mini-batch of 20. ε = T(η²L + 4ηL)δ: the error that the corollary then allows in the "
    "squared distance after T = 2000 steps, in units of the initial one; above "
    f"{theory.MOST_ERROR:g} it promises little, and the examples are not dense. Missed is what ε "
    "bounds: how far the best examples of the mini-batches fall short of the best of all, summed "
    "over the steps. The proof also needs a convex loss. Teaching risk: the part of the target "
    "that the learner's view cannot express (10⁻⁷ is rounding)."
)
# Which steps a line of the guarantee is about: its dashes, and its name in the legend.
LINES = {
    "where_held": ((), "conditions hold"),
    "elsewhere": ((1, 1.2), "they do not"),
}
SIZE = (3.3, 2.3)


def theory_section(context: Context) -> list[report.Block]:
    """Show figures and tables of the theory, by task and start."""
    data = context.data
    note = context.scale.theory_note
    if not data.theory:
        return []
    promised = _panels_by_task(data, _guarantee_panel)
    sharp = _panels_by_task(data, _sharpness_panel)
    return [
        report.paragraph(EXPLAIN),
        *report.figure("theorem", "Theorem 1 at sampled steps", promised, GUARANTEE, note=note),
        _sampled_table(data),
        _taught_table(data),
        _corollary_table(data),
        *report.figure("sharpness", "β: how sharp q is at the start", sharp, SHARPNESS, note=note),
    ]


def _panels_by_task(
    data: Data, draw: Callable[[str, dict[str, Any]], charts.Panel]
) -> list[charts.Panel]:
    """Draw one panel per task, with both starts."""
    by_task: dict[str, dict[str, Any]] = {}
    for (start, task), panel in data.theory.items():
        by_task.setdefault(task, {})[start] = panel
    return [draw(task, by_start) for task, by_start in by_task.items()]


def _guarantee_panel(task: str, by_start: dict[str, Any]) -> charts.Panel:
    """Draw how often the aware step is the better one, by β."""
    marks = []
    for start, panel in by_start.items():
        guarantee = panel["guarantee"]
        for name, (dash, words) in LINES.items():
            # Without steps of this kind there is no line.
            if guarantee[name]:
                label = f"{words}, {start} start"
                colour = START_COLOURS[start]
                line = charts.line(label, colour, guarantee["beta"], guarantee[name], dash=dash)
                marks.append(line)
    marks.append(_task_beta(by_start))
    return charts.panel(
        task, marks, x="β", y="Share improved", log="x", y_range=(-0.03, 1.05), size=SIZE
    )


def _task_beta(by_start: dict[str, Any]) -> charts.Mark:
    """Draw a rule at the task's own β, which is the same from each start."""
    *_, panel = by_start.values()
    return charts.rule("x", panel["sharpness"]["task_beta"], "task's β")


def _sharpness_panel(task: str, by_start: dict[str, Any]) -> charts.Panel:
    """Draw the probability of q's favourite by β, with the value of auto."""
    marks = [charts.rule("y", 0.8, soft=True)]
    for start, panel in by_start.items():
        sharpness = panel["sharpness"]
        betas = sharpness["beta"]
        curve = sharpness["sharpness"]
        colour = START_COLOURS[start]
        auto = float(np.median(sharpness["auto"]))
        # The dot lies on the line, whose axis of β is logarithmic.
        height = float(np.interp(np.log(auto), np.log(betas), curve))
        marks += [
            charts.line(f"{start} start", colour, betas, curve),
            charts.line(f"auto, {start} start", colour, [auto], [height], dot=True),
        ]
    marks.append(_task_beta(by_start))
    return charts.panel(
        task,
        marks,
        x="β",
        y="Probability of q's favourite",
        log="x",
        y_range=(0, 1.05),
        size=SIZE,
    )


def _sampled_table(data: Data) -> report.Block:
    """Make a table of the results on sampled steps and at the start."""
    rows = []
    for (start, task), panel in data.theory.items():
        guarantee = panel["guarantee"]
        sharpness = panel["sharpness"]
        at_largest = share(guarantee["where_held"][-1]) if guarantee["where_held"] else "–"
        row = (
            task,
            start,
            share(guarantee["held"] / guarantee["steps"]),
            at_largest,
            share(panel["monotonicity_violations"], 2),
            number(float(np.median(sharpness["auto"]))),
            f"{sharpness['task_beta']:g}",
            number(sharpness["at_task_beta"]),
        )
        rows.append(row)
    heads = (
        "task",
        "start",
        "conditions hold",
        "improved at the largest β",
        "monotonicity violated",
        "auto β",
        "task's β",
        "sharpness at it",
    )
    return report.table(heads, rows, caption=SAMPLED, numbers_from=2)


def _taught_table(data: Data) -> report.Block:
    """Make a table of the teaching of learners of several β."""
    rows = []
    for (start, task), panel in data.theory.items():
        taught = panel["taught"]
        columns = (taught[name] for name in ("beta", "conditions", "improved", "left"))
        for beta, held, improved, left in zip(*columns, strict=True):
            note = " (task's)" if beta == taught["task_beta"] else ""
            row = (
                task,
                start,
                f"{beta:g}{note}",
                share(held),
                share(improved),
                number(left),
            )
            rows.append(row)
    heads = ("task", "start", "β", "conditions hold", "aware step better", "distance left")
    return report.table(heads, rows, caption=TAUGHT, numbers_from=2)


def _corollary_table(data: Data) -> report.Block:
    """Make a table of the corollary's assumptions, each row with a verdict."""
    heads = (
        "task",
        "start",
        "L of the loss",
        "L of ‖g‖²",
        "δ",
        "ε ÷ start²",
        "missed ÷ start²",
        "monotonicity violated",
        "convexity violated",
        "teaching risk",
        "premises",
    )
    rows = [_premises_row(task, start, panel) for (start, task), panel in data.theory.items()]
    return report.table(heads, rows, caption=COROLLARY, numbers_from=2)


def _premises_row(
    task: str,
    start: str,
    panel: dict[str, Any],
) -> tuple[str, ...]:
    premises = theory.Premises(**panel["premises"])
    violated = panel["monotonicity_violations"]
    failing = theory.failing(premises, violated)
    return (
        task,
        start,
        number(premises.loss_slope),
        number(premises.norm_slope),
        number(premises.radius),
        number(premises.error),
        number(premises.missed),
        share(violated, 2),
        share(premises.convexity_violations, 1),
        "–" if panel["teaching_risk"] is None else number(panel["teaching_risk"]),
        f"fails: {', '.join(failing)}" if failing else "may hold",
    )
