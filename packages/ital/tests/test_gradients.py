import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ital import gradients, losses, models

SEEDS = st.integers(0, 2**31)
LOSSES = pytest.mark.parametrize(
    "loss", [losses.squared, losses.cross_entropy], ids=lambda loss: loss.name
)


SHAPES = pytest.mark.parametrize("shape", [(3, 4, 5), (1, 1, 1), (2, 1, 2)], ids=str)


def problem(loss, seed, shape=(3, 4, 5)):
    """Parameters, a direction, rows, labels and weights for K outputs, d features and B rows."""
    outputs, dim, rows = shape
    rng = np.random.default_rng(seed)
    rows_of_x = models.linear_rows(rng.normal(size=(rows, dim)))
    y = rng.integers(0, outputs, rows) if loss.classes else rng.normal(size=(rows, outputs))
    params, direction = jnp.asarray(rng.normal(size=(2, outputs, dim + 1)))
    return (
        params,
        direction,
        jax.tree.map(jnp.asarray, rows_of_x),
        jnp.asarray(y),
        jnp.asarray(rng.normal(size=rows)),
    )


def brute_force(loss, params, x, y, l2=0.0):
    """Every example's gradient, materialised by autodiff."""

    def one(params, x, y):
        weights = params.at[:, -1].set(0.0)
        return loss.value((params @ x)[None], y[None])[0] + 0.5 * l2 * jnp.sum(weights**2)

    return jax.vmap(jax.value_and_grad(one), in_axes=(None, 0, 0))(params, x, y)


@LOSSES
@SHAPES
@pytest.mark.parametrize("l2", [0.0, 0.3])
@given(seed=SEEDS)
@settings(max_examples=10)
@pytest.mark.usefixtures("x64")
def test_factored_operations_equal_materialised_gradients(loss, shape, l2, seed):
    params, direction, rows, y, weights = problem(loss, seed, shape)
    values, g = brute_force(loss, params, rows.x, y, l2)
    ours = models.linear(loss, l2).gradients(params, rows, y)
    np.testing.assert_allclose(ours.losses, values, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        ours.squared_norms, jnp.sum(g**2, axis=(1, 2)), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(
        ours.inner(direction), jnp.einsum("bkd,kd->b", g, direction), rtol=1e-9, atol=1e-10
    )
    np.testing.assert_allclose(
        ours.weighted_sum(weights), jnp.einsum("b,bkd->kd", weights, g), rtol=1e-9, atol=1e-10
    )


@LOSSES
@SHAPES
@given(seed=SEEDS)
@settings(max_examples=10)
@pytest.mark.usefixtures("x64")
def test_autodiff_operations_equal_factored_ones(loss, shape, seed):
    params, direction, rows, y, weights = problem(loss, seed, shape)
    factored = models.linear(loss).gradients(params, rows, y)
    model = models.differentiable("same", lambda key: params, lambda p, x: p @ x, loss)
    ours = model.gradients(params, rows.x, y)
    np.testing.assert_allclose(ours.losses, factored.losses, rtol=1e-10)
    np.testing.assert_allclose(ours.squared_norms, factored.squared_norms, rtol=1e-9)
    np.testing.assert_allclose(
        ours.inner(direction), factored.inner(direction), rtol=1e-9, atol=1e-10
    )
    np.testing.assert_allclose(
        ours.weighted_sum(weights), factored.weighted_sum(weights), rtol=1e-9, atol=1e-10
    )
    np.testing.assert_allclose(
        model.outputs(params, rows.x),
        models.linear(loss).outputs(params, rows),
        rtol=1e-10,
        atol=1e-12,
    )


@pytest.mark.usefixtures("x64")
def test_autodiff_takes_any_pytree_of_parameters():
    def loss(p, x, y):
        hidden = jnp.tanh(p["in"] @ x)
        return (p["out"] @ hidden - y) ** 2

    key = jax.random.key(0)
    params = {"in": jax.random.normal(key, (3, 2)), "out": jax.random.normal(key, (3,))}
    x, y = jax.random.normal(key, (4, 2)), jnp.arange(4.0)
    ours = gradients.autodiff(loss, params, x, y)
    g = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(params, x, y)
    norms = sum(jnp.sum(leaf.reshape(4, -1) ** 2, axis=1) for leaf in jax.tree.leaves(g))
    np.testing.assert_allclose(ours.squared_norms, norms, rtol=1e-10)
    products = jax.tree.leaves(
        jax.tree.map(lambda a, b: jnp.sum((a * b).reshape(4, -1), axis=1), g, params)
    )
    inner = sum(products)
    np.testing.assert_allclose(ours.inner(params), inner, rtol=1e-10)
    total = ours.weighted_sum(jnp.ones(4))
    np.testing.assert_allclose(total["in"], g["in"].sum(0), rtol=1e-10)
