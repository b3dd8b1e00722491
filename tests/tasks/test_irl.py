import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ital import tasks
from ital.tasks import _irl
from ital.tasks._irl import Demonstrations, Planning, grid

SEEDS = st.integers(0, 2**31)
TIGHT = Planning(discount=0.5, sharpness=20.0, tolerance=1e-12)


def dense(dynamics):
    """P (A, S, S), from where each basis vector leads."""
    return np.asarray(jnp.stack([dynamics.expect(e) for e in jnp.eye(dynamics.states)], axis=-1))


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.usefixtures("x64")
def test_grid_moves_as_the_paper_says(size):
    p = dense(grid(size))
    steps = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    expected = np.zeros_like(p)
    for row in range(size):
        for column in range(size):
            for action in range(4):
                for way, (down, right) in enumerate(steps):
                    to = np.clip(row + down, 0, size - 1) * size + np.clip(column + right, 0, size - 1)
                    expected[action, row * size + column, to] += 0.80 if way == action else 0.06
    np.testing.assert_allclose(p, expected, atol=1e-12)
    np.testing.assert_allclose(p.sum(axis=-1), 0.98)


@given(seed=SEEDS, size=st.sampled_from([2, 5]))
@pytest.mark.usefixtures("x64")
def test_spread_is_the_transpose_of_expect(seed, size):
    dynamics, rng = grid(size), np.random.default_rng(seed)
    u, m = rng.normal(size=size * size), rng.normal(size=(4, size * size))
    np.testing.assert_allclose(
        jnp.sum(dynamics.expect(jnp.asarray(u)) * m), jnp.sum(dynamics.spread(jnp.asarray(m)) * u)
    )


def demonstrations(seed, states, count=6):
    rng = np.random.default_rng(seed)
    return Demonstrations(
        jnp.asarray(rng.integers(0, states, count)), jnp.asarray(rng.integers(0, 4, count)), jnp.arange(states), None
    )


def loss_by_unrolling(reward, state, action, dynamics, planning, sweeps=80):
    values = jnp.zeros_like(reward)
    for _ in range(sweeps):
        values, q = _irl.bellman(dynamics, planning, reward, values)
    return -_irl.log_policy(q)[action, state]


@given(seed=SEEDS)
@settings(max_examples=5)
@pytest.mark.usefixtures("x64")
def test_gradients_are_those_of_an_unrolled_iteration_and_of_central_differences(seed):
    dynamics = grid(3)
    rng = np.random.default_rng(seed)
    reward, direction = jnp.asarray(rng.uniform(-2, 2, 9)), jnp.asarray(rng.normal(size=9))
    shown = demonstrations(seed, 9)
    known = _irl.plan(dynamics, TIGHT, reward, jnp.zeros(9))
    ours = _irl._reward_gradients(dynamics, TIGHT, known, shown)
    unrolled = jax.vmap(
        jax.value_and_grad(loss_by_unrolling), in_axes=(None, 0, 0, None, None)
    )(reward, shown.states, shown.actions, dynamics, TIGHT)  # fmt: skip
    values, gradients = unrolled
    weights = jnp.asarray(rng.normal(size=6))
    np.testing.assert_allclose(ours.losses, values, atol=1e-9)
    np.testing.assert_allclose(ours.squared_norms, jnp.sum(gradients**2, axis=1), atol=1e-8)
    np.testing.assert_allclose(ours.inner(direction), gradients @ direction, atol=1e-8)
    np.testing.assert_allclose(ours.weighted_sum(weights), weights @ gradients, atol=1e-8)

    def losses(reward):
        at = _irl.plan(dynamics, TIGHT, reward, jnp.zeros(9))
        return -_irl.log_policy(at.q)[shown.actions, shown.states]

    step = 1e-5
    central = (losses(reward + step * direction) - losses(reward - step * direction)) / (2 * step)
    np.testing.assert_allclose(ours.inner(direction), central, atol=1e-6)


@pytest.mark.usefixtures("x64")
def test_sharp_planning_is_policy_iteration_with_the_hard_maximum():
    dynamics, rng = grid(4), np.random.default_rng(0)
    reward = rng.uniform(-2, 2, 16)
    p, policy = dense(dynamics), np.zeros(16, int)
    for _ in range(50):
        chosen = p[policy, np.arange(16)]
        values = np.linalg.solve(np.eye(16) - 0.5 * chosen, chosen @ reward)
        policy = np.argmax(p @ (reward + 0.5 * values), axis=0)
    soft = _irl.plan(dynamics, Planning(sharpness=1e5, tolerance=1e-12), jnp.asarray(reward), jnp.zeros(16))
    np.testing.assert_allclose(soft.values, values, atol=1e-4)
    assert (np.argmax(soft.q, axis=0) == policy).all()


@pytest.mark.usefixtures("x64")
def test_expected_return_is_that_of_rollouts():
    dynamics, rng = grid(4), np.random.default_rng(1)
    reward, q = rng.uniform(-1, 1, 16), rng.normal(size=(4, 16))
    exact = float(_irl.expected_return(dynamics, jnp.asarray(q), jnp.asarray(reward)))
    chosen = dense(dynamics)[np.argmax(q, axis=0), np.arange(16)]
    solved = np.linalg.solve(np.eye(16) - chosen, chosen @ reward).mean()
    assert exact == pytest.approx(solved, abs=1e-4)
    rollouts = 200_000
    cumulative = np.concatenate([chosen, 1 - chosen.sum(axis=1, keepdims=True)], axis=1).cumsum(axis=1)
    state, total, alive = rng.integers(0, 16, rollouts), np.zeros(rollouts), np.arange(rollouts)
    while len(alive):
        to = (rng.random(len(alive))[:, None] > cumulative[state[alive]]).sum(axis=1)
        alive, to = alive[to < 16], to[to < 16]
        state[alive] = to
        total[alive] += reward[to]
    assert abs(total.mean() - exact) < 4 * total.std() / np.sqrt(rollouts)


def test_the_teacher_sees_the_same_world_in_another_order():
    world = tasks.irl_dense().world(0)
    assert (world.teacher.target[world.teacher.examples.encoding] == world.truth.target).all()
    assert not (world.teacher.target == world.truth.target).all()
    assert np.abs(world.truth.target).max() <= 2
    assert sorted(np.unique(tasks.irl_sparse().world(0).truth.target)) == [0, 1]
    assert tasks.irl_sparse().world(3).truth.target.sum() == 3


@pytest.mark.parametrize(
    ("planning", "dynamics", "message"),
    [
        (Planning(sharpness=0.0), grid(3), "sharpness"),
        (Planning(discount=1.0), grid(3, death=0.0, slip=0.06), "discount"),
        (Planning(tolerance=0.0), grid(3), "tolerance"),
    ],
)
def test_worlds_without_an_end_are_refused(planning, dynamics, message):
    with pytest.raises(ValueError, match=message):
        _irl.from_rewards("bad", lambda seed: np.zeros(9), dynamics, beta=1.0, title="bad", planning=planning)
