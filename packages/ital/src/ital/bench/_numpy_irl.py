"""The baseline for IRL: ITAL in NumPy with the paper's Bellman gradient iteration.

It computes one lane at a time.
"""

import itertools
import time
from typing import NamedTuple

import numpy as np

from ital.bench._numpy_loop import softmax
from ital.tasks import World

Array = np.ndarray
DISCOUNT = 0.5
SHARPNESS = 220.0
TOLERANCE = 1e-6


class Planned(NamedTuple):
    """A solved world.

    Attributes:
        v: values (S,).
        dv: their gradients in the reward (S, S).
        q: values of actions (A, S).
        dq: their gradients (A, S, S).
    """

    v: Array
    dv: Array
    q: Array
    dq: Array


def transitions(size: int, slip: float = 0.06, death: float = 0.02) -> Array:
    """Return P (A, S, S) of the grid: the probability of each next state."""
    p = np.zeros((4, size * size, size * size))
    ways = ((-1, 0), (1, 0), (0, -1), (0, 1))
    for row, column in itertools.product(range(size), repeat=2):
        for way, (down, right) in enumerate(ways):
            # A wall keeps who walks into it where they are.
            next_row = np.clip(row + down, 0, size - 1)
            next_column = np.clip(column + right, 0, size - 1)
            to = next_row * size + next_column
            for action in range(4):
                share = 1 - death - 3 * slip if way == action else slip
                p[action, row * size + column, to] += share
    return p


def plan(p: Array, reward: Array, last: Planned) -> Planned:
    """Iterate soft values and, in the same sweeps, their gradients; start from the last ones."""
    v = last.v
    dv = last.dv
    identity = np.eye(len(reward))
    while True:
        q = p @ (reward + DISCOUNT * v)
        dq = p @ (identity + DISCOUNT * dv)
        largest = q.max(axis=0)
        # Without the largest value, the exponential would overflow.
        e = np.exp(SHARPNESS * (q - largest))
        total = e.sum(axis=0)
        new_v = largest + np.log(total) / SHARPNESS
        dv = np.einsum("as,ast->st", e / total, dq)
        change = np.abs(new_v - v).max()
        v = new_v
        if change <= TOLERANCE:
            return Planned(v, dv, q, dq)


def lessons(planned: Planned, states: Array, actions: Array) -> tuple[Array, Array]:
    """Return −log π(a|s) of the demonstrations (B,), and their gradients (B, S)."""
    batch = np.arange(len(states))
    pi = softmax(planned.q[:, states].T)  # (B, A)
    d = planned.dq[:, states]  # (A, B, S)
    mean = np.einsum("ba,abt->bt", pi, d)
    return -np.log(pi[batch, actions]), mean - d[actions, batch]


def steps_per_second(world: World, beta: float, lr: float, steps: int, every: int) -> float:
    """Teach one ITAL learner for ``steps`` steps; return steps per second.

    It is measured every ``every`` steps.
    """
    truth = np.asarray(world.truth.test.reward, float)
    log_pi = np.asarray(world.teacher.examples.log_policy, float)
    order = world.teacher.examples.encoding
    s = len(truth)
    p = transitions(round(s**0.5))
    # The teacher numbers the states in its own order.
    in_teachers = np.empty(s, int)
    in_teachers[order] = np.arange(s)
    teachers_p = p[:, in_teachers][:, :, in_teachers]
    cumulative = np.exp(log_pi).cumsum(axis=0)
    rng = np.random.default_rng(0)
    nu = rng.uniform(-2, 2, s)
    nothing = Planned(np.zeros(s), np.zeros((s, s)), np.zeros((4, s)), np.zeros((4, s, s)))
    planned = imagined = plan(p, nu, nothing)
    teachers_plan = plan(teachers_p, nu[in_teachers], nothing)
    curve = []
    began = time.perf_counter()
    for t in range(1, steps + 1):
        states = rng.integers(0, s, 20)
        actions = (rng.random(20) > cumulative[:, states]).sum(axis=0).clip(max=3)

        # The learner reports its rewards; the teacher plans with them in its own order.
        teachers_plan = plan(teachers_p, nu[in_teachers], teachers_plan)
        losses, g = lessons(teachers_plan, order[states], actions)
        volumes = -(lr**2) * (g**2).sum(axis=1) + 2 * lr * (losses + log_pi[actions, states])
        c = np.argmax(volumes)

        # The gradient step on the chosen demonstration.
        planned = plan(p, nu, planned)
        losses, g = lessons(planned, states, actions)
        guess = nu - lr * g[c]
        # The awareness step: what would the teacher have chosen?
        imagined = plan(p, guess, imagined)
        imagined_losses, h = lessons(imagined, states, actions)
        q = softmax(beta * (-(lr**2) * (g**2).sum(axis=1) + 2 * lr * (losses - imagined_losses)))
        nu = guess - 2 * beta * lr**2 * (h[c] - q @ h)

        if t % every == 0:
            pi = softmax(plan(p, nu, planned).q.T).T
            chosen = p[np.argmax(pi, axis=0), np.arange(s)]
            curve.append(
                (
                    np.linalg.norm(nu - truth),
                    0.5 * np.abs(pi - np.exp(log_pi)).sum(axis=0).mean(),
                    np.linalg.solve(np.eye(s) - chosen, chosen @ truth).mean(),
                )
            )
    return steps / (time.perf_counter() - began)
