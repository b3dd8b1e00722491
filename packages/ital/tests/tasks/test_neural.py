import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ital
from ital import gradients, learners, losses, models, tasks
from tests.features import data


@pytest.fixture
def only_shipped_features(monkeypatch, tmp_path):
    monkeypatch.setenv("ITAL_FEATURES", str(tmp_path / "own"))


@pytest.fixture
def small_features(monkeypatch, tmp_path):
    monkeypatch.setenv("ITAL_FEATURES", str(data.write_features(tmp_path)))


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

    ours, theirs = model.gradients(params, rows, y), gradients.autodiff(example_loss, params, rows.x, y)
    direction = jax.tree.map(lambda leaf: jnp.cos(jnp.arange(leaf.size)).reshape(leaf.shape), params)
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
    np.testing.assert_allclose(model.outputs(params, rows), jax.vmap(network)(rows.x[:, :-1]), rtol=1e-5, atol=1e-6)


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


@pytest.mark.usefixtures("only_shipped_features")
def test_the_teacher_knows_the_labels_of_the_learners_pictures():
    world = tasks.make("mnist-mlp").world(0)
    assert world.learner.x.x.shape == (20_000, 197)
    assert float(world.learner.x.x.max()) == 1
    assert world.truth.test.x.x.shape == (2000, 197)
    taught = np.argmax(world.teacher.examples.x.x @ np.asarray(world.teacher.target).T, axis=1)
    assert np.mean(taught == world.learner.labels) > 0.97


@pytest.mark.usefixtures("only_shipped_features")
def test_all_layers_learn_and_seeds_start_apart():
    task = tasks.make("mnist-mlp")
    run = ital.teach(task, learner=["batch", "imt"], seeds=2, steps=200, lr=0.1, eval_every=100)
    accuracy, loss = run.curves["accuracy"].mean("seed"), run.curves["loss"]
    assert (accuracy.isel(step=-1) > accuracy.isel(step=0) + 0.3).all()
    assert "distance" not in run.curves
    assert float(loss[0, 0, 0]) != float(loss[0, 1, 0])
    start = [
        task.rules.start(jax.random.fold_in(jax.random.key(0, impl="threefry2x32"), seed), models.OWN, task.world(0))
        for seed in (0, 1)
    ]
    for layer, other in zip(*start, strict=True):
        assert not np.allclose(layer, other)
    for layer, before in zip(run.parameters["imt"], start[0], strict=True):
        assert np.abs(layer[0] - before).max() > 0.01


@pytest.mark.usefixtures("small_features")
def test_an_aware_learner_with_beta_0_is_the_naive_one():
    methods = [learners.imt(), learners.teacher_aware(0.0), learners.teacher_aware(30.0)._replace(name="aware")]
    run = ital.teach("mnist-mlp", learner=methods, seeds=2, steps=30, lr=0.1)
    naive, without, aware = (jax.tree.leaves(run.parameters[name]) for name in ("imt", "ital", "aware"))
    assert all((a == b).all() for a, b in zip(naive, without, strict=True))
    assert not any(np.allclose(a, b) for a, b in zip(naive, aware, strict=True))


@pytest.mark.usefixtures("small_features")
def test_pictures_of_other_rows_are_refused(tmp_path):
    from ital_paper import features

    file = tmp_path / "mnist-pixels.npz"
    loaded = features.load(file)
    features.save(loaded._replace(labels=loaded.labels[::-1]), file)
    with pytest.raises(ValueError, match="hold different rows: build both"):
        tasks.make("mnist-mlp")
    file.unlink()
    with pytest.raises(ValueError, match="different rows"):  # the small features with the shipped pictures
        tasks.make("mnist-mlp")


@pytest.mark.usefixtures("small_features")
def test_a_network_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="has no network '21'"):
        tasks.mnist_mlp(teacher=21)
