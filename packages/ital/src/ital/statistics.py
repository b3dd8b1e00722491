"""Statistics over seeds and over participants: means with intervals, paired tests, and number
formatting.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ital.errors import InputError

RESAMPLES = 2000
SHARES = (0.5, 0.1, 0.01)
SIGNIFICANT = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Estimate(NamedTuple):
    """Mean, standard error and interquartile mean of n values, with 95 % bootstrap intervals for
    both means.

    Attributes:
        n: number of values.
        mean: the mean.
        error: its standard error.
        low: lower end of its interval.
        high: upper end of its interval.
        iqm: the interquartile mean.
        iqm_low: lower end of its interval.
        iqm_high: upper end of its interval.
    """

    n: int
    mean: float
    error: float
    low: float
    high: float
    iqm: float
    iqm_low: float
    iqm_high: float


def estimate(values: np.ndarray, seed: int = 0) -> Estimate:
    """Mean, standard error, interquartile mean and intervals of one sample.

    Args:
        values: the sample (n,).
        seed: seed of the bootstrap.

    Returns:
        The estimate; error and intervals of a single value are NaN.
    """
    values = np.asarray(values, float)
    n = len(values)
    error = float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    low, high = bootstrap(values, lambda rows: rows.mean(axis=-1), seed)
    middle_low, middle_high = bootstrap(values, interquartile_mean, seed)
    middle = float(interquartile_mean(values))
    return Estimate(n, float(values.mean()), error, low, high, middle, middle_low, middle_high)


def interquartile_mean(values: np.ndarray) -> np.ndarray:
    """The mean of the middle half along the last axis: a quarter of the values (rounded down) is
    cut off at each end.

    Args:
        values: values along the last axis.

    Returns:
        The means, without the last axis.
    """
    values = np.sort(np.asarray(values, float), axis=-1)
    n = values.shape[-1]
    cut = n // 4
    return np.asarray(values[..., cut : n - cut].mean(axis=-1))


def bootstrap(
    values: np.ndarray,
    statistic: Callable[[np.ndarray], np.ndarray],
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> tuple[float, float]:
    """The 95 % percentile bootstrap interval of a statistic.

    Args:
        values: the sample (n,).
        statistic: a function of samples along the last axis.
        seed: seed of the resampling.
        resamples: number of resamples.

    Returns:
        Lower and upper end; NaN for fewer than two values, or if one is not finite.
    """
    values = np.asarray(values, float)
    if len(values) < 2 or not np.isfinite(values).all():
        return float("nan"), float("nan")
    rows = np.random.default_rng(seed).integers(0, len(values), (resamples, len(values)))
    low, high = np.quantile(statistic(values[rows]), (0.025, 0.975))
    return float(low), float(high)


class Paired(NamedTuple):
    """A paired comparison, first − second: the mean difference, its 95 % interval, and a two-sided
    test of it.

    Attributes:
        n: number of pairs.
        difference: the mean difference.
        sd: standard deviation of the differences.
        low: lower end of the interval.
        high: upper end of the interval.
        t: the t statistic; NaN if ``test`` is the sign test.
        p: the p-value.
        d: mean difference over ``sd`` (Cohen's d_z); NaN if ``test`` is the sign test.
        test: name of the test.
    """

    n: int
    difference: float
    sd: float
    low: float
    high: float
    t: float
    p: float
    d: float
    test: str


def paired(first: np.ndarray, second: np.ndarray) -> Paired:
    """Compare pairs with the t-test; if a value is not finite (a learner diverged), with the sign
    test.

    If all differences are equal, the limit of small variation is used: p is 1 if they are 0;
    otherwise p is 0 and t is infinite. A single pair allows no test: NaN.

    Args:
        first: values of the first sample (n,).
        second: values of the second sample, in the same order (n,).

    Returns:
        The comparison.

    Raises:
        InputError: if the samples are not pairs.
    """
    from scipy import stats

    first, second = _pairs(first, second)
    n, nan = len(first), float("nan")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        wins, losses = np.sum(first < second), np.sum(first > second)
        with np.errstate(invalid="ignore"):
            # Two infinite values are a tie; the difference of a value that is not known is not known.
            difference = float(np.where(first == second, 0.0, first - second).mean())
        p = float(stats.binomtest(int(wins), int(wins + losses)).pvalue) if wins + losses else 1.0
        return Paired(n, difference, nan, nan, nan, nan, p, nan, "sign test")
    differences = first - second
    mean = float(differences.mean())
    if n < 2:
        return Paired(n, mean, nan, nan, nan, nan, nan, nan, "none")
    sd = float(differences.std(ddof=1))
    if sd <= 1e-12 * np.abs(first).max(initial=1e-300):  # nothing but rounding
        beyond = float(np.sign(mean)) * np.inf if mean else nan
        return Paired(
            n, mean, 0.0, mean, mean, beyond, 0.0 if mean else 1.0, beyond, "paired t-test"
        )
    test = stats.ttest_1samp(differences, 0.0)
    low, high = test.confidence_interval(0.95)
    t, p = float(test.statistic), float(test.pvalue)
    return Paired(n, mean, sd, float(low), float(high), t, p, mean / sd, "paired t-test")


def _pairs(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both samples as arrays; raises InputError if they are not pairs."""
    first, second = np.asarray(first, float), np.asarray(second, float)
    if first.shape != second.shape or first.ndim != 1:
        raise InputError(
            f"pairs need two samples of one length, not of shapes {first.shape} and {second.shape}"
        )
    return first, second


def wilcoxon(first: np.ndarray, second: np.ndarray) -> float:
    """The p-value of Wilcoxon's signed-rank test of pairs: 1 if no pair differs, NaN for a single
    pair.

    Args:
        first: values of the first sample (n,).
        second: values of the second sample, in the same order (n,).

    Returns:
        The p-value.
    """
    from scipy import stats

    first, second = _pairs(first, second)
    differences = first - second
    if len(differences) < 2:
        return float("nan")
    return float(stats.wilcoxon(differences).pvalue) if differences.any() else 1.0


def probability_of_improvement(first: np.ndarray, second: np.ndarray) -> float:
    """The share of pairs, any value of one sample with any of the other, in which the first is
    smaller (ties count ½).

    Args:
        first: values of the first sample (n,).
        second: values of the second sample (m,).

    Returns:
        The share, in [0, 1].
    """
    first, second = np.asarray(first, float)[:, None], np.asarray(second, float)[None, :]
    return float(np.mean((first < second) + 0.5 * (first == second)))


def spread_ratio(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """The ratio of two standard deviations, and the p-value of Pitman and Morgan's test.

    The test is for paired samples: the variances are equal exactly if sums and differences are
    uncorrelated.

    Args:
        first: values of the first sample (n,).
        second: values of the second sample, in the same order (n,).

    Returns:
        The first's deviation over the second's, and the p-value; NaN for fewer than three pairs, or
        values that are not finite.
    """
    from scipy import stats

    first, second = _pairs(first, second)
    if len(first) < 3 or not (np.isfinite(first).all() and np.isfinite(second).all()):
        return float("nan"), float("nan")
    ratio = float(first.std(ddof=1) / max(second.std(ddof=1), np.finfo(float).tiny))
    total, apart = first + second, first - second
    if total.std() == 0 or apart.std() == 0:
        return ratio, 1.0
    return ratio, float(stats.pearsonr(total, apart).pvalue)


def steps_to_reach(steps: np.ndarray, curves: np.ndarray, share: float) -> np.ndarray:
    """For each seed, the first measured step at which the curve is at or below a share of its
    start.

    Args:
        steps: the measured steps (T,).
        curves: curves (seed, step).
        share: share of the first value.

    Returns:
        One step per seed, NaN if the curve never gets there.
    """
    curves = np.asarray(curves, float)
    below = curves <= share * curves[:, :1]
    return np.where(below.any(axis=1), np.asarray(steps, float)[below.argmax(axis=1)], np.nan)


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's adjustment of a family of p-values along the last axis; NaN stays NaN and is not
    counted.

    Args:
        p: p-values.

    Returns:
        The adjusted p-values, of the same shape.

    Raises:
        InputError: if a value is not between 0 and 1.
    """
    p = np.asarray(p, float)
    if ((p < 0) | (p > 1)).any():
        raise InputError("p-values lie between 0 and 1, or are NaN")
    order = np.argsort(p, axis=-1, kind="stable")  # NaN last
    ranked = np.take_along_axis(p, order, axis=-1)
    left = np.sum(np.isfinite(p), axis=-1, keepdims=True) - np.arange(p.shape[-1])
    adjusted = np.minimum(1.0, np.maximum.accumulate(ranked * left, axis=-1))
    result = np.empty_like(p)
    np.put_along_axis(result, order, np.where(np.isnan(ranked), np.nan, adjusted), axis=-1)
    return result


def stars(p: float) -> str:
    """``***`` below 0.001, ``**`` below 0.01, ``*`` below 0.05, else nothing.

    Args:
        p: a p-value.

    Returns:
        The stars.
    """
    return next((mark for limit, mark in SIGNIFICANT if p < limit), "")


def p_value(p: float) -> str:
    """p as papers print it: "< 0.001", "0.031"; "–" for NaN.

    Args:
        p: a p-value.

    Returns:
        The text.
    """
    return "–" if np.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_equals(p: float) -> str:
    """The same after the letter p: "< 0.001", "= 0.031".

    Args:
        p: a p-value.

    Returns:
        The text.
    """
    return p_value(p) if np.isnan(p) or p < 0.001 else f"= {p:.3f}"


def number(value: float, digits: int = 3) -> str:
    """A number without e-notation: 0.0231, 8.10×10⁻⁵, 12400; "–" for NaN.

    Args:
        value: the number; infinity means that a learner diverged.
        digits: number of significant digits.

    Returns:
        The text, with a true minus.

    """
    if np.isnan(value):
        return "–"
    if np.isinf(value):
        return "diverged" if value > 0 else "−∞"
    if value == 0:
        return "0"
    mantissa, exponent = f"{abs(value):.{digits - 1}e}".split("e")
    power = int(exponent)
    if -4 <= power < 6:
        written = f"{abs(value):.{max(digits - 1 - power, 0)}f}"
    else:
        written = f"{mantissa}×10{str(power).translate(SUPERSCRIPTS)}"
    return f"−{written}" if value < 0 else written


def signed(value: float, digits: int = 3) -> str:
    """A difference as :func:`number` writes it, always with its sign.

    Args:
        value: the difference.
        digits: number of significant digits.

    Returns:
        The text.
    """
    written = number(value, digits)
    return f"+{written}" if value > 0 and np.isfinite(value) else written


def decimals(value: float, places: int = 2) -> str:
    """A number with a fixed number of decimals and a true minus; "–" for NaN.

    Args:
        value: the number.
        places: number of decimals.

    Returns:
        The text.
    """
    return "–" if np.isnan(value) else f"{value:.{places}f}".replace("-", "−")


def share(value: float, places: int = 1) -> str:
    """A share in per cent; "–" for NaN.

    Args:
        value: the share, from 0 to 1.
        places: number of decimals.

    Returns:
        The text.
    """
    return "–" if np.isnan(value) else f"{100 * value:.{places}f} %"


def rounded(values: Any, digits: int = 4) -> list[float | None]:
    """Numbers rounded for a text file; None for values that are not finite.

    Args:
        values: the numbers.
        digits: number of significant digits.

    Returns:
        The rounded numbers.
    """
    return [
        float(f"{value:.{digits - 1}e}") if np.isfinite(value) else None
        for value in np.asarray(values, float)
    ]


__all__ = [
    "SHARES",
    "Estimate",
    "Paired",
    "bootstrap",
    "decimals",
    "estimate",
    "holm",
    "interquartile_mean",
    "number",
    "p_equals",
    "p_value",
    "paired",
    "probability_of_improvement",
    "rounded",
    "share",
    "signed",
    "spread_ratio",
    "stars",
    "steps_to_reach",
    "wilcoxon",
]
