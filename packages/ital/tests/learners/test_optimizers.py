"""Optax optimisers: against Algorithm 1, against Adam in NumPy, and through a resumed session."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import ital
from ital import learners, losses, models, tasks, teachers
from ital.experiments import Settings
from ital.teaching import Run, open_sessions

BETA, LR = 40.0, 0.05
PAIR = ("imt", "ital")
RUN = {"batch_size": 5, "lr": LR, "beta": BETA, "eval_every": 10, "steps": 20, "seeds": 2}


def small():
    return tasks.regression(dim=3, points=40)


def session_of(methods=PAIR, **options):
    made = [learners.make(name) if isinstance(name, str) else name for name in methods]
    (session,) = open_sessions(small(), teachers.cooperative(), made, Run(**{**RUN, **options}))
    return session


def finished(session):
    while session.step < session.steps:
        session.advance(1)
    return session.state.lanes


@pytest.mark.usefixtures("x64")
def test_sgd_is_algorithm_1():
    """ν − η(g_c(ν) + 2βη(…)) rounds otherwise than ν̂ − 2βη²(…), but is the same step."""
    plain, sgd = finished(session_of()).params, finished(session_of(optimizer="sgd")).params
    np.testing.assert_allclose(sgd, plain, rtol=1e-12)
    assert (plain[:, 0] != plain[:, 1]).any()
    own = [learners.imt(optimizer=f"sgd:{LR}"), learners.teacher_aware(optimizer=f"sgd:{2 * LR}")]
    both = finished(session_of(own)).params  # one session: the rate is a number
    np.testing.assert_array_equal(both[:, 0], sgd[:, 0])
    assert (both[:, 1] != sgd[:, 1]).any()


def gradient_in_numpy(nu, x, y, chosen, aware):
    """g_c(ν) + 2βη( g_c(ν̂) − Σᵢ qᵢgᵢ(ν̂) ) for the squared loss, from its formulas."""
    here = (x @ nu - y)[:, None] * x
    if not aware:
        return here[chosen]
    guess = nu - LR * here[chosen]
    there = (x @ guess - y)[:, None] * x
    progress = 0.5 * (x @ nu - y) ** 2 - 0.5 * (x @ guess - y) ** 2
    scores = BETA * (-(LR**2) * np.sum(here**2, axis=1) + 2 * LR * progress)
    q = np.exp(scores - scores.max())
    return here[chosen] + 2 * BETA * LR * (there[chosen] - q / q.sum() @ there)


@pytest.mark.parametrize("method", PAIR)
@pytest.mark.usefixtures("x64")
def test_adam_is_adam_in_numpy(method):
    rng = np.random.default_rng(0)
    raw, y, start, rate = rng.normal(size=(5, 3)), rng.normal(size=5), rng.normal(size=4), 0.01
    rows, model = jax.tree.map(jnp.asarray, models.linear_rows(raw)), models.linear(losses.squared)
    situation = learners.Situation(
        BETA, 0.0, 5, "imitated", lambda *_: None, optimizer=learners.optimizer(f"adam:{rate}")
    )
    learner = learners.make(method).resolve(learners.make(method), situation)

    def gradients(params):
        return model.gradients(params, rows, jnp.asarray(y)[:, None])

    @jax.jit
    def step(nu, memory, chosen):
        order = jnp.arange(5)
        lesson = learners.Lesson(
            jnp.asarray(0), jnp.asarray(LR), None, gradients(nu), gradients, chosen, order, chosen
        )
        return learner.rule.update(lesson, learner.settings, nu, memory)[:2]

    nu, memory = (
        jnp.asarray(start[None]),
        learner.rule.init(jnp.asarray(start[None]), learner.settings),
    )
    expected, m, v = start.copy(), np.zeros(4), np.zeros(4)
    for t in range(1, 21):
        chosen = rng.integers(5)
        nu, memory = step(nu, memory, jnp.asarray(chosen))
        g = gradient_in_numpy(expected, np.asarray(rows.x), y, chosen, method == "ital")
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        expected -= rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    np.testing.assert_allclose(nu[0], expected, rtol=1e-10)


def test_the_state_of_the_optimiser_is_memory_and_resumes(tmp_path):
    from ital.experiments import _cells
    from ital.teaching import Recording

    methods = (*PAIR, "forgetful:0.1")  # a learner that wraps another has the optimiser too
    made = [learners.make(name) for name in methods]

    def open_all():
        return open_sessions(small(), teachers.cooperative(), made, Run(**RUN, optimizer="adam"))

    straight, interrupted, resumed = (Recording(open_all()) for _ in range(3))
    assert [len(session.learners) for session in straight.sessions] == [2, 1]
    for session in interrupted.sessions:
        session.advance(1)
    _cells.save_checkpoint(interrupted, 0.0, tmp_path / "checkpoint")
    assert _cells.load_checkpoint(resumed, tmp_path / "checkpoint") is not None
    for one, other in zip(straight.sessions, resumed.sessions, strict=True):
        assert other.step == 10
        jax.tree.map(np.testing.assert_array_equal, finished(one), finished(other))


def test_learners_with_the_same_optimiser_share_a_program():
    adam = optax.adam(1e-3)
    session = session_of([learners.imt(optimizer=adam), learners.teacher_aware(optimizer=adam)])
    assert [learner.name for learner in session.learners] == ["imt-optax", "ital-optax"]
    assert session.learners[0].rule is session.learners[1].rule
    first, second = (learners.optimizer(name) for name in ("adam", "adam:1e-2"))
    assert (first.make, second.name) == (second.make, "adam:0.01")


def test_every_named_optimiser_takes_a_finite_step():
    params = {"a": jnp.ones((2, 3)), "b": jnp.zeros(4)}
    for name in learners._two_step.OPTIMIZERS:
        made = learners.optimizer(name).make(jnp.asarray(0.1))
        updates, _ = made.update(jax.tree.map(jnp.ones_like, params), made.init(params), params)
        assert all(
            np.isfinite(leaf).all() and (leaf != 0).all() for leaf in jax.tree.leaves(updates)
        ), name


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("adm", "unknown optimizer 'adm': did you mean 'adam'"),
        ("adam:0", "must be a positive number"),
        ("adam:fast", "must be a positive number"),
        (optax.adam, "it is a function: call it"),
        (3, "expected an optimizer such as"),
    ],
)
def test_other_optimisers_are_refused_in_a_line(given, message):
    with pytest.raises(ital.errors.InputError, match=message):
        ital.teach(small(), learner="imt", optimizer=given)


def test_methods_with_steps_of_their_own_take_no_optimiser():
    for method in ("imt-matched", "ital-adaptive"):
        with pytest.raises(
            ital.errors.InputError, match=f"method '{method}' takes steps of its own"
        ):
            Settings("regression", methods=("imt", method), optimizer="adam").plan()


def test_the_optimiser_is_part_of_a_result():
    identity = Settings("regression", optimizer="adam:1e-3").plan().identity
    assert identity.pop("optimizer") == "adam:0.001"
    assert identity == Settings("regression").plan().identity
    with pytest.raises(ital.errors.InputError, match="give a name"):
        Settings("regression", optimizer=optax.adam(1e-3)).plan()


def test_a_saved_session_resumes_with_its_optimiser(tmp_path):
    live = ital.session(
        small(),
        "imt",
        **{name: RUN[name] for name in ("batch_size", "lr", "steps")},
        optimizer="adam",
    )
    for choice in (3, 1, 4):
        live.choose(choice)
    resumed = ital.load_session(live.save(tmp_path / "live.json"), task=small())
    assert resumed.run.optimizer == "adam"
    np.testing.assert_array_equal(resumed.params, live.params)
