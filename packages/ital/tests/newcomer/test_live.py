"""Live teachers: the same steps as the compiled loop, one choice at a time, saved and restored."""

import json

import jax
import numpy as np
import pytest

import ital
from ital.errors import InputError


def small(**settings):
    return ital.session(
        ital.tasks.regression(dim=10, points=100), "ital", **{"steps": 5, **settings}
    )


def best(live):
    return int(live.volumes.argmax())


@pytest.mark.parametrize(
    ("task", "learner"), [("regression", "imt"), ("gaussian", "ital"), ("irl-dense", "ital")]
)
def test_choosing_as_the_cooperative_teacher_is_the_cooperative_teacher(task, learner):
    live = ital.session(task, learner, seed=3, steps=20)
    while live.step < live.steps:
        metrics = live.choose(best(live))
    taught = ital.teach(task, "cooperative", learner, seeds=[3], steps=20, eval_every=1)
    for mine, theirs in zip(
        jax.tree.leaves(live.params), jax.tree.leaves(taught.parameters[learner]), strict=True
    ):
        np.testing.assert_allclose(mine, theirs[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(live.curves["distance"], taught.curves["distance"], atol=1e-5)
    assert metrics["distance"] == float(live.curves["distance"][0, 0, -1])


def test_auto_beta_is_that_of_the_cooperative_teacher():
    live = small(beta="auto", seed=1)
    task = ital.tasks.regression(dim=10, points=100)
    taught = ital.teach(task, "cooperative", "ital", seeds=[1], steps=5, beta="auto")
    np.testing.assert_allclose(live.curves["beta"], taught.curves["beta"], rtol=1e-5)


def test_the_teacher_sees_the_mini_batch_and_the_learner_follows_the_choice():
    live, other = small(), small()
    x = live.candidates.x.x
    assert len(x) == len(live.candidates.labels) == len(live.volumes) == 20
    assert live.view.steps == 5
    start = live.params
    assert set(live.metrics) == set(live.choose(best(live))) == {"distance", "loss"}
    other.choose(int(other.volumes.argmin()))
    assert live.metrics["distance"] != other.metrics["distance"]
    assert (live.params != start).any()
    assert not np.array_equal(live.candidates.x.x, x)
    assert live.choices == [best(small())]
    assert list(live.curves["step"].values) == [0, 1]
    assert "step=1, steps=5" in repr(live)


def test_a_saved_session_resumes_bit_for_bit(tmp_path):
    live = ital.session("regression", "imt", seed=2, steps=6, init="normal:0.1", form="length:0.01")
    for index in (4, 0, 19):
        live.choose(index)
    back = ital.load_session(live.save(tmp_path / "live.json"))
    assert back.curves.identical(live.curves)
    for session in (live, back):
        session.choose(7)
    assert (back.params == live.params).all()
    assert back.choices == live.choices


def test_parts_of_ones_own_are_given_again(tmp_path):
    live = small()
    live.choose(3)
    file = live.save(tmp_path / "live.json")
    with pytest.raises(
        InputError, match="the task settings differ: pass the saved task to load_session"
    ):
        ital.load_session(file)
    with pytest.raises(
        InputError, match="the numbers differ: pass the saved learner to load_session"
    ):
        ital.load_session(file, live.task, ital.learners.teacher_aware(beta=7.0))
    assert (ital.load_session(file, live.task).params == live.params).all()
    other_world = live.task._replace(world=lambda seed: live.task.world(seed + 1))
    with pytest.raises(InputError, match="its choices now lead elsewhere"):
        ital.load_session(file, other_world)


def test_what_cannot_be_chosen_is_refused_in_a_line():
    live = small(steps=1)
    for index, fault in (
        (20, "choice 20 is not in the mini-batch: choose from 0 to 19"),
        (-1, "choice -1 is not"),
    ):
        with pytest.raises(InputError, match=fault):
            live.choose(index)
    with pytest.raises(InputError, match=r"a choice is one whole number from 0 to 19, not 1\.5"):
        live.choose(1.5)
    assert live.step == 0
    live.choose(np.int64(2))
    for after_the_end in (lambda: live.choose(0), lambda: live.candidates):
        with pytest.raises(InputError, match="the session has ended after 1 steps"):
            after_the_end()
    with pytest.raises(TypeError, match="unknown setting 'seeds'"):
        ital.session("regression", seeds=3)


@pytest.mark.parametrize("damage", ["", "{", "[1, 2]", "3", "choice"])
def test_a_damaged_file_is_refused_in_a_line(tmp_path, damage):
    live = small()
    live.choose(3)
    file = live.save(tmp_path / "live.json")
    file.write_text(
        file.read_text().replace("\n  3\n", "\n  4\n") if damage == "choice" else damage
    )
    with pytest.raises(InputError, match=r"live\.json: damaged, or not a saved live session"):
        ital.load_session(file)


def test_a_file_of_another_format_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("ital.teaching._live.FORMAT", 2)
    file = small().save(tmp_path / "live.json")
    assert json.loads(file.read_text())["ital_session"] == 2
    monkeypatch.undo()
    with pytest.raises(InputError, match="format 2, but this version of ital reads format 1"):
        ital.load_session(file)
