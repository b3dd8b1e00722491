import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ital
from ital import learners, losses
from ital.learners import Literal, Situation
from ital.teaching import situation
from tests.learners.test_two_step import BETAS, SEEDS, lesson_on, log_likelihood_step, step
from tests.test_gradients import LOSSES, problem
from tests.worlds import small_numbers

CONTROLS = {"imt-matched": Literal(chosen=1.0), "batch-matched": Literal(mean=1.0)}
VOLUMES = pytest.mark.parametrize("volume", ["imitated", "exact"])
EACH = pytest.mark.parametrize("name", CONTROLS)


def control_step(name, lesson, params, beta, volume="imitated", decay=0.0):
    situation = Situation(
        beta, decay, len(lesson.order), volume, lambda volumes: pytest.fail("nobody asked for auto")
    )
    learner = learners.make(name)
    resolved = learner.resolve(learner, situation)
    return resolved.rule.update(lesson, resolved.settings, params, ()).params


@LOSSES
@VOLUMES
@EACH
@given(seed=SEEDS, beta=BETAS, lr=st.floats(1e-3, 0.3))
@settings(max_examples=4)
@pytest.mark.usefixtures("x64")
def test_a_control_goes_as_far_as_ital_along_its_own_gradient(loss, volume, name, seed, beta, lr):
    params, _, rows, y, _ = problem(loss, seed)
    lesson = lesson_on(loss, params, rows, y, lr, seed)
    # By hand: ITAL's step and the gradients by autodiff, the rest in NumPy.
    length = np.linalg.norm(
        log_likelihood_step(loss, lesson, params, beta, len(y), volume) - params
    )
    per_example = np.stack(
        [
            jax.grad(lambda p, i=i: loss.value((p @ rows.x[i])[None], y[i : i + 1])[0])(params)
            for i in range(len(y))
        ]
    )
    g = per_example[int(lesson.chosen)] if name == "imt-matched" else per_example.mean(axis=0)
    expected = np.asarray(params) - length * g / np.linalg.norm(g)
    np.testing.assert_allclose(
        control_step(name, lesson, params, beta, volume), expected, rtol=1e-7, atol=1e-9
    )


@EACH
@VOLUMES
@given(seed=SEEDS, beta=BETAS)
@settings(max_examples=10)
@pytest.mark.usefixtures("x64")
def test_the_step_is_exactly_as_long_as_itals_with_the_whole_batch_in_view(
    name, volume, seed, beta
):
    params, _, rows, y, _ = problem(losses.squared, seed)
    lesson = lesson_on(losses.squared, params, rows, y, 0.1, seed)
    ital_step = step(lesson, params, beta, len(y), volume) - params
    taken = control_step(name, lesson, params, beta, volume) - params
    assert np.linalg.norm(taken) == pytest.approx(float(np.linalg.norm(ital_step)), rel=1e-9)


@given(seed=SEEDS)
@settings(max_examples=10)
@pytest.mark.usefixtures("x64")
def test_without_rationality_the_matched_naive_learner_is_the_naive_one(seed):
    params, _, rows, y, _ = problem(losses.squared, seed)
    lesson = lesson_on(losses.squared, params, rows, y, 0.1, seed)
    np.testing.assert_allclose(
        control_step("imt-matched", lesson, params, 0.0),
        step(lesson, params, 0.0, len(y)),
        rtol=1e-12,
    )


@pytest.mark.usefixtures("x64")
def test_where_the_gradient_is_zero_there_is_no_step():
    params, _, rows, y, _ = problem(losses.squared, 3)
    params = jnp.zeros_like(params)
    c = int(lesson_on(losses.squared, params, rows, y, 0.1, 3).chosen)
    # The chosen example is learned already, the others are not:
    # ITAL takes a step, and the naive direction is zero.
    lesson = lesson_on(losses.squared, params, rows, y.at[c].set(0.0), 0.1, 3)
    assert np.linalg.norm(step(lesson, params, 50.0, len(y)) - params) > 1e-3
    assert (control_step("imt-matched", lesson, params, 50.0) == params).all()
    assert not (control_step("batch-matched", lesson, params, 50.0) == params).all()
    # All are learned: no learner takes a step, and nothing is divided by zero
    lesson = lesson_on(losses.squared, params, rows, jnp.zeros_like(y), 0.1, 3)
    assert (control_step("batch-matched", lesson, params, 50.0) == params).all()


@EACH
@pytest.mark.usefixtures("x64")
def test_beta_is_itals(name):
    params, _, rows, y, _ = problem(losses.squared, 1)
    lesson = lesson_on(losses.squared, params, rows, y, 0.1, 1)._replace(step=jnp.asarray(7))
    decayed = control_step(name, lesson, params, 10.0, decay=0.1)
    np.testing.assert_allclose(
        decayed, control_step(name, lesson, params, 10.0 * 0.9**7), rtol=1e-10
    )
    makers = {"imt-matched": learners.imt_matched, "batch-matched": learners.batch_matched}
    scheduled = makers[name](lambda t: 3.0 + t)
    context = situation(
        small_numbers(), ital.teachers.cooperative(), ital.Run(batch_size=5), lambda volumes: None
    )
    resolved = scheduled.resolve(scheduled, context)
    np.testing.assert_allclose(
        resolved.rule.update(lesson, resolved.settings, params, ()).params,
        control_step(name, lesson, params, 10.0),
        rtol=1e-10,
    )


def test_controls_share_a_program_and_itals_beta():
    methods = ["ital", *CONTROLS]
    curves = ital.teach(
        small_numbers(), learner=methods, steps=10, seeds=2, beta="auto", lr=0.01
    ).curves
    beta = curves["beta"]
    assert (beta > 0).all()
    assert len(np.unique(beta)) == 2  # one per seed, the same for all methods
    hostile = ital.teachers.adversarial()
    context = situation(small_numbers(), hostile, ital.Run(), lambda volumes: None)
    resolved = [made.resolve(made, context) for made in map(learners.make, CONTROLS)]
    assert [control.settings.beta for control in resolved] == [-100.0, -100.0]
    assert len({control.rule for control in resolved}) == 1


@pytest.mark.parametrize("make", [learners.imt_matched, learners.batch_matched])
def test_bad_settings_are_refused(make):
    for options, message in (
        ({"beta": "much"}, "auto"),
        ({"beta_decay": 1.0}, "decay"),
        ({"volume": "x"}, "volume"),
    ):
        with pytest.raises(ValueError, match=message):
            make(**options)


@EACH
def test_numbers_are_those_of_ital(name):
    made = learners.make(name)
    ital_numbers = learners.teacher_aware().settings
    assert type(made.settings) is type(ital_numbers)
    assert made.settings._replace(literal=None) == ital_numbers._replace(literal=None)
    assert made.settings.literal == CONTROLS[name]
