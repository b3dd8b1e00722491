import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ital import learners, models
from ital.learners import Lesson, Literal, Situation
from tests.test_gradients import LOSSES, SHAPES, problem

SEEDS = st.integers(0, 2**31)
BETAS = st.floats(-200.0, 200.0)


def lesson_on(loss, params, rows, y, lr, seed):
    rng = np.random.default_rng(seed)
    size = len(y)
    gradients = lambda params: models.linear(loss).gradients(params, rows, y)  # noqa: E731
    return Lesson(
        step=jnp.asarray(0),
        lr=lr,
        examples=(rows, y),
        here=gradients(params),
        gradients=gradients,
        order=jnp.asarray(rng.permutation(size)),
        chosen=jnp.asarray(rng.integers(size)),
        bystander=jnp.asarray(rng.integers(size)),
    )


def step(lesson, params, beta, view, volume="imitated", literal=None, decay=0.0):
    """The parameters after ITAL's step, or one with other literal weights."""
    view = min(view, len(lesson.order))  # a learner refuses to see more than there is
    learner = learners.teacher_aware(beta, view=view, beta_decay=decay, volume=volume)
    situation = Situation(0.0, 0.0, len(lesson.order), volume, lambda volumes: pytest.fail("auto"))
    resolved = learner.resolve(learner, situation)
    numbers = resolved.settings._replace(literal=literal or Literal(chosen=1.0))
    return resolved.rule.update(lesson, numbers, params, ()).params


def log_likelihood_step(loss, lesson, params, beta, view, volume):
    """−η times the gradient of −log(p_ν(c)·q_ν(c)), the second factor at ν̂, all by autodiff.

    ν̂ is where the form of the step lets a naive step end.
    """
    rows, y = lesson.examples
    lr, c = lesson.lr, int(lesson.chosen)

    def example_loss(p, i):
        return loss.value((p @ rows.x[i])[None], y[i : i + 1])[0]

    gradient = jax.grad(example_loss)
    norms = jnp.stack([jnp.sum(gradient(params, i) ** 2) for i in range(len(y))])
    others = [int(i) for i in jnp.argsort(lesson.order) if int(i) != c]
    seen = jnp.asarray([c, *others[: view - 1]])

    def log_q(target):
        if volume == "imitated":
            progress = jnp.stack(
                [example_loss(params, i) - example_loss(target, i) for i in range(len(y))]
            )
        else:
            progress = jnp.stack(
                [jnp.sum((params - target) * gradient(params, i)) for i in range(len(y))]
            )
        scores = beta * (-(lr**2) * norms + 2 * lr * progress)
        return scores[c] - jax.nn.logsumexp(scores[seen])

    naive = params - lr * gradient(params, c)
    return naive + lr * jax.grad(log_q)(lesson.toward(params, naive))


@LOSSES
@pytest.mark.parametrize("volume", ["imitated", "exact"])
@SHAPES
@given(seed=SEEDS, beta=BETAS, view=st.integers(1, 5), lr=st.floats(1e-3, 0.3))
@settings(max_examples=10)
@pytest.mark.usefixtures("x64")
def test_update_climbs_the_log_likelihood_of_example_and_choice(
    loss, volume, shape, seed, beta, view, lr
):
    params, _, rows, y, _ = problem(loss, seed, shape)
    lesson = lesson_on(loss, params, rows, y, lr, seed)
    expected = log_likelihood_step(loss, lesson, params, beta, view, volume)
    np.testing.assert_allclose(
        step(lesson, params, beta, view, volume), expected, rtol=1e-8, atol=1e-9
    )


@pytest.mark.parametrize("volume", ["imitated", "exact"])
@pytest.mark.usefixtures("x64")
def test_it_imagines_from_where_the_form_of_the_step_ends(volume):
    from ital import losses

    params, _, rows, y, _ = problem(losses.squared, 0)
    lesson = lesson_on(losses.squared, params, rows, y, 0.1, 0)
    lesson = lesson._replace(toward=lambda here, there: here + 0.3 * (there - here))
    expected = log_likelihood_step(losses.squared, lesson, params, 20.0, 3, volume)
    np.testing.assert_allclose(
        step(lesson, params, 20.0, 3, volume), expected, rtol=1e-8, atol=1e-9
    )


@LOSSES
@given(seed=SEEDS, view=st.integers(1, 5))
@pytest.mark.usefixtures("x64")
def test_without_rationality_the_step_is_the_naive_one_bit_for_bit(loss, seed, view):
    params, _, rows, y, _ = problem(loss, seed)
    lesson = lesson_on(loss, params, rows, y, 0.1, seed)
    naive = params - 0.1 * lesson.gradients(params).weighted_sum(
        (jnp.arange(5) == lesson.chosen).astype(params.dtype)
    )
    assert (step(lesson, params, 0.0, view) == naive).all()


@given(seed=SEEDS)
@pytest.mark.usefixtures("x64")
def test_literal_weights_make_batch_and_sgd(seed):
    from ital import losses

    params, _, rows, y, _ = problem(losses.squared, seed)
    lesson = lesson_on(losses.squared, params, rows, y, 0.1, seed)
    g = lesson.gradients(params)
    batch = step(lesson, params, 0.0, 5, literal=Literal(mean=1.0))
    np.testing.assert_allclose(batch, params - 0.1 * g.weighted_sum(jnp.full(5, 0.2)), rtol=1e-12)
    sgd = step(lesson, params, 0.0, 5, literal=Literal(bystander=1.0))
    one = (jnp.arange(5) == lesson.bystander).astype(params.dtype)
    np.testing.assert_allclose(sgd, params - 0.1 * g.weighted_sum(one), rtol=1e-12)


@given(seed=SEEDS, size=st.integers(1, 8))
def test_views_hold_the_choice_and_grow_by_one(seed, size):
    rng = np.random.default_rng(seed)
    order, chosen = jnp.asarray(rng.permutation(size)), jnp.asarray(rng.integers(size))
    lesson = Lesson(jnp.asarray(0), 0.1, None, None, lambda p: None, chosen, order, chosen)
    views = [np.asarray(learners.in_view(lesson, jnp.asarray(m))) for m in range(1, size + 1)]
    for m, view in enumerate(views, start=1):
        assert view.sum() == m
        assert view[int(chosen)]
        assert m == 1 or (view >= views[m - 2]).all()


@pytest.mark.usefixtures("x64")
def test_beta_decays_and_schedules():
    from ital import losses

    params, _, rows, y, _ = problem(losses.squared, 1)
    lesson = lesson_on(losses.squared, params, rows, y, 0.1, 1)._replace(step=jnp.asarray(7))
    decayed = step(lesson, params, 10.0, 5, decay=0.1)
    np.testing.assert_allclose(decayed, step(lesson, params, 10.0 * 0.9**7, 5), rtol=1e-12)
    scheduled = step(lesson, params, lambda t: 3.0 + t, 5)
    np.testing.assert_allclose(scheduled, step(lesson, params, 10.0, 5), rtol=1e-12)


def test_the_tasks_decay_is_for_the_tasks_beta_alone():
    situation = Situation(300.0, 0.05, 20, "imitated", lambda volumes: 7.0)

    def numbers(**own):
        learner = learners.teacher_aware(**own)
        return learner.resolve(learner, situation).settings[1:3]

    assert numbers() == (300.0, 0.05)
    assert numbers(beta=5.0) == (5.0, 0.0)
    assert numbers(beta="auto") == (7.0, 0.0)
    assert numbers(beta=5.0, beta_decay=0.1) == (5.0, 0.1)
    assert numbers(beta_decay=0.1) == (300.0, 0.1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: learners.teacher_aware(float("nan")), "finite"),
        (lambda: learners.teacher_aware("much"), "auto"),
        (lambda: learners.teacher_aware(view=0), "view"),
        (lambda: learners.teacher_aware(beta_decay=1.0), "beta_decay"),
        (lambda: learners.teacher_aware(volume="loud"), "volume"),
        (lambda: learners.make("ital-3x"), "ital-2"),
        (lambda: learners.make("imt:4"), "no argument"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
