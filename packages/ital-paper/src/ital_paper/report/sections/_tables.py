"""The last step in numbers, one table per experiment."""

from typing import Any

import numpy as np

from ital import report, statistics
from ital.statistics import number, p_value, signed
from ital_paper.claims.catalogue import median_if_most
from ital_paper.experiments.data import Evidence
from ital_paper.report.sections._context import Context

LEAD = (
    "For each method: mean ± standard error over seeds at the last step, with the 95 % bootstrap interval of the mean; "
    "the interquartile mean (IQM) with its interval; the paired difference to IMT, with its 95 % interval and p; the "
    "probability that a seed of the method ends closer than a seed of IMT; and the median number of steps to 50, 10 "
    "and 1 % of the initial distance (– if half the seeds never reach it)."
)


def build(context: Context) -> list[report.Block]:
    """Every experiment, folded by task."""
    experiments = context.data.experiments
    content = [report.paragraph(LEAD)]
    for task in dict.fromkeys(condition.task for condition in experiments):
        own = [
            table(evidence) for condition, evidence in experiments.items() if condition.task == task
        ]
        content += report.folded(f"{task}: {len(own)} experiments", own)
    return content if len(content) > 1 else []


def table(evidence: Evidence) -> report.Block:
    """All methods of one experiment."""
    others = [metric for metric in evidence.panels() if metric != "distance"]
    rows = []
    for method in evidence.methods:
        estimate = statistics.estimate(evidence.final(method))
        rows.append((
            evidence.label(method), spread(estimate.mean, estimate.error), interval(estimate.low, estimate.high),
            number(estimate.iqm), interval(estimate.iqm_low, estimate.iqm_high), *against_imt(evidence, method),
            *reached(evidence, method),
            *(spread(*evidence.end(method, metric)) for metric in others),
        ))  # fmt: skip
    start = float(evidence.curve(evidence.methods[0])[1][:, 0].mean())
    measured = evidence.main.replace("_", " ")
    heads = (
        "method", measured, "95 %", "IQM", "95 %", "minus IMT", "95 %", "p", "P(better)", "to 50 %", "to 10 %",
        "to 1 %", *(metric.replace("_", " ") for metric in others),
    )  # fmt: skip
    caption = f"{evidence.condition.title}, step {evidence.steps}. {measured.capitalize()} at the start: {number(start)}."
    return report.table(heads, rows, caption=caption, numbers_from=1)


def against_imt(evidence: Evidence, method: str) -> tuple[str, ...]:
    """The paired difference to IMT, its interval and p, and the probability of ending closer."""
    if method == "imt" or not evidence.has("imt"):
        return ("–",) * 4
    test = statistics.paired(evidence.final(method), evidence.final("imt"))
    better = statistics.probability_of_improvement(evidence.final(method), evidence.final("imt"))
    return signed(test.difference), interval(test.low, test.high), p_value(test.p), f"{better:.2f}"


def reached(evidence: Evidence, method: str) -> list[str]:
    """Median steps to shares of the start."""
    steps, values = evidence.curve(method)
    per_share = [statistics.steps_to_reach(steps, values, share) for share in statistics.SHARES]
    return [median_if_most(needed) for needed in per_share]


def spread(mean: Any, error: Any) -> str:
    """A mean and its standard error."""
    return number(mean) + (f" ± {number(error, 2)}" if np.isfinite(error) else "")


def interval(low: float, high: float) -> str:
    """An interval, if there is one."""
    return f"{number(low)} … {number(high)}" if np.isfinite(low) else "–"
