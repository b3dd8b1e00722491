"""ital-adaptive infers what kind of teacher it has."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ital
from ital import losses
from ital.errors import InputError
from ital.learners import Literal, Situation, _adaptive, adaptive, imagine
from tests.learners.test_two_step import lesson_on, log_likelihood_step
from tests.test_gradients import brute_force, problem

SETTINGS = _adaptive.AdaptiveNumbers(1.0, 0.02, 0.001, 0.5)


@jax.jit
def weigh(memory, at):
    """One more choice out of 20, with the same rank under both scores."""
    return _adaptive.weigh(memory, jnp.full(_adaptive.SCORES, at), 20, SETTINGS)


def trust_after(places):
    """Trust after choices with these ranks."""
    memory = _adaptive.begin_without_opinion(jnp.zeros(()), SETTINGS)
    for at in places:
        partial, indifferent = weigh(memory, at)
        np.testing.assert_allclose(jnp.sum(partial) + indifferent, 1.0, rtol=1e-5)
        memory = memory._replace(partial=partial, indifferent=indifferent)
    return float(_adaptive.trust_of(memory.partial, SETTINGS.threshold))


def test_high_ranks_are_trusted_low_ones_are_not_and_any_are_ignored():
    assert trust_after([0.9] * 20) > 0.95
    assert trust_after([-0.9] * 20) < -0.95
    rng = np.random.default_rng(0)
    assert trust_after(rng.choice(np.linspace(-1, 1, 20), 200)) == 0


def test_trust_outlives_choices_that_cannot_be_predicted_but_not_those_that_contradict():
    rng = np.random.default_rng(1)
    anything = list(rng.choice(np.linspace(-1, 1, 20), 40))
    assert trust_after(anything) == 0
    assert trust_after([0.9] * 30 + anything) > 0.4
    assert trust_after([0.9] * 30 + [-0.9] * 10) < -0.9


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=10))
def test_trust_is_odd_in_the_ranks(ranks):
    opposite = [-rank for rank in ranks]
    np.testing.assert_allclose(trust_after(ranks), -trust_after(opposite), atol=1e-5)


@given(st.sampled_from([2, 7, 20, 30]), st.floats(-1, 1))
def test_hypotheses_are_probabilities(count, at):
    """Averaged over all ranks, each κ gives the same as uniform ranks."""
    everywhere = jax.vmap(lambda at: _adaptive.tilted(at, count))(jnp.linspace(-1, 1, count))
    np.testing.assert_allclose(everywhere.mean(axis=0), 1.0, rtol=1e-4)
    assert (_adaptive.tilted(jnp.asarray(at), count) > 0).all()


def test_ranks_run_from_the_lowest_to_the_highest_and_ties_share_the_middle():
    scores = jnp.asarray([3.0, 1.0, 2.0])
    assert [float(_adaptive.rank_of(scores, jnp.asarray(i))) for i in range(3)] == [1.0, -1.0, 0.0]
    assert float(_adaptive.rank_of(jnp.zeros(5), jnp.asarray(2))) == 0.0


@pytest.mark.usefixtures("x64")
def test_scores_are_their_definitions():
    params, _, rows, y, _ = problem(losses.squared, 0)
    lesson = lesson_on(losses.squared, params, rows, y, 0.1, 0)
    values, g = brute_force(losses.squared, params, rows.x, y)
    g = np.asarray(g).reshape(len(y), -1)
    without_loss = -(0.1**2) * np.sum(g**2, axis=1) + 2 * 0.1 * np.asarray(values)
    np.testing.assert_allclose(
        _adaptive.scores(lesson), [without_loss, g @ g.mean(axis=0)], rtol=1e-9
    )


@pytest.mark.usefixtures("x64")
def test_weights_are_those_of_a_hidden_markov_chain():
    """A state for each hypothesis, score and κ.

    Score and κ are sometimes redrawn, the whole state more rarely.
    """
    settings = _adaptive.AdaptiveNumbers(1.0, 0.2, 0.05, 0.5)
    pairs = [(score, tilt) for score in range(_adaptive.SCORES) for tilt in _adaptive.TILTS]
    states = [(sign, *pair) for sign in (1, -1) for pair in pairs] + [(0, 0, 0.0)]
    prior = np.array([1 / 3 / len(pairs)] * 2 * len(pairs) + [1 / 3])
    alike = np.array([[one[0] == other[0] for other in states] for one in states]) * prior
    again = alike / alike.sum(axis=1, keepdims=True)
    moves = 0.95 * (0.8 * np.eye(len(states)) + 0.2 * again) + 0.05 * prior
    belief, memory, grid = (
        prior,
        _adaptive.begin_without_opinion(jnp.zeros(()), settings),
        np.linspace(-1, 1, 7),
    )
    for places in ([1.0, 1 / 3], [-2 / 3, 1.0], [2 / 3, 0.0]):
        seen = [np.exp(s * k * places[i]) / np.mean(np.exp(s * k * grid)) for s, i, k in states]
        belief = belief @ moves * seen
        belief = belief / belief.sum()
        partial, indifferent = _adaptive.weigh(memory, jnp.asarray(places), 7, settings)
        memory = memory._replace(partial=partial, indifferent=indifferent)
        np.testing.assert_allclose([*np.ravel(partial), indifferent], belief, rtol=1e-9)


@pytest.mark.parametrize(("step", "share", "sharper"), [(3, 1 / 4, False), (25, 1 / 20, True)])
@pytest.mark.usefixtures("x64")
def test_beta_grows_as_the_volumes_come_closer_together(step, share, sharper, monkeypatch):
    """ITAL's step with trust·|β|, and after the first steps as much more as the spread was larger
    at first.
    """
    monkeypatch.setattr(_adaptive, "within_reach", lambda lesson, settings, params, wanted: wanted)
    params, _, rows, y, _ = problem(losses.squared, 0)
    lesson = lesson_on(losses.squared, params, rows, y, 0.1, 0)._replace(step=jnp.asarray(step))
    helps = jnp.stack([jnp.full((_adaptive.SCORES, len(_adaptive.TILTS)), 0.1), jnp.zeros((2, 5))])
    memory = _adaptive.Memory(helps, jnp.asarray(0.0), jnp.asarray(0.9), jnp.asarray(0.3))
    taken = _adaptive.update_adaptively(
        lesson, SETTINGS._replace(beta=2.0), params, memory, volume="imitated"
    )
    spread = 0.3 + share * (
        np.std(imagine(lesson, params, Literal(chosen=1.0), "imitated").volumes) - 0.3
    )
    beta = float(taken.signals["trust"]) * 2.0 * (0.9 / spread if sharper else 1.0)
    assert beta > 1.5
    np.testing.assert_allclose(taken.memory[2:], (0.9 if sharper else spread, spread), rtol=1e-9)
    expected = log_likelihood_step(losses.squared, lesson, params, beta, len(y), "imitated")
    np.testing.assert_allclose(taken.params, expected, rtol=1e-8)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("view", [1, 3])
def test_of_a_padded_mini_batch_only_the_view_counts(view):
    """The first examples alone, and a mini-batch of which it sees only these."""
    params, _, rows, y, _ = problem(losses.squared, 0)
    first = jax.tree.map(lambda leaf: leaf[:view], rows), y[:view]
    whole = lesson_on(losses.squared, params, rows, y, 0.1, 0)
    alone = lesson_on(losses.squared, params, *first, 0.1, 0)
    whole = whole._replace(chosen=jnp.asarray(0), order=jnp.arange(len(y)))
    alone = alone._replace(chosen=jnp.asarray(0), order=jnp.arange(view))
    helps = jnp.stack([jnp.full((_adaptive.SCORES, len(_adaptive.TILTS)), 0.1), jnp.zeros((2, 5))])
    memory = _adaptive.Memory(helps, jnp.asarray(0.0), jnp.asarray(0.9), jnp.asarray(0.3))
    expected = _adaptive.update_adaptively(alone, SETTINGS, params, memory, volume="imitated")
    found = _adaptive.update_adaptively(
        whole, SETTINGS._replace(view=view), params, memory, volume="imitated"
    )
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12),
        found,
        expected,
    )


def test_its_beta_is_found_as_if_the_teacher_helped():
    situation = Situation(-3.0, 0.0, 5, "imitated", lambda volumes, sign=-1.0: 7.0 * sign)
    assert adaptive().resolve(adaptive(), situation).settings.beta == 7.0


@pytest.fixture(scope="module")
def taught():
    return {
        teacher: ital.teach(
            "regression", teacher, ["imt", "ital-adaptive"], steps=400, seeds=5, eval_every=20
        ).curves
        for teacher in ("cooperative", "random", "adversarial", "switching")
    }


@pytest.mark.parametrize(
    ("teacher", "sign"), [("cooperative", 1), ("random", 0), ("adversarial", -1)]
)
def test_it_finds_out_what_kind_of_teacher_it_has(taught, teacher, sign):
    trust = taught[teacher]["trust"].sel({"learner": "ital-adaptive"}).isel(step=slice(2, None))
    assert abs(float(trust.mean()) - sign) < 0.05


def test_it_notices_that_the_teacher_has_changed(taught):
    trust = taught["switching"]["trust"].sel({"learner": "ital-adaptive"}).mean("seed")
    assert float(trust.sel(step=200)) > 0.95
    assert float(trust.sel(step=240)) < -0.95


@pytest.mark.parametrize("teacher", ["cooperative", "random", "adversarial", "switching"])
def test_never_worse_than_naive(taught, teacher):
    naive, own = taught[teacher]["distance"].isel(step=-1).mean("seed").values
    assert own <= 1.02 * naive


def test_nobody_tells_it_the_sign():
    """Its |β| is the same for a helpful teacher and for one of the opposite sign that makes the
    same choices.
    """
    beta = [
        float(
            ital.teach("regression", teacher, "ital-adaptive", steps=1, seeds=5)
            .curves["beta"]
            .values[0, 0]
        )
        for teacher in ("cooperative", "boltzmann:1000000000")
    ]
    assert beta[0] > 0
    np.testing.assert_allclose(beta[0], beta[1], rtol=1e-5)


def test_settings_that_are_none_are_refused():
    for wrong in ({"threshold": 1.0}, {"tilt_change": -0.1}, {"mind_change": float("nan")}):
        with pytest.raises(InputError):
            adaptive(**wrong)
