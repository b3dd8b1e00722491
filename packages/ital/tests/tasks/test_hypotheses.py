"""A world of finitely many hypotheses: Bayes by hand, predicted rates, and what is refused."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ital
from ital import beliefs, learners, tasks, teachers, volume
from ital.tools import randomness

RNG = np.random.default_rng(4)
M = RNG.dirichlet(2 * np.ones(5), size=4).T  # 5 data, 4 hypotheses
RULES = tasks.from_likelihoods(M).rules


@pytest.fixture(scope="module")
def task():
    return tasks.from_likelihoods(M, target=2)


def one_round(alpha):
    return functools.partial(beliefs.pedagogical, alpha=alpha, rounds=1)


def kl(p, q):
    return np.sum(p * np.log(p / q))


def rates(matrix, target, pair, alpha=1.0):
    """How fast the log-odds of the target grow against each other hypothesis in the end, per step.

    A naive pair draws d ~ M(·,h*): E log M(d,h*)/M(d,h′). For aware pairs, θ(h*) → 1 makes
    P_T(·|h*) uniform and P_T(d|h′) ∝ (M(d,h′)/M(d,h*))^α; with α = 1 this is the limit of SCBI too.
    """
    others = np.delete(matrix, target, axis=1).T
    if pair == "naive":
        return [kl(matrix[:, target], other) for other in others]
    powers = [(other / matrix[:, target]) ** alpha for other in others]
    return [kl(np.full(len(matrix), 1 / len(matrix)), power / power.sum()) for power in powers]


@pytest.mark.parametrize(
    ("teacher", "learner", "drawn_from", "pair", "alpha"),
    [
        (teachers.sampling(), learners.bayes(), beliefs.literal, "naive", 1.0),
        (teachers.scbi(), learners.scbi(), beliefs.scbi, "aware", 1.0),
        (teachers.pedagogical("2"), learners.pedagogical(2.0), one_round(2.0), "aware", 2.0),
    ],
    ids=["naive", "scbi", "pedagogical"],
)
def test_log_odds_grow_at_the_predicted_rate(task, teacher, learner, drawn_from, pair, alpha):
    curves = ital.teach(
        task, teacher, learner, steps=4000, seeds=8, eval_every=500, batch_size=5
    ).curves
    log_odds = curves["log_odds"].squeeze("learner").transpose("seed", "step").values
    slope = np.polyfit(curves["step"].values, log_odds.mean(axis=0), 1)[0]
    predicted = min(rates(M, 2, pair, alpha))
    assert abs(slope / predicted - 1) < 0.05, (slope, predicted)
    np.testing.assert_allclose(
        beliefs.limiting_rate(drawn_from, jnp.log(M), 2), predicted, rtol=1e-4
    )
    # The check can fail: the other pair's rate and the mean over h′ are further off.
    other = min(rates(M, 2, "aware" if pair == "naive" else "naive"))
    assert abs(slope / other - 1) > 0.1
    assert abs(slope / np.mean(rates(M, 2, pair, alpha)) - 1) > 0.1


@pytest.mark.usefixtures("x64")
def test_a_cooperative_teacher_and_bayes_by_hand(task):
    prior = np.array([0.1, 0.4, 0.2, 0.3])
    taught = tasks.from_likelihoods(M, target=2, prior=prior)
    curves = ital.teach(
        taught, "cooperative", "bayes", steps=6, seeds=1, eval_every=1, batch_size=5
    ).curves
    theta, expected = prior, [prior[2]]
    for _ in range(6):
        after = theta * M
        after = after / after.sum(axis=1, keepdims=True)
        theta = after[np.argmax(after[:, 2])]
        expected.append(theta[2])
    np.testing.assert_allclose(curves["belief"].values.squeeze(), expected, rtol=1e-10)
    np.testing.assert_allclose(
        curves["log_odds"].values.squeeze(), np.log(expected) - np.log1p(-np.array(expected))
    )
    np.testing.assert_allclose(
        curves["entropy"].values.squeeze()[-1], -np.sum(theta * np.log(theta))
    )


@pytest.mark.parametrize(
    ("learner", "drawn_from"),
    [
        (learners.bayes(), beliefs.literal),
        (learners.scbi(), beliefs.scbi),
        (
            learners.pedagogical(1.5, 2),
            lambda log_m, belief: beliefs.pedagogical(log_m, belief, 1.5, 2),
        ),
    ],
    ids=lambda part: getattr(part, "name", ""),
)
@pytest.mark.usefixtures("x64")
def test_learners_apply_bayes_rule_with_their_teacher_in_mind(learner, drawn_from):
    belief = jnp.log(jnp.array([0.1, 0.4, 0.2, 0.3]))
    expected = np.exp(belief) * np.exp(drawn_from(jnp.log(M), belief))[3]
    lesson = learners.Lesson(0, 0.1, jnp.log(M), None, None, jnp.asarray(3), jnp.arange(5), 0)
    after = learner.rule.update(lesson, learner.settings, belief, ()).params
    np.testing.assert_allclose(np.exp(after), expected / expected.sum(), rtol=1e-10)
    twice = learner.rule.update(
        lesson._replace(chosen=jnp.array([3, 3])), learner.settings, belief, ()
    ).params
    expected = expected * np.exp(drawn_from(jnp.log(M), belief))[3]
    np.testing.assert_allclose(np.exp(twice), expected / expected.sum(), rtol=1e-10)


def choices(teacher, keys):
    """What a teacher chooses with each key, at one belief."""
    belief = jnp.log(jnp.array([0.1, 0.4, 0.2, 0.3]))
    target, step = jnp.asarray(2), jnp.asarray(0)
    view = teachers.TeacherView(
        RULES.volumes(belief, jnp.log(M), target, 1.0),
        belief,
        jnp.log(M),
        target,
        1.0,
        step,
        step,
    )
    settings = teacher.resolve(teacher.settings, 1.0)
    return np.asarray(
        jax.jit(jax.vmap(lambda key: teacher.choose(teacher.prepare(key, 5), view, settings)))(keys)
    )


@pytest.mark.parametrize("name", ["sampling", "pedagogical", "scbi"])
def test_teachers_draw_from_their_distribution(name):
    belief = jnp.log(jnp.array([0.1, 0.4, 0.2, 0.3]))
    drawn_from = {"sampling": beliefs.literal, "pedagogical": one_round(1.0), "scbi": beliefs.scbi}[
        name
    ]
    expected = np.exp(drawn_from(jnp.log(M), belief))[:, 2]
    count = 20_000
    shares = (
        np.bincount(
            choices(teachers.make(name), jax.random.split(randomness.key(0), count)), minlength=5
        )
        / count
    )
    assert (np.abs(shares - expected) < 4 * np.sqrt(expected * (1 - expected) / count)).all()


def test_one_round_of_pedagogy_is_the_boltzmann_teacher():
    keys = jax.random.split(randomness.key(1), 500)
    for alpha in ("1", "3"):
        chosen = [
            choices(teachers.make(f"{name}:{alpha}"), keys) for name in ("pedagogical", "boltzmann")
        ]
        assert np.mean(chosen[0] == chosen[1]) > 0.99
    assert teachers.make("pedagogical:3").code() == teachers.make("pedagogical").code()


@pytest.mark.usefixtures("x64")
def test_the_volume_is_the_limit_of_the_papers():
    belief, lr = jnp.log(jnp.array([0.1, 0.4, 0.2, 0.3])), 1e-9
    here = RULES.gradients(belief, jnp.log(M), belief)
    own = np.exp(belief) - np.exp(belief) * M / (np.exp(belief) * M).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(here.weighted_sum(jnp.arange(5.0)), np.arange(5) @ own, atol=1e-12)
    imitated = volume.imitated(lr, here.squared_norms, here.losses, -jnp.log(M[:, 2])) / (2 * lr)
    np.testing.assert_allclose(
        RULES.volumes(belief, jnp.log(M), jnp.asarray(2), lr), imitated, rtol=1e-6
    )


def test_volumes_tell_data_apart_when_the_belief_is_1_up_to_rounding():
    belief = jnp.array([-40.0, -41.0, 0.0, -42.0])
    against = (np.exp(np.array([-40.0, -41.0, -np.inf, -42.0])) * M).sum(axis=1) / M[:, 2]
    np.testing.assert_allclose(
        RULES.volumes(belief, jnp.log(M), jnp.asarray(2), 1.0), -against, rtol=1e-4
    )


def test_a_mini_batch_is_the_whole_set_or_a_draw_without_replacement(task):
    world, key = task.world(0), jax.random.key(0)
    np.testing.assert_array_equal(task.rules.draw(key, world, 5), np.arange(5))
    rows = task.rules.draw(key, world, 3)
    assert len(set(rows.tolist())) == 3
    np.testing.assert_allclose(
        np.exp(task.rules.show(world.learner, rows)), M[rows] / M[rows].sum(axis=0), rtol=1e-5
    )


def test_the_likelihoods_are_those_of_all_rectangles():
    noise = 0.1
    world = tasks.hypotheses(4, 5, noise=noise).world(0)
    likelihoods = np.exp(world.learner.log_m)
    np.testing.assert_allclose(likelihoods.sum(axis=0), 1, rtol=1e-5)
    # A cell outside has the noise's share; one inside has more.
    inside = likelihoods > 1.5 * noise / 20
    assert inside.shape == (20, 150)
    assert np.unique(inside, axis=1).shape == (20, 150)
    for rectangle in inside.T.reshape(150, 4, 5):
        rows = np.flatnonzero(rectangle.any(axis=1))
        columns = np.flatnonzero(rectangle.any(axis=0))
        assert rectangle[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].all()
        cells = (rows[-1] - rows[0] + 1) * (columns[-1] - columns[0] + 1)
        assert rectangle.sum() == cells


def test_a_belief_is_drawn_as_the_cells_of_its_rectangles():
    task = tasks.hypotheses(2, 3, noise=0.1)
    world = task.world(3)
    drawn, policy = task.picture.grid(world.truth.target)
    assert policy is None
    likelihoods = np.exp(world.learner.log_m[:, int(world.truth.test)])
    np.testing.assert_array_equal(drawn.ravel(), likelihoods > 1.5 * 0.1 / 6)
    assert task.picture.note(np.log([0.25, 0.75]), np.array([0.0, -np.inf])) == "belief 0.25"


def test_beliefs_are_drawn_as_cells_without_arrows():
    watched = ital.watch(
        tasks.hypotheses(2, 3), "scbi", ["bayes", "scbi"], steps=12, frames=2, batch_size=6
    )
    figure = watched.plot()
    assert figure.axes[0].get_xlabel().startswith("belief 0.06")
    assert not any(type(drawn).__name__ == "Quiver" for drawn in figure.axes[0].collections)
    assert figure.axes[-1].get_ylim() == (0, 1)


@pytest.mark.parametrize(
    ("matrix", "options", "words"),
    [
        ([[0.5, 1.5], [0.5, -0.5]], {}, "must be finite and not negative"),
        ([[0.5, 0.9], [0.5, 0.2]], {}, "column 1 of the likelihoods sums to 1.1"),
        ([[0.5, 0.5], [0.5, 0.5]], {}, "two columns of the likelihoods are equal"),
        ([[1.0, 1.0]], {}, "at least 2 data and 2 hypotheses"),
        ("text", {}, "must be a matrix of numbers"),
        (M, {"target": 4}, "target must be a hypothesis from 0 to 3, not 4"),
        (M, {"prior": [1.0, 0.0, 1.0, 1.0]}, "the prior must hold 4 positive numbers"),
    ],
)
def test_matrices_that_are_no_likelihoods_are_refused(matrix, options, words):
    with pytest.raises(ital.errors.InputError, match=words):
        tasks.from_likelihoods(matrix, **options)


@pytest.mark.parametrize(
    ("task", "teacher", "learner", "options", "words"),
    [
        (
            "regression",
            "cooperative",
            "scbi",
            {},
            "'scbi' makes no sense on task 'regression': it needs likelihoods",
        ),
        ("regression", "scbi", "imt", {}, "teacher 'scbi' makes no sense on task 'regression'"),
        (
            "hypotheses",
            "scbi",
            "ital",
            {},
            "'ital' makes no sense on task 'hypotheses': it needs gradients",
        ),
        (
            "hypotheses",
            "omniscient",
            "bayes",
            {},
            "'omniscient' makes no sense on task 'hypotheses'",
        ),
        ("hypotheses", "scbi", "bayes", {"batch_size": 21}, "batch_size must be at most 20"),
        (
            "hypotheses",
            "scbi",
            "bayes",
            {"diagnostics": True},
            "gradient steps, which task 'hypotheses' does not have",
        ),
        ("hypotheses", "pedagogical:x", "bayes", {}, "written pedagogical:ALPHA:ROUNDS"),
        ("hypotheses", "pedagogical:1:0", "bayes", {}, "written pedagogical:ALPHA:ROUNDS"),
        ("hypotheses", "scbi", "pedagogical", {"beta": "auto"}, "give a number as beta"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(task, teacher, learner, options, words):
    with pytest.raises(ital.errors.InputError, match=words):
        ital.teach(task, teacher, learner, steps=2, seeds=1, **options)
