"""Statistics over seeds: means with intervals, paired comparisons, and how fast a curve falls."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

RESAMPLES = 2000
SHARES = (0.5, 0.1, 0.01)


class Estimate(NamedTuple):
    """Mean, standard error and interquartile mean of n values, with 95 % bootstrap intervals of both means."""

    n: int
    mean: float
    error: float
    low: float
    high: float
    iqm: float
    iqm_low: float
    iqm_high: float


def estimate(values: np.ndarray, seed: int = 0) -> Estimate:
    """All of these for one sample. Of one value there is neither error nor interval: NaN."""
    values = np.asarray(values, float)
    n = len(values)
    error = float(values.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    low, high = bootstrap(values, lambda rows: rows.mean(axis=-1), seed)
    middle_low, middle_high = bootstrap(values, interquartile_mean, seed)
    middle = float(interquartile_mean(values))
    return Estimate(n, float(values.mean()), error, low, high, middle, middle_low, middle_high)


def interquartile_mean(values: np.ndarray) -> np.ndarray:
    """The mean of the middle half along the last axis: a quarter of the values cut off at each end (rounded down)."""
    values = np.sort(np.asarray(values, float), axis=-1)
    n = values.shape[-1]
    cut = n // 4
    return np.asarray(values[..., cut : n - cut].mean(axis=-1))


def bootstrap(
    values: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray], seed: int = 0, resamples: int = RESAMPLES
) -> tuple[float, float]:
    """95 % percentile interval of a statistic, which takes samples along the last axis."""
    values = np.asarray(values, float)
    if len(values) < 2 or not np.isfinite(values).all():
        return float("nan"), float("nan")
    rows = np.random.default_rng(seed).integers(0, len(values), (resamples, len(values)))
    low, high = np.quantile(statistic(values[rows]), (0.025, 0.975))
    return float(low), float(high)


class Paired(NamedTuple):
    """A paired comparison of two methods over seeds: first − second.

    ``low`` and ``high`` are the 95 % interval of the mean difference, ``p`` the two-sided p-value of ``test``.
    """

    n: int
    difference: float
    low: float
    high: float
    p: float
    test: str


def paired(first: np.ndarray, second: np.ndarray) -> Paired:
    """t-test of the differences; where a value is not finite (a learner has diverged), the sign test.

    Where no difference varies there is no t: p is 1 if nothing differs, 0 if all differ by the same amount.
    """
    from scipy import stats

    first, second = np.asarray(first, float), np.asarray(second, float)
    n, nan = len(first), float("nan")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        wins, losses = np.sum(first < second), np.sum(first > second)
        with np.errstate(invalid="ignore"):
            difference = float(np.nan_to_num(first - second, nan=0.0, posinf=np.inf, neginf=-np.inf).mean())
        p = float(stats.binomtest(int(wins), int(wins + losses)).pvalue) if wins + losses else 1.0
        return Paired(n, difference, nan, nan, p, "sign test")
    apart = first - second
    mean = float(apart.mean())
    if n < 2:
        return Paired(n, mean, nan, nan, nan, "none")
    if apart.std() <= 1e-12 * np.abs(first).max(initial=1e-300):
        return Paired(n, mean, mean, mean, 1.0 if mean == 0 else 0.0, "paired t-test")
    found = stats.ttest_1samp(apart, 0.0)
    interval = found.confidence_interval(0.95)
    return Paired(n, mean, float(interval.low), float(interval.high), float(found.pvalue), "paired t-test")


def probability_of_improvement(first: np.ndarray, second: np.ndarray) -> float:
    """The share of pairs, any seed of one with any of the other, in which the first is smaller; ties count half."""
    first, second = np.asarray(first, float)[:, None], np.asarray(second, float)[None, :]
    return float(np.mean((first < second) + 0.5 * (first == second)))


def spread_ratio(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """How many times larger the first's standard deviation is, and the p-value of Pitman and Morgan's test.

    The test is of paired samples: the variances are alike exactly if sums and differences are not correlated.
    """
    from scipy import stats

    first, second = np.asarray(first, float), np.asarray(second, float)
    if len(first) < 3 or not (np.isfinite(first).all() and np.isfinite(second).all()):
        return float("nan"), float("nan")
    ratio = float(first.std(ddof=1) / max(second.std(ddof=1), np.finfo(float).tiny))
    total, apart = first + second, first - second
    if total.std() == 0 or apart.std() == 0:
        return ratio, 1.0
    return ratio, float(stats.pearsonr(total, apart).pvalue)


def steps_to_reach(steps: np.ndarray, curves: np.ndarray, share: float) -> np.ndarray:
    """Per seed, the first measured step at which a curve (seed, step) is at or below a share of its start; else NaN."""
    curves = np.asarray(curves, float)
    below = curves <= share * curves[:, :1]
    return np.where(below.any(axis=1), np.asarray(steps, float)[below.argmax(axis=1)], np.nan)


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's adjustment of several p-values; NaN stays NaN and does not count."""
    p = np.asarray(p, float)
    adjusted = np.full(p.shape, np.nan)
    there = [int(i) for i in np.argsort(p, kind="stable") if np.isfinite(p[i])]
    so_far = 0.0
    for rank, i in enumerate(there):
        so_far = max(so_far, min(1.0, (len(there) - rank) * float(p[i])))
        adjusted[i] = so_far
    return adjusted
