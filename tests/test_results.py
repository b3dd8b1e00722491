import numpy as np
import pytest

from ital import results


def exams(rng, seeds, questions, repeats):
    """Shares of right answers (repeat, seed): able learners pass easy questions, the same in all of one exam."""
    ability, difficulty = rng.normal(0, 0.5, (repeats, seeds, 1)), rng.normal(0, 1.5, (repeats, 1, questions))
    passes = rng.random((repeats, seeds, questions)) < 1 / (1 + np.exp(-1 - ability - difficulty))
    return passes.mean(axis=2)


def test_the_error_of_an_exam_contains_the_choice_of_questions():
    shares = exams(np.random.default_rng(0), seeds=10, questions=30, repeats=2000)
    mean, fixed = results.mean_and_error(shares.T)
    _, error = results.mean_and_error(shares.T, 30)
    actual = mean.std()  # other seeds and other questions each time
    assert np.sqrt(np.mean(fixed**2)) < 0.7 * actual
    assert actual < np.sqrt(np.mean(error**2)) < 2 * actual  # an upper bound, because answers are random here


def test_where_all_seeds_fail_in_the_same_questions_it_is_the_binomial_error():
    rng = np.random.default_rng(1)
    shares = np.repeat(rng.binomial(30, 0.8, (1, 4000)) / 30, 5, axis=0)
    mean, error = results.mean_and_error(shares, 30)
    assert np.sqrt(np.mean(error**2)) == pytest.approx(np.sqrt(0.8 * 0.2 / 30), rel=0.02)
    assert mean.std() == pytest.approx(np.sqrt(0.8 * 0.2 / 30), rel=0.05)


def test_without_questions_it_is_the_error_over_seeds():
    values = np.random.default_rng(2).normal(size=(20, 3))
    _, error = results.mean_and_error(values)
    np.testing.assert_allclose(error, values.std(axis=0, ddof=1) / np.sqrt(20))
    assert np.isnan(results.mean_and_error(values[:1], 30)[1]).all()
