"""The last step in numbers, one table per experiment."""

from typing import Any

import numpy as np

from ital import report, statistics
from ital.statistics import number, p_value, signed
from ital_paper.claims.catalogue import median_if_most
from ital_paper.experiments.data import Evidence, by_task
from ital_paper.report.sections._context import Context

LEAD = (
    "For each method: mean ± standard error over seeds at the last step, with the 95 % bootstrap "
    "interval of the mean; the interquartile mean (IQM) with its interval; the paired difference "
    "to IMT, with its 95 % interval and p; the probability that a seed of the method ends closer "
    "than a seed of IMT; and the median number of steps to 50, 10 and 1 % of the initial distance "
    "(– if half the seeds never reach it)."
)
COMPARED = ("minus IMT", "95 %", "p", "P(better)")
REACHED = ("to 50 %", "to 10 %", "to 1 %")


def tables_section(context: Context) -> list[report.Block]:
    """Show every experiment in numbers, folded by task."""
    tasks = by_task(context.data.experiments.values())
    if not tasks:
        return []
    content = [report.paragraph(LEAD)]
    for task, experiments in tasks.items():
        tables = [_experiment_table(evidence) for evidence in experiments]
        content += report.folded(f"{task}: {len(tables)} experiments", tables)
    return content


def _experiment_table(evidence: Evidence) -> report.Block:
    """Make a table of all methods of one experiment."""
    others = [metric for metric in evidence.panels() if metric != "distance"]
    main = evidence.main.replace("_", " ")
    heads = ("method", main, "95 %", "IQM", "95 %", *COMPARED, *REACHED, *others)
    rows = [_method_row(evidence, method, others) for method in evidence.methods]
    _, values = evidence.curve(evidence.methods[0])
    start = float(values[:, 0].mean())
    caption = (
        f"{evidence.condition.title}, step {evidence.steps}. "
        f"{main.capitalize()} at the start: {number(start)}."
    )
    return report.table(
        [head.replace("_", " ") for head in heads], rows, caption=caption, numbers_from=1
    )


def _method_row(
    evidence: Evidence,
    method: str,
    others: list[str],
) -> tuple[str, ...]:
    # A row has as many columns as the heads above.
    estimate = statistics.estimate(evidence.final(method))
    return (
        evidence.label(method),
        mean_in_words(estimate.mean, estimate.error),
        _interval(estimate.low, estimate.high),
        number(estimate.iqm),
        _interval(estimate.iqm_low, estimate.iqm_high),
        *_against_imt(evidence, method),
        *_reached(evidence, method),
        *(mean_in_words(*evidence.end(method, metric)) for metric in others),
    )


def _against_imt(evidence: Evidence, method: str) -> tuple[str, ...]:
    """Return the columns ``COMPARED``: the paired difference to IMT and what it tells."""
    if method == "imt" or not evidence.has("imt"):
        return ("–",) * len(COMPARED)
    finals = [evidence.final(method), evidence.final("imt")]
    test = statistics.paired(*finals)
    better = statistics.probability_of_improvement(*finals)
    return (
        signed(test.difference),
        _interval(test.low, test.high),
        p_value(test.p),
        f"{better:.2f}",
    )


def _reached(evidence: Evidence, method: str) -> list[str]:
    """Return the columns ``REACHED``: median steps to shares of the start."""
    steps, values = evidence.curve(method)
    per_share = [statistics.steps_to_reach(steps, values, share) for share in statistics.SHARES]
    return [median_if_most(needed) for needed in per_share]


def mean_in_words(mean: Any, error: Any) -> str:
    """Say a mean and its standard error; a single seed has no error."""
    return f"{number(mean)} ± {number(error, 2)}" if np.isfinite(error) else number(mean)


def _interval(low: float, high: float) -> str:
    """Say an interval, if there is one."""
    return f"{number(low)} … {number(high)}" if np.isfinite(low) else "–"
