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
    "Theorem 1 promises: if the chosen example also maximises the volume that the learner imagines, and beats the "
    "runner-up in the right direction, then for β large enough the aware step is at least as good as the naive one. "
    "How large matters. At moderate β the step may overshoot; at huge β it improves, but hardly moves."
)
GUARANTEE = (
    "Share of sampled steps on which the aware step ends closer to the target than the naive one, by β: where the "
    "conditions of Theorem 1 hold (solid), and where they do not (dotted). Large β recovers the guarantee."
)
SHARPNESS = (
    "The probability that q, the learner's guess at the choice, gives to its favourite example at the start, by β. The "
    "dots are the values that --beta auto takes: it aims at 0.8 (grey line), but takes at most 50/η."
)
COROLLARY = (
    "The corollary's assumptions, between the starts and the target. L: the largest rate at which the loss and the "
    "squared gradient norm change with the example (pairs of 200 sampled examples; of one-hot states in IRL). δ: the "
    "largest distance of these examples to the nearest one of a mini-batch of 20. ε = T(η²L + 4ηL)δ: the error that "
    "the corollary then allows in the squared distance after T = 2000 steps, in units of the initial one; above "
    f"{theory.MOST_ERROR:g} it promises little, and the examples are not dense. Missed is what ε bounds: how far the "
    "best examples of the mini-batches fall short of the best of all, summed over the steps. The proof also needs a "
    "convex loss. Teaching risk: the part of the target that the learner's view cannot express (10⁻⁷ is rounding)."
)


def build(context: Context) -> list[report.Block]:
    """Figures and tables of the theory, by task and start."""
    data, note = context.data, context.scale.theory_note
    if not data.theory:
        return []
    return [
        report.paragraph(EXPLAIN),
        *report.figure(
            "theorem", "Theorem 1 at sampled steps", panels(data, _promised), GUARANTEE, note=note
        ),
        sampled(data),
        taught(data),
        corollary(data),
        *report.figure(
            "sharpness",
            "β: how sharp q is at the start",
            panels(data, _sharp),
            SHARPNESS,
            note=note,
        ),
    ]


def panels(data: Data, draw: Callable[[str, dict[str, Any]], charts.Panel]) -> list[charts.Panel]:
    """One panel per task, with both starts."""
    names = list(dict.fromkeys(task for _, task in data.theory))
    return [
        draw(task, {start: panel for (start, own), panel in data.theory.items() if own == task})
        for task in names
    ]


def _promised(task: str, starts: dict[str, Any]) -> charts.Panel:
    marks = []
    for start, panel in starts.items():
        for name, dash, words in (
            ("where_held", (), "conditions hold"),
            ("elsewhere", (1, 1.2), "they do not"),
        ):
            if panel["guarantee"][name]:
                values = panel["guarantee"][name]
                label = f"{words}, {start} start"
                marks.append(
                    charts.line(
                        label, START_COLOURS[start], panel["guarantee"]["beta"], values, dash=dash
                    )
                )
        beta = panel["sharpness"]["task_beta"]
    marks.append(charts.rule("x", beta, "task's β"))
    return charts.panel(
        task, marks, x="β", y="Share improved", log="x", y_range=(-0.03, 1.05), size=(3.3, 2.3)
    )


def _sharp(task: str, starts: dict[str, Any]) -> charts.Panel:
    marks = [charts.rule("y", 0.8, soft=True)]
    for start, panel in starts.items():
        sharpness, colour = panel["sharpness"], START_COLOURS[start]
        marks.append(
            charts.line(f"{start} start", colour, sharpness["beta"], sharpness["sharpness"])
        )
        auto = float(np.median(sharpness["auto"]))
        height = float(np.interp(np.log(auto), np.log(sharpness["beta"]), sharpness["sharpness"]))
        marks.append(charts.line(f"auto, {start} start", colour, [auto], [height], dot=True))
    marks.append(charts.rule("x", sharpness["task_beta"], "task's β"))
    return charts.panel(
        task,
        marks,
        x="β",
        y="Probability of q's favourite",
        log="x",
        y_range=(0, 1.05),
        size=(3.3, 2.3),
    )


def sampled(data: Data) -> report.Block:
    """A table of the results on sampled steps and at the start."""
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
        "assumes. Then β: the value of auto, the task's own, and the sharpness of q at the task's own."
    )
    return report.table(heads, rows, caption=caption, numbers_from=2)


def taught(data: Data) -> report.Block:
    """A table of the teaching of learners of several β."""
    rows = []
    for (start, task), panel in data.theory.items():
        of_taught = panel["taught"]
        for beta, held, improved, left in zip(
            of_taught["beta"],
            of_taught["conditions"],
            of_taught["improved"],
            of_taught["left"],
            strict=True,
        ):
            own = " (task's)" if beta == of_taught["task_beta"] else ""
            rows.append((task, start, f"{beta:g}{own}", share(held), share(improved), number(left)))
    heads = ("task", "start", "β", "conditions hold", "aware step better", "distance left")
    caption = (
        "While learning, with diagnostics on: the share of steps on which the conditions of Theorem 1 held, the "
        "share on which the aware step was better than the naive one, and the distance left."
    )
    return report.table(heads, rows, caption=caption, numbers_from=2)


def corollary(data: Data) -> report.Block:
    """The corollary's assumptions, estimated between the starts and the target, with a verdict."""
    rows = []
    for (start, task), panel in data.theory.items():
        premises, violated = theory.Premises(**panel["premises"]), panel["monotonicity_violations"]
        fails = theory.failing(premises, violated)
        estimates = (
            premises.loss_slope,
            premises.norm_slope,
            premises.radius,
            premises.error,
            premises.missed,
        )
        shares = share(violated, 2), share(premises.convexity_violations, 1)
        risk = "–" if panel["teaching_risk"] is None else number(panel["teaching_risk"])
        verdict = f"fails: {', '.join(fails)}" if fails else "may hold"
        rows.append((task, start, *map(number, estimates), *shares, risk, verdict))
    heads = (
        "task", "start", "L of the loss", "L of ‖g‖²", "δ", "ε ÷ start²", "missed ÷ start²", "monotonicity violated",
        "convexity violated", "teaching risk", "premises",
    )  # fmt: skip
    return report.table(heads, rows, caption=COROLLARY, numbers_from=2)
