import jax
import numpy as np
import pytest

import ital
from ital import learners, models, tasks
from ital_paper import features
from ital_paper import tasks as paper_tasks
from tests.features import data
from tests.typed import ital as type_in


@pytest.fixture
def only_shipped_features(monkeypatch, tmp_path):
    monkeypatch.setenv("ITAL_FEATURES", str(tmp_path / "own"))


@pytest.fixture
def small_features(monkeypatch, tmp_path):
    monkeypatch.setenv("ITAL_FEATURES", str(data.write_features(tmp_path)))


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
        task.rules.start(
            jax.random.fold_in(jax.random.key(0, impl="threefry2x32"), seed),
            models.OWN,
            task.world(0),
        )
        for seed in (0, 1)
    ]
    for layer, other in zip(*start, strict=True):
        assert not np.allclose(layer, other)
    for layer, before in zip(run.parameters["imt"], start[0], strict=True):
        assert np.abs(layer[0] - before).max() > 0.01


@pytest.mark.usefixtures("small_features")
def test_an_aware_learner_with_beta_0_is_the_naive_one():
    methods = [
        learners.imt(),
        learners.teacher_aware(0.0),
        learners.teacher_aware(30.0)._replace(name="aware"),
    ]
    run = ital.teach("mnist-mlp", learner=methods, seeds=2, steps=30, lr=0.1)
    naive, without, aware = (
        jax.tree.leaves(run.parameters[name]) for name in ("imt", "ital", "aware")
    )
    assert all((a == b).all() for a, b in zip(naive, without, strict=True))
    assert not any(np.allclose(a, b) for a, b in zip(naive, aware, strict=True))


@pytest.mark.usefixtures("small_features")
def test_pictures_of_other_rows_are_refused(tmp_path):
    file = tmp_path / "mnist-pixels.npz"
    loaded = features.load(file)
    features.save(loaded._replace(labels=loaded.labels[::-1]), file)
    with pytest.raises(ValueError, match="hold different rows: build both"):
        tasks.make("mnist-mlp")
    file.unlink()
    # The small features with the shipped pictures.
    with pytest.raises(ValueError, match="different rows"):
        tasks.make("mnist-mlp")


@pytest.mark.usefixtures("small_features")
def test_a_network_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="has no network '21'"):
        paper_tasks.mnist_mlp(teacher=21)


def test_its_learner_has_no_teaching_risk(capsys):
    status, out, _ = type_in(capsys, "list", "mnist-mlp")
    assert status == 0
    assert "teaching risk" not in out  # the learner is not linear


@pytest.mark.usefixtures("small_features")
def test_without_a_target_there_is_no_omniscient_teacher():
    with pytest.raises(
        ValueError, match="needs the learner's target, which task 'mnist-mlp' does not have"
    ):
        ital.teach("mnist-mlp", "omniscient", "imt", steps=12, seeds=2)
