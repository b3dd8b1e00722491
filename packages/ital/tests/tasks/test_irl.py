from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from scipy.special import log_softmax, logsumexp

import ital
from ital import mdp, tasks
from ital.errors import InputError, PrecisionWarning
from ital.figures import curve_panel
from ital.figures._pictures import draw_params
from ital.mdp import Planning, grid, tabular
from ital.tasks import Demonstrations, implicit_gradients
from tests.test_mdp import dense, random_transitions

SEEDS = st.integers(0, 2**31)


class World(NamedTuple):
    """A grid, or a table with shuffled one-hot or real features."""

    dynamics: mdp.Dynamics
    planning: Planning
    encoding: jax.Array | None
    parameters: int


def world_of(kind, discount, sharpness):
    """A few worlds, each with its compiled program; in the sharper one a single action matters."""
    rng = np.random.default_rng(int(sharpness))
    actions, states = (1, 2) if sharpness > 10 else (3, 6)
    dynamics = grid(3) if kind == "grid" else tabular(random_transitions(rng, actions, states))
    planning = Planning(discount, sharpness, tolerance=1e-12)
    encoding = {
        "grid": None,
        "shuffled": jnp.asarray(rng.permutation(dynamics.states)),
        "features": jnp.asarray(rng.normal(size=(dynamics.states, 3))),
    }[kind]
    return World(dynamics, planning, encoding, 3 if kind == "features" else dynamics.states)


def reward_of(encoding, weights):
    """The reward of every state: one-hot features are indices, or None if they are in order."""
    if encoding is None:
        return weights
    if encoding.ndim == 1:
        return weights[encoding]
    return encoding @ weights


def losses_by_unrolling(weights, world, examples, sweeps=150):
    reward = reward_of(world.encoding, weights)

    def sweep(_, values):
        return mdp.bellman(world.dynamics, world.planning, reward, values)[0]

    values = jax.lax.fori_loop(0, sweeps, sweep, jnp.zeros_like(reward))
    _, q = mdp.bellman(world.dynamics, world.planning, reward, values)
    return -mdp.log_policy(q)[examples.actions, examples.states]


@pytest.mark.parametrize(("discount", "sharpness"), [(0.0, 1.0), (0.8, 3.0), (0.5, 30.0)])
@pytest.mark.parametrize("kind", ["grid", "shuffled", "features"])
@pytest.mark.usefixtures("x64")
def test_gradients_are_those_of_an_unrolled_iteration_and_of_central_differences(
    kind, discount, sharpness
):
    world = world_of(kind, discount, sharpness)

    @jax.jit
    def computed(weights, states, actions, direction, mix, step=1e-5):
        examples = Demonstrations(states, actions, world.encoding, None)

        def planned(weights):
            reward = reward_of(world.encoding, weights)
            return mdp.plan(world.dynamics, world.planning, reward)

        def losses(weights):
            return -mdp.log_policy(planned(weights).q)[actions, states]

        ours = implicit_gradients(world.dynamics, world.planning, planned(weights), examples)
        gradients = jax.jacrev(losses_by_unrolling)(weights, world, examples)
        beyond = losses(weights + step * direction)
        before = losses(weights - step * direction)
        central = (beyond - before) / (2 * step)
        return (
            (ours.losses, losses_by_unrolling(weights, world, examples)),
            (ours.squared_norms, jnp.sum(gradients**2, axis=1)),
            (ours.inner(direction), gradients @ direction),
            (ours.weighted_sum(mix), mix @ gradients),
            (ours.inner(direction), central),
        )

    @given(seed=SEEDS)
    def check(seed):
        rng = np.random.default_rng(seed)
        weights = rng.uniform(-2, 2, world.parameters)
        direction = rng.normal(size=world.parameters)
        states = rng.integers(0, world.dynamics.states, 6)
        actions = rng.integers(0, world.dynamics.actions, 6)
        for got, wanted in computed(weights, states, actions, direction, rng.normal(size=6)):
            np.testing.assert_allclose(got, wanted, atol=1e-6)

    check()


def q_by_hand(reward, discount=0.5, sharpness=3.0):
    """What follows from a reward on a 3 × 3 grid: many sweeps over a table, in NumPy."""
    p, values = dense(grid(3)), np.zeros(9)
    for _ in range(80):
        q = p @ (reward + discount * values)
        values = logsumexp(sharpness * q, axis=0) / sharpness
    return q


@pytest.fixture
def small_map():
    """A task on a 3 × 3 grid, a reward that the learner has in mind, and the true one."""
    reward, mind = np.random.default_rng(0).uniform(-2, 2, (2, 9))
    return tasks.irl(reward.reshape(3, 3), sharpness=3.0, tolerance=1e-10), mind, reward


@pytest.mark.usefixtures("x64")
def test_the_teachers_volumes_are_their_formula(small_map):
    """−η²‖g‖² + 2η(l − l*) of every demonstration, by central differences in NumPy."""
    task, mind, reward = small_map
    world = jax.tree.map(jnp.asarray, task.world(0))
    states, actions = np.arange(9), np.arange(9) % 4
    drawn = jnp.asarray(states), jnp.asarray(actions)
    teacher_examples = task.rules.show(world.teacher.examples, drawn)
    previous = task.rules.first_previous(jnp.asarray(mind), world)
    feedback = task.rules.feedback(
        jnp.asarray(mind), task.rules.show(world.learner, drawn), previous
    )
    ours = task.rules.volumes(feedback, teacher_examples, world.teacher.target, 0.1)

    def losses(reward):
        return -log_softmax(q_by_hand(reward), axis=0)[actions, states]

    gradients = [(losses(mind + 1e-5 * e) - losses(mind - 1e-5 * e)) / 2e-5 for e in np.eye(9)]
    expected = -(0.1**2) * np.sum(np.square(gradients), axis=0) + 2 * 0.1 * (
        losses(mind) - losses(reward)
    )
    np.testing.assert_allclose(ours, expected, atol=1e-8)


@pytest.mark.usefixtures("x64")
def test_measurements_are_their_definitions(small_map):
    task, mind, reward = small_map
    got = task.rules.measure(jnp.asarray(mind), jax.tree.map(jnp.asarray, task.world(0)).truth)
    q, gap = q_by_hand(mind), mind - reward
    differences = np.abs(
        np.exp(log_softmax(q, axis=0)) - np.exp(log_softmax(q_by_hand(reward), axis=0))
    )
    leading = dense(grid(3))[np.argmax(q, axis=0), np.arange(9)]
    expected = {
        "distance": np.linalg.norm(gap),
        "distance_centred": np.linalg.norm(gap - gap.mean()),
        "policy_tv": np.mean(np.sum(differences, axis=0) / 2),
        "policy_gap": np.mean(np.max(differences, axis=0)),
        "reward": np.mean(np.linalg.solve(np.eye(9) - leading, leading @ reward)),
    }
    assert {name: float(value) for name, value in got.items()} == pytest.approx(expected, abs=1e-4)


@pytest.mark.usefixtures("x64")
def test_references_are_the_teachers_return_and_the_mean_that_nothing_moves(small_map):
    task, mind, reward = small_map
    truth = jax.tree.map(jnp.asarray, task.world(0)).truth
    lines = task.rules.references(jnp.asarray(mind), truth)
    leading = dense(grid(3))[np.argmax(q_by_hand(reward), axis=0), np.arange(9)]
    best = np.mean(np.linalg.solve(np.eye(9) - leading, leading @ reward))
    assert float(lines["reward"]["reference"]) == pytest.approx(best, abs=1e-4)
    assert float(task.rules.measure(truth.target, truth)["reward"]) == pytest.approx(best, abs=1e-4)
    assert float(task.rules.measure(jnp.asarray(mind), truth)["reward"]) < best - 0.01
    assert float(lines["distance"]["floor"]) == pytest.approx(3 * abs(np.mean(mind - reward)))


@pytest.mark.parametrize(
    ("make", "sharpness"), [(tasks.irl_dense, 220.0), (tasks.irl_sparse, 200.0)]
)
def test_the_papers_maps_are_planned_as_sharply_as_it_says(make, sharpness):
    """If all rewards are zero, V = (log 4)/k + 0.98·γV: four actions, and death with 0.02."""
    task = make(size=3)
    values = task.rules.first_previous(jnp.zeros(9), task.world(0))
    np.testing.assert_allclose(values, np.log(4) / sharpness / (1 - 0.98 * 0.5), rtol=1e-3)
    assert task.settings["sharpness"] == make().settings["sharpness"] == sharpness


def test_the_teacher_sees_the_same_world_in_another_order():
    world = tasks.irl_dense().world(0)
    assert (world.teacher.target[world.teacher.examples.encoding] == world.truth.target).all()
    assert not (world.teacher.target == world.truth.target).all()
    assert np.abs(world.truth.target).max() <= 2
    assert sorted(np.unique(tasks.irl_sparse().world(0).truth.target)) == [0, 1]
    assert tasks.irl_sparse().world(3).truth.target.sum() == 3


@pytest.mark.usefixtures("x64")
def test_a_table_with_features_is_the_grid_it_describes():
    """One-hot features in order change nothing: starts, lessons and curves are the fast path's."""
    cells = np.random.default_rng(0).uniform(-2, 2, (3, 3))
    p = np.stack([grid(3).expect(e) for e in jnp.eye(9)], axis=-1)
    table = tasks.irl_tabular(p, cells.ravel(), np.eye(9))
    curves = [ital.teach(task, steps=40, seeds=2).curves for task in (tasks.irl(cells), table)]
    for metric in ("distance", "distance_centred", "policy_tv", "policy_gap", "reward"):
        np.testing.assert_allclose(curves[0][metric], curves[1][metric], rtol=1e-8, err_msg=metric)


def test_the_floor_is_shown_only_where_the_mean_reward_cannot_be_told():
    p = random_transitions(np.random.default_rng(0), 2, 4)
    for task, shown in (
        (tasks.irl_tabular(p, np.arange(4.0)), False),
        (tasks.irl_dense(size=3), True),
    ):
        curves = ital.teach(task, learner="imt", steps=5, seeds=1).curves
        assert ("floor" in curves["distance"].attrs) == shown


@pytest.mark.usefixtures("x64")
def test_the_mean_reward_never_changes():
    result = ital.teach(tasks.irl_dense(size=3), learner=["imt", "ital"], steps=50, seeds=1)
    floor = float(np.ravel(result.curves["distance"].attrs["floor"])[0])
    target = tasks.irl_dense(size=3).world(0).truth.target
    for params in result.parameters.values():
        assert 3 * abs(np.mean(params[0] - target)) == pytest.approx(floor, rel=1e-5)


def test_maps_are_read_from_text_and_csv(tmp_path):
    expected = [[0, 1.5], [-2, 3]]
    for text in (
        "0 1.5\n-2 3\n",
        "0,1.5\n-2, 3",
        "# rewards\n\n0;1.5\n-2;3\n",
        "\ufeff0\t1.5\r\n-2\t3e0\r\n",
    ):
        file = tmp_path / "map.txt"
        file.write_text(text, encoding="utf-8")
        assert tasks.irl(file).title == "Online IRL, 2 × 2 map"
        assert tasks.irl(file).world(0).truth.target.tolist() == [0, 1.5, -2, 3]
    assert tasks.irl(file).settings["map"] == tasks.irl(np.array(expected)).settings["map"]
    assert tasks.irl(file).settings["map"] != tasks.irl(np.eye(2)).settings["map"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rewards"),
        ("1 2\n3\n", "line 2: 1 cells, but 2 in the rows above"),
        ("1 2\n#,#,#\n", "line 2: 3 cells, but 2 in the rows above"),
        ("0S,0G,#,0\n", r"no start leads to \(0, 3\)"),
        ("0G,#\n", "at least two cells without a wall"),
        ("0G,0G\n", "one of them without a goal"),
        ("0SG,0\n", r"start \(0, 0\) is a goal"),
        ("# here\n1 2\n3 x\n", "line 3: 'x' is not a number"),
        ("1 nan\n2 3\n", "line 1: 'nan' is not a number; a wall is #"),
        ("1 inf\n2 3\n", "not finite"),
        ("5\n", "at least two cells"),
    ],
)
def test_files_that_are_no_maps_are_refused(tmp_path, text, message):
    (tmp_path / "map").write_text(text)
    with pytest.raises(ValueError, match=message):
        tasks.irl(tmp_path / "map")


@pytest.mark.parametrize(
    "text",
    [
        "# a room\n0S,1,#,2\n#,#,#,0.5\n-1,0,0,3g\n",
        "0S;1;;2\n;;;0.5\n-1;0;0;3G\n",
        "#\n0S 1 # 2\n# # # 0.5\n-1 0 0 3G\n",
    ],
)
def test_maps_have_walls_goals_and_starts(tmp_path, text):
    """In the last row the robot cannot be, so a start there makes the map whole."""
    file = tmp_path / "map.csv"
    file.write_text(text.replace("-1", "-1S").replace("2\n", "2S\n", 1))
    picture = tasks.irl(file).picture
    rewards, _ = picture.grid(tasks.irl(file).world(0).truth.target)
    nan = np.nan
    expected = [[0, 1, nan, 2], [nan, nan, nan, 0.5], [-1, 0, 0, 3]]
    np.testing.assert_array_equal(rewards.filled(nan), expected)
    assert picture.goals == ((2, 3),)
    assert picture.starts == ((0, 0), (0, 3), (2, 0))
    same = tasks.irl(expected, goals=[(2, 3)], starts=[(2, 0), (0, 0), (0, 3)])
    assert tasks.irl(file).settings == same.settings
    assert tasks.irl(file).settings["states"] == 8
    assert tasks.irl(file).world(0).truth.target.tolist() == [0, 1, 2, 0.5, -1, 0, 0, 3]
    assert tasks.irl(expected).settings["map"] != same.settings["map"]


def test_arrays_have_walls_too_and_other_shapes_are_other_maps():
    walls = [
        tasks.irl([[0, None, 1], [2, 3, 4]]),
        tasks.irl([["0", "#", "1"], ["2", "3", "4"]]),
        tasks.irl(np.array([[0, np.nan, 1], [2, 3, 4]])),
    ]
    assert len({task.settings["map"] for task in walls}) == 1
    assert walls[0].title == "Online IRL, 2 × 3 map"
    flat, tall = tasks.irl(np.zeros((2, 6))), tasks.irl(np.zeros((6, 2)))
    assert flat.settings["map"] != tall.settings["map"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"goals": [(0, 1)]}, r"goal \(0, 1\) is a wall"),
        ({"goals": [(0, 3)]}, r"goal \(0, 3\) is not on a map of 2 × 3 cells"),
        ({"starts": [(0, 1, 2)]}, r"a start is a pair \(row, column\), not \(0, 1, 2\)"),
        ({"starts": [(-1, 0)]}, r"start \(-1, 0\) is not on a map"),
        ({"starts": [(0, 0)], "goals": [(1, 0)]}, r"no start leads to \(0, 2\)"),
    ],
)
def test_cells_that_cannot_be_goals_or_starts_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        tasks.irl([[0, None, 1], [2, 3, 4]], **options)


@pytest.mark.usefixtures("x64")
def test_a_map_with_walls_goals_and_starts_measures_what_its_table_says():
    """All metrics on a corridor with a goal, by value iteration over a table in NumPy."""
    reward, mind = np.random.default_rng(0).uniform(-2, 2, (2, 5))
    cells = [[reward[0], None], [reward[1], reward[2]], [reward[3], reward[4]]]
    task = tasks.irl(cells, goals=[(2, 1)], starts=[(0, 0), (1, 0)], sharpness=3.0, tolerance=1e-10)
    moves = {0: (0, 1, 0, 0), 1: (0, 3, 1, 2), 2: (2, 4, 1, 2), 3: (1, 3, 3, 4)}
    p = np.zeros((4, 5, 5))
    for state, ways in moves.items():  # nothing leads out of the goal, state 4
        for action in range(4):
            for way, to in enumerate(ways):
                p[action, state, to] += 0.80 if way == action else 0.06

    def q_of(reward):
        values = np.zeros(5)
        for _ in range(80):
            q = p @ (reward + 0.5 * values)
            values = np.append(logsumexp(3.0 * q, axis=0)[:4] / 3.0, 0.0)
        return q

    truth = jax.tree.map(jnp.asarray, task.world(0)).truth
    np.testing.assert_allclose(truth.target, reward)
    q = q_of(mind)
    policies = [np.exp(log_softmax(each, axis=0))[:, :4] for each in (q, q_of(reward))]
    differences = np.abs(policies[0] - policies[1])
    leading = p[np.argmax(q, axis=0), np.arange(5)]
    returns = np.linalg.solve(np.eye(5) - leading, leading @ reward)
    got = task.rules.measure(jnp.asarray(mind), truth)
    assert float(got["policy_tv"]) == pytest.approx(
        np.mean(np.sum(differences, axis=0) / 2), abs=1e-6
    )
    assert float(got["policy_gap"]) == pytest.approx(np.mean(np.max(differences, axis=0)), abs=1e-6)
    assert float(got["reward"]) == pytest.approx(np.mean(returns[:2]), abs=1e-6)
    states, _ = task.rules.draw(jax.random.key(0), jax.tree.map(jnp.asarray, task.world(0)), 400)
    assert sorted(set(np.asarray(states).tolist())) == [0, 1, 2, 3]
    assert "distance" not in task.rules.references(jnp.asarray(mind), truth)


def test_pictures_leave_walls_and_goals_without_arrows():
    task = tasks.irl([["0S", "#", "1G"], ["2", "3", "4"]])
    params = np.array([0, 1, np.nan, 3, 4])
    values, policy = task.picture.grid(params)
    assert values.mask.tolist() == [[False, True, False], [False, False, False]]
    assert np.argwhere(policy.mask[0]).tolist() == [[0, 1], [0, 2]]
    figure = Figure()
    axis = figure.subplots()
    draw_params(axis, task.picture, params, 2.0)
    written = [text.get_text() for text in axis.texts]
    assert written == ["0.0", "1.0", "×", "3.0", "4.0"]
    assert len(axis.patches) == 2  # the goal's frame and the start's
    assert task.picture.note(params, np.ones(5)) == "diverged"


def test_the_line_of_reward_is_the_teachers_own_policy():
    """The teacher plans with γ, the metric does not discount: a learner can earn more."""
    cells = np.array([[0.0, 0.3, -1.0, 5.0]])
    task = tasks.irl(cells, slip=0.0, death=0.01, discount=0.2)
    truth = jax.tree.map(jnp.asarray, task.world(0)).truth
    own = float(task.rules.references(truth.target, truth)["reward"]["reference"])
    patient = jnp.array([0.0, 1.0, 2.0, 10.0])
    assert float(task.rules.measure(patient, truth)["reward"]) > own + 1
    curves = ital.teach(tasks.irl_dense(size=3), learner="imt", steps=5, seeds=1).curves
    panel = curve_panel(curves, task, "reward")
    words = [mark["words"] for mark in panel["marks"] if mark["kind"] == "rule"]
    assert words == ["teacher's own policy"]


def test_missing_and_binary_map_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match="No such file"):
        tasks.irl(tmp_path / "nowhere.csv")
    (tmp_path / "binary").write_bytes(bytes(range(128, 256)))
    with pytest.raises(ValueError, match="not a text file"):
        tasks.irl(tmp_path / "binary")
    with pytest.raises(ValueError, match="--map FILE"):
        tasks.irl()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sharpness": 0.0}, "sharpness"),
        ({"sharpness": -5.0}, "sharpness"),
        ({"discount": 1.0, "death": 0.0}, "discount"),
        ({"discount": -0.1}, "discount"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"slip": 0.5}, "slip"),
    ],
)
def test_worlds_without_an_end_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        tasks.irl(np.eye(3), **options)


def test_discount_one_is_fine_where_everybody_dies():
    curves = ital.teach(
        tasks.irl(np.eye(3), discount=1.0, death=0.1), learner="imt", steps=5, seeds=1
    ).curves
    assert np.isfinite(curves["reward"].values).all()


def test_no_value_is_lost_near_one_on_a_map_with_walls():
    """Where float32 cannot reach the tolerance, planning stops at what it can reach.

    The quick version of benchmarks/irl_discounts.py.
    """
    cells = np.random.default_rng(0).uniform(-2, 2, (3, 4))
    cells[1, 1] = np.nan
    task = tasks.irl(cells, goals=[(0, 3)], discount=0.99)
    result = ital.teach(task, learner=["imt", "ital", "ital-2"], steps=20, seeds=2)
    for metric in task.metrics:
        assert np.isfinite(result.curves[metric].values).all(), metric


def test_values_too_large_for_the_precision_are_named():
    with pytest.warns(
        PrecisionWarning,
        match=r"values reach 8.8e\+04, so float32 tells actions apart only to about 0.3",
    ):
        tasks.irl(np.eye(2), discount=0.99999, death=0.0).world(0)
    with pytest.raises(InputError, match="too large for float32: lower the discount"):
        tasks.irl(np.array([[1e38, 0.0], [0.0, 0.0]]), discount=0.9).world(0)


ROOMS = mdp.grid((3, 4), walls=((1, 1), (1, 2), (2, 2)), goals=((0, 3),))


@pytest.mark.parametrize(("dynamics", "discount"), [(grid(3), 0.5), (grid(3), 0.99), (ROOMS, 0.99)])
@pytest.mark.usefixtures("x64")
def test_sharp_gradients_are_central_differences_at_every_discount(dynamics, discount):
    planning = Planning(discount, 220.0, tolerance=1e-12)
    rng = np.random.default_rng(1)
    reward, step = jnp.asarray(rng.uniform(-2, 2, 9)), 1e-6
    shown = Demonstrations(jnp.arange(9), jnp.arange(9) % 4, None, None)
    planned = jax.jit(lambda reward: mdp.plan(dynamics, planning, reward))

    def losses(reward):
        return -np.asarray(mdp.log_policy(planned(reward).q))[shown.actions, shown.states]

    ours = implicit_gradients(dynamics, planning, planned(reward), shown)
    for direction in jnp.eye(9):
        beyond = losses(reward + step * direction)
        before = losses(reward - step * direction)
        central = (beyond - before) / (2 * step)
        np.testing.assert_allclose(ours.inner(direction), central, atol=1e-5)


@pytest.mark.parametrize(
    ("weights", "features", "message"),
    [
        (np.zeros(3), None, "weights have shape"),
        (np.zeros(2), np.zeros((3, 2)), "features have shape"),
        (np.zeros(3), np.zeros((4, 2)), "weights have shape"),
        (np.full(4, np.nan), None, "finite"),
        (np.zeros(0), np.zeros((4, 0)), "features have shape"),
        (np.zeros(4, complex), None, "real numbers"),
    ],
)
def test_tables_with_wrong_features_are_refused(weights, features, message):
    with pytest.raises(ValueError, match=message):
        tasks.irl_tabular(random_transitions(np.random.default_rng(0), 2, 4), weights, features)
