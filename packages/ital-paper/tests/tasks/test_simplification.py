import dataclasses
import functools

import numpy as np
import pytest

import ital
from ital import experiments, tasks
from ital.errors import InputError
from ital_paper import equation, features
from ital_paper import tasks as paper_tasks

EXAM_SEED = 20211  # of stored results: another seed would be another exam


@pytest.fixture(scope="module")
def small():
    return paper_tasks.simplification(40, equations=2)


def test_labels_are_the_values_of_the_target(small):
    loaded = features.load(features.find("equation"))
    world = small.world(0)
    assert world.learner.x.x.shape == (20_000, 46)
    assert world.teacher.examples.x.x.shape == (20_000, 41)
    assert world.truth.test.labels.shape == (5_000, 1)
    at_target = np.asarray(world.learner.x.x) @ np.asarray(world.truth.target).T
    np.testing.assert_allclose(at_target, world.learner.labels, atol=1e-4)
    assert loaded.version == small.data_version


def test_the_teacher_assumes_the_loss_of_its_own_target_unless_told():
    own = paper_tasks.simplification(50, equations=2).world(0).teacher
    values = np.asarray(own.examples.x.x[:50]) @ np.asarray(own.target).T
    gap = values - np.asarray(own.examples.labels[:50])
    np.testing.assert_allclose(
        own.examples.target_losses[:50], 0.5 * gap[:, 0] ** 2, rtol=1e-4, atol=1e-5
    )
    assert np.mean(own.examples.target_losses) > 0.01


def test_the_teacher_takes_the_loss_of_its_target_for_zero_if_told(small):
    zero = paper_tasks.simplification(40, equations=2, teacher_loss="zero")
    assert not np.any(zero.world(0).teacher.examples.target_losses)
    noisy = paper_tasks.simplification(40, equations=2, teacher_loss="zero", label_noise=0.5)
    assert not np.any(noisy.world(0).teacher.examples.target_losses)
    assert np.any(noisy.world(0).learner.labels != small.world(0).learner.labels)
    with pytest.raises(InputError, match="teacher_loss"):
        paper_tasks.simplification(40, teacher_loss="some")


def test_results_of_both_losses_are_told_apart(tmp_path):
    settings = experiments.Settings(
        task="equation-40", methods=("imt",), seeds=1, steps=2, equations=1
    )
    zero = dataclasses.replace(settings, teacher_loss="zero")
    experiments.run(zero, tmp_path, draw=False)
    with pytest.raises(InputError, match="teacher_loss = zero, not own"):
        experiments.run(settings, tmp_path, draw=False)
    with pytest.raises(InputError, match="equations = 1, not 2"):
        experiments.run(dataclasses.replace(zero, equations=2), tmp_path, draw=False)
    assert (
        settings.plan().identity
        == dataclasses.replace(settings, teacher_loss="own").plan().identity
    )


def test_exams_are_taken_where_due_and_are_greedy_search(small):
    taught = ital.teach(small, learner=["imt", "ital"], steps=25, seeds=2, eval_every=5, lr=0.01)
    accuracy = taught.curves["accuracy"]
    there = ital.results.measured(taught.curves, "accuracy")
    assert taught.curves["step"].values[there].tolist() == [0, 10, 20, 25]
    assert np.isfinite(taught.curves["distance"].values).all()
    rng = np.random.default_rng(EXAM_SEED)
    fresh = [equation.random_equation(rng) for _ in range(2)]
    explorer, target = features.learned_value()
    for method, params in taught.parameters.items():
        for seed in range(2):
            right = [
                [
                    one,
                    *(
                        step.equation
                        for step in equation.greedy(explorer, params[seed, 0, :-1], one)
                    ),
                ][-1]
                == equation.simplified(one)
                for one in fresh
            ]
            assert accuracy.sel({"learner": method, "seed": seed}).values[-1] == np.mean(right)
    ends = equation.greedy_ends(explorer, fresh, target[None])
    reference = np.mean(
        [end == equation.simplified(one) for (end,), one in zip(ends, fresh, strict=True)]
    )
    np.testing.assert_array_equal(accuracy.attrs["reference"], [reference] * 2)
    assert ital.results.questions_of(taught.curves, "accuracy") == 2
    assert ital.results.questions_of(taught.curves, "distance") is None


def test_a_learner_at_the_target_passes_as_the_target_does(small):
    params = np.asarray(small.world(0).truth.target)[None, None]
    passed = small.exam.take(params, lambda done: None)["accuracy"]
    assert passed.shape == (1, 1)
    assert passed[0, 0] == small.exam.references()["accuracy"]["reference"]


def test_lanes_that_diverged_are_not_examined(small):
    examined = []

    def take(params, show):
        examined.append(np.asarray(params))
        return small.exam.take(params, show)

    task = small._replace(exam=small.exam._replace(take=take))
    with pytest.warns(ital.errors.DivergenceWarning):
        taught = ital.teach(task, learner=["imt"], steps=10, seeds=1, lr=1e12)
    accuracy = taught.curves["accuracy"].values[0, 0]
    start, instead = examined
    assert not instead.any()  # nothing of a lane that diverged
    assert np.linalg.norm(start - task.world(0).truth.target) == pytest.approx(
        taught.curves["distance"].values[0, 0, 0]
    )
    assert accuracy[0] == small.exam.take(start, lambda done: None)["accuracy"].item()
    assert np.isnan(accuracy[-1])


def test_taught_values_approach_the_target(small):
    taught = ital.teach(small._replace(exam=None), learner=["imt", "ital"], steps=300, seeds=3)
    distance = taught.curves["distance"].mean("seed")
    assert (distance[:, -1] < 0.9 * distance[:, 0]).all()
    assert distance.sel({"learner": "ital"})[-1] < 0.8 * distance.sel({"learner": "imt"})[-1]
    assert "accuracy" not in taught.curves


def test_an_interrupted_run_with_exams_ends_like_one_that_was_not(tmp_path, monkeypatch):
    register = functools.partial(paper_tasks.simplification, 40, equations=1)
    monkeypatch.setitem(tasks.REGISTRY, "equation-40", register)
    settings = experiments.Settings(task="equation-40", methods=("imt", "ital"), seeds=1, steps=30)
    whole = experiments.run(settings, tmp_path / "whole")
    monkeypatch.setattr("ital.experiments._cells.SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    exams = []
    from ital import teaching

    real = teaching.Session.examined

    def interrupted(self, block, show):
        exams.append(int(block.steps[-1]))
        if len(exams) == 3:
            raise KeyboardInterrupt
        return real(self, block, show)

    monkeypatch.setattr(teaching.Session, "examined", interrupted)
    with pytest.raises(KeyboardInterrupt):
        experiments.run(settings, tmp_path / "half")
    resumed = experiments.run(settings, tmp_path / "half")
    assert exams[:3] == [0, 10, 20]
    assert 0 not in exams[3:]
    for metric in ("accuracy", "distance", "loss"):
        np.testing.assert_array_equal(resumed.curves[metric].values, whole.curves[metric].values)


def test_features_that_lack_a_network_are_refused():
    with pytest.raises(InputError, match="no network"):
        paper_tasks.simplification(41)
    with pytest.raises(InputError, match="number of equations"):
        paper_tasks.simplification(40, equations=0)
