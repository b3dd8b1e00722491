import numpy as np
import pytest
from scipy import stats

from ital.reproduce import _statistics as statistics


def test_estimate_is_mean_error_and_interquartile_mean():
    values = np.random.default_rng(0).normal(3.0, 2.0, 20)
    found = statistics.estimate(values)
    assert (found.n, found.mean) == (20, pytest.approx(values.mean()))
    assert found.error == pytest.approx(stats.sem(values))
    assert found.iqm == pytest.approx(stats.trim_mean(values, 0.25))


def test_bootstrap_interval_is_that_of_scipy():
    values = np.random.default_rng(1).exponential(2.0, 30)
    found = statistics.estimate(values)
    expected = stats.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.08)


def test_bootstrap_covers_the_mean_about_as_often_as_it_says():
    rng = np.random.default_rng(3)
    samples = [statistics.bootstrap(rng.normal(0, 1, 25), lambda v: v.mean(-1), resamples=400) for _ in range(300)]
    covered = np.mean([low <= 0 <= high for low, high in samples])
    assert 0.88 < covered < 0.98


def test_one_value_has_no_interval():
    found = statistics.estimate(np.array([2.0]))
    assert found.mean == 2.0
    assert np.isnan([found.error, found.low, found.high]).all()


def test_paired_is_scipys_paired_t_test():
    rng = np.random.default_rng(4)
    first, second = rng.normal(0, 1, 12), rng.normal(0.4, 1, 12)
    found, expected = statistics.paired(first, second), stats.ttest_rel(first, second)
    interval = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.difference == pytest.approx((first - second).mean())


def test_paired_of_equal_curves_sees_no_difference():
    assert statistics.paired(np.arange(5.0), np.arange(5.0)).p == 1.0


def test_paired_with_a_diverged_seed_counts_signs():
    first, second = np.arange(8.0), np.arange(8.0) + 1
    second[3] = np.inf
    found = statistics.paired(first, second)
    assert found.test == "sign test"
    assert found.p == pytest.approx(2 * 0.5**8)
    assert found.difference == -np.inf


def test_probability_of_improvement_is_mann_whitneys_u():
    rng = np.random.default_rng(5)
    first, second = rng.integers(0, 9, 15), rng.integers(2, 11, 12)
    expected = stats.mannwhitneyu(second, first).statistic / (15 * 12)
    assert statistics.probability_of_improvement(first, second) == pytest.approx(expected)


def test_spread_ratio_finds_a_larger_spread_and_no_other():
    rng = np.random.default_rng(6)
    narrow = rng.normal(0, 1, 200)
    ratio, p = statistics.spread_ratio(3 * rng.normal(0, 1, 200), narrow)
    assert ratio == pytest.approx(3, rel=0.2)
    assert p < 1e-6
    assert statistics.spread_ratio(rng.normal(5, 1, 200), narrow)[1] > 0.01


def test_steps_to_reach_a_share_of_the_start():
    steps = np.array([0, 10, 20, 30])
    curves = np.array([[10, 6, 4, 0.9], [8, 4, 3, 2], [1, 2, 3, 4]])
    np.testing.assert_array_equal(statistics.steps_to_reach(steps, curves, 0.5), [20, 10, np.nan])
    np.testing.assert_array_equal(statistics.steps_to_reach(steps, curves, 0.1), [30, np.nan, np.nan])


def test_holm_is_the_step_down_rule():
    np.testing.assert_allclose(statistics.holm(np.array([0.01, 0.04, 0.03, np.nan])), [0.03, 0.06, 0.06, np.nan])
