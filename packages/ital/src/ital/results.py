"""The results of a run: learning curves as one xarray Dataset, and summaries of them."""

import json
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

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
SIGNAL = (
    "signal/"  # prefix of a learner's signal: the row is a mean over the steps since the last row
)
PATH = "_path"  # a row of every block, if the task can be drawn: the parameters of the first seed
FRAMES = 41  # frames of a path that are kept
DIGITS = str.maketrans({chr(raised): chr(digit) for digit, raised in SUPERSCRIPTS.items()})
TEX = {letter: f"\\{letter}" for letter in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
}
TEX |= {"^": r"\textasciicircum{}"}


def thinned(rows: dict[str, np.ndarray], eval_every: int) -> dict[str, np.ndarray]:
    """Only rows at multiples of ``eval_every`` and at the last step; signals are averaged over the
    steps between.
    """
    steps = rows["step"]
    kept = (steps % eval_every == 0) | (steps == steps[-1])
    if kept.all():
        return rows
    weights = np.diff(steps, prepend=0)
    window = np.cumsum(kept) - kept
    thin = {name: row[kept] for name, row in rows.items()}
    for name in [name for name in rows if name.startswith(SIGNAL)]:
        total = np.zeros_like(thin[name])
        np.add.at(
            total, window[1:], rows[name][1:] * weights[1:, None, None]
        )  # there is no signal at step 0
        with np.errstate(invalid="ignore"):
            thin[name] = total / np.bincount(window, weights)[:, None, None].astype(total.dtype)
    return thin


def measured(curves: "xr.Dataset", metric: str) -> np.ndarray:
    """The steps at which a metric was measured: any lane has a value, or all lanes have diverged.

    Args:
        curves: curves of a run.
        metric: name of the metric.

    Returns:
        True for each step at which it was measured.
    """
    lanes = curves["computed"].values == 1
    values = curves[metric].transpose(*curves["computed"].dims, "step").values[lanes]
    diverged_at = curves["diverged_at"].values[lanes][:, None]
    alive = (diverged_at < 0) | (curves["step"].values < diverged_at)
    return ~np.isnan(values).all(axis=0) | ~alive.any(axis=0)


def metrics_of(curves: "xr.Dataset") -> list[str]:
    """Names of the metrics in the order of recording.

    Args:
        curves: curves of a run.

    Returns:
        The names.
    """
    return [str(name) for name, variable in curves.data_vars.items() if "step" in variable.dims]


def computed(curves: "xr.Dataset", method: str) -> "xr.Dataset":
    """The curves of one method, only the seeds that were run with it.

    Args:
        curves: curves of a run.
        method: name of the method.

    Returns:
        The curves, dimensions (seed, step).
    """
    lanes = curves.sel(learner=method)
    return lanes.isel(seed=np.flatnonzero(lanes["computed"].values))


def mean_and_error(
    values: np.ndarray, questions: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error over the first axis (the seeds); the error of a single seed is NaN.

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
    with np.errstate(invalid="ignore", over="ignore"):
        error = (
            values.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(values.shape[1:], np.nan)
        )
        if questions is not None:
            error = np.sqrt(
                error**2 + np.mean(values * (1 - values), axis=0) / max(questions - 1, 1)
            )
        return np.asarray(values.mean(axis=0)), np.asarray(error)


def questions_of(curves: "xr.Dataset", metric: str) -> int | None:
    """The number of questions in the exam that measured a metric.

    Args:
        curves: curves of a run.
        metric: name of the metric.

    Returns:
        The number; None if it is not known, or no exam measured the metric.
    """
    questions = curves[metric].attrs.get("questions")
    return None if questions is None else int(np.ravel(questions)[0])


def summarise(curves: "xr.Dataset") -> "pd.DataFrame":
    """Mean, standard error and number of seeds per method and metric at five steps: the table of
    ``summary.csv``.

    The steps are 0, T/4, T/2, 3T/4 and T, or the nearest measured ones.

    Args:
        curves: curves of a run.

    Returns:
        One row per method, metric and step.

    Example:
        >>> ital.results.summarise(ital.experiments.load_curves("results/regression/cooperative/curves.nc"))
    """
    import pandas as pd

    steps = curves["step"].values
    last = int(steps[-1])
    records = []
    for method in curves["learner"].values:
        lanes = computed(curves, method)
        for metric in metrics_of(curves):
            curve = lanes[metric].transpose("seed", "step").values
            places = np.flatnonzero(measured(curves, metric))
            quarters = range(5) if len(places) else ()
            nearest = [
                places[np.abs(steps[places] - quarter * last / 4).argmin()] for quarter in quarters
            ]
            for i in dict.fromkeys(nearest):  # short runs have fewer than five distinct steps
                mean, error = mean_and_error(curve[:, i], questions_of(curves, metric))
                record = (
                    curves.attrs.get("task", ""),
                    curves.attrs.get("teacher", ""),
                    method,
                    metric,
                    int(steps[i]),
                )
                records.append((*record, float(mean), float(error), len(curve)))
    return pd.DataFrame(
        records, columns=["task", "teacher", "method", "metric", "step", "mean", "sem", "n"]
    )


def long_form(curves: "xr.Dataset") -> "pd.DataFrame":
    """All measured values of a run or a sweep, one per row: the table of ``curves.csv`` and
    ``sweep.csv``.

    Lanes that were not computed and steps at which a metric was not measured have no rows. In a
    sweep, methods without a β have one row per η, with an empty ``beta``.

    Args:
        curves: curves of a run, or the grid of a sweep.

    Returns:
        Columns task, teacher, method, seed, (in a sweep lr and beta,) step, metric, value.
    """
    import pandas as pd

    dims = ["learner", "seed", *(name for name in ("lr", "beta") if name in curves.dims)]
    lanes = curves["computed"].transpose(*dims).values == 1
    single = np.isin(curves["learner"].values, json.loads(curves.attrs.get("without_beta", "[]")))
    if "beta" in dims:
        lanes[single, ..., 1:] = False  # methods without β are repeated along it
    tables = []
    for metric in metrics_of(curves):
        values = curves[metric].transpose(*dims, "step").values
        places = np.nonzero(lanes[..., None] & measured(curves, metric))
        columns = {
            name: curves[name].values[at] for name, at in zip([*dims, "step"], places, strict=True)
        }
        if "beta" in dims:
            columns["beta"] = np.where(single[places[0]], np.nan, columns["beta"])
        tables.append(pd.DataFrame({**columns, "metric": metric, "value": values[places]}))
    table = pd.concat(tables, ignore_index=True).rename(columns={"learner": "method"})
    table.insert(0, "task", curves.attrs.get("task", ""))
    table.insert(1, "teacher", curves.attrs.get("teacher", ""))
    return table


LEAST_SEEDS = 3  # fewer do not tell whether a method is behind
BASELINE = "imt"  # the method that others are compared with, if it was taught
COMPARED = (
    "metric", "step", "method", "against", "n", "mean", "mean_against",
    "difference", "low", "high", "test", "p", "p_holm", "improvement",
)  # fmt: skip


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
    base = against or (BASELINE if BASELINE in methods else methods[0])
    if base not in methods:
        raise InputError(f"method {base!r} was not taught: choose from {', '.join(methods)}")
    pairs = [(name, _label(curves, name), _label(curves, base)) for name in methods if name != base]
    rows = []
    for metric in _recorded(curves, metrics):
        others = values_at(curves, base, metric, step)
        for name, label, other in pairs:
            rows.append((metric, label, other, values_at(curves, name, metric, step), others))
    return _compared(rows, higher_is_better)


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
    methods = [
        method for method in map(str, curves["learner"].values) if method in first["learner"].values
    ]
    both = [
        metric
        for metric in metrics or metrics_of(curves)
        if metric in curves and metric in metrics_of(first)
    ]
    rows = [
        (
            metric,
            _label(curves, method),
            name,
            values_at(curves, method, metric),
            values_at(first, method, metric),
        )
        for metric in both
        for method in methods
    ]
    return _compared(rows, higher_is_better)


def values_at(
    curves: "xr.Dataset",
    method: str,
    metric: str,
    step: int | None = None,
) -> "tuple[xr.DataArray, int]":
    """A method's values of a metric on its seeds, and the step they were measured at.

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
    steps = curves["step"].values
    places = np.flatnonzero(measured(curves, metric))
    if step is None:
        place = int(places[-1]) if len(places) else 0
    elif step in steps[places]:
        place = int(np.flatnonzero(steps == step)[0])
    else:
        shown = ", ".join(map(str, steps[places][:3]))
        raise InputError(
            f"{metric} was not measured at step {step!r}: it was at {shown} … {steps[places][-1]}"
        )
    return computed(curves, method)[metric].isel(step=place), int(steps[place])


def latex(comparison: "pd.DataFrame") -> str:
    """A comparison as a LaTeX table (package ``booktabs``).

    Args:
        comparison: what :meth:`ital.Result.compare` or :func:`compare` returned.

    Returns:
        The table.

    Example:
        >>> print(ital.results.latex(result.compare()))
    """
    lines = [
        r"\begin{tabular}{lllrrrr}",
        r"\toprule",
        r"metric & method & minus & difference & 95\,\% interval & $p$ (Holm) & $P$(improvement) \\",
        r"\midrule",
    ]
    for row in comparison.to_dict("records"):
        interval = (
            f"[{_tex_number(row['low'])}, {_tex_number(row['high'])}]"
            if np.isfinite(row["low"])
            else "--"
        )
        p = p_value(row["p_holm"])
        cells = (
            _tex_text(row["metric"].replace("_", " ")),
            _tex_text(row["method"]),
            _tex_text(row["against"]),
            _tex_number(row["difference"]),
            interval,
            "--" if np.isnan(row["p_holm"]) else f"${p}$",
            decimals(row["improvement"]),
        )
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _tex_text(text: str) -> str:
    """Text with LaTeX's special characters escaped."""
    return "".join(TEX.get(letter, letter) for letter in text)


def _tex_number(value: float) -> str:
    """A number in LaTeX's mathematics: three digits, powers of ten as powers."""
    written = number(value)
    if written in ("–", "diverged"):
        return {"–": "--"}.get(written, written)
    mantissa, times, power = written.replace("−", "-").partition("×10")
    exponent = power.translate(DIGITS)
    return f"${mantissa} \\times 10^{{{exponent}}}$" if times else f"${mantissa}$"


def _label(curves: "xr.Dataset", method: str) -> str:
    return str(curves["label"].sel(learner=method).item())


def _recorded(curves: "xr.Dataset", metrics: Sequence[str] | str | None) -> list[str]:
    """The metrics to compare; raises InputError for one that was not recorded."""
    recorded = metrics_of(curves)
    named = [metrics] if isinstance(metrics, str) else list(metrics or recorded)
    for metric in named:
        if metric not in recorded:
            raise InputError(
                f"metric {metric!r} was not recorded: choose from {', '.join(recorded)}"
            )
    return named


def _compared(
    rows: "Sequence[tuple[str, str, str, tuple[xr.DataArray, int], tuple[xr.DataArray, int]]]",
    higher_is_better: Collection[str],
) -> "pd.DataFrame":
    """The table of pairs: metric, method, what it is compared with, and the values of both.

    Pairs without shared seeds are left out.
    """
    import pandas as pd

    records = []
    for metric, method, against, (ours, step), (theirs, _) in rows:
        seeds = np.intersect1d(ours["seed"].values, theirs["seed"].values)
        if len(seeds) == 0:
            continue
        first, second = ours.sel(seed=seeds).values, theirs.sel(seed=seeds).values
        pair = paired(first, second)
        sign = -1 if metric in higher_is_better else 1
        records.append(
            {
                "metric": metric,
                "step": step,
                "method": method,
                "against": against,
                "n": pair.n,
                "mean": float(np.mean(first)),
                "mean_against": float(np.mean(second)),
                "difference": pair.difference,
                "low": pair.low,
                "high": pair.high,
                "test": pair.test,
                "p": pair.p,
                "p_holm": np.nan,
                "improvement": probability_of_improvement(sign * first, sign * second),
            }
        )
    table = pd.DataFrame(records, columns=list(COMPARED))
    for _, family in table.groupby("metric"):
        table.loc[family.index, "p_holm"] = holm(family["p"].to_numpy(float))
    return table


def divergence(curves: "xr.Dataset", method: str) -> tuple[int, int] | None:
    """The first step at which a seed's parameters were not finite, and the number of seeds that
    diverged.

    Args:
        curves: curves of a run.
        method: name of the method.

    Returns:
        (step, number of seeds), or None if no seed diverged.
    """
    diverged_at = computed(curves, method)["diverged_at"].values
    diverged_at = diverged_at[diverged_at >= 0]
    return (int(diverged_at.min()), len(diverged_at)) if len(diverged_at) else None


def divergence_note(
    curves: "xr.Dataset", method: str, remedy: str = "a smaller lr or beta"
) -> str | None:
    """One line about the seeds of a method that diverged.

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
    of = f"{seeds} of {lanes.sizes['seed']} seeds"
    return f"{lanes['label'].item()} diverged: values are not finite from step {step} on ({of}). Try {remedy}."


JUDGED = (
    "accuracy",
    "loss",
    "distance",
)  # what tells whether awareness helped, the most telling first


def behind_note(
    curves: "xr.Dataset",
    higher_is_better: Collection[str] = (),
    names: tuple[str, str] = ("beta", "lr"),
) -> str | None:
    """One line if an aware learner with ``beta="auto"`` ends behind the naive one, by a paired test
    (p < 0.05).

    It is behind if some of accuracy, loss and distance say so, and none says the opposite.

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
    told = table[table["p"] < 0.05]
    ahead = told.loc[told["gain"] > 0, "method"]
    behind = told[(told["gain"] < 0) & ~told["method"].isin(ahead)].to_dict("records")
    if not behind:
        return None
    worst = behind[0]
    beta, lr = names
    values = f"{worst['metric']} {number(worst['mean'])} against {number(worst['mean_against'])}"
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
