import numpy as np
import pytest
from scipy import stats

from ital import statistics


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
    samples = [
        statistics.bootstrap(rng.normal(0, 1, 25), lambda v: v.mean(-1), resamples=400)
        for _ in range(300)
    ]
    covered = np.mean([low <= 0 <= high for low, high in samples])
    assert 0.88 < covered < 0.98


def test_one_value_has_no_interval():
    found = statistics.estimate(np.array([2.0]))
    assert found.mean == 2.0
    assert np.isnan([found.error, found.low, found.high]).all()


def test_a_paired_test_is_scipys():
    rng = np.random.default_rng(0)
    first, second = rng.normal(1, 2, 15), rng.normal(0, 2, 15)
    result, expected = statistics.paired(first, second), stats.ttest_rel(first, second)
    assert (result.n, result.test) == (15, "paired t-test")
    np.testing.assert_allclose([result.t, result.p], [expected.statistic, expected.pvalue])
    np.testing.assert_allclose([result.low, result.high], expected.confidence_interval(0.95))
    np.testing.assert_allclose(
        [result.difference, result.sd], [(first - second).mean(), (first - second).std(ddof=1)]
    )
    assert result.d == pytest.approx(result.t / np.sqrt(15))
    assert statistics.wilcoxon(first, second) == pytest.approx(stats.wilcoxon(first, second).pvalue)


def test_differences_that_do_not_vary_are_the_limit_of_those_that_hardly_do():
    """A constant difference is certain, in the report and in the study: p = 0, as in SciPy."""
    constant = statistics.paired(np.full(5, 1.3), np.zeros(5))
    assert (constant.difference, constant.low, constant.high) == (1.3, 1.3, 1.3)
    assert (constant.p, constant.t, constant.d) == (0, np.inf, np.inf)
    assert statistics.paired(np.zeros(5), np.full(5, 1.3)).t == -np.inf
    hardly = statistics.paired(np.full(5, 1.3) + 1e-9 * np.arange(5), np.zeros(5))
    assert 0 < hardly.p < 1e-30
    nothing = statistics.paired(np.ones(5), np.ones(5))
    assert (nothing.difference, nothing.p, statistics.wilcoxon(np.ones(5), np.ones(5))) == (0, 1, 1)
    assert np.isnan([nothing.t, nothing.d]).all()


def test_a_single_pair_is_not_tested():
    assert np.isnan(
        [statistics.paired(np.ones(1), np.zeros(1)).p, statistics.wilcoxon(np.ones(1), np.zeros(1))]
    ).all()


def test_paired_with_a_diverged_seed_counts_signs():
    first, second = np.arange(8.0), np.arange(8.0) + 1
    second[3] = np.inf
    found = statistics.paired(first, second)
    assert found.test == "sign test"
    assert found.p == pytest.approx(2 * 0.5**8)
    assert found.difference == -np.inf


def test_a_difference_to_a_value_that_is_not_known_is_not_known():
    """Two diverged learners are alike; a missing value is neither equal nor better."""
    first, second = np.array([1.0, np.inf, 2.0, 5.0]), np.array([2.0, np.inf, 1.0, 6.0])
    found = statistics.paired(first, second)
    assert (found.n, found.difference, found.p) == (4, -0.25, 1.0)
    found = statistics.paired(np.array([1.0, np.nan, 2.0, 5.0]), second)
    assert np.isnan([found.difference, found.low, found.high, found.t, found.d]).all()
    assert (found.n, found.p, found.test) == (4, 1.0, "sign test")


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


def test_the_spread_of_two_pairs_is_not_compared():
    first, second = np.array([1.0, 4.0, 2.0]), np.array([3.0, 2.0, 2.5])
    assert np.isnan(statistics.spread_ratio(first[:2], second[:2])).all()
    ratio, p = statistics.spread_ratio(first, second)
    assert ratio == pytest.approx(np.std(first) / np.std(second))
    r = np.corrcoef(first + second, first - second)[0, 1]
    assert p == pytest.approx(2 * stats.t.sf(abs(r) / np.sqrt(1 - r**2), df=1))


def test_steps_to_reach_a_share_of_the_start():
    steps = np.array([0, 10, 20, 30])
    curves = np.array([[10, 6, 4, 0.9], [8, 4, 3, 2], [1, 2, 3, 4]])
    np.testing.assert_array_equal(statistics.steps_to_reach(steps, curves, 0.5), [20, 10, np.nan])
    np.testing.assert_array_equal(
        statistics.steps_to_reach(steps, curves, 0.1), [30, np.nan, np.nan]
    )


def test_holm_is_the_step_down_rule():
    families = np.array(
        [[0.01, 0.04, 0.03, np.nan], [0.01, 0.04, 0.03, 0.005], [0.5, np.nan, 0.6, np.nan]]
    )
    by_hand = [[0.03, 0.06, 0.06, np.nan], [0.03, 0.06, 0.06, 0.02], [1, np.nan, 1, np.nan]]
    np.testing.assert_allclose(statistics.holm(families), by_hand)
    np.testing.assert_allclose(statistics.holm(families[0]), by_hand[0])
    assert statistics.holm(np.array([])).shape == (0,)


def test_p_values_as_they_are_printed():
    assert [statistics.p_value(p) for p in (0.0002, 0.0314, np.nan)] == ["< 0.001", "0.031", "–"]
    assert [statistics.p_equals(p) for p in (0.0002, 0.0314, np.nan)] == ["< 0.001", "= 0.031", "–"]
    assert [statistics.stars(p) for p in (0.0005, 0.005, 0.04, 0.05, np.nan)] == [
        "***",
        "**",
        "*",
        "",
        "",
    ]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0, "0"),
        (0.32, "0.320"),
        (0.9996, "1.00"),
        (12.345, "12.3"),
        (1032.4, "1032"),
        (-0.0005, "−0.000500"),
        (8.08e-5, "8.08×10⁻⁵"),
        (1e12, "1.00×10¹²"),
        (np.nan, "–"),
        (np.inf, "diverged"),
    ],
)
def test_numbers_have_three_digits_and_no_e(value, written):
    assert statistics.number(value) == written


def test_differences_show_their_sign():
    assert [statistics.signed(value) for value in (1.5, -1.5, 0.0)] == ["+1.50", "−1.50", "0"]


def test_shares():
    assert statistics.share(0.9731) == "97.3 %"


def test_what_is_stored_is_short_and_finite():
    assert statistics.rounded([1.23456, 1234567.0, np.nan, np.inf], 3) == [
        1.23,
        1230000.0,
        None,
        None,
    ]


def test_decimals_are_as_many_as_asked_for():
    assert [statistics.decimals(value) for value in (-1.234, np.nan)] == ["−1.23", "–"]
    assert statistics.decimals(12.5, 0) == "12"
