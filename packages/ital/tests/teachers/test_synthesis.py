"""The teacher that makes labels: without a limit it is the Kaczmarz method."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import ortho_group

import ital
from ital import losses, tasks, teachers
from ital.errors import InputError
from tests.worlds import small_numbers

DIM = 50


def isotropic_rows(blocks, seed=0):
    """Rows of norm √d whose last entry is 1 and whose second moments are exactly those of the
    identity.

    Each block is √d times an orthogonal matrix whose last column is constant.
    """
    basis = np.linalg.svd(np.ones((1, DIM)))[2][1:].T
    turns = ortho_group.rvs(DIM - 1, size=blocks, random_state=seed)
    return np.sqrt(DIM) * np.concatenate([basis @ turn for turn in turns])


def test_without_a_limit_it_is_the_kaczmarz_method(fast):
    rows, rng = isotropic_rows(20), np.random.default_rng(1)
    target = rng.normal(size=(1, DIM))
    y = rows @ target[:, :-1].T + target[:, -1]
    pool = tasks.Pool(rows, rows, y, target, target, rows[:2], y[:2])
    task = tasks.from_pool("isotropic", pool, losses.squared, beta=1.0)
    curves = ital.teach(
        task, "synthesis", "imt", steps=500, seeds=400, batch_size=2, eval_every=500
    ).curves
    distances = curves["distance"].values[0].astype(float)
    ratio = np.mean((distances[:, 1] / distances[:, 0]) ** 2)
    # E‖e_T‖² = (1 − 1/d)^T ‖e₀‖² = 4.1e-5 ‖e₀‖²
    assert ratio == pytest.approx((1 - 1 / DIM) ** 500, rel=0.2)


@pytest.mark.usefixtures("x64")
def test_one_step_gives_the_answer_of_the_target():
    task = small_numbers()
    run = {"steps": 1, "seeds": 4, "batch_size": 1, "lr": 0.05}
    result = ital.teach(task, "synthesis", "imt", **run)
    live = ital.session(task, "imt", seed=2, steps=1, batch_size=1, lr=0.05)
    x = live.candidates.x.x[0]
    target = task.world(2).truth.target
    np.testing.assert_allclose(np.asarray(result.parameters["imt"])[2] @ x, target @ x, atol=1e-12)


def test_labels_stay_within_reach():
    run = {"steps": 20, "seeds": 2, "batch_size": 5, "lr": 0.05}
    honest = teachers.Teacher(
        "honest", lambda key, view, settings: jax.random.randint(key, (), 0, 5)
    )
    limited = ital.teach(small_numbers(), "synthesis:0", "imt", **run).parameters["imt"]
    np.testing.assert_allclose(
        limited, ital.teach(small_numbers(), honest, "imt", **run).parameters["imt"], rtol=1e-6
    )


@pytest.mark.usefixtures("x64")
def test_a_class_gets_the_distribution_nearest_to_the_ideal():
    rng = np.random.default_rng(0)
    alpha, residual = rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    labels = np.asarray(losses.cross_entropy.label(jnp.asarray(alpha), jnp.asarray(residual)))
    for label, outputs, wanted in zip(labels, alpha, residual, strict=True):
        aim = np.exp(outputs) / np.exp(outputs).sum() - wanted
        best = minimize(
            lambda p, aim=aim: np.sum((p - aim) ** 2),
            np.full(4, 0.25),
            bounds=[(0, 1)] * 4,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
            options={"ftol": 1e-14},
            tol=1e-12,
        )
        np.testing.assert_allclose(label, best.x, atol=1e-6)
    reachable = np.asarray([[0.1, 0.2, 0.3, 0.4]])
    here = np.exp(alpha[:1]) / np.exp(alpha[:1]).sum() - reachable
    np.testing.assert_allclose(
        losses.cross_entropy.label(jnp.asarray(alpha[:1]), jnp.asarray(here)), reachable, atol=1e-12
    )


@pytest.mark.parametrize("name", ["synthesis:x", "synthesis:-1"])
def test_reaches_that_are_no_reaches_are_refused(name):
    with pytest.raises(InputError, match="is written synthesis or synthesis:r"):
        teachers.make(name)
