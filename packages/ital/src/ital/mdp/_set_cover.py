"""Teaching a policy by set cover: few demonstrations leave only rewards with the same policy.

Brown and Niekum (2019). A learner that sees action a in state s concludes that a is best there: w
lies in the half-space ⟨w, μ(s,a) − μ(s,b)⟩ ≥ 0 of every other action b. The half-spaces of all
states make a cone of rewards. Few of them bound it, and few demonstrations reveal these.

Where a and b are equally good, both are shown somewhere, and the two half-spaces leave an equality.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ital.errors import InputError
from ital.mdp._dynamics import Dynamics, following, real, tabular
from ital.tools.platform import double_precision

Array = np.ndarray

EQUAL = 1e-6  # normals that differ by less are one; float32 tables are this exact
MOST_ROUNDS = 1000
THINNED = 20  # moves of hit-and-run between two samples


class Cover(NamedTuple):
    """Demonstrations that reveal every half-space that matters.

    Attributes:
        demonstrations: the trajectories shown, each with the states and the actions in two columns
            (H, 2).
        constraints: unit normals of the half-spaces that bound the cone (m, d). An equality is two
            of them, n and −n.
        policy: an optimal action of every state (S,), of equally good ones the first.
        optimal: whether each action is optimal (A, S).
        normals: the unit normal of μ(s,a) − μ(s,b) for every optimal action a of s and every b
            (S, A, A, d); zero if a is not optimal, or b as good for every reward.
        candidates: the trajectories that could have been shown.
    """

    demonstrations: list[Array]
    constraints: Array
    policy: Array
    optimal: Array
    normals: Array
    candidates: list[Array]


def set_cover(
    transitions: ArrayLike | Dynamics,
    weights: ArrayLike,
    features: ArrayLike | None = None,
    *,
    discount: float = 0.5,
    length: int = 5,
    starts: Sequence[int] | None = None,
    rollouts: int = 1,
    seed: int = 0,
) -> Cover:
    """Choose demonstrations of optimal actions that reveal every half-space that bounds their cone.

    Candidates are trajectories that start in each of ``starts`` with each action that is optimal
    there. The cone is that of the starts' half-spaces. The first three arguments are those of
    :func:`ital.tasks.irl_tabular`.

    Args:
        transitions: the table (A, S, S), or the dynamics of a grid.
        weights: weights of the reward (d,).
        features: features of the states (S, d); None for one weight per state.
        discount: the discount γ.
        length: number of states in a trajectory, fewer if it ends in death.
        starts: the states in which trajectories start; None for all.
        rollouts: number of trajectories from each start with each action.
        seed: seed of the trajectories.

    Returns:
        The demonstrations, what they reveal, and what they were chosen from.

    Raises:
        InputError: if shapes do not fit, planning would not end, or there would be no trajectory.
    """
    if isinstance(transitions, Dynamics):
        p = table(transitions)
    else:
        p = real("transitions", transitions)
    dynamics = tabular(p)
    states = dynamics.states
    encoded, target = _checked_reward(features, weights, states)
    if not (discount >= 0 and discount * dynamics.survival < 1):
        raise InputError(
            f"the discount must be below 1 unless every step can end in death, not {discount}"
        )
    _check_trajectories(length, rollouts)
    from_states = _checked_starts(starts, states)

    policy = optimal_policy(p, encoded @ target, discount)
    counts = feature_counts(p, encoded, policy, discount)
    optimal = optimal_actions(counts, target)
    normals = half_spaces(counts, optimal)
    constraints = irredundant(normals[from_states])
    candidates = trajectories(p, optimal, length, from_states, rollouts, seed)
    return Cover(
        demonstrations=_covering(candidates, normals, constraints),
        constraints=constraints,
        policy=policy,
        optimal=optimal,
        normals=normals,
        candidates=candidates,
    )


def _checked_reward(
    features: ArrayLike | None,
    weights: ArrayLike,
    states: int,
) -> tuple[Array, Array]:
    """Return the features (S, d) and their weights (d,); raise InputError if they do not fit."""
    encoded = np.eye(states)
    if features is not None:
        encoded = real("features", features)
    target = real("weights", weights)
    has_rows = encoded.ndim == 2 and len(encoded) == states
    if not has_rows or target.shape != encoded.shape[1:]:
        raise InputError(
            f"features have shape {encoded.shape} and weights {target.shape}, "
            f"expected ({states}, d) and (d,)"
        )
    return encoded, target


def _check_trajectories(length: int, rollouts: int) -> None:
    """Raise InputError for trajectories without a state, or for none at all."""
    if length < 1:
        raise InputError(f"length {length}: a trajectory needs at least one state")
    if rollouts < 1:
        raise InputError(f"rollouts {rollouts}: at least one trajectory is needed from each start")


def _checked_starts(starts: Sequence[int] | None, states: int) -> Array:
    """Return the distinct states in which trajectories start, in order."""
    if starts is None:
        return np.arange(states)
    distinct = np.unique(np.asarray(starts, int))
    last = states - 1
    if not len(distinct) or distinct.min() < 0 or distinct.max() > last:
        raise InputError(f"starts must be states from 0 to {last}, at least one")
    return distinct


def optimal_policy(
    transitions: Array,
    reward: Array,
    discount: float,
) -> Array:
    """Find the best action of every state, by policy iteration; of equally good ones the first.

    Args:
        transitions: the table (A, S, S).
        reward: reward of every state (S,), obtained on entering it.
        discount: the discount γ.

    Returns:
        The actions (S,).
    """
    policy = np.zeros(transitions.shape[1], int)
    # With the reward as the only feature, the expected features are Q.
    as_feature = reward[:, None]
    for _ in range(MOST_ROUNDS):
        counts = feature_counts(transitions, as_feature, policy, discount)
        q = counts[..., 0]  # (A, S)
        # Rounding must not decide between equally good actions, or the policy would never settle.
        rounding = 1e-10 * (1 + np.abs(q).max())
        is_best = q > q.max(axis=0) - rounding
        better = np.argmax(is_best, axis=0)
        if np.array_equal(better, policy):
            break
        policy = better
    return policy


def feature_counts(
    transitions: Array,
    features: Array,
    policy: Array,
    discount: float,
) -> Array:
    """Return μ(s,a) = Σ P(s′|s,a)[φ(s′) + γμ(s′,π(s′))].

    These are the expected features after an action, then following a policy.

    Args:
        transitions: the table (A, S, S).
        features: features φ of the states (S, d).
        policy: the action of every state (S,).
        discount: the discount γ.

    Returns:
        The counts (A, S, d); ⟨w, μ⟩ is Q.
    """
    states = len(policy)
    followed = transitions[policy, np.arange(states)]  # P_π (S, S)
    # The features to come from each state, μ(s,π(s)), solve (I − γP_π)μ = P_πφ.
    undiscounted = np.eye(states) - discount * followed
    ahead = np.linalg.solve(undiscounted, followed @ features)
    return transitions @ (features + discount * ahead)


def optimal_actions(counts: Array, weights: Array) -> Array:
    """Tell which actions are optimal: all whose ⟨w, μ⟩ differs from the best only by rounding.

    Args:
        counts: expected features μ of following an optimal policy (A, S, d).
        weights: weights w of the reward (d,).

    Returns:
        Whether each action is optimal (A, S).
    """
    q = counts @ weights
    largest_count = np.linalg.norm(counts, axis=-1).max()
    scale = np.linalg.norm(weights) * largest_count
    return q >= q.max(axis=0) - EQUAL * scale


def half_spaces(counts: Array, optimal: Array) -> Array:
    """Return the unit normals of μ(s,a) − μ(s,b).

    Rewards for which the actions a are optimal have no negative product with them.

    Args:
        counts: expected features μ (A, S, d).
        optimal: whether each action is optimal (A, S).

    Returns:
        The normals (S, A, A, d), by state, optimal action a and other action b; zero where a is not
        optimal or there is no difference.
    """
    by_state = counts.swapaxes(0, 1)  # (S, A, d)
    differences = by_state[:, :, None] - by_state[:, None]  # (S, A, A, d)
    is_optimal = optimal.T[:, :, None, None]
    gaps = differences * is_optimal
    lengths = np.linalg.norm(gaps, axis=-1, keepdims=True)
    # Gaps of no length stay zero: the division must not see them.
    units = gaps / np.maximum(lengths, EQUAL)
    return np.where(lengths > EQUAL, units, 0.0)


def irredundant(normals: Array) -> Array:
    """Return the half-spaces that bound a cone.

    Zeros and duplicates do not, nor those that follow from the others. n follows from the others if
    no w with ⟨w, n′⟩ ≥ 0 for all of them has ⟨w, n⟩ < 0: a linear program.

    Args:
        normals: unit normals (…, d).

    Returns:
        Those that matter (m, d).
    """
    from scipy.optimize import linprog

    dim = normals.shape[-1]
    kept = _distinct(normals)
    for normal in list(kept):
        others = [other for other in kept if other is not normal]
        if not others:
            continue
        # The smallest ⟨w, n⟩ of all w in the cube for which the others hold.
        least = linprog(
            c=normal,
            A_ub=-np.array(others),
            b_ub=np.zeros(len(others)),
            bounds=(-1, 1),
        )
        if least.fun > -EQUAL:
            kept = others
    return np.array(kept).reshape(-1, dim)


def trajectories(
    transitions: Array,
    optimal: Array,
    length: int,
    starts: Sequence[int] | Array | None = None,
    rollouts: int = 1,
    seed: int = 0,
) -> list[Array]:
    """Draw different trajectories of optimal actions, from each start with each optimal action.

    Where several actions are optimal, later steps take one of them at random.

    Args:
        transitions: the table (A, S, S).
        optimal: whether each action is optimal (A, S).
        length: number of states in each, fewer if it ends in death.
        starts: the states in which they start; None for all.
        rollouts: number of trajectories from each start with each action, before equal ones are
            dropped.
        seed: seed of the transitions.

    Returns:
        States and actions in two columns, each (H, 2).
    """
    rng = np.random.default_rng(seed)
    paths: dict[bytes, Array] = {}  # by content, so that equal ones are one
    states = optimal.shape[1]
    if starts is None:
        starts = np.arange(states)
    for start in map(int, starts):
        best_actions = np.flatnonzero(optimal[:, start])
        # Every first action, as often as there are rollouts.
        for first in np.repeat(best_actions, rollouts).tolist():
            path = _rollout(rng, transitions, optimal, length, start, first)
            paths.setdefault(path.tobytes(), path)
    return list(paths.values())


def _rollout(
    rng: np.random.Generator,
    transitions: Array,
    optimal: Array,
    length: int,
    state: int,
    action: int,
) -> Array:
    """Draw one trajectory that begins with a given action (H, 2)."""
    states = optimal.shape[1]
    path = [(state, action)]
    while len(path) < length:
        up_to = np.cumsum(transitions[action, state])  # probabilities of the states up to each
        drawn = np.searchsorted(up_to, rng.random(), side="right")
        state = int(drawn)
        if state == states:
            break  # a number beyond all states is death
        best = np.flatnonzero(optimal[:, state])
        action = int(best[0])
        if len(best) > 1:
            action = int(rng.choice(best))
        path.append((state, action))
    return np.array(path)


def revealed(normals: Array, demonstrations: Sequence[Array]) -> Array:
    """Return the half-spaces that demonstrations reveal: those of the actions shown.

    Args:
        normals: the normals of all states and optimal actions (S, A, A, d).
        demonstrations: trajectories, each (H, 2).

    Returns:
        The distinct ones (n, d).
    """
    dim = normals.shape[-1]
    pairs = np.unique(np.concatenate(demonstrations), axis=0)
    states, actions = pairs.T
    of_shown = _distinct(normals[states, actions])
    return np.array(of_shown).reshape(-1, dim)


def rewards_within(normals: Array, count: int, seed: int = 0) -> Array:
    """Sample weights uniformly from a cone, as far as it lies in the unit ball, by hit-and-run.

    A cone that equalities make flat is sampled in the subspace that they leave.

    Args:
        normals: unit normals of the half-spaces (n, d).
        count: number of samples.
        seed: seed of the samples.

    Returns:
        The weights (count, d).

    Raises:
        InputError: if the cone is a single point, the reward 0.
    """
    deepest, depth = _deepest(normals)
    if depth < EQUAL:
        return _rewards_within_flat(normals, count, seed)
    rng = np.random.default_rng(seed)
    # The deepest point of the cube may lie outside the ball; half of it is inside.
    length = float(np.linalg.norm(deepest))
    w = deepest / (2 * max(1.0, length))
    samples = np.empty((count, len(w)))
    for sample in samples:
        for _ in range(THINNED):
            w = _moved_along_a_line(w, normals, rng)
        sample[:] = w
    return samples


def _moved_along_a_line(
    w: Array,
    normals: Array,
    rng: np.random.Generator,
) -> Array:
    """Move along a random line through w, to any point within the ball and the half-spaces."""
    gauss = rng.normal(size=len(w))
    v = gauss / np.linalg.norm(gauss)
    low, high = _ends_in_ball(w, v)
    slack = normals @ w
    speed = normals @ v
    # Going along v, one enters the half-spaces that it points into, and leaves the others.
    is_entered = speed > 0
    is_left = speed < 0
    entering = -slack[is_entered] / speed[is_entered]
    leaving = -slack[is_left] / speed[is_left]
    low = np.max(np.append(entering, low))
    high = np.min(np.append(leaving, high))
    return w + rng.uniform(low, high) * v


def _rewards_within_flat(normals: Array, count: int, seed: int) -> Array:
    """Sample from a cone without an inside, in the subspace that its equalities leave."""
    is_equality = np.array([_is_equality(normal, normals) for normal in normals])
    equalities = normals[is_equality]
    inequalities = normals[~is_equality]
    _, lengths, directions = np.linalg.svd(equalities)
    # Directions beyond the rank are orthogonal to all equalities.
    rank = np.count_nonzero(lengths > EQUAL)
    basis = directions[rank:]
    if not len(basis):
        raise InputError("only the reward 0 agrees with these half-spaces")
    inside = inequalities @ basis.T
    inside /= np.linalg.norm(inside, axis=1, keepdims=True)
    in_subspace = rewards_within(inside, count, seed)
    return in_subspace @ basis


def _ends_in_ball(w: Array, v: Array) -> tuple[float, float]:
    """Return the x with ‖w + xv‖ = 1 for a unit vector v."""
    # The roots of x² + 2⟨w,v⟩x + ‖w‖² − 1.
    middle = -float(w @ v)
    discriminant = middle**2 + 1 - w @ w
    half = math.sqrt(discriminant)
    return middle - half, middle + half


def _deepest(normals: Array) -> tuple[Array, float]:
    """Return the point of the unit cube that is deepest within half-spaces, and how deep."""
    from scipy.optimize import linprog

    n, d = normals.shape
    if not n:
        return np.zeros(d), 1.0
    # The unknowns are w and the depth x ≤ 1: maximise x with ⟨w, n⟩ ≥ x for all n.
    weight_bounds = [(-1, 1)] * d
    found = linprog(
        c=np.append(np.zeros(d), -1.0),
        A_ub=np.hstack([-normals, np.ones((n, 1))]),
        b_ub=np.zeros(n),
        bounds=[*weight_bounds, (None, 1)],
    )
    *deepest, depth = found.x
    return np.array(deepest), float(depth)


def _is_equality(normal: Array, normals: Array) -> bool:
    """Tell whether no point of a cone is within a half-space, only on its boundary."""
    from scipy.optimize import linprog

    furthest = linprog(
        c=-normal,
        A_ub=-normals,
        b_ub=np.zeros(len(normals)),
        bounds=(-1, 1),
    )
    return -furthest.fun < EQUAL


def table(dynamics: Dynamics) -> Array:
    """Return the transitions of any dynamics as a table, for instance of a grid.

    Args:
        dynamics: the transitions.

    Returns:
        P(s′|s,a) as (A, S, S).
    """
    with double_precision():  # float32 would tell equally good actions apart
        # One policy for each action, which always takes it (A, A, S).
        each_action = jnp.eye(dynamics.actions)
        policies = each_action[:, :, None] * jnp.ones(dynamics.states)
        by_action = [following(dynamics, policy) for policy in policies]
        return np.stack([np.asarray(p, float) for p in by_action])


def _distinct(normals: Array) -> list[Array]:
    """Return the rows that are neither zero nor equal to an earlier one."""
    dim = normals.shape[-1]
    kept: list[Array] = []
    for normal in normals.reshape(-1, dim):
        if not np.any(normal):
            continue
        is_kept = kept and _matches(normal[None], np.array(kept)).any()
        if not is_kept:
            kept.append(normal)
    return kept


def _matches(normals: Array, among: Array) -> Array:
    """Tell whether each normal is among the others."""
    differences = np.abs(normals[:, None] - among)
    largest_differences = np.max(differences, axis=-1)
    return np.any(largest_differences < EQUAL, axis=1)


def _covering(
    candidates: list[Array],
    normals: Array,
    constraints: Array,
) -> list[Array]:
    """Return few of the candidates that reveal all constraints (m, d) together."""
    # Whether each candidate reveals each constraint (candidates, m).
    reveals = np.array([_matches(constraints, revealed(normals, [one])) for one in candidates])
    return [candidates[i] for i in _greedy_cover(reveals)]


def _greedy_cover(reveals: Array) -> list[int]:
    """Return rows that together hold every column: always the one with most that are missing."""
    chosen: list[int] = []
    is_missing = np.ones(reveals.shape[1], bool)
    while is_missing.any():
        adds = np.sum(reveals & is_missing, axis=1)
        best = int(np.argmax(adds))
        chosen.append(best)
        is_missing &= ~reveals[best]
    return chosen
