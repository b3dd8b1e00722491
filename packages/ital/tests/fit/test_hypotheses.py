"""Worlds of hypotheses as people meet them: zeros, base measures, costs, lessons, priors of one's
own.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import logsumexp, softmax

import ital
from ital import beliefs, fit
from ital.errors import InputError

RNG = np.random.default_rng(5)
M = RNG.dirichlet(np.ones(6), size=4).T  # 6 data, 4 hypotheses
THETA = np.array([0.5, 0.2, 0.2, 0.1])
ZEROS = np.array([[0.6, 0.2, 0.0], [0.4, 0.3, 0.5], [0.0, 0.5, 0.5]])


@pytest.fixture
def trials():
    """Five people with four trials each, who all choose among six data; priors by condition."""
    table = pd.DataFrame(
        {"person": np.repeat(np.arange(5), 4), "condition": ["a", "b"] * 10, "datum": 0}
    )
    return fit.cross(table, pd.DataFrame({"datum": np.arange(6)}), on="datum")


# ---- beliefs ----


@pytest.mark.usefixtures("x64")
def test_pedagogy_with_a_base_measure_is_the_enumerated_softmax():
    """Turtles: lessons of up to ten, k of them red, with the base measure 1/(n+1)."""
    lessons = [(k, n) for n in range(1, 11) for k in range(n + 1)]
    k, n = np.array(lessons).T
    shares = np.arange(0.05, 1, 0.05)
    matrix = stats.binom.pmf(k[:, None], n[:, None], shares) / 10
    prior = stats.beta.pdf(shares, 10, 2)
    prior /= prior.sum()
    offer = beliefs.Offer(jnp.log(matrix), -jnp.log(n + 1.0), 0.1 * jnp.asarray(n, float))
    found = np.exp(beliefs.pedagogical(offer, jnp.log(prior), 1.7, 1))
    enumerated = np.zeros(matrix.shape)
    for h in range(len(shares)):
        for d in range(len(lessons)):
            learned = matrix[d, h] * prior[h] / sum(matrix[d] * prior)
            enumerated[d, h] = np.exp(1.7 * (np.log(learned) - 0.1 * n[d])) / (n[d] + 1)
    np.testing.assert_allclose(found, enumerated / enumerated.sum(axis=0), rtol=0, atol=1e-12)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("rounds", [1, 4])
def test_zeros_are_the_limit_of_small_numbers(alpha, rounds):
    theta = jnp.log(jnp.array([0.3, 0.3, 0.4]))
    small = np.where(ZEROS > 0, ZEROS, 1e-300)
    exact = beliefs.pedagogical(jnp.asarray(beliefs.log_likelihoods(ZEROS)), theta, alpha, rounds)
    limit = beliefs.pedagogical(jnp.log(small), theta, alpha, rounds)
    np.testing.assert_allclose(np.exp(exact), np.exp(limit), atol=1e-10)
    assert np.isfinite(exact).all()


@pytest.mark.usefixtures("x64")
def test_scbi_with_zeros_is_the_limit_of_small_numbers_where_a_scaling_exists():
    theta = jnp.log(jnp.array([0.3, 0.3, 0.4]))
    exact = np.exp(beliefs.scbi(jnp.asarray(beliefs.log_likelihoods(ZEROS)), theta))
    for small in (1e-6, 1e-12):
        limit = np.exp(beliefs.scbi(jnp.log(np.where(ZEROS > 0, ZEROS, small)), theta))
        np.testing.assert_allclose(exact, limit, atol=20 * small + 1e-12)
    np.testing.assert_allclose((exact * np.exp(theta)).sum(axis=1), 1 / 3, rtol=1e-10)


@pytest.mark.usefixtures("x64")
def test_scbi_with_zeros_ends_where_the_iteration_does_if_there_is_no_scaling():
    """Nearly certain of h0, which cannot give datum 2: its row gets all that the others have."""
    theta = np.array([0.98, 0.01, 0.01])
    scaled = ZEROS * theta
    for _ in range(3000):
        scaled = scaled / scaled.sum(axis=1, keepdims=True) / 3
        scaled = scaled / scaled.sum(axis=0) * theta
    found = np.exp(
        beliefs.scbi(jnp.asarray(beliefs.log_likelihoods(ZEROS)), jnp.log(jnp.asarray(theta)))
    )
    np.testing.assert_allclose(found, scaled / theta, atol=1e-9)


@pytest.mark.usefixtures("x64")
def test_scbi_with_a_base_measure_has_these_row_sums():
    base = np.array([0.1, 0.2, 0.3, 0.15, 0.2, 0.05])
    offer = beliefs.Offer(jnp.log(M), jnp.log(3 * base), jnp.zeros(6))
    joint = np.exp(beliefs.scbi(offer, jnp.log(THETA))) * THETA
    np.testing.assert_allclose(joint.sum(axis=1), base, rtol=1e-12)
    np.testing.assert_allclose(joint.sum(axis=0), THETA, rtol=1e-12)


@pytest.mark.usefixtures("x64")
def test_an_unsure_teacher_weighs_the_learners():
    possible = np.array([THETA, [0.1, 0.1, 0.1, 0.7]])
    weights = np.array([0.25, 0.75])
    utility = sum(
        weight * np.log(M * own / (M * own).sum(axis=1, keepdims=True))
        for weight, own in zip(weights, possible, strict=True)
    )
    found = beliefs.unsure(jnp.log(M), jnp.log(possible), jnp.log(weights), 2.0)
    np.testing.assert_allclose(np.exp(found), softmax(2.0 * utility, axis=0), rtol=1e-12)
    one = beliefs.unsure(jnp.log(M), jnp.log(THETA)[None], jnp.zeros(1), 2.0)
    alone = beliefs.pedagogical(jnp.log(M), jnp.log(THETA), 2.0, 1)
    np.testing.assert_allclose(one, alone, rtol=1e-12)


def test_lessons_are_all_multisets_and_their_chances_are_multinomial():
    found = beliefs.lessons([[0.5, 0.0], [0.3, 0.4], [0.2, 0.6]], sizes=[1, 3])
    assert found.counts.shape == (3 + 10, 3)
    assert found.size.tolist() == [1] * 3 + [3] * 10
    np.testing.assert_allclose(found.likelihoods.sum(axis=0), 1)
    row = found.counts.tolist().index([1, 2, 0])
    np.testing.assert_allclose(found.likelihoods[row], [3 * 0.5 * 0.3**2 / 2, 0.0])


# ---- simulation ----


def test_a_learner_of_impossible_data_stays_finite():
    task = ital.tasks.from_likelihoods(ZEROS, target=0, prior=[0.2, 0.4, 0.4])
    for teacher in ("sampling", "random", "scbi", "pedagogical", "cooperative"):
        learners = ["bayes", "pedagogical", "scbi"]
        result = ital.teach(task, teacher, learners, steps=20, seeds=3, batch_size=3)
        assert np.isfinite(result.curves["belief"]).all()
        assert np.isfinite(result.curves["log_odds"]).all()
    taught = ital.teach(task, "sampling", "bayes", steps=60, seeds=3, batch_size=3)
    assert (taught.curves["belief"].isel(step=-1) > 0.99).all()


@pytest.mark.usefixtures("x64")
def test_scbi_with_unequal_priors_is_the_brute_force_iteration():
    """The teacher follows a learner that begins with its own prior; the learner begins with
    another.
    """
    prior, imagined = [0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]
    task = ital.tasks.from_likelihoods(M, target=1, prior=prior, teacher_prior=imagined)
    world = task.world(0)
    teacher = ital.teachers.make("scbi:prior")
    np.testing.assert_allclose(np.exp(world.learner.log_prior), prior)
    memory = teacher.init(jax.random.key(0), world.teacher, ())
    of_teacher, of_learner = np.array(imagined), np.array(prior)
    params = jnp.asarray(world.learner.log_prior)
    for step in range(4):
        noise = teacher.prepare(jax.random.key(step), 6)
        log_m = jnp.log(M)
        view = ital.teachers.TeacherView(None, None, log_m, 1, 0.1, jnp.int64(step), jnp.int64(4))
        chosen, memory, _ = teacher.choose(noise, view, (), memory)
        given = scaled(of_teacher)
        assert chosen == np.argmax(np.log(given[:, 1]) + noise.gumbel)
        of_teacher = given[chosen] * of_teacher / (given[chosen] @ of_teacher)
        np.testing.assert_allclose(np.exp(memory), of_teacher, rtol=1e-8)
        taken = scaled(of_learner)[chosen] * of_learner
        of_learner = taken / taken.sum()
        params = beliefs.posterior(params, beliefs.scbi(log_m, params)[chosen])
        np.testing.assert_allclose(np.exp(params), of_learner, rtol=1e-8)
    assert not np.allclose(of_teacher, of_learner, atol=1e-3)


def scaled(theta):
    """P_T by the plain iteration, with column sums θ and equal row sums."""
    matrix = M * theta
    for _ in range(2000):
        matrix = matrix / matrix.sum(axis=1, keepdims=True) / len(M)
        matrix = matrix / matrix.sum(axis=0) * theta
    return matrix / theta


def test_teachers_prefer_cheap_data():
    costs = [0, 0, 0, 0, 0, 50]
    plain = ital.tasks.from_likelihoods(M, target=1)
    priced = ital.tasks.from_likelihoods(M, target=1, cost=costs)
    assert plain.settings["likelihoods"] != priced.settings["likelihoods"]
    for teacher in ("pedagogical:1", "scbi", "unsure:1"):
        for task in (plain, priced):
            result = ital.teach(task, teacher, "bayes", steps=15, seeds=2, batch_size=6)
            assert np.isfinite(result.curves["belief"]).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base": [1, 1, 1]}, "the base measure must hold 6 positive numbers"),
        ({"base": [1, 1, 1, 0, 1, 1]}, "the base measure must hold 6 positive numbers"),
        ({"cost": [1.0]}, "the cost must hold 6 numbers"),
        ({"teacher_prior": [[1, 2], [3, 4]]}, "the teacher's prior must hold 4 positive numbers"),
        ({"prior": [1, 1, 1, 0]}, "the prior must hold 4 positive numbers"),
    ],
)
def test_worlds_refuse_what_does_not_fit(change, message):
    with pytest.raises(InputError, match=message):
        ital.tasks.from_likelihoods(M, **change)
    with pytest.raises(InputError, match="row 1 of the likelihoods is impossible"):
        ital.tasks.from_likelihoods([[0.5, 0.4], [0, 0], [0.5, 0.6]])
    with pytest.raises(InputError, match="scbi:prior, not scbi:x"):
        ital.teachers.make("scbi:x")
    with pytest.raises(InputError, match="unsure:ALPHA, not unsure:x"):
        ital.teachers.make("unsure:x")


# ---- models ----


def chances(model, choices, rho=1.0, **numbers):
    """What a model says of the first trial of each condition, without lapses."""
    made = fit.simulate(choices, model, rho=rho, numbers=numbers, seed=0)
    found = fit.fit(
        made, [model._replace(rho=rho if model.rho is None else model.rho, epsilon=0.0)]
    )
    shares = fit.shares(found, "datum", "condition")
    predicted = shares[shares["source"] == model.name]
    return [own["share"].to_numpy() for _, own in predicted.groupby("condition")]


def test_models_are_the_distributions_of_beliefs(trials):
    by_condition = {"a": THETA, "b": [0.1, 0.1, 0.1, 0.7]}
    world = fit.Hypotheses(M, target=2, belief=by_condition, by="condition", base=np.arange(1, 7))
    for condition in chances(world.literal(), trials):
        np.testing.assert_allclose(condition, M[:, 2], rtol=1e-12)
    one = chances(world.pedagogical(), trials, rho=2.0)
    four = chances(world.pedagogical(rounds=4, alpha=2.0), trials)
    same = chances(world.pedagogical(rounds=1, alpha=2.0), trials)
    scbi = chances(world.scbi(), trials)
    for i, theta in enumerate(by_condition.values()):
        learned = M * theta / (M * theta).sum(axis=1, keepdims=True)
        weighed = np.arange(1, 7) * learned[:, 2] ** 2
        np.testing.assert_allclose(one[i], weighed / weighed.sum(), rtol=1e-12)
        np.testing.assert_allclose(same[i], one[i], rtol=1e-12)
        assert not np.allclose(four[i], one[i], atol=1e-3)
        joint = M * theta
        for _ in range(3000):
            joint = joint / joint.sum(axis=1, keepdims=True) * np.arange(1, 7)[:, None] / 21
            joint = joint / joint.sum(axis=0) * theta
        np.testing.assert_allclose(scbi[i], joint[:, 2] / theta[2], rtol=1e-9)


def test_the_unsure_model_averages_and_impossible_data_have_no_chance(trials):
    possible = np.array([THETA, [0.1, 0.1, 0.1, 0.7]])
    found = chances(fit.Hypotheses(M, 2).unsure(belief=possible), trials, rho=1.5)
    logs = np.log(M[None] * possible[:, None])
    utility = (logs[:, :, 2] - logsumexp(logs, axis=2)).mean(axis=0)
    np.testing.assert_allclose(found[0], softmax(1.5 * utility), rtol=1e-12)
    matrix = np.where(np.arange(6)[:, None] == 3, [0.0, 0.1, 0.1, 0.1], M)
    world = fit.Hypotheses(matrix / matrix.sum(axis=0), target=0)
    for model in (world.literal(), world.pedagogical(), world.scbi(), world.pedagogical(rounds=3)):
        assert (np.array(chances(model, trials))[:, 3] == 0).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": 4}, "target must be a hypothesis from 0 to 3, not 4"),
        ({"belief": [1, 1]}, "a belief must hold 4 numbers"),
        ({"belief": [0, 0, 0, 0]}, "not all of them 0"),
        ({"belief": {"a": THETA}, "by": "condition"}, "holds 'b', for which there is no belief: a"),
        ({"belief": {"a": THETA}}, "name the column that selects them with by"),
        ({"base": [1, 2]}, "the base measure must hold 6 numbers"),
        ({"likelihoods": [[1, -1], [0, 2]]}, "likelihoods must be a matrix of numbers"),
        ({"likelihoods": M[:3]}, "must hold rows of the likelihoods, 0 to 2"),
    ],
)
def test_worlds_for_fits_refuse_what_does_not_fit(trials, change, message):
    world = fit.Hypotheses(**({"likelihoods": M, "target": 0} | change))
    with pytest.raises(InputError, match=message):
        fit.fit(trials, [world.pedagogical()])
    with pytest.raises(InputError, match="weighs costs, but the world has none"):
        world.pedagogical(cost=1.0)
