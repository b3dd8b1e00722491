"""What every task, teacher and learner must do together.

``make`` makes a small version of a task.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ital
from ital import learners, teachers, teaching
from ital.teaching import _session
from tests import keys


def run(make, teacher, method, **options):
    return ital.teach(
        make(),
        teachers.make(teacher),
        learners.make(method),
        steps=12,
        seeds=2,
        eval_every=5,
        **options,
    ).curves


@functools.cache
def has_target(make):
    """The target of a neural network is unknown: there is no distance to it, and no teacher that
    knows it.
    """
    return make().world(0).truth.target is not None


def fit(make, teacher):
    return has_target(make) or not teachers.make(teacher).omniscient


def sensible(make, teacher, method):
    """Whether the task offers what teacher and learner need."""
    made = teachers.make(teacher)
    needs = {*made.needs, *learners.make(method).needs, *(["gradients"] if made.omniscient else [])}
    return needs <= set(make().offers)


def check(make, curves):
    assert curves["step"].values.tolist() == [0, 5, 10, 12]
    for metric in ital.results.metrics_of(curves):
        there = ital.results.measured(curves, metric)
        # Signals begin with the first step.
        first = 0 if metric in (*make().metrics, "answers") else 1
        assert there[[first, -1]].all(), metric
        assert np.isfinite(curves[metric].values[..., there]).all(), metric
    assert (curves["diverged_at"].values == -1).all()


def check_together(make, teacher, method):
    """Parts that go together teach; others are refused in a line."""
    if not sensible(make, teacher, method):
        with pytest.raises(ital.errors.InputError, match="makes no sense on task"):
            run(make, teacher, method)
        return
    if not fit(make, teacher):
        with pytest.raises(ital.errors.InputError, match="needs the learner's target"):
            run(make, teacher, method)
        return
    curves = run(make, teacher, method)
    check(make, curves)
    assert curves[ital.results.metrics_of(curves)[0]].dtype == np.float32


def check_float64(make):
    curves = run(make, "cooperative", "ital")
    check(make, curves)
    assert curves[ital.results.metrics_of(curves)[0]].dtype == np.float64


def kinds_of_world(make):
    """The types of a world's real numbers."""
    return {leaf.dtype for leaf in jax.tree.leaves(make().world(0)) if leaf.dtype.kind == "f"}


def check_keys(task, teacher, learner):
    """Before the first step, in the steps and for ``beta="auto"``.

    What is drawn from is not divided either.
    """
    seeds = [0, 1]
    (session,) = teaching.open_sessions(
        task, teacher, [learner], teaching.Run(steps=12, seeds=seeds)
    )
    uses = keys.keys_of(
        functools.partial(everything_random, task, session.program), session.numbers
    )
    draws = [given for primitive, given in uses if primitive == keys.DRAW]
    assert min(map(len, draws)) >= len(seeds)
    drawn_from = list(itertools.chain(*draws))
    assert len(drawn_from) == len(set(drawn_from))
    divided = itertools.chain(*(given for primitive, given in uses if primitive != keys.DRAW))
    assert not set(divided) & set(drawn_from)


def everything_random(task, program, numbers):
    """All draws at the start and of the first two steps of a run, and of its automatic β."""
    starts = _session.start(program, task.init.kind, jnp.asarray(task.init.scale), numbers)
    lanes, _ = _session.begin(program, numbers, starts)
    # In its first step it sees the mini-batch of the second.
    looks_ahead = program.teacher.ahead > 1
    for step in jnp.arange(1 if looks_ahead else 2):
        _session._step_all(
            program, numbers, step, _session._draw_all(program, numbers, step), lanes
        )
    # An automatic β is found with the same first memory.
    remembers = program.teacher.init is not None
    if "gradients" in task.offers and not (looks_ahead or remembers):
        one_lane = numbers._replace(lanes=jax.tree.map(lambda leaf: leaf[:, 0], numbers.lanes))
        teaching.at_start(program, learners.imagined_volumes("imitated"), one_lane, starts)
