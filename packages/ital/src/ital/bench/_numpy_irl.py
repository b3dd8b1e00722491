"""The baseline for IRL: ITAL in NumPy with the paper's Bellman gradient iteration.

It computes one lane at a time.
"""

import itertools
import time
from typing import NamedTuple

import numpy as np

from ital.bench._numpy_loop import Measured, softmax, teaching_volumes
from ital.tasks import World

Array = np.ndarray
WAYS = ((-1, 0), (1, 0), (0, -1), (0, 1))  # up, down, left, right, as rows and columns
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
    states = size * size
    # The probability of each move for each action: its own, or with ``slip`` another one.
    shares = np.full((4, 4), slip)
    np.fill_diagonal(shares, 1 - death - 3 * slip)
    p = np.zeros((4, states, states))
    last = size - 1
    for row, column in itertools.product(range(size), repeat=2):
        state = row * size + column
        for way, (down, right) in enumerate(WAYS):
            # A wall keeps who walks into it where they are.
            next_row = np.clip(row + down, 0, last)
            next_column = np.clip(column + right, 0, last)
            to = next_row * size + next_column
            p[:, state, to] += shares[:, way]
    return p


def no_plan(states: int) -> Planned:
    """Return zeros, from which the first plan starts."""
    return Planned(
        v=np.zeros(states),
        dv=np.zeros((states, states)),
        q=np.zeros((4, states)),
        dq=np.zeros((4, states, states)),
    )


def plan(p: Array, reward: Array, last: Planned) -> Planned:
    """Iterate soft values and, in the same sweeps, their gradients; start from the last ones."""
    v = last.v
    dv = last.dv
    identity = np.eye(len(reward))
    while True:
        # Q = P(r + γV), and its gradient by the chain rule.
        q = p @ (reward + DISCOUNT * v)
        dq = p @ (identity + DISCOUNT * dv)
        # V = log Σ exp(kQ) / k, whose gradient weights those of Q by softmax(kQ).
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
    dq = planned.dq[:, states]  # (A, B, S)
    mean = np.einsum("ba,abt->bt", pi, dq)
    losses = -np.log(pi[batch, actions])
    gradients = mean - dq[actions, batch]
    return losses, gradients


class GridObserver(NamedTuple):
    """Measures a learner as the task does.

    Attributes:
        truth: the true rewards (S,).
        policy: the probabilities of the teacher's actions (A, S).
        p: the transitions (A, S, S).
    """

    truth: Array
    policy: Array
    p: Array

    def measure(self, nu: Array, planned: Planned) -> Measured:
        """Return the distance, the difference of policies and the return."""
        states = np.arange(len(nu))
        distance = np.linalg.norm(nu - self.truth)
        solution = plan(self.p, nu, planned)
        pi = softmax(solution.q.T).T
        differences = np.abs(pi - self.policy)
        policy_tv = 0.5 * differences.sum(axis=0)
        # The return of the greedy policy, undiscounted, solves (I − P)v = Pr.
        best = np.argmax(pi, axis=0)
        greedy = self.p[best, states]
        until_death = np.eye(len(nu)) - greedy
        returns = np.linalg.solve(until_death, greedy @ self.truth)
        return distance, policy_tv.mean(), returns.mean()


def steps_per_second(
    world: World,
    beta: float,
    lr: float,
    steps: int,
    every: int,
) -> float:
    """Teach one ITAL learner for ``steps`` steps; return steps per second.

    It is measured every ``every`` steps.
    """
    examples = world.teacher.examples
    log_pi = np.asarray(examples.log_policy, float)
    order = examples.encoding
    s = len(order)
    p = transitions(round(s**0.5))
    observer = GridObserver(
        truth=np.asarray(world.truth.test.reward, float),
        policy=np.exp(log_pi),
        p=p,
    )
    # The teacher numbers the states in its own order.
    in_teachers = np.argsort(order)
    from_states = p[:, in_teachers]
    teachers_p = from_states[:, :, in_teachers]
    cumulative = np.exp(log_pi).cumsum(axis=0)
    rng = np.random.default_rng(0)
    nu = rng.uniform(-2, 2, s)
    nothing = no_plan(s)
    planned = imagined = plan(p, nu, nothing)
    teachers_plan = plan(teachers_p, nu[in_teachers], nothing)
    curve = []
    began = time.perf_counter()
    for t in range(1, steps + 1):
        states = rng.integers(0, s, 20)
        # Inverse sampling: as many actions lie below as have a smaller cumulative probability.
        is_below = rng.random(20) > cumulative[:, states]
        actions = is_below.sum(axis=0).clip(max=3)

        # The learner reports its rewards; the teacher plans with them in its own order.
        reported = nu[in_teachers]
        teachers_plan = plan(teachers_p, reported, teachers_plan)
        losses, g = lessons(teachers_plan, order[states], actions)
        squared_norms = (g**2).sum(axis=1)
        closer = losses + log_pi[actions, states]
        volumes = teaching_volumes(lr, squared_norms, closer)
        c = np.argmax(volumes)

        # The gradient step on the chosen demonstration.
        planned = plan(p, nu, planned)
        losses, g = lessons(planned, states, actions)
        guess = nu - lr * g[c]
        # The awareness step: what would the teacher have chosen?
        imagined = plan(p, guess, imagined)
        imagined_losses, h = lessons(imagined, states, actions)
        squared_norms = (g**2).sum(axis=1)
        closer = losses - imagined_losses
        q = softmax(beta * teaching_volumes(lr, squared_norms, closer))
        awareness = h[c] - q @ h
        nu = guess - 2 * beta * lr**2 * awareness

        if t % every == 0:
            curve.append(observer.measure(nu, planned))
    return steps / (time.perf_counter() - began)
