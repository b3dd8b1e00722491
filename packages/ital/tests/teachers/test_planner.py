"""The teacher that looks ahead."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ital
from ital import losses, models, teachers
from ital.errors import InputError
from ital.teachers import LearnerView, TeacherView, _planner
from tests.worlds import small_classes

LR = 0.3


def worth(batches, params, target, plan):
    """How much closer a plan brings a naive learner with the square loss, in NumPy."""
    before = np.sum((params - target) ** 2)
    for (x, y), chosen in zip(batches, plan, strict=True):
        params = params - LR * (params @ x[chosen] - y[chosen])[:, None] * x[chosen]
    return before - np.sum((params - target) ** 2)


def lookahead(seed, horizon, size=4):
    """A learner, its target and the next mini-batches, as an omniscient teacher sees them."""
    rng = np.random.default_rng(seed)
    model = models.linear(losses.squared)
    params, target = jnp.asarray(rng.normal(size=(2, 1, 4)))
    batches = []
    for _ in range(horizon):
        x = rng.normal(size=(size, 3))
        batches.append(
            (
                jax.tree.map(jnp.asarray, models.linear_rows(x)),
                jnp.asarray(rng.normal(size=(size, 1))),
            )
        )
    gradients = lambda params, depth: model.gradients(params, *batches[depth])  # noqa: E731
    learner = LearnerView(None, params, target, gradients)
    learner = learner._replace(volumes=_planner.volumes_at(learner, LR, 0, params))
    view = TeacherView(None, None, None, None, LR, jnp.asarray(0), jnp.asarray(9))
    plain = [(np.asarray(rows.x), np.asarray(y)) for rows, y in batches]
    return learner, view, functools.partial(worth, plain, np.asarray(params), np.asarray(target))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_finds_the_best_plan(seed):
    learner, view, value = lookahead(seed, 2)
    best = max(itertools.product(range(4), repeat=2), key=value)
    assert int(_planner.planning(2)(None, view, learner, ())) == best[0]


@pytest.mark.usefixtures("x64")
def test_the_worth_of_an_example_is_that_of_the_best_plan_that_begins_with_it():
    for horizon in (1, 2):
        learner, _, value = lookahead(7, horizon)
        found = teachers.plan_worths(learner, LR, horizon)
        for first in range(4):
            plans = itertools.product([first], *[range(4)] * (horizon - 1))
            np.testing.assert_allclose(found[first], max(map(value, plans)), rtol=1e-10)


@pytest.mark.usefixtures("x64")
def test_a_plan_is_never_worse_than_greed():
    better = 0
    for seed in range(12):
        learner, view, value = lookahead(seed, 4, size=6)
        greedy, params = [], learner.params
        for depth in range(4):
            greedy.append(jnp.argmax(_planner.volumes_at(learner, LR, depth, params)))
            params = _planner.stepped(learner, LR, depth, params, greedy[-1])
        first = int(_planner.planning(4)(None, view, learner, ()))
        best = max(value((first, *rest)) for rest in itertools.product(range(6), repeat=3))
        assert best >= value(greedy) - 1e-12
        better += best > value(greedy) + 1e-9
    assert better  # greed is not the best plan everywhere


def test_a_horizon_of_one_is_the_omniscient_teacher_bit_for_bit():
    run = {"steps": 12, "seeds": 2, "batch_size": 5, "lr": 0.05}
    planned = ital.teach(small_classes(), "planner:1", ["imt", "ital"], **run).parameters
    known = ital.teach(small_classes(), "omniscient", ["imt", "ital"], **run).parameters
    assert all((np.asarray(planned[name]) == np.asarray(known[name])).all() for name in known)


@pytest.mark.parametrize("name", ["planner:0", "planner:x", "planner:1.5"])
def test_horizons_that_are_no_horizons_are_refused(name):
    with pytest.raises(InputError, match="is written planner:H"):
        teachers.make(name)
