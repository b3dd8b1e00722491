import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ital
from ital import tasks
from ital.experiments import Settings
from ital.tasks._pool import is_among
from ital_paper import features
from ital_paper import tasks as paper_tasks
from tests.features import data

SHIPPED = (
    "mnist-20",
    "mnist-30",
    "cifar10-6",
    "cifar10-12",
    "tiny-imagenet-lite0",
    "tiny-imagenet-lite2",
)


@pytest.fixture(autouse=True)
def only_shipped_features(monkeypatch, tmp_path):
    monkeypatch.setenv("ITAL_FEATURES", str(tmp_path / "own"))


@pytest.mark.parametrize("name", SHIPPED)
def test_views_are_paired_and_targets_are_the_last_layers(name):
    """The teacher's optimum predicts the labels in the teacher's view, the learner's in its own, on
    the same rows.
    """
    task = tasks.make(name)
    world = task.world(0)
    least = 0.6 if name.startswith("tiny") else 0.9
    for side, target in (
        (world.learner, world.truth.target),
        (world.teacher.examples, world.teacher.target),
    ):
        outputs = side.x.x @ np.asarray(target).T
        assert np.mean(np.argmax(outputs, axis=1) == side.labels) > least
    assert (world.learner.labels == world.teacher.examples.labels).all()
    assert task.world(1).learner.x.x is world.learner.x.x  # one pool for all seeds


@pytest.mark.parametrize("name", ["mnist-20", "tiny-imagenet-lite2"])
def test_a_learner_at_the_target_has_the_accuracy_of_the_data_card(name):
    task = tasks.make(name)
    truth = task.world(0).truth
    measured = task.rules.measure(jnp.asarray(truth.target), jax.tree.map(jnp.asarray, truth))
    card = features.load(features.find(name.rsplit("-", 1)[0])).card
    reached = card["accuracy"][card["learner"]]
    assert float(measured["accuracy"]) == pytest.approx(reached["test_top1"], abs=1e-3)
    assert float(measured["distance"]) == 0
    if "test_top5" in reached:
        assert float(measured["top5_accuracy"]) == pytest.approx(reached["test_top5"], abs=1e-3)


def test_settings_of_the_paper():
    betas = {name: (tasks.make(name).beta, tasks.make(name).beta_decay) for name in SHIPPED}
    assert betas == {
        "mnist-20": (30000.0, 0.0),
        "mnist-30": (30000.0, 0.0),
        "cifar10-6": (50000.0, 5e-6),
        "cifar10-12": (50000.0, 5e-6),
        "tiny-imagenet-lite0": (1000.0, 0.0),
        "tiny-imagenet-lite2": (1000.0, 0.0),
    }
    assert "top5_accuracy" in tasks.make("tiny-imagenet-lite0").panels


def test_aware_learners_end_closer_on_mnist():
    distance = (
        ital.teach("mnist-20", learner=["imt", "ital"], seeds=3, steps=500)
        .curves["distance"]
        .isel(step=-1)
    )
    assert (distance.sel({"learner": "ital"}) < distance.sel({"learner": "imt"})).all()


def test_results_are_kept_apart_by_the_content_of_the_features(tmp_path):
    shipped = Settings("mnist-20").plan().identity["data_version"]
    data.write_features(tmp_path / "own")
    assert Settings("mnist-20").plan().identity["data_version"] != shipped


def test_features_that_are_not_there_are_asked_for(tmp_path):
    for name in ("tiny-imagenet-13", "tiny-imagenet-19"):
        with pytest.raises(ValueError, match="ital features build tiny-imagenet-vgg --data DIR"):
            tasks.make(name)
    data.write_features(tmp_path / "own")
    assert tasks.make("tiny-imagenet-13").world(0).learner.x.x.shape == (40, 4)
    with pytest.raises(ValueError, match="has no network '17'"):
        paper_tasks.tiny_imagenet_vgg(17)


def test_damaged_features_are_refused(tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own/mnist.npz").write_bytes(features.find("mnist").read_bytes()[:1000])
    with pytest.raises(ValueError, match="not a whole feature file"):
        tasks.make("mnist-20")


def test_label_noise_replaces_labels():
    clean, noisy = tasks.make("mnist-20").world(3), tasks.make("mnist-20", label_noise=0.3).world(3)
    assert np.mean(clean.learner.labels != noisy.learner.labels) == pytest.approx(0.3, abs=0.02)
    assert (noisy.truth.test.labels == clean.truth.test.labels).all()


def test_top_five_is_what_sorting_says():
    rng = np.random.default_rng(0)
    outputs, labels = rng.integers(0, 6, (200, 12)).astype(np.float32), rng.integers(0, 12, 200)
    best = np.argsort(-outputs, axis=1, kind="stable")[:, :5]
    ours = np.asarray(is_among(jnp.asarray(outputs), jnp.asarray(labels), 5))
    assert (ours == (best == labels[:, None]).any(axis=1)).all()
