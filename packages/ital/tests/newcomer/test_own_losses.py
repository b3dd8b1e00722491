"""Own data with losses and weights of one's own, judged by class, and the way back to the units of
the data.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import balanced_accuracy_score, f1_score

import ital
from ital.errors import InputError
from ital.losses import custom
from ital.tasks import from_arrays, from_pool
from tests.newcomer.wrong_parts import network, pool

RNG = np.random.default_rng(0)
X, Z = RNG.normal(size=(60, 4)), RNG.normal(size=(60, 3))
Y = 40 + 10 * X[:, 0] - 5 * X[:, 1] + RNG.standard_t(2, 60)
CLASSES = np.where(X[:, 0] + 0.3 * RNG.normal(size=60) > 0.8, "rare", "usual")
SHORT = {"steps": 20, "seeds": 2, "lr": 0.01}
HUBER = custom("huber", lambda alpha, y: optax.huber_loss(alpha, y).sum())


def made(*arguments, **options):
    return from_arrays(*arguments, quiet=True, **options)


def huber_optimum(x, y, l2, weights=1.0):
    def objective(omega):
        gap = np.abs(x @ omega[:-1] + omega[-1] - y)
        losses = np.where(gap <= 1, gap**2 / 2, gap - 0.5)
        return np.sum(weights * losses) + l2 / 2 * np.sum(omega[:-1] ** 2)

    return minimize(objective, np.zeros(x.shape[1] + 1), method="BFGS", options={"gtol": 1e-8}).x


# Losses.


def test_targets_are_fitted_for_a_loss_of_ones_own():
    weights = RNG.uniform(0.2, 2, 60)
    weights /= weights.mean()
    task = made(X, y=Y, loss=HUBER, l2=2.0, weights=weights, x_test=X, y_test=Y)
    assert task.settings["loss"] == "huber"
    way = task.encoding
    expected = huber_optimum(
        way.learner_units.apply(X),
        way.y_units.apply(Y[:, None])[:, 0],
        2.0,
        weights / weights.mean(),
    )
    np.testing.assert_allclose(way.learner_target[0], expected, atol=1e-4)
    np.testing.assert_allclose(task.world(0).truth.target[0], expected, atol=1e-4)


def test_a_learner_is_taught_with_a_loss_of_ones_own():
    result = ital.teach(made(X, Z, Y, loss=HUBER), learner=["imt", "ital"], **SHORT)
    distance = result.curves["distance"].mean("seed")
    assert (distance[:, -1] < distance[:, 0]).all()
    assert result.task.metrics["loss"].title == "huber"


def test_a_loss_of_classes_makes_classes_of_any_labels():
    hinge = custom(
        "hinge",
        lambda alpha, y: jnp.maximum(
            0.0, 1 + jnp.max(jnp.where(jnp.arange(2) == y, -jnp.inf, alpha)) - alpha[y]
        ),
        classes=True,
    )
    task = made(X, y=np.repeat([0.5, 1.5], 30), loss=hinge)
    assert task.settings["classes"] == [0.5, 1.5]
    assert np.isfinite(task.encoding.teacher_target).all()


def test_views_alone_are_standardised_for_a_loss_in_the_units_of_the_targets():
    way = made(X, y=Y, loss=HUBER, standardise="views").encoding
    assert way.y_units.width == 1
    assert way.y_units.centre == 0
    assert (way.learner_units.width != 1).all()


def test_a_model_that_is_made_already_needs_its_loss():
    with pytest.raises(
        InputError, match=r"^model 'own' was made for a loss .* give the same loss="
    ):
        made(X, y=Y, model=network(inputs=4))
    task = made(X, y=Y, model=network(inputs=4), loss=ital.losses.squared)
    assert task.settings["model"] == "own"
    assert task.encoding.learner_target is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"loss": HUBER, "kind": "classification"},
            "^loss 'huber' is for a regression, but kind is 'classification'",
        ),
        (
            {"loss": custom("broken", lambda alpha, y: optax.huber_loss(alpha, y, 1, 2))},
            "^loss 'broken' cannot be applied",
        ),
        (
            {"loss": custom("numpy", lambda alpha, y: np.abs(np.asarray(alpha) - y).sum())},
            "^loss 'numpy' cannot be applied: write it with jax.numpy",
        ),
        (
            {"loss": custom("log", lambda alpha, y: jnp.log(alpha).sum())},
            "^loss 'log': no optimum was found",
        ),
        ({"standardise": "targets"}, "^standardise must be True, False or 'views', not 'targets'"),
        (
            {"model": ital.models.differentiable},
            "^model must be a function of one argument, the loss",
        ),
        ({"weights": np.ones(59)}, "^weights must be 60 finite numbers of at least 0"),
        ({"weights": -np.ones(60)}, "^weights must be 60 finite numbers of at least 0"),
        ({"weights": "balanced"}, "^weights must be one number per row, or 'balanced' for classes"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(options, message):
    with pytest.raises(InputError, match=message) as error:
        made(X, y=Y, **options)
    assert "\n" not in str(error.value)


# Weights.


def test_weights_scale_losses_and_steps_and_volumes():
    data = pool()
    weights = np.arange(10) % 3
    weighted = from_pool("weighted", data._replace(weights=weights), ital.losses.squared, beta=1.0)
    world, rules = weighted.world(0), weighted.rules
    plain = from_pool("plain", data, ital.losses.squared, beta=1.0)
    start = jnp.ones((1, 4))
    rows = jnp.arange(10)
    shown, there = (
        jax.tree.map(jnp.asarray, part.show(side, rows))
        for part, side in ((rules, world.learner), (plain.rules, plain.world(0).learner))
    )
    alpha = rules.feedback(start, shown, None)
    scaled, unit = rules.gradients(start, shown, alpha), plain.rules.gradients(start, there, alpha)
    np.testing.assert_allclose(scaled.losses, weights * unit.losses, rtol=1e-6)
    np.testing.assert_allclose(scaled.squared_norms, weights**2 * unit.squared_norms, rtol=1e-6)
    np.testing.assert_allclose(scaled.inner(start), weights * unit.inner(start), rtol=1e-5)
    np.testing.assert_allclose(
        scaled.weighted_sum(jnp.ones(10)), unit.weighted_sum(jnp.asarray(weights, float)), rtol=1e-5
    )
    alpha = rules.feedback(start, shown, None)
    seen, target = jax.tree.map(
        jnp.asarray, (rules.show(world.teacher.examples, rows), world.teacher.target)
    )
    volumes = rules.volumes(alpha, seen, target, 0.1)
    assert volumes[0] == 0.0  # without weight, an example moves nothing
    expected = -(0.1**2) * scaled.squared_norms + 2 * 0.1 * (
        scaled.losses - world.teacher.examples.target_losses
    )
    np.testing.assert_allclose(volumes, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("y", "estimator"), [(Y, Ridge()), (CLASSES, LogisticRegression(max_iter=5000))]
)
def test_targets_are_fitted_with_weights(y, estimator):
    weights = RNG.uniform(0.1, 3, 60)
    weights /= weights.mean()
    task = made(X, y=y, weights=weights, x_test=X, y_test=y)
    estimator.fit(
        task.encoding.learner_units.apply(X),
        task.world(0).learner.labels,
        sample_weight=weights / weights.mean(),
    )
    slopes = task.encoding.learner_target[-1, :-1] * (1 if y is Y else 2)
    np.testing.assert_allclose(slopes, np.ravel(estimator.coef_), atol=1e-4)


def test_balanced_weights_give_all_classes_the_same_total():
    task = made(X, y=CLASSES, weights="balanced", x_test=X, y_test=CLASSES)
    rows = task.world(0).learner
    totals = np.bincount(rows.labels, rows.weights)
    np.testing.assert_allclose(totals, totals[0], rtol=1e-5)
    assert rows.weights.mean() == pytest.approx(1)


def test_scores_by_class_are_those_of_scikit_learn():
    result = ital.teach(made(X, y=CLASSES, x_test=X, y_test=CLASSES), learner="imt", **SHORT)
    answers = result.predict(X)
    ends = result.curves.isel(step=-1, seed=0, learner=0)
    assert ends["balanced_accuracy"].item() == pytest.approx(
        balanced_accuracy_score(CLASSES, answers), abs=1e-6
    )
    assert ends["macro_f1"].item() == pytest.approx(
        f1_score(CLASSES, answers, average="macro"), abs=1e-6
    )


# The way back.


def test_answers_come_in_the_labels_of_the_data():
    result = ital.teach(made(X, y=CLASSES), learner=["imt", "ital"], **SHORT)
    answers = result.predict(pd.DataFrame(X), learner="ital", seed=1)
    assert set(answers) <= {"rare", "usual"}
    way = result.task.encoding
    scores = np.column_stack([X, np.ones(60)]) @ way.coefficients(result.parameters["ital"][1]).T
    np.testing.assert_array_equal(answers, np.array(["rare", "usual"])[scores.argmax(axis=1)])


def test_answers_come_in_the_units_of_the_targets():
    taught = ital.teach(made(10 * X + 3, y=Y), learner="imt", steps=400, seeds=1, lr=0.05)
    answers = taught.predict(10 * X + 3)
    assert np.abs(answers - Y).mean() < 5
    coefficients = taught.task.encoding.coefficients(taught.parameters["imt"][0])
    np.testing.assert_allclose(
        answers, (10 * X + 3) @ coefficients[0, :-1] + coefficients[0, -1], rtol=1e-4
    )


def test_the_fitted_target_and_the_scaler_are_at_hand():
    way = made(10 * X + 3, y=Y, x_test=X, y_test=Y, l2=1e-6).encoding
    np.testing.assert_allclose(way.learner_units.centre, (10 * X + 3).mean(axis=0))
    columns = f"{X.shape[1]} columns for the teacher, {X.shape[1]} for the learner"
    assert repr(way) == f"Encoding({len(X)} rows with targets; {columns})"
    ordinary = Ridge(alpha=1e-9).fit(10 * X + 3, Y)
    np.testing.assert_allclose(
        way.coefficients(way.learner_target)[0, :-1], ordinary.coef_, rtol=1e-4
    )
    np.testing.assert_allclose(
        way.coefficients(way.learner_target)[0, -1], ordinary.intercept_, rtol=1e-4
    )


def test_predicting_what_is_not_known_is_refused(tmp_path, undrawn):
    result = ital.teach(made(X, y=CLASSES), learner=["imt", "ital"], **SHORT)
    result.save(tmp_path)
    foreign = ital.teach(
        from_pool("mine", pool(), ital.losses.squared, beta=1.0), learner="imt", **SHORT
    )
    for call, message in (
        (
            lambda: result.predict(X),
            "^several learners were taught: choose learner= from imt, ital",
        ),
        (lambda: result.predict(X, "itla"), "did you mean 'ital'"),
        (lambda: result.predict(X, "ital", seed=7), "^seed 7 was not taught: choose from 0, 1"),
        (lambda: result.predict(Z, "ital"), "^x has 3 columns, but the learner sees 4"),
        (lambda: ital.load(tmp_path).predict(X, "ital"), "^task 'arrays' was not made here"),
        (lambda: foreign.predict(X), "^task 'mine' was not made here by from_arrays"),
    ):
        with pytest.raises(InputError, match=message):
            call()


# Indices and numbers that cannot be.


def test_views_with_different_indices_are_refused():
    table = pd.DataFrame(X)
    shuffled = pd.Series(CLASSES).sample(frac=1, random_state=0)
    with pytest.raises(
        InputError,
        match=r"^x_teacher and y have different pandas indices.*y\.loc\[x_teacher\.index\]",
    ):
        made(table, y=shuffled)
    aligned = made(table, y=shuffled.loc[table.index])
    np.testing.assert_array_equal(aligned.encoding.labels.values, (CLASSES == "usual").astype(int))
    made(table, y=shuffled.to_numpy())


@pytest.mark.parametrize(
    "options",
    [{"y": CLASSES, "x": np.where(X > 2, 1e300, X)}, {"y": np.where(Y > 50, 1e300, Y), "x": X}],
)
def test_numbers_that_are_too_large_are_refused(options):
    with pytest.raises(InputError, match=r"values beyond ±1e\+18, too large to compute with"):
        made(options["x"], y=options["y"])
    with pytest.raises(InputError, match="teacher_x has values beyond"):
        from_pool("mine", pool(teacher_x=np.full((10, 3), 1e300)), ital.losses.squared, beta=1.0)


def test_equal_tasks_share_a_program():
    assert made(X, y=CLASSES).rules is made(Z, y=CLASSES).rules
    assert jax.tree.leaves(made(X, y=CLASSES).world(0).learner.weights) == []
