"""Paired differences between methods of one run, or of one method in two runs, on their shared seeds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from ital.errors import InputError
from ital.figures import in_legend_order, label
from ital.results import computed, measured, metrics_of
from ital.statistics import Paired, holm, number, p_value, paired, signed

if TYPE_CHECKING:
    import xarray as xr

BASELINE = "imt"  # the default method to compare with, if it was taught


class Difference(NamedTuple):
    """One paired comparison at the last measured step.

    Attributes:
        metric: name of the metric.
        method: label of the method.
        against: what it is compared with: the label of a method, or the name of a run.
        paired: the mean difference, its interval and the test.
        p: the p-value, Holm-adjusted over all comparisons of the metric.
    """

    metric: str
    method: str
    against: str
    paired: Paired
    p: float


def between_methods(
    curves: "xr.Dataset", against: str | None = None, metrics: Sequence[str] | None = None
) -> list[Difference]:
    """Compare every method of a run with one of them: paired differences at the last step.

    Args:
        curves: curves of a run.
        against: the method to compare with; None for ``imt``, or the first in the legend.
        metrics: names of the metrics; None for all.

    Returns:
        One difference per metric and other method.

    Raises:
        InputError: if ``against`` was not taught.
    """
    methods = in_legend_order([str(name) for name in curves["learner"].values])
    base = against or (BASELINE if BASELINE in methods else methods[0])
    if base not in methods:
        raise InputError(f"method {base!r} was not taught: there are {', '.join(methods)}")
    differences = []
    for metric in metrics or metrics_of(curves):
        others = [name for name in methods if name != base]
        pairs = [_paired(_ends(curves, name, metric), _ends(curves, base, metric)) for name in others]
        differences += _adjusted(metric, [label(curves, name) for name in others], label(curves, base), pairs)
    return differences


def between_runs(
    curves: "xr.Dataset", first: "xr.Dataset", name: str, metrics: Sequence[str] | None = None
) -> list[Difference]:
    """Compare every method of a run with the same method in a first run: paired differences at the last step.

    Args:
        curves: curves of a run.
        first: curves of the run to compare with.
        name: the first run's name.
        metrics: names of the metrics; None for all that both runs have.

    Returns:
        One difference per metric and method that both runs have.
    """
    both = [method for method in map(str, curves["learner"].values) if method in first["learner"].values]
    methods, recorded = in_legend_order(both), metrics_of(first)
    differences = []
    for metric in [shared for shared in metrics or metrics_of(curves) if shared in recorded and shared in curves]:
        pairs = [_paired(_ends(curves, method, metric), _ends(first, method, metric)) for method in methods]
        differences += _adjusted(metric, [label(curves, method) for method in methods], name, pairs)
    return differences


def _ends(curves: "xr.Dataset", method: str, metric: str) -> "xr.DataArray":
    """A method's value on each seed at the last measurement of the metric."""
    last = int(np.append(0, np.flatnonzero(measured(curves, metric)))[-1])
    return computed(curves, method)[metric].isel(step=last)


def _paired(ours: "xr.DataArray", theirs: "xr.DataArray") -> Paired | None:
    """The comparison on the shared seeds; None if there are none."""
    seeds = np.intersect1d(ours["seed"].values, theirs["seed"].values)
    return paired(ours.sel(seed=seeds).values, theirs.sel(seed=seeds).values) if len(seeds) else None


def _adjusted(metric: str, methods: Sequence[str], against: str, pairs: Sequence[Paired | None]) -> list[Difference]:
    both = [(method, pair) for method, pair in zip(methods, pairs, strict=True) if pair is not None]
    adjusted = holm(np.array([pair.p for _, pair in both]))
    return [
        Difference(metric, method, against, pair, float(p)) for (method, pair), p in zip(both, adjusted, strict=True)
    ]


def print_differences(title: str, differences: Sequence[Difference], console: Console | None = None) -> None:
    """Print differences as a table: mean difference, its 95 % interval, and p after Holm.

    Args:
        title: the title of the table.
        differences: the rows; if empty, nothing is printed.
        console: where to print; None for standard output.
    """
    if not differences:
        return
    shown = Table(title=title, title_justify="left")
    for column in ("metric", "method", "minus"):
        shown.add_column(column)
    for column in ("difference", "95 % interval", "seeds", "p (Holm)"):
        shown.add_column(column, justify="right")
    for metric, method, against, pair, p in differences:
        interval = f"[{number(pair.low)}, {number(pair.high)}]" if np.isfinite(pair.low) else "–"
        numbers = (signed(pair.difference), interval, str(pair.n), p_value(p))
        shown.add_row(metric.replace("_", " "), method, against, *numbers)
    (console or Console()).print(shown)
