"""The baseline: ITAL in plain NumPy, one lane at a time, as one would write it from the paper."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ital.tasks import Truth, World

Array = np.ndarray


# Distance, loss and accuracy; in IRL distance, difference of policies and return.
Measured = tuple[Any, Any, Any]


class NumpyLoss(NamedTuple):
    """Value and derivative of a loss with respect to the outputs."""

    value: Callable[[Array, Array], Array]
    derivative: Callable[[Array, Array], Array]


def softmax(alpha: Array) -> Array:
    """Return probabilities along the last axis."""
    e = np.exp(alpha - alpha.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def teaching_volumes(lr: float, squared_norms: Array, closer: Array) -> Array:
    """Return −η²‖gᵢ‖² + 2η·closerᵢ, with the losses less those of the target as ``closer`` (B,)."""
    return -(lr**2) * squared_norms + 2 * lr * closer


def _cross_entropy_derivative(alpha: Array, y: Array) -> Array:
    rows = np.arange(len(y))
    r = softmax(alpha)
    r[rows, y] -= 1
    return r


def _cross_entropy_value(alpha: Array, y: Array) -> Array:
    rows = np.arange(len(y))
    largest = alpha.max(axis=1)
    # Without the largest output, the exponential would overflow.
    e = np.exp(alpha - largest[:, None])
    log_sum = largest + np.log(e.sum(axis=1))
    return log_sum - alpha[rows, y]


def _squared_derivative(alpha: Array, y: Array) -> Array:
    return alpha - y


def _squared_value(alpha: Array, y: Array) -> Array:
    differences = alpha - y
    return 0.5 * (differences**2).sum(axis=1)


squared = NumpyLoss(_squared_value, _squared_derivative)
cross_entropy = NumpyLoss(_cross_entropy_value, _cross_entropy_derivative)


class PoolObserver(NamedTuple):
    """Measures a learner as the task does.

    Attributes:
        loss: the loss.
        target: the target (K, d).
        x: the test inputs (N, d).
        y: their labels: numbers (N,) of classes, or values (N, K).
    """

    loss: NumpyLoss
    target: Array
    x: Array
    y: Array

    def measure(self, nu: Array) -> Measured:
        """Return the distance, the loss on the test set, and the accuracy."""
        alpha = self.x @ nu.T
        accuracy = np.nan
        if self.y.ndim == 1:
            is_right = alpha.argmax(axis=1) == self.y
            accuracy = is_right.mean()
        losses = self.loss.value(alpha, self.y)
        distance = np.linalg.norm(nu - self.target)
        return distance, losses.mean(), accuracy


def _observer(loss: NumpyLoss, truth: Truth) -> PoolObserver:
    """Return the observer of a world, in float64."""
    return PoolObserver(
        loss,
        target=np.asarray(truth.target, float),
        x=np.asarray(truth.test.x.x, float),
        y=truth.test.labels,
    )


def steps_per_second(
    loss: NumpyLoss,
    world: World,
    beta: float,
    lr: float,
    steps: int,
    every: int,
) -> float:
    """Teach one ITAL learner for ``steps`` steps; return steps per second.

    It computes each line of Algorithm 1 in order, in NumPy's default float64, and measures every
    ``every`` steps.
    """
    x_learner = np.asarray(world.learner.x.x, float)
    x_teacher = np.asarray(world.teacher.examples.x.x, float)
    y_all = world.learner.labels
    omega = np.asarray(world.teacher.target, float)
    observer = _observer(loss, world.truth)
    rng = np.random.default_rng(0)
    nu = rng.uniform(-1, 1, observer.target.shape)
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
        z_norms = (z**2).sum(axis=1)
        target_losses = loss.value(z @ omega.T, y)
        closer = losses - target_losses
        volumes = teaching_volumes(lr, r_norms * z_norms, closer)
        c = np.argmax(volumes)

        # The gradient step on the chosen example.
        chosen_x = x[c]
        guess = nu - lr * np.outer(r[c], chosen_x)
        # The awareness step from where it ends: what would the teacher have chosen?
        alpha = x @ guess.T
        x_norms = (x**2).sum(axis=1)
        closer = losses - loss.value(alpha, y)
        imagined = teaching_volumes(lr, r_norms * x_norms, closer)
        q = softmax(beta * imagined)
        r = loss.derivative(alpha, y)
        expected = (q[:, None] * r).T @ x
        awareness = np.outer(r[c], chosen_x) - expected
        nu = guess - 2 * beta * lr**2 * awareness

        if t % every == 0:
            curve.append(observer.measure(nu))
    return steps / (time.perf_counter() - began)
