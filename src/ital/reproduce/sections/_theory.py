"""Theorem 1, its corollary, and how sharp q is."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ital import report, theory
from ital.figures import charts
from ital.reproduce._data import Data
from ital.reproduce._figures import START_COLOURS
from ital.reproduce.sections._context import Context
from ital.statistics import number, share

EXPLAIN = (
    "Theorem 1 promises: if the chosen example also maximises the volume that the learner imagines, and beats the "
    "runner-up in the right direction, then for β large enough the aware step is at least as good as the naive one. "
    "Large enough matters. At moderate β the step may overshoot; at huge β it improves, but hardly moves."
)
GUARANTEE = (
    "Share of sampled steps on which the aware step ends nearer to the target than the naive one, over β: where the "
    "conditions of Theorem 1 hold (lines), and where they do not (dotted). Large β recovers the guarantee."
)
SHARPNESS = (
    "How much of q, the learner's guess at the choice, lies on its favourite example at the start, over β. The dots "
    "are what --beta auto takes: it aims at 0.8 (grey line), with 50/η as its most."
)
COROLLARY = (
    "What the corollary assumes, between the starts and the target. L: how fast the loss and the squared gradient norm "
    "change with the example, at most (pairs of 200 sampled examples; of one-hot states in IRL). δ: how far the "
    "remotest of them is from the nearest of a mini-batch of 20. ε = T(η²L + 4ηL)δ: the error that the corollary then "
    "allows in the squared distance after T = 2000 steps, in units of that of the start; above "
    f"{theory.MOST_ERROR:g} it promises little, and examples cannot be called dense. Missed is what ε bounds: by how "
    "much the best examples of the mini-batches fall short of the best of all, summed over the steps. The proof also "
    "needs a convex loss."
)


def build(context: Context) -> list[report.Block]:
    """Figures and tables of the theory, per task and start."""
    data, note = context.data, context.scale.note
    if not data.theory:
        return []
    return [
        report.paragraph(EXPLAIN),
        *report.figure("theorem", "Theorem 1 at sampled steps", panels(data, _promised), GUARANTEE, note=note),
        sampled(data),
        taught(data),
        corollary(data),
        *report.figure("sharpness", "β: how sharp q is at the start", panels(data, _sharp), SHARPNESS, note=note),
    ]


def panels(data: Data, draw: Callable[[str, dict[str, Any]], charts.Panel]) -> list[charts.Panel]:
    """A panel per task, both starts in it."""
    names = list(dict.fromkeys(task for _, task in data.theory))
    return [draw(task, {start: panel for (start, own), panel in data.theory.items() if own == task}) for task in names]


def _promised(task: str, starts: dict[str, Any]) -> charts.Panel:
    marks = []
    for start, panel in starts.items():
        for name, dash, words in (("where_held", (), "conditions hold"), ("elsewhere", (1, 1.2), "they do not")):
            if panel["guarantee"][name]:
                values = panel["guarantee"][name]
                label = f"{words}, {start} start"
                marks.append(charts.line(label, START_COLOURS[start], panel["guarantee"]["beta"], values, dash=dash))
        beta = panel["sharpness"]["task_beta"]
    marks.append(charts.rule("x", beta, "task's β"))
    return charts.panel(task, marks, x="β", y="Share improved", log="x", y_range=(-0.03, 1.05), size=(3.3, 2.3))


def _sharp(task: str, starts: dict[str, Any]) -> charts.Panel:
    marks = [charts.rule("y", 0.8, soft=True)]
    for start, panel in starts.items():
        sharpness, colour = panel["sharpness"], START_COLOURS[start]
        marks.append(charts.line(f"{start} start", colour, sharpness["beta"], sharpness["sharpness"]))
        auto = float(np.median(sharpness["auto"]))
        height = float(np.interp(np.log(auto), np.log(sharpness["beta"]), sharpness["sharpness"]))
        marks.append(charts.line(f"auto, {start} start", colour, [auto], [height], dot=True))
    marks.append(charts.rule("x", sharpness["task_beta"], "task's β"))
    return charts.panel(
        task, marks, x="β", y="Probability of q's favourite", log="x", y_range=(0, 1.05), size=(3.3, 2.3)
    )


def sampled(data: Data) -> report.Block:
    """What was found on sampled steps, and at the start."""
    rows = [
        (
            task, start, share(panel["guarantee"]["held"] / panel["guarantee"]["steps"]),
            share(panel["guarantee"]["where_held"][-1]) if panel["guarantee"]["where_held"] else "–",
            share(panel["monotonicity_violations"], 2), number(float(np.median(panel["sharpness"]["auto"]))),
            f"{panel['sharpness']['task_beta']:g}", number(panel["sharpness"]["at_task_beta"]),
        )
        for (start, task), panel in data.theory.items()
    ]  # fmt: skip
    heads = (
        "task", "start", "conditions hold", "improved at the largest β", "monotonicity violated", "auto β", "task's β",
        "sharpness at it",
    )  # fmt: skip
    caption = (
        "On sampled steps: how often the conditions of Theorem 1 hold; how often the aware step is then the better one "
        "at the largest β tried; the share of sampled pairs that violate teaching monotonicity, which the corollary "
        "assumes. Then β: what auto takes, the task's own, and q's sharpness at the task's."
    )
    return report.table(heads, rows, caption=caption, numbers_from=2)


def taught(data: Data) -> report.Block:
    """What happened while learners of several β were taught."""
    rows = []
    for (start, task), panel in data.theory.items():
        of_taught = panel["taught"]
        for beta, held, improved, left in zip(
            of_taught["beta"], of_taught["conditions"], of_taught["improved"], of_taught["left"], strict=True
        ):
            own = " (task's)" if beta == of_taught["task_beta"] else ""
            rows.append((task, start, f"{beta:g}{own}", share(held), share(improved), number(left)))
    heads = ("task", "start", "β", "conditions hold", "aware step better", "distance left")
    caption = (
        "While learning, with diagnostics on: on what share of the steps the conditions of Theorem 1 held, on what "
        "share the aware step was better than the naive one, and what was left of the distance."
    )
    return report.table(heads, rows, caption=caption, numbers_from=2)


def corollary(data: Data) -> report.Block:
    """What the corollary assumes, estimated between the starts and the target, with a verdict."""
    rows = []
    for (start, task), panel in data.theory.items():
        premises, violated = theory.Premises(**panel["premises"]), panel["monotonicity_violations"]
        fails = theory.failing(premises, violated)
        estimates = (premises.loss_slope, premises.norm_slope, premises.radius, premises.error, premises.missed)
        shares = share(violated, 2), share(premises.convexity_violations, 1)
        verdict = f"fails: {', '.join(fails)}" if fails else "may hold"
        rows.append((task, start, *map(number, estimates), *shares, verdict))
    heads = (
        "task", "start", "L of the loss", "L of ‖g‖²", "δ", "ε ÷ start²", "missed ÷ start²", "monotonicity violated",
        "convexity violated", "premises",
    )  # fmt: skip
    return report.table(heads, rows, caption=COROLLARY, numbers_from=2)
