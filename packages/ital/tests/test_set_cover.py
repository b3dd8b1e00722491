"""Teaching by set cover, against Farkas' lemma, value iteration and random demonstrations."""

import numpy as np
import pytest
from scipy.optimize import nnls

from ital import mdp, tasks
from ital.errors import InputError

DISCOUNT, SIZE, KINDS = 0.9, 5, 4


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(0)
    features = np.eye(KINDS)[rng.integers(0, KINDS, SIZE * SIZE)]
    return mdp.table(mdp.grid(SIZE)), rng.normal(size=KINDS), features


@pytest.fixture(scope="module")
def cover(world):
    return mdp.set_cover(*world, discount=DISCOUNT, length=4)


def q_values(transitions, reward):
    """Q (A, S) by value iteration with a hard maximum."""
    values = np.zeros(len(reward))
    for _ in range(500):
        q = transitions @ (reward + DISCOUNT * values)
        values = q.max(axis=0)
    return q


def is_optimal(policy, transitions, reward):
    q = q_values(transitions, reward)
    return np.all(q[policy, np.arange(len(policy))] >= q.max(axis=0) - 1e-7)


def outside(normal, others):
    """How far a normal is from the cone of others; by Farkas' lemma 0 means: redundant."""
    return nnls(np.transpose(others), normal)[1]


def test_feature_counts_and_policy_are_those_of_value_iteration(world, cover):
    transitions, weights, features = world
    q = q_values(transitions, features @ weights)
    np.testing.assert_array_equal(cover.policy, q.argmax(axis=0))
    counts = mdp.feature_counts(transitions, features, cover.policy, DISCOUNT)
    np.testing.assert_allclose(counts @ weights, q, atol=1e-9)


def test_every_uncovered_half_space_is_redundant_and_no_covered_one_is(cover):
    known = mdp.revealed(cover.normals, cover.demonstrations)
    for normal in cover.normals.reshape(-1, KINDS):
        assert outside(normal, known) < 1e-5
    for i, normal in enumerate(cover.constraints):
        assert np.abs(known - normal).max(axis=1).min() < 1e-6
        assert outside(normal, np.delete(cover.constraints, i, axis=0)) > 1e-5
    assert len(cover.demonstrations) <= len(cover.constraints) < len(cover.normals)


def test_rewards_that_agree_with_the_cover_have_its_policy_unlike_those_of_random_ones(
    world, cover
):
    transitions, _, features = world
    rng = np.random.default_rng(1)
    chosen = rng.choice(len(cover.candidates), len(cover.demonstrations), replace=False)

    def right(demonstrations):
        sampled = mdp.rewards_within(mdp.revealed(cover.normals, demonstrations), 40)
        return [is_optimal(cover.policy, transitions, features @ weights) for weights in sampled]

    assert all(right(cover.demonstrations))
    assert not all(right([cover.candidates[i] for i in chosen]))


def test_candidates_are_trajectories_of_the_policy(world, cover):
    transitions = world[0]
    assert [one[0, 0] for one in cover.candidates] == list(range(SIZE * SIZE))
    for one in cover.candidates:
        np.testing.assert_array_equal(one[:, 1], cover.policy[one[:, 0]])
        assert np.all(transitions[one[:-1, 1], one[:-1, 0], one[1:, 0]] > 0)
    assert max(map(len, cover.candidates)) == 4


def test_samples_fill_the_cone():
    corner = mdp.rewards_within(np.eye(2), 1500)
    assert np.all(corner >= 0)
    # A quarter of the unit disc: the mean of a coordinate is 4/(3π), and E‖w‖² = 1/2.
    np.testing.assert_allclose(corner.mean(axis=0), 4 / (3 * np.pi), atol=0.03)
    assert np.mean(np.sum(corner**2, axis=1)) == pytest.approx(0.5, abs=0.03)


def test_redundant_half_spaces_of_a_known_cone():
    normals = np.array([[1, 0], [0, 1], [0.6, 0.8], [1, 0], [0, 0]])
    np.testing.assert_array_equal(mdp.irredundant(normals), [[1, 0], [0, 1]])


def test_a_task_and_its_cover_take_the_same_arguments(world, cover):
    teacher = tasks.irl_tabular(*world, discount=DISCOUNT).world(0).teacher
    np.testing.assert_array_equal(np.argmax(teacher.examples.log_policy, axis=0), cover.policy)


def test_bad_input_is_refused(world):
    transitions, weights, features = world
    with pytest.raises(InputError, match="expected \\(25, d\\) and \\(d,\\)"):
        mdp.set_cover(transitions, weights[:2], features)
    with pytest.raises(InputError, match="discount must be below 1"):
        mdp.set_cover(transitions, weights, features, discount=1.1)
    with pytest.raises(InputError, match="at least one state"):
        mdp.set_cover(transitions, weights, features, length=0)
    with pytest.raises(InputError, match="from 0 to 24"):
        mdp.set_cover(transitions, weights, features, starts=[25])
    with pytest.raises(InputError, match="at least one"):
        mdp.set_cover(transitions, weights, features, starts=[])
    with pytest.raises(InputError, match="rollouts 0"):
        mdp.set_cover(transitions, weights, features, rollouts=0)
    with pytest.raises(InputError, match="only the reward 0"):
        mdp.rewards_within(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]), 3)


@pytest.fixture(scope="module")
def tied():
    """Four cells in a square, the last one rewarding: from the first, right is as good as down."""
    return mdp.table(mdp.grid(2, slip=0.0, death=0.0)), np.array([0.0, 0.0, 0.0, 1.0])


def best_actions(transitions, reward):
    q = q_values(transitions, reward)
    return q >= q.max(axis=0) - 1e-7


def test_equally_good_actions_stay_equally_good(tied):
    transitions, reward = tied
    best = best_actions(transitions, reward)
    assert best[:, 0].tolist() == [False, True, False, True]
    cover = mdp.set_cover(*tied, discount=DISCOUNT, length=1)
    np.testing.assert_array_equal(cover.optimal, best)
    known = mdp.revealed(cover.normals, cover.demonstrations)
    rewards = mdp.rewards_within(known, 60)
    assert np.linalg.matrix_rank(rewards) > 1
    for sampled in rewards:
        np.testing.assert_array_equal(best_actions(transitions, sampled), best)
    for normal in cover.normals.reshape(-1, 4):
        assert outside(normal, known) < 1e-5


def test_a_cone_between_two_half_spaces_is_sampled_where_it_is():
    flat = mdp.rewards_within(np.array([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0]]), 1500)
    np.testing.assert_allclose(flat[:, 0], 0.0, atol=1e-9)
    assert np.all(flat[:, 1] >= 0)
    # Half of the unit disc: the mean of the coordinate across it is 4/(3π).
    np.testing.assert_allclose(flat.mean(axis=0), [0, 4 / (3 * np.pi), 0], atol=0.04)
    hidden = np.array([[1.0, 0], [-0.6, 0.8], [-0.6, -0.8]])  # an equality that no pair spells out
    with pytest.raises(InputError, match="only the reward 0"):
        mdp.rewards_within(hidden, 3)


def test_demonstrations_begin_in_the_starts_and_several_rollouts_differ(world, tied):
    starts = [3, 7, 12]
    cover = mdp.set_cover(*world, discount=DISCOUNT, length=4, starts=starts, rollouts=5)
    assert {one[0, 0] for one in cover.candidates} == set(starts)
    assert len(starts) < len(cover.candidates) <= 15
    assert len({one.tobytes() for one in cover.candidates}) == len(cover.candidates)
    known = mdp.revealed(cover.normals, cover.demonstrations)
    for normal in cover.normals[starts].reshape(-1, KINDS):
        assert outside(normal, known) < 1e-5
    first = mdp.set_cover(*tied, discount=DISCOUNT, length=3, starts=[0]).candidates
    assert sorted(one[0].tolist() for one in first) == [[0, 1], [0, 3]]
