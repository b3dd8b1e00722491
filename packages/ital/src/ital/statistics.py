"""Statistics over seeds and over participants, and the format of numbers.

There are means with intervals, and paired tests.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ital.errors import InputError

NAN = float("nan")
RESAMPLES = 2000
SHARES = (0.5, 0.1, 0.01)
SIGNIFICANT = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Estimate(NamedTuple):
    """Mean and interquartile mean of n values, with 95 % bootstrap intervals for both.

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
    """Estimate mean, standard error, interquartile mean and intervals from one sample.

    Args:
        values: the sample (n,).
        seed: seed of the bootstrap.

    Returns:
        The estimate; error and intervals of a single value are NaN.
    """
    values = np.asarray(values, float)
    n = len(values)
    error = NAN
    if n > 1:
        error = float(values.std(ddof=1) / np.sqrt(n))
    low, high = bootstrap(values, lambda samples: samples.mean(axis=-1), seed)
    iqm_low, iqm_high = bootstrap(values, interquartile_mean, seed)
    return Estimate(
        n=n,
        mean=float(values.mean()),
        error=error,
        low=low,
        high=high,
        iqm=float(interquartile_mean(values)),
        iqm_low=iqm_low,
        iqm_high=iqm_high,
    )


def interquartile_mean(values: np.ndarray) -> np.ndarray:
    """Return the mean of the middle half along the last axis.

    A quarter of the values (rounded down) is cut off at each end.

    Args:
        values: values along the last axis.

    Returns:
        The means, without the last axis.
    """
    values = np.asarray(values, float)
    in_order = np.sort(values, axis=-1)
    n = in_order.shape[-1]
    cut = n // 4
    middle_half = in_order[..., cut : n - cut]
    return np.asarray(middle_half.mean(axis=-1))


def bootstrap(
    values: np.ndarray,
    statistic: Callable[[np.ndarray], np.ndarray],
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> tuple[float, float]:
    """Compute the 95 % percentile bootstrap interval of a statistic.

    Args:
        values: the sample (n,).
        statistic: a function of samples along the last axis.
        seed: seed of the resampling.
        resamples: number of resamples.

    Returns:
        Lower and upper end; NaN for fewer than two values, or if one is not finite.
    """
    values = np.asarray(values, float)
    n = len(values)
    if n < 2 or not np.isfinite(values).all():
        return NAN, NAN
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, n, (resamples, n))
    resampled = statistic(values[drawn])
    low, high = np.quantile(resampled, (0.025, 0.975))
    return float(low), float(high)


class Paired(NamedTuple):
    """A paired comparison, first − second.

    It holds the mean difference, its 95 % interval, and a two-sided test of it.

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
    """Compare pairs with the t-test, or with the sign test if a value is not finite.

    Values are not finite if a learner diverged. If all differences are equal, the limit of small
    variation is used: p is 1 if they are 0; otherwise p is 0 and t is infinite. A single pair
    allows no test: NaN.

    Args:
        first: values of the first sample (n,).
        second: values of the second sample, in the same order (n,).

    Returns:
        The comparison.

    Raises:
        InputError: if the samples are not pairs.
    """
    from scipy import stats

    first, second = _as_pairs(first, second)
    are_finite = np.isfinite(first).all() and np.isfinite(second).all()
    if not are_finite:
        return _sign_test(first, second)
    n = len(first)
    differences = first - second
    mean = float(differences.mean())
    if n < 2:
        return Paired(n, mean, sd=NAN, low=NAN, high=NAN, t=NAN, p=NAN, d=NAN, test="none")
    sd = float(differences.std(ddof=1))
    only_rounding = 1e-12 * np.abs(first).max(initial=1e-300)
    if sd <= only_rounding:
        return _equal_differences(n, mean)
    test = stats.ttest_1samp(differences, 0.0)
    low, high = test.confidence_interval(0.95)
    return Paired(
        n,
        mean,
        sd=sd,
        low=float(low),
        high=float(high),
        t=float(test.statistic),
        p=float(test.pvalue),
        d=mean / sd,
        test="paired t-test",
    )


def _equal_differences(n: int, mean: float) -> Paired:
    """Return the limit of the t-test for differences that are all equal."""
    t = NAN
    p = 1.0
    if mean:
        t = float(np.sign(mean)) * np.inf
        p = 0.0
    return Paired(n, mean, sd=0.0, low=mean, high=mean, t=t, p=p, d=t, test="paired t-test")


def _sign_test(first: np.ndarray, second: np.ndarray) -> Paired:
    """Compare pairs by which value is smaller."""
    from scipy import stats

    wins = int(np.sum(first < second))
    losses = int(np.sum(first > second))
    # Two infinite values are a tie; the difference of a value that is not known is not known.
    with np.errstate(invalid="ignore"):
        difference = float(np.where(first == second, 0.0, first - second).mean())
    p = 1.0
    if wins or losses:
        p = float(stats.binomtest(wins, wins + losses).pvalue)
    return Paired(
        len(first),
        difference,
        sd=NAN,
        low=NAN,
        high=NAN,
        t=NAN,
        p=p,
        d=NAN,
        test="sign test",
    )


def _as_pairs(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both samples as arrays; raise InputError if they are not pairs."""
    first = np.asarray(first, float)
    second = np.asarray(second, float)
    if first.shape != second.shape or first.ndim != 1:
        raise InputError(
            f"pairs need two samples of one length, not of shapes {first.shape} and {second.shape}"
        )
    return first, second


def wilcoxon(first: np.ndarray, second: np.ndarray) -> float:
    """Test pairs with Wilcoxon's signed-rank test.

    Args:
        first: values of the first sample (n,).
        second: values of the second sample, in the same order (n,).

    Returns:
        The p-value: 1 if no pair differs, NaN for a single pair.
    """
    from scipy import stats

    first, second = _as_pairs(first, second)
    differences = first - second
    if len(differences) < 2:
        return NAN
    if not differences.any():
        return 1.0
    return float(stats.wilcoxon(differences).pvalue)


def probability_of_improvement(first: np.ndarray, second: np.ndarray) -> float:
    """Return the share of pairs in which the first value is smaller; ties count ½.

    Any value of one sample makes a pair with any of the other.

    Args:
        first: values of the first sample (n,).
        second: values of the second sample (m,).

    Returns:
        The share, in [0, 1].
    """
    by_row = np.asarray(first, float)[:, None]
    by_column = np.asarray(second, float)[None, :]
    is_smaller = by_row < by_column
    ties = by_row == by_column
    return float(np.mean(is_smaller + 0.5 * ties))


def spread_ratio(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Return the ratio of two standard deviations, and the p-value of Pitman and Morgan's test.

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

    first, second = _as_pairs(first, second)
    are_finite = np.isfinite(first).all() and np.isfinite(second).all()
    if len(first) < 3 or not are_finite:
        return NAN, NAN
    # A second sample without spread gives a large ratio.
    smallest = np.finfo(float).tiny
    spread = first.std(ddof=1)
    other_spread = second.std(ddof=1)
    ratio = float(spread / max(other_spread, smallest))
    # Cov(x + y, x − y) is Var(x) − Var(y).
    sums = first + second
    differences = first - second
    if sums.std() == 0 or differences.std() == 0:
        return ratio, 1.0
    test = stats.pearsonr(sums, differences)
    return ratio, float(test.pvalue)


def steps_to_reach(steps: np.ndarray, curves: np.ndarray, share: float) -> np.ndarray:
    """Return when each seed's curve is first at or below a share of its start.

    Args:
        steps: the measured steps (T,).
        curves: curves (seed, step).
        share: share of the first value.

    Returns:
        A measured step per seed, NaN if the curve never gets there.
    """
    curves = np.asarray(curves, float)
    starts = curves[:, :1]
    is_below = curves <= share * starts
    gets_there = is_below.any(axis=1)
    at = is_below.argmax(axis=1)
    first_below = np.asarray(steps, float)[at]
    return np.where(gets_there, first_below, np.nan)


def holm(p: np.ndarray) -> np.ndarray:
    """Adjust a family of p-values along the last axis with Holm's method.

    NaN stays NaN and is not counted.

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
    # The smallest p is multiplied by the size of the family, the next by one less, …
    size = np.sum(np.isfinite(p), axis=-1, keepdims=True)
    factors = size - np.arange(p.shape[-1])
    multiplied = ranked * factors
    never_falling = np.maximum.accumulate(multiplied, axis=-1)
    adjusted = np.minimum(1.0, never_falling)
    adjusted[np.isnan(ranked)] = np.nan
    result = np.empty_like(p)
    np.put_along_axis(result, order, adjusted, axis=-1)
    return result


def stars(p: float) -> str:
    """Return ``***`` below 0.001, ``**`` below 0.01, ``*`` below 0.05, else nothing.

    Args:
        p: a p-value.

    Returns:
        The stars.
    """
    for limit, mark in SIGNIFICANT:
        if p < limit:
            return mark
    return ""


def p_value(p: float) -> str:
    """Write p as papers print it: "< 0.001", "0.031"; "–" for NaN.

    Args:
        p: a p-value.

    Returns:
        The text.
    """
    if np.isnan(p):
        return "–"
    if p < 0.001:
        return "< 0.001"
    return f"{p:.3f}"


def p_equals(p: float) -> str:
    """Write p as after the letter p: "< 0.001", "= 0.031".

    Args:
        p: a p-value.

    Returns:
        The text.
    """
    if np.isnan(p) or p < 0.001:
        return p_value(p)
    return f"= {p:.3f}"


def number(value: float, digits: int = 3) -> str:
    """Write a number without e-notation: 0.0231, 8.10×10⁻⁵, 12400; "–" for NaN.

    Args:
        value: the number; infinity means that a learner diverged.
        digits: number of significant digits.

    Returns:
        The text, with a true minus.
    """
    if np.isnan(value):
        return "–"
    if value == np.inf:
        return "diverged"
    if value == -np.inf:
        return "−∞"
    if value == 0:
        return "0"
    # e-notation rounds to the digits wanted, so that 9.996 becomes 10.0.
    scientific = f"{abs(value):.{digits - 1}e}"
    mantissa, exponent = scientific.split("e")
    power = int(exponent)
    if -4 <= power < 6:
        after_point = max(digits - 1 - power, 0)
        written = f"{abs(value):.{after_point}f}"
    else:
        written = f"{mantissa}×10{str(power).translate(SUPERSCRIPTS)}"
    if value < 0:
        return f"−{written}"
    return written


def signed(value: float, digits: int = 3) -> str:
    """Write a difference as :func:`number` does, always with its sign.

    Args:
        value: the difference.
        digits: number of significant digits.

    Returns:
        The text.
    """
    written = number(value, digits)
    if 0 < value < np.inf:
        return f"+{written}"
    return written


def decimals(value: float, places: int = 2) -> str:
    """Write a number with a fixed number of decimals and a true minus; "–" for NaN.

    Args:
        value: the number.
        places: number of decimals.

    Returns:
        The text.
    """
    if np.isnan(value):
        return "–"
    return f"{value:.{places}f}".replace("-", "−")


def share(value: float, places: int = 1) -> str:
    """Write a share in per cent; "–" for NaN.

    Args:
        value: the share, from 0 to 1.
        places: number of decimals.

    Returns:
        The text.
    """
    if np.isnan(value):
        return "–"
    return f"{100 * value:.{places}f} %"


def rounded(values: Any, digits: int = 4) -> list[float | None]:
    """Round numbers for a text file; None stands for values that are not finite.

    Args:
        values: the numbers.
        digits: number of significant digits.

    Returns:
        The rounded numbers.
    """
    written: list[float | None] = []
    for value in np.asarray(values, float):
        if np.isfinite(value):
            written.append(float(f"{value:.{digits - 1}e}"))
        else:
            written.append(None)
    return written


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
