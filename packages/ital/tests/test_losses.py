import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ital import losses

SEEDS = st.integers(0, 2**31)


def alpha_and_labels(loss, seed, scale=3.0):
    rng = np.random.default_rng(seed)
    alpha = jnp.asarray(scale * rng.normal(size=(6, 4)))
    y = rng.integers(0, 4, 6) if loss.classes else rng.normal(size=(6, 4))
    return alpha, jnp.asarray(y)


@pytest.mark.parametrize("loss", [losses.squared, losses.cross_entropy], ids=lambda loss: loss.name)
@given(seed=SEEDS)
@pytest.mark.usefixtures("x64")
def test_derivative_is_that_of_the_value(loss, seed):
    alpha, y = alpha_and_labels(loss, seed)
    by_autodiff = jax.grad(lambda a: jnp.sum(loss.value(a, y)))(alpha)
    np.testing.assert_allclose(loss.derivative(alpha, y), by_autodiff, rtol=1e-10, atol=1e-12)


@given(seed=SEEDS)
@pytest.mark.usefixtures("x64")
def test_cross_entropy_is_minus_the_log_probability_of_the_label(seed):
    alpha, y = alpha_and_labels(losses.cross_entropy, seed)
    by_hand = [
        -np.log(np.exp(a[k]) / np.exp(a).sum())
        for a, k in zip(np.asarray(alpha), np.asarray(y), strict=True)
    ]
    np.testing.assert_allclose(losses.cross_entropy.value(alpha, y), by_hand, rtol=1e-10)


@pytest.mark.usefixtures("x64")
def test_squared_is_half_the_squared_distance():
    value = losses.squared.value(jnp.asarray([[1.0, 2.0]]), jnp.asarray([[4.0, -2.0]]))
    assert float(value[0]) == 12.5


def test_cross_entropy_survives_huge_outputs():
    alpha, y = jnp.asarray([[1e30, 0.0, -1e30]]), jnp.asarray([0])
    assert float(losses.cross_entropy.value(alpha, y)[0]) == 0.0
    np.testing.assert_array_equal(losses.cross_entropy.derivative(alpha, y), [[0.0, 0.0, 0.0]])


@pytest.mark.usefixtures("x64")
def test_custom_loss_gets_its_derivative_from_autodiff():
    hinge = losses.custom("cube", lambda alpha, y: jnp.sum(jnp.abs(alpha - y) ** 3))
    alpha, y = jnp.asarray([[2.0], [0.0]]), jnp.asarray([[0.0], [1.0]])
    np.testing.assert_allclose(hinge.value(alpha, y), [8.0, 1.0])
    np.testing.assert_allclose(hinge.derivative(alpha, y), [[12.0], [-3.0]])
