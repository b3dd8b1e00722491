"""The last step in numbers, a table per experiment."""

import numpy as np

from ital import statistics
from ital.figures import in_legend_order
from ital.reproduce import _blocks
from ital.reproduce._blocks import Block
from ital.reproduce._claims import label
from ital.reproduce._data import Evidence
from ital.reproduce._numbers import number, signed
from ital.reproduce.sections._context import Context
from ital.statistics import p_value

LEAD = (
    "Per method: mean ± standard error over seeds at the last step, with the 95 % bootstrap interval of the mean; the "
    "interquartile mean (IQM), with its own; the paired difference to IMT, with its 95 % interval and p; the "
    "probability that a seed of the method ends closer than one of IMT; and median steps to 50, 10 and 1 % of the "
    "distance at the start (– if half the seeds never get there)."
)


def build(context: Context) -> list[Block]:
    """Every experiment, folded by task."""
    experiments = context.data.experiments
    content = [_blocks.paragraph(LEAD)]
    for task in dict.fromkeys(condition.task for condition in experiments):
        own = [table(one) for condition, one in experiments.items() if condition.task == task]
        content += _blocks.folded(f"{task}: {len(own)} experiments", own)
    return content if len(content) > 1 else []


def table(one: Evidence) -> Block:
    """All methods of one experiment."""
    others = [metric for metric in one.panels() if metric != "distance"]
    rows = []
    for method in in_legend_order([str(name) for name in one.curves["method"].values]):
        final = one.final(method)
        found = statistics.estimate(final)
        rows.append((
            label(one, method), spread(found.mean, found.error), interval(found.low, found.high), number(found.iqm),
            interval(found.iqm_low, found.iqm_high), *against_imt(one, method), *reached(one, method),
            *(spread(*_mean_and_error(one.curve(method, metric)[1][:, -1])) for metric in others),
        ))  # fmt: skip
    start = float(one.curve(str(one.curves["method"].values[0]))[1][:, 0].mean())
    measured = one.main.replace("_", " ")
    heads = (
        "method", measured, "95 %", "IQM", "95 %", "minus IMT", "95 %", "p", "P(better)", "to 50 %", "to 10 %",
        "to 1 %", *(metric.replace("_", " ") for metric in others),
    )  # fmt: skip
    caption = f"{one.condition.title}, step {one.steps}. {measured.capitalize()} at the start: {number(start)}."
    return _blocks.table(heads, rows, caption=caption, numbers_from=1)


def against_imt(one: Evidence, method: str) -> tuple[str, ...]:
    """The paired difference to IMT, its interval and p, and the probability of ending closer."""
    if method == "imt" or not one.has("imt"):
        return ("–",) * 4
    found = statistics.paired(one.final(method), one.final("imt"))
    better = statistics.probability_of_improvement(one.final(method), one.final("imt"))
    return signed(found.difference), interval(found.low, found.high), p_value(found.p), f"{better:.2f}"


def reached(one: Evidence, method: str) -> list[str]:
    """Median steps to shares of the start."""
    steps, values = one.curve(method)
    found = [statistics.steps_to_reach(steps, values, share) for share in statistics.SHARES]
    return [f"{np.median(some[np.isfinite(some)]):.0f}" if np.isfinite(some).mean() > 0.5 else "–" for some in found]


def spread(mean: float, error: float) -> str:
    """A mean and its standard error."""
    return number(mean) + (f" ± {number(error, 2)}" if np.isfinite(error) else "")


def interval(low: float, high: float) -> str:
    """An interval, if there is one."""
    return f"{number(low)} … {number(high)}" if np.isfinite(low) else "–"


def _mean_and_error(values: np.ndarray) -> tuple[float, float]:
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return float(values.mean()), float(error)
