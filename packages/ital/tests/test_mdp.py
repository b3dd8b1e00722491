import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, softmax

from ital import mdp
from ital.errors import InputError
from ital.mdp import Planning, _planning, grid, tabular

SEEDS = st.integers(0, 2**31)


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
                    to = np.clip(row + down, 0, size - 1) * size + np.clip(
                        column + right, 0, size - 1
                    )
                    expected[action, row * size + column, to] += 0.80 if way == action else 0.06
    np.testing.assert_allclose(p, expected, atol=1e-12)
    np.testing.assert_allclose(p.sum(axis=-1), 0.98)


def table_of(free, goals, slip=0.06, death=0.02):
    """P (A, S, S) of a map with walls and goals, cell by cell."""
    cells = [tuple(cell) for cell in np.argwhere(free)]
    steps = [(-1, 0), (1, 0), (0, -1), (0, 1)]
    p = np.zeros((4, len(cells), len(cells)))
    for state, (row, column) in enumerate(cells):
        if (row, column) in goals:
            continue
        for way, (down, right) in enumerate(steps):
            to = (row + down, column + right)
            reached = cells.index(to) if to in cells else state
            for action in range(4):
                p[action, state, reached] += 1 - death - 3 * slip if way == action else slip
    return p


MAPS = {
    "tall": (np.ones((5, 2), bool), ()),
    "goals": (np.ones((2, 4), bool), ((0, 3), (1, 0))),
    "walls": (np.array([[1, 0, 1, 1], [1, 1, 0, 1], [1, 0, 1, 1]], bool), ((2, 3),)),
}


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.usefixtures("x64")
def test_maps_of_any_shape_with_walls_and_goals_are_their_table(name):
    free, goals = MAPS[name]
    walls = tuple((int(row), int(column)) for row, column in np.argwhere(~free))
    dynamics, expected = grid(free.shape, walls=walls, goals=goals), table_of(free, goals)
    np.testing.assert_allclose(dense(dynamics), expected, atol=1e-12)
    assert (dynamics.states, dynamics.even) == (free.sum(), not goals)
    rng = np.random.default_rng(0)
    v = jnp.asarray(rng.normal(size=dynamics.states))
    policy = rng.dirichlet(np.ones(4), size=dynamics.states).T
    chosen = np.einsum("as,ast->st", policy, expected)
    np.testing.assert_allclose(mdp.following(dynamics, jnp.asarray(policy)), chosen, atol=1e-12)
    ahead, back = dynamics.walk(jnp.asarray(policy))
    np.testing.assert_allclose(ahead(v), chosen @ v, atol=1e-12)
    np.testing.assert_allclose(back(v), v @ chosen, atol=1e-12)
    if name == "walls":
        assert dynamics.eliminate is None
        return
    ahead, back = dynamics.eliminate(jnp.asarray(0.9 * policy))
    matrix = np.eye(dynamics.states) - 0.9 * chosen
    np.testing.assert_allclose(ahead(v), np.linalg.solve(matrix, v), rtol=1e-9)
    np.testing.assert_allclose(back(v), np.linalg.solve(matrix.T, v), rtol=1e-9)


@pytest.mark.usefixtures("x64")
def test_a_goal_is_worth_nothing_more_once_it_is_reached():
    dynamics = grid((1, 3), slip=0.0, death=0.0, goals=((0, 2),))
    for discount in (0.5, 0.9):  # value iteration, policy iteration
        planned = mdp.plan(dynamics, Planning(discount, 1000.0), jnp.array([0.0, 0.0, 1.0]))
        np.testing.assert_allclose(planned.values, [discount, 1.0, 0.0], atol=1e-2)
        assert planned.values[2] == 0.0


def test_cells_that_make_no_grid_are_refused():
    for options, message in (
        ({"walls": ((0, 2),)}, r"cell \(0, 2\) is not on a grid of 2 × 2"),
        ({"walls": ((0, 0),), "goals": ((0, 0),)}, "a goal cannot be a wall"),
        ({"goals": ((0, 0), (0, 1), (1, 0), (1, 1))}, "no goal"),
        ({"walls": ((0, 0), (0, 1), (1, 0), (1, 1))}, "without a wall"),
    ):
        with pytest.raises(InputError, match=message):
            grid(2, **options)


def random_transitions(rng, actions, states, death=0.05):
    p = rng.random((actions, states, states)) * (rng.random((actions, states, states)) < 0.6) + 1e-3
    return (1 - death * rng.random((actions, states, 1))) * p / p.sum(axis=2, keepdims=True)


@given(seed=SEEDS)
@settings(max_examples=10)
@pytest.mark.usefixtures("x64")
def test_leaving_a_state_is_the_transpose_of_expecting(seed):
    rng = np.random.default_rng(seed)
    for dynamics in (grid(3), tabular(random_transitions(rng, 3, 5))):
        u, policy = (
            rng.normal(size=dynamics.states),
            rng.normal(size=(dynamics.actions, dynamics.states)),
        )
        expected = jnp.sum(dynamics.expect(jnp.asarray(u)) * policy, axis=0)
        np.testing.assert_allclose(
            mdp.following(dynamics, jnp.asarray(policy)) @ u, expected, atol=1e-12
        )


@given(seed=SEEDS, size=st.sampled_from([1, 2, 3, 5]))
@settings(max_examples=10)
@pytest.mark.usefixtures("x64")
def test_walking_from_neighbour_to_neighbour_is_the_table_of_a_policy(seed, size):
    rng = np.random.default_rng(seed)
    v, weights = (
        jnp.asarray(rng.normal(size=size * size)),
        jnp.asarray(rng.normal(size=(4, size * size))),
    )
    ahead, back = grid(size).walk(weights)
    table = mdp.following(grid(size), weights)
    np.testing.assert_allclose(ahead(v), table @ v, atol=1e-12)
    np.testing.assert_allclose(back(v), v @ table, atol=1e-12)


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
@pytest.mark.parametrize("discount", [0.0, 0.5, 0.9])
@pytest.mark.usefixtures("x64")
def test_all_that_follows_is_a_solve_on_every_device(monkeypatch, backend, discount):
    monkeypatch.setattr("jax.default_backend", lambda: backend)
    rng = np.random.default_rng(0)
    v, several = jnp.asarray(rng.normal(size=25)), jnp.asarray(rng.normal(size=(3, 25)))
    policy = jnp.asarray(rng.dirichlet(np.ones(4), size=25).T)
    for dynamics in (grid(5), tabular(dense(grid(5)))):
        onward = mdp.onward(dynamics, Planning(discount, tolerance=1e-8), policy)
        inverse = np.linalg.inv(np.eye(25) - discount * mdp.following(dynamics, policy))
        np.testing.assert_allclose(onward.ahead(v), inverse @ v, atol=1e-6)
        np.testing.assert_allclose(onward.back(v), v @ inverse, atol=1e-6)
        np.testing.assert_allclose(onward.back(several), several @ inverse, atol=1e-6)


@pytest.mark.parametrize(
    ("size", "slip", "death"), [(1, 0.06, 0.02), (2, 0.0, 0.1), (6, 0.2, 0.01)]
)
@pytest.mark.usefixtures("x64")
def test_elimination_is_a_dense_solve(size, slip, death):
    dynamics, rng = grid(size, slip, death), np.random.default_rng(0)
    several = jnp.asarray(rng.normal(size=(3, size * size)))
    policy = jnp.asarray(rng.dirichlet(np.full(4, 0.1), size=size * size).T)
    for discount in (0.5, 0.99, 1.0):
        matrix = np.eye(size * size) - discount * mdp.following(dynamics, policy)
        ahead, back = dynamics.eliminate(discount * policy)
        np.testing.assert_allclose(
            ahead(several[0]), jnp.linalg.solve(matrix, several[0]), rtol=1e-6
        )
        np.testing.assert_allclose(
            back(several), jnp.linalg.solve(matrix.T, several.T).T, rtol=1e-6
        )


@pytest.mark.parametrize(
    ("size", "discount", "rows", "way"),
    [
        (8, 0.5, 20, "eliminate"),
        (8, 0.5, 1, "walk"),
        (8, 0.99, 1, "eliminate"),
        (60, 0.5, 20, "walk"),
    ],
)
def test_the_way_to_solve_follows_from_the_numbers(monkeypatch, size, discount, rows, way):
    assert _planning.cheapest_way(grid(size), 0.98 * discount, 1e-6, rows) == way
    monkeypatch.setattr("jax.default_backend", lambda: "gpu")
    on_accelerator = "walk" if size == 60 or (rows == 1 and discount == 0.5) else "table"
    assert _planning.cheapest_way(grid(size), 0.98 * discount, 1e-6, rows) == on_accelerator


@pytest.mark.usefixtures("x64")
def test_a_large_sparse_table_is_the_table():
    p = np.concatenate([dense(grid(16)), dense(grid(16, slip=0.1))[:1]])
    dynamics, rng = tabular(p), np.random.default_rng(0)
    v, several = jnp.asarray(rng.normal(size=256)), jnp.asarray(rng.normal(size=(3, 256)))
    policy = rng.dirichlet(np.ones(5), size=256).T
    chosen = np.einsum("as,ast->st", policy, p)
    ahead, back = dynamics.walk(jnp.asarray(policy))
    np.testing.assert_allclose(dynamics.expect(v), p @ v, atol=1e-12)
    np.testing.assert_allclose(
        dynamics.leave(jnp.asarray(17), jnp.asarray(policy[:, 17])), chosen[17], atol=1e-12
    )
    np.testing.assert_allclose(ahead(several), several @ chosen.T, atol=1e-12)
    np.testing.assert_allclose(back(several), several @ chosen, atol=1e-12)


@pytest.mark.usefixtures("x64")
def test_a_backup_is_its_formula():
    rng = np.random.default_rng(0)
    p, reward, values = random_transitions(rng, 3, 5), *rng.normal(size=(2, 5))
    ours = mdp.bellman(tabular(p), Planning(0.6, 4.0), jnp.asarray(reward), jnp.asarray(values))
    q = np.einsum("ast,t->as", p, reward + 0.6 * values)
    np.testing.assert_allclose(ours[1], q, rtol=1e-12)
    np.testing.assert_allclose(ours[0], logsumexp(4.0 * q, axis=0) / 4.0, rtol=1e-12)


@pytest.mark.usefixtures("x64")
def test_a_table_of_the_grid_is_the_grid():
    reward = jnp.asarray(np.random.default_rng(0).uniform(-2, 2, 16))
    planned = [
        mdp.plan(dynamics, Planning(), reward) for dynamics in (grid(4), tabular(dense(grid(4))))
    ]
    np.testing.assert_allclose(planned[0].q, planned[1].q, atol=1e-12)


@pytest.mark.usefixtures("x64")
def test_planning_again_from_near_values_is_planning_from_zero():
    planning = Planning(tolerance=1e-10)
    rng = np.random.default_rng(0)
    reward = jnp.asarray(rng.uniform(-2, 2, 25))
    before = mdp.plan(grid(5), planning, reward)
    moved = reward + 0.01 * rng.normal(size=25)
    again = mdp.replan(grid(5), planning, moved, before.values)
    np.testing.assert_allclose(again.q, mdp.plan(grid(5), planning, moved).q, atol=1e-9)


@pytest.mark.usefixtures("x64")
def test_planning_on_an_accelerator_leaves_next_to_nothing_to_change(monkeypatch):
    """An accelerator sweeps a fixed number of times: enough even after ITAL's longest step."""
    rng = np.random.default_rng(0)
    reward = jnp.asarray(rng.uniform(-2, 2, 64))
    moved = reward + 0.005 * rng.uniform(-1, 1, size=64)
    monkeypatch.setattr("jax.default_backend", lambda: "gpu")
    for discount in (0.1, 0.5, 0.9, 0.99):
        planning = Planning(discount)
        before = mdp.plan(grid(8), planning, reward)
        blindly = mdp.replan(grid(8), planning, moved, before.values)
        once_more, _ = mdp.bellman(grid(8), planning, moved, blindly.values)
        assert float(jnp.max(jnp.abs(once_more - blindly.values))) < 1.1e-6, discount


def soft_policy_iteration(p, discount, sharpness, reward):
    """Q (A, S) in float64, from a table and a dense solve."""
    values = np.zeros(len(reward))
    for _ in range(40):
        q = p @ (reward + discount * values)
        greedy = softmax(sharpness * q, axis=0)
        change = logsumexp(sharpness * q, axis=0) / sharpness - values
        values = values + np.linalg.solve(
            np.eye(len(reward)) - discount * np.einsum("as,ast->st", greedy, p), change
        )
    return p @ (reward + discount * values)


@pytest.mark.parametrize(
    ("discount", "sharpness", "death", "scale"),
    [
        (0.5, 1000.0, 0.02, 300.0),
        (0.9, 220.0, 0.02, 2.0),
        (0.99, 1000.0, 0.02, 300.0),
        (0.999, 220.0, 0.0, 2.0),
    ],
)
def test_planning_comes_as_close_as_the_precision_allows(discount, sharpness, death, scale):
    """Differences between actions are right to a few dozen roundings of the values."""
    dynamics, planning = grid(4, death=death), Planning(discount, sharpness)
    rng = np.random.default_rng(3)
    rewards = rng.uniform(-scale, scale, (8, 16)).astype(np.float32)
    near = rewards + rng.normal(0, 0.01, rewards.shape).astype(np.float32)

    @jax.jit
    @jax.vmap
    def planned(reward, near):
        first = mdp.plan(dynamics, planning, reward)
        return first.q, mdp.replan(dynamics, planning, near, first.values).q

    with jax.enable_x64(True):
        p = dense(dynamics).astype(float)
    for drawn, found in zip((rewards, near), planned(rewards, near), strict=True):
        for reward, q in zip(drawn.astype(float), np.asarray(found), strict=True):
            exact = soft_policy_iteration(p, discount, sharpness, reward)
            rounding = np.finfo(np.float32).eps * np.abs(exact).max()
            advantage = exact - exact.max(axis=0)
            np.testing.assert_allclose(q - q.max(axis=0), advantage, atol=32 * rounding)


def test_a_table_without_death_is_planned_at_every_discount_below_one():
    p = random_transitions(np.random.default_rng(0), 2, 4, death=0.0)
    reward = np.array([1.0, -2.0, 0.5, 0.0])
    for discount in (0.9, 0.9999):
        ours = np.asarray(mdp.plan(tabular(p), Planning(discount), jnp.asarray(reward)).q)
        exact = soft_policy_iteration(p, discount, 220.0, reward)
        rounding = np.finfo(np.float32).eps * np.abs(exact).max()
        np.testing.assert_allclose(
            ours - ours.max(axis=0), exact - exact.max(axis=0), atol=32 * rounding
        )


@given(seed=SEEDS, rate=st.sampled_from([0.3, 0.49, 0.9, 0.98]), rows=st.sampled_from([0, 1, 20]))
@settings(max_examples=20)
@pytest.mark.usefixtures("x64")
def test_geometric_solve_is_a_solve(seed, rate, rows):
    rng = np.random.default_rng(seed)
    matrix = rng.random((12, 12))
    matrix *= rate / matrix.sum(axis=1, keepdims=True)
    right = rng.normal(size=(rows, 12) if rows else 12)
    exact = np.linalg.solve(np.eye(12) - matrix.T, right.T).T
    ours = _planning.geometric_solve(jnp.asarray(matrix), jnp.asarray(right), rate, 1e-9)
    np.testing.assert_allclose(ours, exact, atol=1e-7)


def test_no_dense_table_is_made_of_a_grid():
    text = str(jax.make_jaxpr(functools.partial(mdp.plan, grid(8), Planning()))(jnp.zeros(64)))
    assert "64,64" not in text
    text = str(jax.make_jaxpr(lambda pi: mdp.following(grid(8), pi))(jnp.zeros((4, 64))))
    assert "[64,64]" in text
    assert "[64,4,64]" not in text
    assert "[4,64,64]" not in text


@pytest.mark.usefixtures("x64")
def test_sharp_planning_is_policy_iteration_with_the_hard_maximum():
    dynamics, rng = grid(4), np.random.default_rng(0)
    reward = rng.uniform(-2, 2, 16)
    p, policy = dense(dynamics), np.zeros(16, int)
    for _ in range(50):
        chosen = p[policy, np.arange(16)]
        values = np.linalg.solve(np.eye(16) - 0.5 * chosen, chosen @ reward)
        policy = np.argmax(p @ (reward + 0.5 * values), axis=0)
    soft = mdp.plan(dynamics, Planning(sharpness=1e5, tolerance=1e-12), jnp.asarray(reward))
    np.testing.assert_allclose(soft.values, values, atol=1e-4)
    assert (np.argmax(soft.q, axis=0) == policy).all()


@pytest.mark.usefixtures("x64")
def test_expected_return_is_that_of_rollouts():
    dynamics, rng = grid(4), np.random.default_rng(1)
    reward, q = rng.uniform(-1, 1, 16), rng.normal(size=(4, 16))
    exact = float(mdp.expected_return(dynamics, Planning(), jnp.asarray(q), jnp.asarray(reward)))
    chosen = dense(dynamics)[np.argmax(q, axis=0), np.arange(16)]
    solved = np.linalg.solve(np.eye(16) - chosen, chosen @ reward).mean()
    assert exact == pytest.approx(solved, abs=1e-4)
    rollouts = 200_000
    cumulative = np.concatenate([chosen, 1 - chosen.sum(axis=1, keepdims=True)], axis=1).cumsum(
        axis=1
    )
    state, total, alive = rng.integers(0, 16, rollouts), np.zeros(rollouts), np.arange(rollouts)
    while len(alive):
        to = (rng.random(len(alive))[:, None] > cumulative[state[alive]]).sum(axis=1)
        alive, to = alive[to < 16], to[to < 16]
        state[alive] = to
        total[alive] += reward[to]
    assert abs(total.mean() - exact) < 4 * total.std() / np.sqrt(rollouts)


@pytest.mark.usefixtures("x64")
def test_where_nobody_dies_the_return_is_discounted():
    p = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    ours = mdp.expected_return(
        tabular(p), Planning(discount=0.5), jnp.zeros((1, 2)), jnp.asarray([1.0, 3.0])
    )
    assert float(ours) == pytest.approx(((3 + 0.5 * 1) / 0.75 + (1 + 0.5 * 3) / 0.75) / 2, abs=1e-5)


def test_survival_is_the_largest_anywhere():
    p = np.array([[[0.1, 0.1], [0.5, 0.4]], [[0.3, 0.0], [0.2, 0.3]]])
    assert tabular(p).survival == pytest.approx(0.9)
    assert not tabular(p).even
    assert tabular(0.9 * np.full((2, 3, 3), 1 / 3)).even


@pytest.mark.parametrize("states", [3, 6, 7, 49])
def test_rows_that_miss_one_by_rounding_mean_that_nobody_dies(states):
    dynamics = tabular(np.full((2, states, states), 1 / states))
    assert dynamics.survival == 1
    ours = mdp.expected_return(dynamics, Planning(0.5), jnp.zeros((2, states)), jnp.ones(states))
    assert float(ours) == pytest.approx(2, rel=1e-4)


@pytest.mark.parametrize(
    ("transitions", "message"),
    [
        (np.ones((2, 3, 3)), "sum to 3, more than 1"),
        (np.ones((2, 3, 4)), "shape"),
        (np.full((1, 2, 2), -0.1), "not probabilities"),
        (np.full((1, 2, 2), np.nan), "not probabilities"),
        ([[[1, 0], [0]]], "real numbers"),
        ([[["a"]]], "real numbers"),
    ],
)
def test_tables_that_are_no_transitions_are_refused(transitions, message):
    with pytest.raises(ValueError, match=message):
        tabular(transitions)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "one cell"),
        ({"size": 3, "slip": 0.4}, "at most 1"),
        ({"size": 3, "death": -0.1}, "at most 1"),
    ],
)
def test_grids_that_are_none_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        grid(**options)
