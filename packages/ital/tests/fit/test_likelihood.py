import itertools

import numpy as np
import pytest
from scipy import special, stats

from ital import fit
from ital.fit import Picks


def people(rng, rho, epsilon, lengths, count=10):
    """Scores and choices of people with the given parameters."""
    scores = rng.normal(size=(sum(lengths), count))
    first = np.cumsum([0, *lengths[:-1]])
    per_step = [np.repeat(values, lengths) for values in (rho, epsilon)]
    chances = fit.probabilities(scores, *per_step)
    chosen = np.array([rng.choice(count, p=p) for p in chances])
    return scores, Picks(chosen, first, np.full(len(scores), count))


def by_hand(scores, chosen, rho, epsilon):
    """The log-likelihood, one step after the other."""
    total = 0.0
    for row, choice in zip(scores, chosen, strict=True):
        softmax = np.exp(rho * row) / sum(np.exp(rho * row))
        total += np.log(epsilon / len(row) + (1 - epsilon) * softmax[choice])
    return total


@pytest.fixture(scope="module")
def five():
    rng = np.random.default_rng(0)
    return people(rng, [0.0, 0.5, 1.0, 3.0, 2.0], [0.0, 0.1, 0.0, 0.3, 0.8], [40, 60, 25, 60, 90])


# ---- the likelihood ----


def test_probabilities_add_up_and_have_the_right_limits():
    scores = np.random.default_rng(1).normal(size=(6, 10))
    scores[0] = 3.0  # all tied
    for rho, epsilon in itertools.product((0.0, 0.7, 50.0, 1e4), (0.0, 0.3, 1.0)):
        chances = fit.probabilities(scores, rho, epsilon)
        np.testing.assert_allclose(chances.sum(axis=-1), 1, rtol=1e-12)
        assert chances.min() >= epsilon / 10 - 1e-15
        np.testing.assert_allclose(chances[0], 0.1)
    np.testing.assert_allclose(fit.probabilities(scores, 2.0, 1.0), 0.1)
    np.testing.assert_allclose(fit.probabilities(scores, 0.0, 0.2), 0.1)
    sharp = fit.probabilities(scores[1:], 1e6, 0.0)
    np.testing.assert_allclose(sharp, np.eye(10)[scores[1:].argmax(axis=1)])


def test_the_likelihood_is_that_of_every_step(five):
    scores, picks = five
    rho, epsilon = np.array([0.0, 0.3, 1.0, 4.0, 9.0]), np.array([0.5, 0.0, 0.2, 1.0, 0.05])
    found = fit.log_likelihood(scores, picks, rho, epsilon)
    ends = [*picks.first[1:], len(scores)]
    for i, (first, end) in enumerate(zip(picks.first, ends, strict=True)):
        own = by_hand(scores[first:end], picks.chosen[first:end], rho[i], epsilon[i])
        assert found[i] == pytest.approx(own, rel=1e-12)
    at_random = fit.log_likelihood(scores, picks, rho, np.ones(5))
    np.testing.assert_allclose(at_random, -picks.trials * np.log(10), rtol=1e-12)


def test_the_maximum_is_that_of_a_grid(five):
    scores, picks = five
    best = fit.maximise(scores, picks)
    rhos = np.concatenate([[0], np.geomspace(0.02, 100, 120)])
    on_grid = np.stack(
        [
            fit.log_likelihood(scores, picks, np.full(5, rho), np.full(5, epsilon))
            for rho, epsilon in itertools.product(rhos, np.linspace(0, 1, 81))
        ]
    )
    highest = on_grid.max(axis=0)
    assert (best.log_likelihood >= highest - 1e-9).all()
    np.testing.assert_allclose(best.log_likelihood, highest, atol=0.05)
    again = fit.log_likelihood(scores, picks, best.rho, np.nan_to_num(best.epsilon))
    np.testing.assert_allclose(again, best.log_likelihood, rtol=1e-10)
    inner = (best.rho > 0) & (best.rho < 100) & (best.epsilon > 0) & (best.epsilon < 1)
    assert inner.sum() >= 2
    for change in ((1e-4, 0), (0, 1e-4)):
        ahead, behind = (
            fit.log_likelihood(
                scores, picks, best.rho + sign * change[0], best.epsilon + sign * change[1]
            )
            for sign in (1, -1)
        )
        np.testing.assert_allclose(((ahead - behind) / 2e-4)[inner], 0, atol=0.01)


def test_the_numbers_of_many_steps_are_found_again():
    rho, epsilon = [0.5, 1.5, 4.0], [0.3, 0.1, 0.5]
    scores, picks = people(np.random.default_rng(2), rho, epsilon, [8000] * 3)
    best = fit.maximise(scores, picks)
    np.testing.assert_allclose(best.rho, rho, rtol=0.12)
    np.testing.assert_allclose(best.epsilon, epsilon, atol=0.06)


def test_ends_of_the_range_are_exact():
    """Always the best arrow: ρ at its bound. Always the worst: nothing to follow. Ties everywhere:
    nothing either.
    """
    scores = np.random.default_rng(3).normal(size=(60, 10))
    scores[40:] = 1.0
    chosen = np.concatenate(
        [scores[:20].argmax(axis=1), scores[20:40].argmin(axis=1), np.zeros(20, int)]
    )
    best = fit.maximise(scores, Picks(chosen, np.array([0, 20, 40]), np.full(60, 10)))
    np.testing.assert_allclose(best.rho, [100, 0, 0], rtol=1e-4)
    np.testing.assert_array_equal(best.epsilon, [0, np.nan, np.nan])
    np.testing.assert_allclose(best.log_likelihood[1:], -20 * np.log(10))
    assert best.log_likelihood[0] > -1


# ---- selection over people ----


def test_a_model_that_is_best_for_all():
    evidence = np.full((12, 4), -100.0)
    evidence[:, 2] = -50.0
    selection = fit.select(evidence)
    np.testing.assert_allclose(selection.frequency, np.array([1, 1, 13, 1]) / 16)
    assert selection.exceedance[2] > 0.999
    assert selection.protected[2] > 0.99
    assert selection.equal < 0.01
    np.testing.assert_allclose(selection.responsibility, np.eye(4)[[2] * 12], atol=1e-15)


def test_equal_evidence_says_nothing():
    selection = fit.select(np.full((9, 5), -3.0))
    for values in (selection.frequency, selection.exceedance, selection.protected):
        np.testing.assert_allclose(values, 0.2, atol=1e-9)
    assert selection.equal > 0.5


def test_two_camps_are_as_frequent_as_they_are():
    evidence = np.zeros((30, 3))
    evidence[:20, 0] = evidence[20:, 1] = 40.0
    selection = fit.select(evidence)
    np.testing.assert_allclose(selection.frequency, np.array([21, 11, 1]) / 33)
    np.testing.assert_allclose(selection.sd, stats.dirichlet.var(selection.alpha) ** 0.5)


def test_exceedance_is_that_of_the_dirichlet_distribution():
    two = fit.exceedance(np.array([3.0, 7.5]))
    np.testing.assert_allclose(two[0], special.betainc(7.5, 3.0, 0.5), atol=1e-6)
    alpha = np.array([1.0, 4.0, 5.0, 2.5])
    drawn = np.random.default_rng(4).dirichlet(alpha, 200_000).argmax(axis=1)
    np.testing.assert_allclose(fit.exceedance(alpha), np.bincount(drawn) / 200_000, atol=0.005)


@pytest.mark.parametrize(("scale", "gap"), [(1.0, 0.5), (50.0, 1e-9)])
def test_the_free_energy_is_a_bound_that_clear_evidence_reaches(scale, gap):
    """The evidence of three people and two models, by summing over all who might use what."""
    evidence = scale * np.array([[0.0, -1.0], [-0.5, 0.5], [0.3, -2.0]])
    log_terms = []
    for models in itertools.product(range(2), repeat=3):
        counts = np.bincount(models, minlength=2)
        moments = special.gammaln(1.0 + counts).sum() - special.gammaln(2 + 3) + special.gammaln(2)
        log_terms.append(evidence[range(3), models].sum() + moments)
    exact = special.logsumexp(log_terms)
    selection = fit.select(evidence)
    bound = fit.free_energy(evidence, selection.alpha, selection.responsibility)
    assert exact - gap < bound <= exact + 1e-12
    for change in (0.9, 1.1):
        alpha = selection.alpha * [change, 1]
        assert fit.free_energy(evidence, alpha, selection.responsibility) < bound
