"""The likelihood of a pool's labels under a linear model: square loss, cross-entropy, or a loss of
one's own.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ital.gradients import HIGHEST
from ital.likelihoods import Evaluation, Likelihood, Quadratic, Statistics
from ital.losses import Loss, cross_entropy, squared
from ital.tools.types import Array, Float, Scalar

product = functools.partial(jnp.matmul, precision=HIGHEST)


class KeptRows(NamedTuple):
    """What is kept of a mini-batch of a pool.

    Attributes:
        x: rows of the learner's view (N, d).
        labels: the labels (N,) or (N, K).
        weights: weights of the rows (N,), or None.
    """

    x: Array
    labels: Array
    weights: Any


class Moments(NamedTuple):
    """Sufficient statistics of the square loss: X'X, X'Y, Σ‖y‖², and how many numbers the labels
    hold.
    """

    rows: Float[Array, "d d"]
    labels: Float[Array, "d K"]
    squares: Scalar
    numbers: Scalar


def keep(examples: Any) -> KeptRows:
    """Return the rows, labels and weights of a mini-batch."""
    return KeptRows(examples.x.x, examples.labels, examples.weights)


def no_moments(params: Array, kept: KeptRows) -> Moments:
    """Return the moments of no rows."""
    outputs, features = params.shape
    zero = jnp.zeros((), params.dtype)
    none = functools.partial(jnp.zeros, dtype=params.dtype)
    return Moments(none((features, features)), none((features, outputs)), zero, zero)


def add_moments(moments: Moments, kept: KeptRows, weights: Array) -> Moments:
    """Return the moments with N more rows, each counted as often as its weight says."""
    if kept.weights is not None:
        weights = weights * kept.weights
    weighted = weights[:, None] * kept.x
    # A row without weight (a class that is left out, say) tells nothing about the noise either.
    told = jnp.sum(weights > 0) * kept.labels.shape[1]
    return Moments(
        moments.rows + product(weighted.T, kept.x),
        moments.labels + product(weighted.T, kept.labels),
        moments.squares + jnp.sum(weights * jnp.sum(kept.labels**2, axis=1)),
        moments.numbers + told.astype(weights.dtype),
    )


def normal_equations(params: Array, moments: Moments, wrong: Scalar) -> Quadratic:
    """Return Σ ½‖νx̃ − y‖² over all counted rows, exactly."""
    onto_rows = product(params, moments.rows)  # (K, d)
    value = 0.5 * (
        jnp.sum(onto_rows * params) - 2 * jnp.sum(moments.labels.T * params) + moments.squares
    )
    gradient = onto_rows - moments.labels.T
    curvature = jnp.kron(jnp.eye(len(params), dtype=params.dtype), moments.rows)
    return Quadratic(jnp.maximum(value, 0.0), gradient.ravel(), curvature)


def hessians(loss: Loss, alpha: Array, labels: Array) -> Float[Array, "N K K"]:
    """Return the second derivatives of the loss in the outputs, without their negative part."""
    if loss is squared:
        return jnp.broadcast_to(
            jnp.eye(alpha.shape[1], dtype=alpha.dtype), (*alpha.shape, alpha.shape[1])
        )
    if loss is cross_entropy:
        p = jax.nn.softmax(alpha, axis=1)
        return p[:, :, None] * (jnp.eye(alpha.shape[1], dtype=alpha.dtype) - p[:, None, :])

    def of_example(output: Array, label: Array) -> Array:
        return loss.value(output[None], label[None])[0]

    second = jax.vmap(jax.hessian(of_example))(alpha, labels)
    if alpha.shape[1] == 1:
        return jnp.maximum(second, 0.0)
    eigenvalues, directions = jnp.linalg.eigh(second)
    return jnp.einsum("nij,nj,nkj->nik", directions, jnp.maximum(eigenvalues, 0.0), directions)


@functools.cache  # one object per loss, so that equal tasks share one compiled program
def linear_likelihood(loss: Loss) -> Likelihood:
    """Return the likelihood of labels under the linear model α = νx̃.

    Args:
        loss: the loss of the outputs, a negative log-likelihood.

    Returns:
        The likelihood; the same object for the same loss.
    """

    def at(params: Array, examples: Any) -> Evaluation:
        def losses(kept: KeptRows) -> Array:
            values = loss.value(product(kept.x, params.T), kept.labels)
            return values if kept.weights is None else kept.weights * values

        def gradients(kept: KeptRows) -> Array:
            residuals = loss.derivative(product(kept.x, params.T), kept.labels)
            if kept.weights is not None:
                residuals = kept.weights[:, None] * residuals
            # (N, K, 1) · (N, 1, d): the gradient of each row, class by class.
            return (residuals[:, :, None] * kept.x[:, None, :]).reshape(len(kept.x), -1)

        def curvature(kept: KeptRows, weights: Array) -> Array:
            if kept.weights is not None:
                weights = weights * kept.weights
            second = weights[:, None, None] * hessians(loss, product(kept.x, params.T), kept.labels)
            features, outputs = kept.x.shape[1], second.shape[1]
            pairs = (kept.x[:, :, None] * kept.x[:, None, :]).reshape(len(kept.x), -1)  # (N, d²)
            blocks = product(second.reshape(len(kept.x), -1).T, pairs)  # (K², d²)
            blocks = blocks.reshape(outputs, outputs, features, features)
            return blocks.transpose(0, 2, 1, 3).reshape(outputs * features, -1)

        def wrong(kept: KeptRows) -> Array:
            """A wrong label is any class, all alike."""
            return jnp.full(len(kept.x), jnp.log(len(params)), params.dtype)

        if loss is squared:
            counted = functools.partial(normal_equations, params)
            return Evaluation(losses, gradients, curvature, counted)
        return Evaluation(losses, gradients, curvature, wrong=wrong)

    if loss is squared:
        moments = Statistics(no_moments, add_moments, lambda moments: moments.numbers)
        return Likelihood(keep, at, moments, gaussian=True)
    return Likelihood(keep, at, mixes=loss.classes)


def rows_of_pool(drawn: Array) -> Array:
    """Return the numbers of the drawn rows (B,): a mini-batch of a pool is drawn as just these."""
    return drawn


def size_of_pool(world: Any) -> int:
    """Return the number of rows of the pool."""
    return int(world.learner.labels.shape[0])
