"""The results of a run: learning curves as one xarray Dataset, and summaries of them."""

import json
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ital.errors import InputError
from ital.statistics import (
    SUPERSCRIPTS,
    decimals,
    holm,
    number,
    p_value,
    paired,
    probability_of_improvement,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


RESERVED = (
    "learner",
    "seed",
    "step",
    "label",
    "beta",
    "computed",
    "diverged_at",
    "version",
    "path",
    "frame",
)
EXAM = 2000  # the weight of an exam in the progress bar, in teaching steps
FINITE = "_finite"  # a row of every block: whether all parameters of the lane are finite
# Prefix of a learner's signal: the row is a mean over the steps since the last row.
SIGNAL = "signal/"
# A row of every block, if the task can be drawn: the parameters of the first seed.
PATH = "_path"
FRAMES = 41  # frames of a path that are kept
DIGITS = str.maketrans({chr(raised): chr(digit) for digit, raised in SUPERSCRIPTS.items()})
TEX = str.maketrans(
    {letter: f"\\{letter}" for letter in "&%$#_{}"}
    | {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)
SUMMARY = ("task", "teacher", "method", "metric", "step", "mean", "sem", "n")
QUARTERS = range(5)  # steps 0, T/4, T/2, 3T/4 and T


def thinned(rows: dict[str, np.ndarray], eval_every: int) -> dict[str, np.ndarray]:
    """Return only the rows at multiples of ``eval_every`` and at the last step.

    Signals are averaged over the steps between.
    """
    steps = rows["step"]
    is_kept = (steps % eval_every == 0) | (steps == steps[-1])
    if is_kept.all():
        return rows
    thin = {name: row[is_kept] for name, row in rows.items()}
    weights = np.diff(steps, prepend=0)  # the number of steps that each row is the mean of
    window = np.cumsum(is_kept) - is_kept  # the kept row into which each row goes
    total_weights = np.bincount(window, weights)
    for name in rows:
        if not name.startswith(SIGNAL):
            continue
        total = np.zeros_like(thin[name])
        # There is no signal at step 0.
        weighted = rows[name][1:] * weights[1:, None, None]
        np.add.at(total, window[1:], weighted)
        with np.errstate(invalid="ignore"):
            thin[name] = total / total_weights[:, None, None].astype(total.dtype)
    return thin


def measured(curves: "xr.Dataset", metric: str) -> np.ndarray:
    """Tell at which steps a metric was measured: a lane has a value, or all lanes have diverged.

    Args:
        curves: curves of a run.
        metric: name of the metric.

    Returns:
        True for each step at which it was measured.
    """
    was_computed = curves["computed"].values == 1
    by_lane = curves[metric].transpose(*curves["computed"].dims, "step").values
    values = by_lane[was_computed]  # (lanes, steps)
    diverged_at = curves["diverged_at"].values[was_computed][:, None]
    never = diverged_at < 0
    is_alive = never | (curves["step"].values < diverged_at)
    has_value = ~np.isnan(values).all(axis=0)
    all_diverged = ~is_alive.any(axis=0)
    return has_value | all_diverged


def metrics_of(curves: "xr.Dataset") -> list[str]:
    """Return the names of the metrics in the order of recording.

    Args:
        curves: curves of a run.

    Returns:
        The names.
    """
    return [str(name) for name, variable in curves.data_vars.items() if "step" in variable.dims]


def computed(curves: "xr.Dataset", method: str) -> "xr.Dataset":
    """Return the curves of one method, only for the seeds that were run with it.

    Args:
        curves: curves of a run.
        method: name of the method.

    Returns:
        The curves, dimensions (seed, step).
    """
    lanes = curves.sel(learner=method)
    return lanes.isel(seed=np.flatnonzero(lanes["computed"].values))


def mean_and_error(
    values: np.ndarray,
    questions: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard error over the seeds; the error of a single seed is NaN.

    All seeds answer the same questions of an exam, so their spread does not reflect the choice of
    questions. With Q questions, of which seed s answers the share a_s correctly,

        SE² = Var_s(a_s) / S + mean_s a_s(1 − a_s) / (Q − 1).

    The second term is the variance of a_s due to the choice of questions, averaged over seeds. It
    is an upper bound for the variance of their mean, reached if all seeds fail on the same
    questions.

    Args:
        values: values with the seeds along the first axis.
        questions: number of questions, if the values are shares of correct answers in an exam.

    Returns:
        Mean and standard error.
    """
    values = np.asarray(values, float)
    n = len(values)
    # Diverged seeds have infinite values: their mean and error are infinite or NaN.
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.full(values.shape[1:], np.nan)
        if n > 1:
            error = values.std(axis=0, ddof=1) / np.sqrt(n)
        if questions is not None:
            variance = np.mean(values * (1 - values), axis=0)
            by_questions = variance / max(questions - 1, 1)
            error = np.sqrt(error**2 + by_questions)
        return np.asarray(values.mean(axis=0)), np.asarray(error)


def questions_of(curves: "xr.Dataset", metric: str) -> int | None:
    """Return the number of questions in the exam that measured a metric.

    Args:
        curves: curves of a run.
        metric: name of the metric.

    Returns:
        The number; None if it is not known, or no exam measured the metric.
    """
    questions = curves[metric].attrs.get("questions")
    if questions is None:
        return None
    return int(np.ravel(questions)[0])  # files hold attributes as arrays


def summarise(curves: "xr.Dataset") -> "pd.DataFrame":
    """Summarise a run: mean, standard error and number of seeds per method and metric.

    This is the table of ``summary.csv``. Its five steps are 0, T/4, T/2, 3T/4 and T, or the nearest
    measured ones.

    Args:
        curves: curves of a run.

    Returns:
        One row per method, metric and step.

    Example:
        >>> curves = ital.experiments.load_curves("results/regression/cooperative/curves.nc")
        >>> ital.results.summarise(curves)
    """
    import pandas as pd

    records = []
    for method in curves["learner"].values:
        lanes = computed(curves, method)
        for metric in metrics_of(curves):
            values = lanes[metric].transpose("seed", "step").values
            for i in _quarters(curves, metric):
                mean, error = mean_and_error(values[:, i], questions_of(curves, metric))
                record = {
                    "task": curves.attrs.get("task", ""),
                    "teacher": curves.attrs.get("teacher", ""),
                    "method": method,
                    "metric": metric,
                    "step": int(curves["step"].values[i]),
                    "mean": float(mean),
                    "sem": float(error),
                    "n": len(values),
                }
                records.append(record)
    return pd.DataFrame(records, columns=list(SUMMARY))


def _quarters(curves: "xr.Dataset", metric: str) -> list[int]:
    """Return the indices of the measured steps that are nearest to the quarters of a run."""
    steps = curves["step"].values
    at = np.flatnonzero(measured(curves, metric))
    if not len(at):
        return []
    last = int(steps[-1])
    nearest = []
    for quarter in QUARTERS:
        distances = np.abs(steps[at] - quarter * last / 4)
        nearest.append(int(at[distances.argmin()]))
    return list(dict.fromkeys(nearest))  # short runs have fewer than five distinct steps


def long_form(curves: "xr.Dataset") -> "pd.DataFrame":
    """Return all measured values of a run or a sweep, one per row.

    This is the table of ``curves.csv`` and ``sweep.csv``. Lanes that were not computed and steps at
    which a metric was not measured have no rows. In a sweep, methods without a β have one row per
    η, with an empty ``beta``.

    Args:
        curves: curves of a run, or the grid of a sweep.

    Returns:
        Columns task, teacher, method, seed, (in a sweep lr and beta,) step, metric, value.
    """
    import pandas as pd

    dims = ["learner", "seed"]
    dims += [name for name in ("lr", "beta") if name in curves.dims]
    is_computed = curves["computed"].transpose(*dims).values == 1
    without_beta = json.loads(curves.attrs.get("without_beta", "[]"))
    has_no_beta = np.isin(curves["learner"].values, without_beta)
    if "beta" in dims:
        # Methods without β are repeated along it: only the first is theirs.
        is_computed[has_no_beta, ..., 1:] = False
    tables = []
    for metric in metrics_of(curves):
        values = curves[metric].transpose(*dims, "step").values
        # The indices of the values that stay, one array per dimension.
        at = np.nonzero(is_computed[..., None] & measured(curves, metric))
        columns = {}
        for name, indices in zip([*dims, "step"], at, strict=True):
            columns[name] = curves[name].values[indices]
        if "beta" in dims:
            columns["beta"] = np.where(has_no_beta[at[0]], np.nan, columns["beta"])
        tables.append(pd.DataFrame({**columns, "metric": metric, "value": values[at]}))
    table = pd.concat(tables, ignore_index=True).rename(columns={"learner": "method"})
    table.insert(0, "task", curves.attrs.get("task", ""))
    table.insert(1, "teacher", curves.attrs.get("teacher", ""))
    return table


LEAST_SEEDS = 3  # fewer do not tell whether a method is behind
BASELINE = "imt"  # the method that others are compared with, if it was taught
COMPARED = (
    "metric",
    "step",
    "method",
    "against",
    "n",
    "mean",
    "mean_against",
    "difference",
    "low",
    "high",
    "test",
    "p",
    "p_holm",
    "improvement",
)


class Pairing(NamedTuple):
    """What is compared in one row of a comparison.

    Attributes:
        metric: the metric.
        method: how the row names the method.
        against: how it names what the method is compared with.
        step: the step of the method's values.
        values: the method's values (seed).
        others: the values to compare with (seed).
    """

    metric: str
    method: str
    against: str
    step: int
    values: "xr.DataArray"
    others: "xr.DataArray"


def compare(
    curves: "xr.Dataset",
    against: str | None = None,
    metrics: Sequence[str] | str | None = None,
    *,
    step: int | None = None,
    higher_is_better: Collection[str] = (),
) -> "pd.DataFrame":
    """Compare every method of a run with one of them, on the seeds that both have.

    Args:
        curves: curves of a run.
        against: the method to compare with; None for ``imt``, or the first.
        metrics: names of the metrics; None for all.
        step: the step at which to compare; None for the last measured one.
        higher_is_better: the metrics of which more is better.

    Returns:
        One row per metric and other method. ``n`` is the number of shared seeds, ``difference`` the
        mean of method − against, ``low`` and ``high`` its 95 % interval, ``p`` the p-value of the
        paired ``test``, ``p_holm`` the same after Holm's adjustment over all comparisons of the
        metric, ``improvement`` the probability that a seed of the method is better than a seed of
        the other, P(improvement).

    Raises:
        InputError: if a method was not taught, or a metric not recorded at that step.
    """
    methods = [str(name) for name in curves["learner"].values]
    base = against or _default_base(methods)
    if base not in methods:
        raise InputError(f"method {base!r} was not taught: choose from {', '.join(methods)}")
    base_label = _label_of(curves, base)
    pairings = []
    for metric in _recorded_metrics(curves, metrics):
        others, _ = values_at(curves, base, metric, step)
        for method in methods:
            if method == base:
                continue
            values, at_step = values_at(curves, method, metric, step)
            label = _label_of(curves, method)
            pairings.append(Pairing(metric, label, base_label, at_step, values, others))
    return _comparison_table(pairings, higher_is_better)


def _default_base(methods: list[str]) -> str:
    """Return the method that others are compared with."""
    if BASELINE in methods:
        return BASELINE
    return methods[0]


def compare_runs(
    curves: "xr.Dataset",
    first: "xr.Dataset",
    name: str,
    metrics: Sequence[str] | None = None,
    *,
    higher_is_better: Collection[str] = (),
) -> "pd.DataFrame":
    """Compare every method of a run with the same method in a first run, at the last step, on their
    shared seeds.

    Args:
        curves: curves of a run.
        first: curves of the run to compare with.
        name: the first run's name.
        metrics: names of the metrics; None for all. Those that only one of the runs has are left
            out.
        higher_is_better: the metrics of which more is better.

    Returns:
        One row per metric and method that both runs have: see :func:`compare`.
    """
    taught_first = set(map(str, first["learner"].values))
    methods = [name for name in map(str, curves["learner"].values) if name in taught_first]
    recorded = metrics_of(first)
    pairings = []
    for metric in metrics or metrics_of(curves):
        if metric not in curves or metric not in recorded:
            continue
        for method in methods:
            values, step = values_at(curves, method, metric)
            others, _ = values_at(first, method, metric)
            label = _label_of(curves, method)
            pairings.append(Pairing(metric, label, name, step, values, others))
    return _comparison_table(pairings, higher_is_better)


def values_at(
    curves: "xr.Dataset",
    method: str,
    metric: str,
    step: int | None = None,
) -> "tuple[xr.DataArray, int]":
    """Return a method's values of a metric on its seeds, and the step they were measured at.

    Args:
        curves: curves of a run.
        method: name of the method.
        metric: name of the metric.
        step: the step; None for the last at which the metric was measured.

    Returns:
        The values (seed), and the step.

    Raises:
        InputError: if the metric was not measured at that step.
    """
    all_steps = curves["step"].values
    steps = all_steps[measured(curves, metric)]
    if step is None:
        # A metric that was never measured has values that are not known, at the first step.
        step = int(steps[-1] if len(steps) else all_steps[0])
    elif step not in steps:
        first_steps = ", ".join(map(str, steps[:3]))
        raise InputError(
            f"{metric} was not measured at step {step!r}: it was at {first_steps} … {steps[-1]}"
        )
    at = int(np.flatnonzero(all_steps == step)[0])
    return computed(curves, method)[metric].isel(step=at), int(step)


def latex(comparison: "pd.DataFrame") -> str:
    """Write a comparison as a LaTeX table (package ``booktabs``).

    Args:
        comparison: what :meth:`ital.Result.compare` or :func:`compare` returned.

    Returns:
        The table.

    Raises:
        InputError: if the table is not such a comparison.

    Example:
        >>> print(ital.results.latex(result.compare()))
    """
    if "p_holm" not in comparison:
        raise InputError(
            "latex writes what compare returned; pandas writes other tables: "
            "table.to_latex(index=False, escape=True)"
        )
    heads = [
        "metric",
        "method",
        "minus",
        "difference",
        r"95\,\% interval",
        "$p$ (Holm)",
        "$P$(improvement)",
    ]
    lines = [
        r"\begin{tabular}{lllrrrr}",
        r"\toprule",
        " & ".join(heads) + r" \\",
        r"\midrule",
    ]
    for row in comparison.to_dict("records"):
        interval = "--"
        if np.isfinite(row["low"]):
            interval = f"[{_tex_number(row['low'])}, {_tex_number(row['high'])}]"
        p = "--"
        if not np.isnan(row["p_holm"]):
            p = f"${p_value(row['p_holm'])}$"
        cells = [
            _tex_text(row["metric"].replace("_", " ")),
            _tex_text(row["method"]),
            _tex_text(row["against"]),
            _tex_number(row["difference"]),
            interval,
            p,
            decimals(row["improvement"]),
        ]
        lines.append(" & ".join(cells) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", ""]
    return "\n".join(lines)


def _tex_text(text: str) -> str:
    """Escape LaTeX's special characters in a text."""
    return text.translate(TEX)


def _tex_number(value: float) -> str:
    """Write a number in LaTeX's mathematics: three digits, powers of ten as powers."""
    written = number(value)
    if written == "–":
        return "--"
    if written == "diverged":
        return written
    mantissa, times, power = written.replace("−", "-").partition("×10")
    if not times:
        return f"${mantissa}$"
    exponent = power.translate(DIGITS)
    return f"${mantissa} \\times 10^{{{exponent}}}$"


def _label_of(curves: "xr.Dataset", method: str) -> str:
    """Return how figures and tables name a method."""
    return str(curves["label"].sel(learner=method).item())


def _recorded_metrics(curves: "xr.Dataset", metrics: Sequence[str] | str | None) -> list[str]:
    """Return the metrics to compare; raise InputError for one that was not recorded."""
    recorded = metrics_of(curves)
    if isinstance(metrics, str):
        metrics = [metrics]
    chosen = list(metrics or recorded)
    for metric in chosen:
        if metric not in recorded:
            raise InputError(
                f"metric {metric!r} was not recorded: choose from {', '.join(recorded)}"
            )
    return chosen


def _comparison_table(
    pairings: Sequence[Pairing],
    higher_is_better: Collection[str],
) -> "pd.DataFrame":
    """Return the table of comparisons; those without shared seeds are left out."""
    import pandas as pd

    records = []
    for pairing in pairings:
        seeds = np.intersect1d(pairing.values["seed"].values, pairing.others["seed"].values)
        if len(seeds) == 0:
            continue
        first = pairing.values.sel(seed=seeds).values
        second = pairing.others.sel(seed=seeds).values
        test = paired(first, second)
        improvement = probability_of_improvement(first, second)
        if pairing.metric in higher_is_better:
            improvement = probability_of_improvement(second, first)
        records.append(
            {
                "metric": pairing.metric,
                "step": pairing.step,
                "method": pairing.method,
                "against": pairing.against,
                "n": test.n,
                "mean": float(np.mean(first)),
                "mean_against": float(np.mean(second)),
                "difference": test.difference,
                "low": test.low,
                "high": test.high,
                "test": test.test,
                "p": test.p,
                "p_holm": np.nan,
                "improvement": improvement,
            }
        )
    table = pd.DataFrame(records, columns=list(COMPARED))
    # The comparisons of one metric are one family of tests.
    for _, family in table.groupby("metric"):
        table.loc[family.index, "p_holm"] = holm(family["p"].to_numpy(float))
    return table


def divergence(curves: "xr.Dataset", method: str) -> tuple[int, int] | None:
    """Return the first step with parameters that are not finite, and how many seeds diverged.

    Args:
        curves: curves of a run.
        method: name of the method.

    Returns:
        (step, number of seeds), or None if no seed diverged.
    """
    diverged_at = computed(curves, method)["diverged_at"].values
    diverged_at = diverged_at[diverged_at >= 0]
    if not len(diverged_at):
        return None
    return int(diverged_at.min()), len(diverged_at)


def divergence_note(
    curves: "xr.Dataset",
    method: str,
    remedy: str = "a smaller lr or beta",
) -> str | None:
    """Say in one line which seeds of a method diverged.

    Args:
        curves: curves of a run.
        method: name of the method.
        remedy: what to try.

    Returns:
        The line, or None if no seed diverged.
    """
    found = divergence(curves, method)
    if found is None:
        return None
    step, seeds = found
    lanes = computed(curves, method)
    share = f"{seeds} of {lanes.sizes['seed']} seeds"
    return (
        f"{lanes['label'].item()} diverged: values are not finite from step {step} on ({share}). "
        f"Try {remedy}."
    )


# What tells whether awareness helped, the most telling first.
JUDGED = ("accuracy", "loss", "distance")


def behind_note(
    curves: "xr.Dataset",
    higher_is_better: Collection[str] = (),
    names: tuple[str, str] = ("beta", "lr"),
) -> str | None:
    """Say in one line that an aware learner with ``beta="auto"`` ends behind the naive one.

    A paired test decides (p < 0.05). The learner is behind if some of accuracy, loss and distance
    say so, and none says the opposite.

    Args:
        curves: curves of a run in which β was found by the ``auto`` rule.
        higher_is_better: the metrics of which more is better.
        names: what to call the settings β and η.

    Returns:
        The line, or None if none is behind, ``imt`` was not taught, or there are fewer than three
        seeds.
    """
    recorded = [metric for metric in JUDGED if metric in metrics_of(curves)]
    methods = [str(name) for name in curves["learner"].values]
    if not recorded or BASELINE not in methods or curves.sizes["seed"] < LEAST_SEEDS:
        return None
    aware = [name for name in methods if name.split("-")[0] == "ital"]
    table = compare(curves.sel(learner=[BASELINE, *aware]), BASELINE, recorded)
    sign = table["metric"].isin(list(higher_is_better)).map({True: 1.0, False: -1.0})
    table["gain"] = sign * table["difference"]
    # One metric in which a learner is ahead speaks for it, whatever the others say.
    significant = table[table["p"] < 0.05]
    ahead = significant.loc[significant["gain"] > 0, "method"]
    is_behind = (significant["gain"] < 0) & ~significant["method"].isin(ahead)
    if not is_behind.any():
        return None
    worst = significant[is_behind].iloc[0].to_dict()
    beta, lr = names
    mean = number(worst["mean"])
    mean_against = number(worst["mean_against"])
    values = f"{worst['metric']} {mean} against {mean_against}"
    return (
        f"{worst['method']} ends behind {worst['against']} with an automatic {beta} ({values}): "
        f"its awareness step misleads here. Try a smaller {beta} or {lr}, or sweep both."
    )


__all__ = [
    "behind_note",
    "compare",
    "compare_runs",
    "computed",
    "divergence",
    "divergence_note",
    "latex",
    "long_form",
    "mean_and_error",
    "measured",
    "metrics_of",
    "questions_of",
    "summarise",
    "values_at",
]
