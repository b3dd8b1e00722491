import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ital import models, volume
from ital.gradients import squared_norm
from tests.test_gradients import LOSSES, SHAPES, problem

SEEDS, RATES = st.integers(0, 2**31), st.floats(1e-4, 2.0)


@LOSSES
@SHAPES
@given(seed=SEEDS, lr=RATES)
@settings(max_examples=10)
@pytest.mark.usefixtures("x64")
def test_exact_volume_is_the_progress_of_one_naive_step(loss, shape, seed, lr):
    params, target, rows, y, _ = problem(loss, seed, shape)
    g = models.linear(loss).gradients(params, rows, y)
    ours = volume.exact(lr, g.squared_norms, g.inner(params - target))
    for i in range(len(y)):
        stepped = params - lr * g.weighted_sum(jnp.arange(len(y)) == i)
        progress = squared_norm(params - target) - squared_norm(stepped - target)
        np.testing.assert_allclose(ours[i], progress, rtol=1e-7, atol=1e-9)


@LOSSES
@SHAPES
@given(seed=SEEDS, lr=RATES)
@settings(max_examples=10)
@pytest.mark.usefixtures("x64")
def test_imitated_volume_never_exceeds_the_exact_one_for_a_convex_loss(loss, shape, seed, lr):
    params, target, rows, y, _ = problem(loss, seed, shape)
    model = models.linear(loss)
    g = model.gradients(params, rows, y)
    imitated = volume.imitated(
        lr, g.squared_norms, g.losses, model.gradients(target, rows, y).losses
    )
    exact = volume.exact(lr, g.squared_norms, g.inner(params - target))
    assert (np.asarray(imitated) <= np.asarray(exact) + 1e-9).all()


@LOSSES
@given(seed=SEEDS)
@pytest.mark.usefixtures("x64")
def test_imitated_volume_is_its_formula(loss, seed):
    params, target, rows, y, _ = problem(loss, seed)
    g = jax.vmap(
        jax.grad(lambda p, x, y: loss.value((p @ x)[None], y[None])[0]), in_axes=(None, 0, 0)
    )(params, rows.x, y)
    by_hand = [
        -(0.1**2) * float(jnp.sum(g[i] ** 2))
        + 0.2
        * float(
            loss.value((params @ x)[None], y[i : i + 1])[0]
            - loss.value((target @ x)[None], y[i : i + 1])[0]
        )
        for i, x in enumerate(rows.x)
    ]
    model = models.linear(loss)
    here, there = model.gradients(params, rows, y), model.gradients(target, rows, y)
    ours = volume.imitated(0.1, here.squared_norms, here.losses, there.losses)
    np.testing.assert_allclose(ours, by_hand, rtol=1e-9, atol=1e-12)
