import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ital_paper import equation as eq
from ital_paper.equation.network import Network, features_of, from_weights, halve, to_weights

TEXTS = ["+1/4x^1y^1z^1 -3/2x^1y^1z^1 = -14y^3 +1/5", "+1x^1 = 0"]


@pytest.fixture(scope="module")
def network():
    made = Network(7, jax.random.key(3))
    return jax.tree.map(
        lambda leaf: leaf + 0.01 * jnp.arange(leaf.size).reshape(leaf.shape) / leaf.size, made
    )


def by_hand(network, codes):
    """The network of one text, written out in float64 with loops."""
    table = np.concatenate([np.zeros((1, 30)), np.asarray(network.embedding, np.float64)])
    x = table[codes]
    for layer, convolution in enumerate(network.convolutions):
        w, b = np.asarray(convolution.weight, np.float64), np.asarray(convolution.bias, np.float64)
        padded = np.pad(x, ((len(w) // 2, len(w) // 2), (0, 0)))
        y = np.array([sum(padded[i + k] @ w[k] for k in range(len(w))) + b for i in range(len(x))])
        x = np.where(y > 0, y, 0.2 * y)
        if layer % 2 == 1:
            x = np.array([x[i : i + 2].max(axis=0) for i in range(0, len(x), 2)])
    assert x.shape == (22, 32)
    dense = network.dense
    return np.tanh(
        np.asarray(dense.weight, np.float64) @ x.reshape(-1) + np.asarray(dense.bias, np.float64)
    )


def test_features_are_those_of_the_network_written_out(network):
    codes = eq.encode(TEXTS)
    phi = features_of(network)(codes)
    for row, code in zip(phi, codes, strict=True):
        np.testing.assert_allclose(row, by_hand(network, code), atol=2e-5)
    np.testing.assert_allclose(
        network.values(jnp.asarray(codes)), phi @ np.asarray(network.value), atol=1e-5
    )


def test_windows_make_the_features_of_the_whole_network(network, monkeypatch):
    equation = eq.parse("1/2x + 1/3y + z + 1/5 = x^2 + 1/4")
    near = eq.encode([eq.text(step.equation) for step in eq.successors(equation)])
    # Up to the last character, and gaps.
    odd = np.random.default_rng(0).integers(0, 20, (40, 173)).astype(np.uint8)
    codes = np.concatenate([near, odd])
    features = features_of(network)
    phi = features(codes)
    np.testing.assert_allclose(phi, network(jnp.asarray(codes)), atol=1e-6)
    np.testing.assert_array_equal(features(codes[::-1]), phi[::-1])  # all of them remembered
    monkeypatch.setattr("ital_paper.equation.network.MOST_WINDOWS", 10)
    np.testing.assert_array_equal(features(codes[20:]), phi[20:])  # all of them forgotten


def test_layers_are_those_of_the_paper():
    network = Network(45, jax.random.key(0))
    assert network.embedding.shape == (19, 30)
    shapes = [(5, 30, 64), (5, 64, 64), (3, 64, 32), (3, 32, 32), (3, 32, 32), (3, 32, 32)]
    assert [convolution.weight.shape for convolution in network.convolutions] == shapes
    assert network.dense.weight.shape == (45, 704)


def test_a_pool_keeps_the_last_of_an_odd_number():
    x = jnp.asarray([[[1.0], [5.0], [-3.0]]])
    np.testing.assert_array_equal(halve(x), [[[5.0], [-3.0]]])


def test_features_do_not_depend_on_the_company(network):
    many = eq.encode(TEXTS * 200)
    phi = features_of(network)(many)
    np.testing.assert_array_equal(phi[:2], features_of(network)(many[:2]))
    assert phi.shape == (400, 7)
    assert features_of(network)(many[:0]).shape == (0, 7)


def test_a_network_is_its_weights(network):
    again = from_weights(
        7, {f"a/{name}": array for name, array in to_weights(network).items()}, "a/"
    )
    assert jax.tree.structure(again) == jax.tree.structure(network)
    np.testing.assert_array_equal(
        features_of(again)(eq.encode(TEXTS)), features_of(network)(eq.encode(TEXTS))
    )
