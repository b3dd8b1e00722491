"""Teaching a policy by set cover: few demonstrations that leave only rewards with the same optimal policy.

Brown and Niekum (2019). A learner that sees action a in state s concludes that a is best there: w lies in the
half-space ⟨w, μ(s,a) − μ(s,b)⟩ ≥ 0 of every other action b. The half-spaces of all states make a cone of rewards. Few
of them bound it, and few demonstrations reveal these.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

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
        demonstrations: the trajectories shown, each with the states and the actions in two columns (H, 2).
        constraints: unit normals of the half-spaces that bound the cone (m, d).
        policy: the optimal action of every state (S,).
        normals: the unit normal of every state and action (S, A, d); zero if the action is as good for every reward.
        candidates: the trajectories that could have been shown.
    """

    demonstrations: list[np.ndarray]
    constraints: np.ndarray
    policy: np.ndarray
    normals: np.ndarray
    candidates: list[np.ndarray]


def set_cover(
    transitions: ArrayLike | Dynamics,
    weights: ArrayLike,
    features: ArrayLike | None = None,
    *,
    discount: float = 0.5,
    length: int = 5,
    seed: int = 0,
) -> Cover:
    """Choose demonstrations of the optimal policy greedily, until they reveal every half-space that bounds its cone.

    Candidates are trajectories of the optimal policy, one from each state. The first three arguments are those of
    :func:`ital.tasks.irl_tabular`.

    Args:
        transitions: the table (A, S, S), or the dynamics of a grid.
        weights: weights of the reward (d,).
        features: features of the states (S, d); None for one weight per state.
        discount: the discount γ.
        length: number of states in a trajectory, fewer if it ends in death.
        seed: seed of the trajectories.

    Returns:
        The demonstrations, what they reveal, and what they were chosen from.

    Raises:
        InputError: if shapes do not fit, planning would not end, or a trajectory would be empty.
    """
    p = table(transitions) if isinstance(transitions, Dynamics) else real("transitions", transitions)
    dynamics = tabular(p)
    encoded = np.eye(dynamics.states) if features is None else real("features", features)
    target = real("weights", weights)
    if encoded.ndim != 2 or len(encoded) != dynamics.states or target.shape != encoded.shape[1:]:
        raise InputError(
            f"features have shape {encoded.shape} and weights {target.shape}, expected ({dynamics.states}, d) and (d,)"
        )
    if not (discount >= 0 and discount * dynamics.survival < 1):
        raise InputError(f"the discount must be below 1 unless every step can end in death, not {discount}")
    if length < 1:
        raise InputError(f"length {length}: a trajectory needs at least one state")
    policy = optimal_policy(p, encoded @ target, discount)
    normals = half_spaces(feature_counts(p, encoded, policy, discount), policy)
    constraints = irredundant(normals)
    candidates = trajectories(p, policy, length, seed)
    reveals = [_matches(constraints, revealed(normals, [one])) for one in candidates]
    return Cover([candidates[i] for i in _greedy(np.array(reveals))], constraints, policy, normals, candidates)


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


def feature_counts(transitions: np.ndarray, features: np.ndarray, policy: np.ndarray, discount: float) -> np.ndarray:
    """μ(s,a) = Σ P(s′|s,a)[φ(s′) + γμ(s′,π(s′))], the expected features after an action, then following a policy.

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


def half_spaces(counts: np.ndarray, policy: np.ndarray) -> np.ndarray:
    """The unit normals of μ(s,π(s)) − μ(s,b): rewards for which the policy is optimal have no negative product.

    Args:
        counts: expected features μ (A, S, d).
        policy: the action of every state (S,).

    Returns:
        The normals (S, A, d); zero where there is no difference.
    """
    gaps = counts[policy, np.arange(len(policy))][:, None] - counts.swapaxes(0, 1)
    lengths = np.linalg.norm(gaps, axis=-1, keepdims=True)
    return np.where(lengths > EQUAL, gaps / np.maximum(lengths, EQUAL), 0.0)


def irredundant(normals: np.ndarray) -> np.ndarray:
    """The half-spaces that bound a cone: without zeros, duplicates, and those that follow from the others.

    n follows from the others if no w with ⟨w, n′⟩ ≥ 0 for all of them has ⟨w, n⟩ < 0: a linear program.

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


def trajectories(transitions: np.ndarray, policy: np.ndarray, length: int, seed: int = 0) -> list[np.ndarray]:
    """Trajectories of a policy, one from each state.

    Args:
        transitions: the table (A, S, S).
        policy: the action of every state (S,).
        length: number of states in each, fewer if it ends in death.
        seed: seed of the transitions.

    Returns:
        States and actions in two columns, each (H, 2).
    """
    rng = np.random.default_rng(seed)
    paths = []
    for start in range(len(policy)):
        states = [start]
        while len(states) < length:
            reached = np.cumsum(transitions[policy[states[-1]], states[-1]])
            state = int(np.searchsorted(reached, rng.random(), side="right"))
            if state == len(policy):
                break
            states.append(state)
        paths.append(np.stack([states, policy[states]], axis=1))
    return paths


def revealed(normals: np.ndarray, demonstrations: Sequence[np.ndarray]) -> np.ndarray:
    """The half-spaces that demonstrations reveal: those of their states.

    Args:
        normals: the normals of all states (S, A, d).
        demonstrations: trajectories, each (H, 2).

    Returns:
        The distinct ones (n, d).
    """
    states = np.unique(np.concatenate([one[:, 0] for one in demonstrations]))
    return np.array(_distinct(normals[states])).reshape(-1, normals.shape[-1])


def rewards_within(normals: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    """Sample weights uniformly from a cone, as far as it lies in the unit ball, by hit-and-run.

    Args:
        normals: unit normals of the half-spaces (n, d).
        count: number of samples.
        seed: seed of the samples.

    Returns:
        The weights (count, d).

    Raises:
        InputError: if the cone has no interior.
    """
    from scipy.optimize import linprog

    n, d = normals.shape
    deepest = linprog(
        np.append(np.zeros(d), -1.0), np.hstack([-normals, np.ones((n, 1))]), np.zeros(n),
        bounds=[(-1, 1)] * d + [(None, 1)],
    )  # fmt: skip
    if deepest.x[-1] < EQUAL:
        raise InputError("the half-spaces have no common interior: two actions are equally good for the reward")
    rng, w = np.random.default_rng(seed), deepest.x[:d] / (2 * np.linalg.norm(deepest.x[:d]))
    samples = np.empty((count, d))
    for i in range(count * THINNED):
        gauss = rng.normal(size=d)
        v = gauss / np.linalg.norm(gauss)
        slack, speed = normals @ w, normals @ v
        middle = -float(w @ v)
        half = math.sqrt(middle**2 + 1 - w @ w)  # the ball's ends of the line
        low = np.max(np.append(-slack[speed > 0] / speed[speed > 0], middle - half))
        high = np.min(np.append(-slack[speed < 0] / speed[speed < 0], middle + half))
        w = w + rng.uniform(low, high) * v
        samples[i // THINNED] = w
    return samples


def table(dynamics: Dynamics) -> np.ndarray:
    """The transitions of any dynamics as a table, for instance of a grid.

    Args:
        dynamics: the transitions.

    Returns:
        P(s′|s,a) as (A, S, S).
    """
    chosen = jnp.eye(dynamics.actions)[:, :, None] * jnp.ones(dynamics.states)
    return np.stack([np.asarray(following(dynamics, policy), float) for policy in chosen])


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
    """Indices of rows that together hold every column: always the one with most that are still missing."""
    chosen, missing = [], np.ones(reveals.shape[1], bool)
    while missing.any():
        chosen.append(int(np.argmax(np.sum(reveals & missing, axis=1))))
        missing &= ~reveals[chosen[-1]]
    return chosen
