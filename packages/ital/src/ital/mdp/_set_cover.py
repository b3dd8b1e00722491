"""Teaching a policy by set cover: few demonstrations that leave only rewards with the same optimal
policy.

Brown and Niekum (2019). A learner that sees action a in state s concludes that a is best there: w
lies in the half-space ⟨w, μ(s,a) − μ(s,b)⟩ ≥ 0 of every other action b. The half-spaces of all
states make a cone of rewards. Few of them bound it, and few demonstrations reveal these.

Where a and b are equally good, both are shown somewhere, and the two half-spaces leave an equality.
"""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from ital.errors import InputError
from ital.mdp._dynamics import Dynamics, following, real, tabular

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

    demonstrations: list[np.ndarray]
    constraints: np.ndarray
    policy: np.ndarray
    optimal: np.ndarray
    normals: np.ndarray
    candidates: list[np.ndarray]


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
    """Choose demonstrations of optimal actions greedily, until they reveal every half-space that
    bounds their cone.

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
    p = (
        table(transitions)
        if isinstance(transitions, Dynamics)
        else real("transitions", transitions)
    )
    dynamics = tabular(p)
    encoded = np.eye(dynamics.states) if features is None else real("features", features)
    target = real("weights", weights)
    if encoded.ndim != 2 or len(encoded) != dynamics.states or target.shape != encoded.shape[1:]:
        raise InputError(
            f"features have shape {encoded.shape} and weights {target.shape}, expected ({dynamics.states}, d) and (d,)"
        )
    if not (discount >= 0 and discount * dynamics.survival < 1):
        raise InputError(
            f"the discount must be below 1 unless every step can end in death, not {discount}"
        )
    if length < 1:
        raise InputError(f"length {length}: a trajectory needs at least one state")
    if rollouts < 1:
        raise InputError(f"rollouts {rollouts}: at least one trajectory is needed from each start")
    from_states = (
        np.arange(dynamics.states) if starts is None else np.unique(np.asarray(starts, int))
    )
    if not len(from_states) or from_states[0] < 0 or from_states[-1] >= dynamics.states:
        raise InputError(f"starts must be states from 0 to {dynamics.states - 1}, at least one")
    policy = optimal_policy(p, encoded @ target, discount)
    counts = feature_counts(p, encoded, policy, discount)
    optimal = optimal_actions(counts, target)
    normals = half_spaces(counts, optimal)
    constraints = irredundant(normals[from_states])
    candidates = trajectories(p, optimal, length, from_states, rollouts, seed)
    reveals = [_matches(constraints, revealed(normals, [one])) for one in candidates]
    shown = [candidates[i] for i in _greedy(np.array(reveals))]
    return Cover(shown, constraints, policy, optimal, normals, candidates)


def optimal_policy(transitions: np.ndarray, reward: np.ndarray, discount: float) -> np.ndarray:
    """The best action of every state, by policy iteration; of equally good actions, the first.

    Args:
        transitions: the table (A, S, S).
        reward: reward of every state (S,), obtained on entering it.
        discount: the discount γ.

    Returns:
        The actions (S,).
    """
    policy = np.zeros(transitions.shape[1], int)
    for _ in range(MOST_ROUNDS):
        q = feature_counts(transitions, reward[:, None], policy, discount)[..., 0]
        better = np.argmax(q > q.max(axis=0) - 1e-10 * (1 + np.abs(q).max()), axis=0)
        if np.array_equal(better, policy):
            break
        policy = better
    return policy


def feature_counts(
    transitions: np.ndarray,
    features: np.ndarray,
    policy: np.ndarray,
    discount: float,
) -> np.ndarray:
    """μ(s,a) = Σ P(s′|s,a)[φ(s′) + γμ(s′,π(s′))], the expected features after an action, then
    following a policy.

    Args:
        transitions: the table (A, S, S).
        features: features φ of the states (S, d).
        policy: the action of every state (S,).
        discount: the discount γ.

    Returns:
        The counts (A, S, d); ⟨w, μ⟩ is Q.
    """
    followed = transitions[policy, np.arange(len(policy))]
    ahead = np.linalg.solve(np.eye(len(policy)) - discount * followed, followed @ features)
    return transitions @ (features + discount * ahead)


def optimal_actions(counts: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Which actions are optimal: all whose ⟨w, μ⟩ differs from the best only by rounding.

    Args:
        counts: expected features μ of following an optimal policy (A, S, d).
        weights: weights w of the reward (d,).

    Returns:
        Whether each action is optimal (A, S).
    """
    q = counts @ weights
    scale = np.linalg.norm(weights) * np.linalg.norm(counts, axis=-1).max()
    return q >= q.max(axis=0) - EQUAL * scale


def half_spaces(counts: np.ndarray, optimal: np.ndarray) -> np.ndarray:
    """The unit normals of μ(s,a) − μ(s,b): rewards for which the actions a are optimal have no
    negative product.

    Args:
        counts: expected features μ (A, S, d).
        optimal: whether each action is optimal (A, S).

    Returns:
        The normals (S, A, A, d), by state, optimal action a and other action b; zero where a is not
        optimal or there is no difference.
    """
    by_state = counts.swapaxes(0, 1)
    gaps = (by_state[:, :, None] - by_state[:, None]) * optimal.T[:, :, None, None]
    lengths = np.linalg.norm(gaps, axis=-1, keepdims=True)
    return np.where(lengths > EQUAL, gaps / np.maximum(lengths, EQUAL), 0.0)


def irredundant(normals: np.ndarray) -> np.ndarray:
    """The half-spaces that bound a cone: without zeros, duplicates, and those that follow from the
    others.

    n follows from the others if no w with ⟨w, n′⟩ ≥ 0 for all of them has ⟨w, n⟩ < 0: a linear
    program.

    Args:
        normals: unit normals (…, d).

    Returns:
        Those that matter (m, d).
    """
    from scipy.optimize import linprog

    kept = _distinct(normals)
    for one in list(kept):
        others = [other for other in kept if other is not one]
        if others:
            least = linprog(one, -np.array(others), np.zeros(len(others)), bounds=(-1, 1))
            if least.fun > -EQUAL:
                kept = others
    return np.array(kept).reshape(-1, normals.shape[-1])


def trajectories(
    transitions: np.ndarray,
    optimal: np.ndarray,
    length: int,
    starts: Sequence[int] | np.ndarray | None = None,
    rollouts: int = 1,
    seed: int = 0,
) -> list[np.ndarray]:
    """Different trajectories of optimal actions, from each start with each optimal action.

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
    paths: dict[bytes, np.ndarray] = {}
    for start in range(optimal.shape[1]) if starts is None else starts:
        for first in np.flatnonzero(optimal[:, start]):
            for _ in range(rollouts):
                path = _rollout(rng, transitions, optimal, length, int(start), int(first))
                paths.setdefault(path.tobytes(), path)
    return list(paths.values())


def _rollout(
    rng: np.random.Generator,
    transitions: np.ndarray,
    optimal: np.ndarray,
    length: int,
    state: int,
    action: int,
) -> np.ndarray:
    """One trajectory that begins with a given action (H, 2)."""
    path = [(state, action)]
    while len(path) < length:
        reached = np.cumsum(transitions[action, state])
        state = int(np.searchsorted(reached, rng.random(), side="right"))
        if state == optimal.shape[1]:
            break
        best = np.flatnonzero(optimal[:, state])
        action = int(best[0] if len(best) == 1 else rng.choice(best))
        path.append((state, action))
    return np.array(path)


def revealed(normals: np.ndarray, demonstrations: Sequence[np.ndarray]) -> np.ndarray:
    """The half-spaces that demonstrations reveal: those of the actions shown.

    Args:
        normals: the normals of all states and optimal actions (S, A, A, d).
        demonstrations: trajectories, each (H, 2).

    Returns:
        The distinct ones (n, d).
    """
    states, actions = np.unique(np.concatenate(demonstrations), axis=0).T
    return np.array(_distinct(normals[states, actions])).reshape(-1, normals.shape[-1])


def rewards_within(normals: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
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
        flat = np.array([_is_equality(one, normals) for one in normals])
        _, lengths, directions = np.linalg.svd(normals[flat])
        basis = directions[int(np.sum(lengths > EQUAL)) :]
        if not len(basis):
            raise InputError("only the reward 0 agrees with these half-spaces")
        inside = normals[~flat] @ basis.T
        inside /= np.linalg.norm(inside, axis=1, keepdims=True)
        return rewards_within(inside, count, seed) @ basis
    rng = np.random.default_rng(seed)
    w = deepest / (2 * max(1.0, float(np.linalg.norm(deepest))))
    samples = np.empty((count, normals.shape[1]))
    for i in range(count * THINNED):
        gauss = rng.normal(size=len(w))
        v = gauss / np.linalg.norm(gauss)
        slack, speed = normals @ w, normals @ v
        middle = -float(w @ v)
        half = math.sqrt(middle**2 + 1 - w @ w)  # the ball's ends of the line
        low = np.max(np.append(-slack[speed > 0] / speed[speed > 0], middle - half))
        high = np.min(np.append(-slack[speed < 0] / speed[speed < 0], middle + half))
        w = w + rng.uniform(low, high) * v
        samples[i // THINNED] = w
    return samples


def _deepest(normals: np.ndarray) -> tuple[np.ndarray, float]:
    """The point of the unit cube that is deepest within half-spaces, and how deep."""
    from scipy.optimize import linprog

    n, d = normals.shape
    if not n:
        return np.zeros(d), 1.0
    found = linprog(
        np.append(np.zeros(d), -1.0), np.hstack([-normals, np.ones((n, 1))]), np.zeros(n),
        bounds=[(-1, 1)] * d + [(None, 1)],
    )  # fmt: skip
    return found.x[:d], float(found.x[-1])


def _is_equality(normal: np.ndarray, normals: np.ndarray) -> bool:
    """Whether no point of a cone is within a half-space, only on its boundary."""
    from scipy.optimize import linprog

    furthest = linprog(-normal, -normals, np.zeros(len(normals)), bounds=(-1, 1))
    return -furthest.fun < EQUAL


def table(dynamics: Dynamics) -> np.ndarray:
    """The transitions of any dynamics as a table, for instance of a grid.

    Args:
        dynamics: the transitions.

    Returns:
        P(s′|s,a) as (A, S, S).
    """
    with _float64():  # float32 would tell equally good actions apart
        chosen = jnp.eye(dynamics.actions)[:, :, None] * jnp.ones(dynamics.states)
        return np.stack([np.asarray(following(dynamics, policy), float) for policy in chosen])


def _float64() -> AbstractContextManager[None]:
    """Let JAX compute in float64 within a block."""
    if hasattr(jax, "enable_x64"):  # from JAX 0.8 on
        return jax.enable_x64(True)
    from jax.experimental import enable_x64  # type: ignore[attr-defined]

    return enable_x64()


def _distinct(normals: np.ndarray) -> list[np.ndarray]:
    """The rows that are neither zero nor equal to an earlier one."""
    kept: list[np.ndarray] = []
    for one in normals.reshape(-1, normals.shape[-1]):
        if np.any(one) and not (kept and _matches(one[None], np.array(kept)).any()):
            kept.append(one)
    return kept


def _matches(normals: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Whether each normal is among the others."""
    return np.any(np.max(np.abs(normals[:, None] - among), axis=-1) < EQUAL, axis=1)


def _greedy(reveals: np.ndarray) -> list[int]:
    """Indices of rows that together hold every column: always the one with most that are still
    missing.
    """
    chosen, missing = [], np.ones(reveals.shape[1], bool)
    while missing.any():
        chosen.append(int(np.argmax(np.sum(reveals & missing, axis=1))))
        missing &= ~reveals[chosen[-1]]
    return chosen
