"""The baseline for IRL: ITAL in NumPy with the Bellman gradient iteration of the paper, one lane at a time."""

import time
from typing import NamedTuple

import numpy as np

from ital.bench._numpy_loop import softmax
from ital.tasks import World

Array = np.ndarray
DISCOUNT, SHARPNESS, TOLERANCE = 0.5, 220.0, 1e-6


class Planned(NamedTuple):
    """Values (S,) with their gradients (S, S) in the reward; Q (A, S) with its gradients (A, S, S)."""

    v: Array
    dv: Array
    q: Array
    dq: Array


def transitions(size: int, slip: float = 0.06, death: float = 0.02) -> Array:
    """P (A, S, S) of the grid."""
    p = np.zeros((4, size * size, size * size))
    for row in range(size):
        for column in range(size):
            for way, (down, right) in enumerate([(-1, 0), (1, 0), (0, -1), (0, 1)]):
                to = np.clip(row + down, 0, size - 1) * size + np.clip(column + right, 0, size - 1)
                for action in range(4):
                    p[action, row * size + column, to] += (
                        1 - death - 3 * slip if way == action else slip
                    )
    return p


def plan(p: Array, reward: Array, last: Planned) -> Planned:
    """Soft value iteration; the same sweeps iterate its gradients."""
    v, dv = last.v, last.dv
    identity = np.eye(len(reward))
    while True:
        q = p @ (reward + DISCOUNT * v)
        dq = p @ (identity + DISCOUNT * dv)
        largest = q.max(axis=0)
        e = np.exp(SHARPNESS * (q - largest))
        total = e.sum(axis=0)
        new_v = largest + np.log(total) / SHARPNESS
        dv = np.einsum("as,ast->st", e / total, dq)
        change, v = np.abs(new_v - v).max(), new_v
        if change <= TOLERANCE:
            return Planned(v, dv, q, dq)


def lessons(planned: Planned, states: Array, actions: Array) -> tuple[Array, Array]:
    """−log π(a|s) of the demonstrations and their gradients (B, S)."""
    pi = softmax(planned.q[:, states].T)
    d = planned.dq[:, states]
    mean = np.einsum("ba,abt->bt", pi, d)
    return -np.log(pi[np.arange(len(states)), actions]), mean - d[actions, np.arange(len(states))]


def steps_per_second(world: World, beta: float, lr: float, steps: int, every: int) -> float:
    """Teach one ITAL learner for ``steps`` steps, measuring every ``every`` steps; return steps per second."""
    side, truth = world.teacher.examples, np.asarray(world.truth.test.reward, float)
    log_pi, order = np.asarray(side.log_policy, float), side.encoding
    s = len(truth)
    p = transitions(round(s**0.5))
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

        teachers_plan = plan(
            teachers_p, nu[in_teachers], teachers_plan
        )  # reported rewards, in the teacher's order
        losses, g = lessons(teachers_plan, order[states], actions)
        volumes = -(lr**2) * (g**2).sum(axis=1) + 2 * lr * (losses + log_pi[actions, states])
        c = np.argmax(volumes)

        planned = plan(p, nu, planned)
        losses, g = lessons(planned, states, actions)
        guess = nu - lr * g[c]
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
