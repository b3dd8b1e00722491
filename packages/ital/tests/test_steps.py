"""Forms of step: equal lengths, and steps that no β can make too long."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ital
from ital import learners, losses, steps, tasks, teachers
from ital.errors import DivergenceWarning, InputError
from ital.teaching import _session, open_sessions
from tests.learners.test_two_step import lesson_on
from tests.test_gradients import problem

SMALL = tasks.regression(dim=5, points=60)
FAMILY = (
    "ital",
    "ital-2",
    "ital-full",
    "ital-safe",
    "ital-adaptive",
    "imt-matched",
    "batch-matched",
)


@pytest.mark.usefixtures("x64")
def test_a_step_of_one_length_is_that_long_and_in_the_wanted_direction():
    params, wanted = np.random.default_rng(0).normal(size=(2, 3, 4))
    lesson = learners.Lesson(*(None,) * 8)._replace(steps=jnp.asarray(10))
    for text, step, expected in (
        ("0.4", 9, 0.4),
        ("0.4:decay", 0, 0.4),
        ("0.4:decay", 1, 0.36),
        ("0.4:decay", 9, 0.04),
    ):
        form = steps.length(text)
        taken = (
            form.take(lesson._replace(step=jnp.asarray(step)), form.settings, params, wanted)
            - params
        )
        np.testing.assert_allclose(
            taken, expected * (wanted - params) / np.linalg.norm(wanted - params), rtol=1e-12
        )


def safe_by_hand(losses_at, norms, chosen, params, wanted):
    """An independent safe step, and how often it was halved (5: not taken)."""
    here = losses_at(params)
    way = wanted - params
    way = way * min(
        1,
        max(2 * loss / norm for loss, norm in zip(here, norms, strict=True)) / np.linalg.norm(way),
    )
    for halved in range(5):
        there = losses_at(params + way / 2**halved)
        if there.mean() <= here.mean() or there[chosen] <= here[chosen]:
            return params + way / 2**halved, halved
    return params, 5


@pytest.mark.usefixtures("x64")
def test_a_safe_step_is_what_it_says():
    """Hundreds of proposed steps: some shorter than the reach, some that must be halved, some that
    are refused.

    One example is far away, so that the reach is longer than is good for the others.
    """
    params, _, rows, y, _ = problem(losses.squared, 0)
    y = y.at[1].add(20.0)
    lesson = lesson_on(losses.squared, params, rows, y, 0.1, 0)
    rng = np.random.default_rng(0)
    wishes = rng.choice([0.01, 0.3, 1.0, 10.0], size=(300, 1, 1)) * rng.normal(
        size=(300, *params.shape)
    )
    wanted = np.asarray(params) + wishes
    taken = jax.jit(jax.vmap(lambda there: steps.within_reach(lesson, (), params, there)))(wanted)

    x, labels, nu = np.asarray(rows.x), np.asarray(y), np.asarray(params)
    norms = np.linalg.norm(x @ nu.T - labels, axis=1) * np.linalg.norm(x, axis=1)
    counts = set()
    for there, ours in zip(wanted, np.asarray(taken), strict=True):
        losses_at = lambda p: 0.5 * np.sum((x @ p.T - labels) ** 2, axis=1)  # noqa: E731
        expected, halved = safe_by_hand(losses_at, norms, int(lesson.chosen), nu, there)
        np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-12)
        counts.add(halved)
    assert counts == set(range(6))


@pytest.mark.parametrize("name", ["batch", "sgd", "imt", "ital", "ital-full", "ital-adaptive"])
def test_with_a_length_every_method_takes_steps_of_that_length(name):
    start = ital.teach(SMALL, "cooperative", name, steps=1, seeds=3, lr=1e-9)
    after = ital.teach(SMALL, "cooperative", name, steps=1, seeds=3, form="length:0.25")
    way = np.asarray(after.parameters[name]) - np.asarray(start.parameters[name])
    np.testing.assert_allclose(np.sqrt((way**2).sum(axis=(1, 2))), 0.25, rtol=1e-4)


def test_a_length_that_decays_falls_linearly_to_nothing():
    result = ital.teach(
        SMALL, "cooperative", "imt", steps=10, seeds=1, form="length:0.1:decay", eval_every=1
    )
    moved = np.abs(np.diff(result.curves["distance"].values[0, 0]))
    assert (moved <= 0.1 * (1 - np.arange(10) / 10) + 1e-5).all()
    assert moved[0] > 0.02


def test_no_step_where_none_is_wanted():
    step = steps.length(0.5)
    params = np.ones((1, 3), np.float32)
    lesson = learners.Lesson(*(None,) * 8)
    lesson = lesson._replace(step=np.zeros(()), steps=np.ones(()))
    np.testing.assert_array_equal(step.take(lesson, step.settings, params, params), params)


def test_the_rate_is_the_paper_and_the_default():
    plain = ital.teach(SMALL, "cooperative", "ital", steps=20, seeds=2)
    rate = ital.teach(SMALL, "cooperative", "ital", steps=20, seeds=2, form="rate")
    np.testing.assert_array_equal(plain.curves["distance"], rate.curves["distance"])


def test_steps_are_called_by_name():
    assert steps.make("length:0.4:decay").name == "length:0.4:decay"
    assert steps.make("safe").name == "safe"
    for wrong in (
        "length",
        "length:0",
        "length:-1",
        "length:nan",
        "length:1:fast",
        "lenght:1",
        "rate:2",
    ):
        with pytest.raises(InputError):
            steps.make(wrong)


@settings(max_examples=10, deadline=None)
@given(
    beta=st.floats(-1e6, 1e6),
    lr=st.floats(1e-4, 0.1),
    rationality=st.sampled_from([1e9, -1e9, 0.0]),
)
def test_with_the_safe_step_no_beta_diverges(beta, lr, rationality):
    """All methods of the family, with the longest steps anybody would try.

    Only numbers differ, so there is one
    compilation: the teacher's rationality makes it cooperative, adversarial or random.
    """
    teacher = teachers.boltzmann(rationality)
    result = ital.teach(
        SMALL,
        teacher,
        list(FAMILY),
        steps=300,
        seeds=2,
        beta=beta,
        lr=lr,
        form="safe",
        eval_every=100,
    )
    assert np.isfinite(result.curves["distance"].values).all()
    for params in result.parameters.values():
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(params))


def test_the_loop_of_a_safe_step_asks_for_nothing_but_its_verdict():
    """Lanes stop one by one.

    If the condition were computed, rounding could differ between the loop's condition and
    its body, and the loop might never end.
    """
    run = ital.Run(seeds=2, steps=10, lr=0.01, batch_size=5, eval_every=5)
    (session,) = open_sessions(SMALL, teachers.cooperative(), [learners.make("ital-safe")], run)
    jaxpr = jax.make_jaxpr(_session.run_block, static_argnums=0)(
        session.program, session.numbers, session.carry, 1
    )
    loops = [equation for equation in equations(jaxpr.jaxpr) if equation.primitive.name == "while"]
    assert len(loops) > 1  # over intervals, and of the safe step
    for loop in loops:
        asked = [
            variable
            for one in equations(loop.params["cond_jaxpr"].jaxpr)
            for variable in one.invars
        ]
        assert not any(jnp.issubdtype(variable.aval.dtype, jnp.floating) for variable in asked)


def equations(jaxpr):
    """All equations of a program, including nested ones."""
    for one in jaxpr.eqns:
        yield one
        for value in jax.tree.leaves(list(one.params.values())):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                yield from equations(inner)


def test_safe_steps_are_the_same_where_nothing_is_at_risk():
    """With the paper's settings ITAL's own steps are safe, so that ital-safe is ITAL."""
    result = ital.teach(
        "gaussian", "adversarial", ["ital", "ital-safe"], steps=50, seeds=2, beta=-1000.0
    )
    ital_, safe = result.curves["distance"].values
    np.testing.assert_allclose(safe, ital_, rtol=1e-5)


def test_an_unsafe_beta_is_made_safe():
    beta = -50_000.0  # as if a helpful teacher were hostile
    with pytest.warns(DivergenceWarning, match="ITAL diverged"):
        result = ital.teach(
            "regression", "cooperative", ["ital", "ital-safe"], steps=400, seeds=2, beta=beta
        )
    unsafe, safe = result.curves["distance"].isel(step=-1).values
    start = result.curves["distance"].isel(step=0).values.max()
    assert not np.isfinite(unsafe).all() or unsafe.max() > 100 * start
    assert safe.max() < 10 * start
