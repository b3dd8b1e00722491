"""Learners that forget: against the fixed point under a repeated example, and against the learner
that forgets.
"""

import numpy as np
import pytest

from ital import learners, losses, tasks, teachers
from ital.experiments import Settings
from ital.experiments._experiment import Experiment
from ital.teaching import Run, open_sessions

LR = 0.1
SHARES = {"forgetful:0.05": 0.05, "forgetful:0.3": 0.3, "ital-forgetful:0.05": 0.05}


def repeated():
    """A pool of one row, so that every step shows the same example (x, y)."""
    x, y = np.array([[0.7, -1.2, 0.4]]), np.array([1.5])
    return tasks.from_pool(
        "repeated",
        tasks.Pool(x, x, y, np.ones((1, 4)), np.ones((1, 4)), x, y),
        losses.squared,
        beta=3.0,
    )


def session_of(methods, task, teacher="cooperative", **run):
    """The session of these methods: one, because λ is a number and both kinds of learners share a
    rule.
    """
    made = [learners.make(name) for name in methods]
    (session,) = open_sessions(
        task,
        teachers.make(teacher),
        made,
        Run(batch_size=4, lr=LR, beta=3.0, eval_every=100, **run),
    )
    return session


@pytest.mark.usefixtures("x64")
def test_a_repeated_example_leads_to_the_fixed_point():
    """λ(ν − ν⁰) = −η(νx − y)x, so ν = ν⁰ − η(ν⁰x − y)/(λ + η‖x‖²)·x.

    All q are equal: awareness changes nothing.
    """
    session = session_of(SHARES, repeated(), seeds=2, steps=600)
    list(session.blocks())
    x, y = np.array([0.7, -1.2, 0.4, 1.0]), 1.5
    for seed, start in enumerate(np.asarray(session.starts)):
        for lane, share in enumerate(SHARES.values()):
            expected = start - LR * (start @ x - y) / (share + LR * x @ x) * x
            np.testing.assert_allclose(session.state.lanes.params[seed, lane], expected, rtol=1e-12)
            np.testing.assert_array_equal(session.state.lanes.memory.start[seed, lane], start)


@pytest.mark.usefixtures("x64")
def test_each_step_is_the_learners_own_and_a_share_of_the_way_back():
    task = tasks.regression(dim=3, points=20)
    methods = ("forgetful:0", "forgetful:0.3", "ital-forgetful:0", "ital-forgetful:0.3")
    session = session_of(methods, task, seeds=1, steps=2)
    session.advance(1)  # the first step starts at ν⁰: nothing to forget
    first = session_of(methods, task, seeds=1, steps=1)
    first.advance(1)
    start, after = np.asarray(session.starts)[0], first.state.lanes.params[0]
    np.testing.assert_array_equal(after[0], after[1])
    np.testing.assert_array_equal(after[2], after[3])
    assert (after[0] != after[2]).any()
    kept, forgot = session.state.lanes.params[0, ::2], session.state.lanes.params[0, 1::2]
    np.testing.assert_allclose(forgot, kept + 0.3 * (start - after[::2]), rtol=1e-12)
    plain = session_of(("imt", "ital"), task, seeds=1, steps=2)
    plain.advance(1)
    np.testing.assert_array_equal(plain.state.lanes.params[0], kept)


def test_names_hold_the_share_in_one_spelling():
    assert [learners.make(name).name for name in ("forgetful", "forgetful:0.010")] == [
        "forgetful",
        "forgetful:0.01",
    ]
    assert (
        learners.forgetful(0.5, learner=learners.teacher_aware(view=5)).name
        == "ital-5-forgetful:0.5"
    )


@pytest.mark.parametrize("share", ["2", "-0.1", "nan", "much"])
def test_other_shares_are_refused(share):
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
        learners.make(f"forgetful:{share}")


def test_a_sweep_knows_which_of_them_has_a_beta():
    settings = Settings(
        "regression", methods=("forgetful:0.1", "ital-forgetful:0.1"), steps=10, seeds=1
    )
    lanes = Experiment(settings, {"lr": (0.1,), "beta": (0.0, 1.0)}).lanes
    assert [(lane.method, lane.beta) for lane in lanes] == [
        ("forgetful:0.1", None), ("ital-forgetful:0.1", 0.0), ("ital-forgetful:0.1", 1.0)
    ]  # fmt: skip
