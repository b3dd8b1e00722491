import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ital import gradients, losses, models, tasks


def problem(depth, seed=0):
    """A network of three inputs, width 4 and three outputs, in float64, with six rows."""
    rng = np.random.default_rng(seed)
    model = tasks.mlp(losses.cross_entropy, 4, depth)
    rows = jax.tree.map(jnp.asarray, model.rows(rng.normal(size=(6, 3))))
    params = model.start(jax.random.key(seed), models.OWN, rows, 3)
    return model, params, rows, jnp.asarray(rng.integers(0, 3, 6)), jnp.asarray(rng.normal(size=6))


def as_equinox(params, depth):
    """Equinox's own network with these parameters."""
    network = eqx.nn.MLP(3, 3, 4, depth, jnp.tanh, key=jax.random.key(9))
    leaves = [leaf for layer in params for leaf in (layer[:, :-1], layer[:, -1])]
    arrays, static = eqx.partition(network, eqx.is_array)
    return eqx.combine(jax.tree.unflatten(jax.tree.structure(arrays), leaves), static)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.usefixtures("x64")
def test_gradient_operations_equal_those_of_autodiff(depth):
    model, params, rows, y, weights = problem(depth)

    def example_loss(params, x, y):
        return losses.cross_entropy.value(as_equinox(params, depth)(x[:-1])[None], y[None])[0]

    ours, theirs = (
        model.gradients(params, rows, y),
        gradients.autodiff(example_loss, params, rows.x, y),
    )
    direction = jax.tree.map(
        lambda leaf: jnp.cos(jnp.arange(leaf.size)).reshape(leaf.shape), params
    )
    np.testing.assert_allclose(ours.losses, theirs.losses, rtol=1e-12)
    np.testing.assert_allclose(ours.squared_norms, theirs.squared_norms, rtol=1e-12)
    np.testing.assert_allclose(ours.inner(direction), theirs.inner(direction), rtol=1e-10)
    for mine, right in zip(ours.weighted_sum(weights), theirs.weighted_sum(weights), strict=True):
        assert mine.dtype == np.float64
        np.testing.assert_allclose(mine, right, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("depth", [1, 2])
def test_the_start_and_the_outputs_are_those_of_equinox(depth):
    model, params, rows, _, _ = problem(depth)
    network = eqx.nn.MLP(3, 3, 4, depth, jnp.tanh, key=jax.random.key(0))
    np.testing.assert_allclose(
        model.outputs(params, rows), jax.vmap(network)(rows.x[:, :-1]), rtol=1e-5, atol=1e-6
    )


def test_another_start_is_taken_where_asked_for():
    model, _, rows, _, _ = problem(2)
    params = model.start(jax.random.key(0), models.Init("normal", 0.1), rows, 3)
    assert [layer.shape for layer in params] == [(4, 4), (4, 5), (3, 5)]
    assert all((layer[:, -1] == 0).all() for layer in params)
    assert 0.05 < np.std(np.concatenate([layer[:, :-1].ravel() for layer in params])) < 0.2
    assert len({float(layer[0, 0]) for layer in params}) == 3, "each layer has a key of its own"
    with pytest.raises(ValueError, match="no start of its own"):
        models.OWN.draw(jax.random.key(0), (2, 2))
    assert str(models.OWN) == "own"
