"""The baseline: ITAL in plain NumPy, one lane at a time, as one would write it from the paper."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ital.tasks import World

Array = np.ndarray


class NumpyLoss(NamedTuple):
    """Value and derivative of a loss with respect to the outputs."""

    value: Callable[[Array, Array], Array]
    derivative: Callable[[Array, Array], Array]


def softmax(alpha: Array) -> Array:
    """Return probabilities along the last axis."""
    e = np.exp(alpha - alpha.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _cross_entropy_derivative(alpha: Array, y: Array) -> Array:
    r = softmax(alpha)
    r[np.arange(len(y)), y] -= 1
    return r


def _cross_entropy_value(alpha: Array, y: Array) -> Array:
    largest = alpha.max(axis=1)
    # Without the largest output, the exponential would overflow.
    log_sum = largest + np.log(np.exp(alpha - largest[:, None]).sum(axis=1))
    return log_sum - alpha[np.arange(len(y)), y]


squared = NumpyLoss(
    lambda alpha, y: 0.5 * ((alpha - y) ** 2).sum(axis=1), lambda alpha, y: alpha - y
)
cross_entropy = NumpyLoss(_cross_entropy_value, _cross_entropy_derivative)


def steps_per_second(
    loss: NumpyLoss, world: World, beta: float, lr: float, steps: int, every: int
) -> float:
    """Teach one ITAL learner for ``steps`` steps; return steps per second.

    It computes each line of Algorithm 1 in order, in NumPy's default float64, and measures every
    ``every`` steps.
    """
    x_learner = np.asarray(world.learner.x.x, float)
    x_teacher = np.asarray(world.teacher.examples.x.x, float)
    y_all = world.learner.labels
    test_x = np.asarray(world.truth.test.x.x, float)
    test_y = world.truth.test.labels
    target = np.asarray(world.truth.target, float)
    omega = np.asarray(world.teacher.target, float)
    rng = np.random.default_rng(0)
    nu = rng.uniform(-1, 1, target.shape)
    curve = []
    began = time.perf_counter()
    for t in range(1, steps + 1):
        batch = rng.integers(0, len(x_learner), 20)
        x = x_learner[batch]
        z = x_teacher[batch]
        y = y_all[batch]

        # The learner reports its outputs; the teacher chooses by their teaching volumes.
        alpha = x @ nu.T
        losses = loss.value(alpha, y)
        r = loss.derivative(alpha, y)
        r_norms = (r**2).sum(axis=1)
        closer = losses - loss.value(z @ omega.T, y)
        volumes = -(lr**2) * r_norms * (z**2).sum(axis=1) + 2 * lr * closer
        c = np.argmax(volumes)

        # The gradient step, then the awareness step from where it ends.
        guess = nu - lr * np.outer(r[c], x[c])
        alpha = x @ guess.T
        closer = losses - loss.value(alpha, y)
        imagined = -(lr**2) * r_norms * (x**2).sum(axis=1) + 2 * lr * closer
        q = softmax(beta * imagined)
        r = loss.derivative(alpha, y)
        nu = guess - 2 * beta * lr**2 * (np.outer(r[c], x[c]) - (q[:, None] * r).T @ x)

        if t % every == 0:
            alpha = test_x @ nu.T
            accuracy = np.mean(alpha.argmax(axis=1) == test_y) if test_y.ndim == 1 else np.nan
            curve.append((np.linalg.norm(nu - target), loss.value(alpha, test_y).mean(), accuracy))
    return steps / (time.perf_counter() - began)
