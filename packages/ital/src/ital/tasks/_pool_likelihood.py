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
    return Moments(
        rows=jnp.zeros((features, features), params.dtype),
        labels=jnp.zeros((features, outputs), params.dtype),
        squares=zero,
        numbers=zero,
    )


def add_moments(moments: Moments, kept: KeptRows, weights: Array) -> Moments:
    """Return the moments with N more rows, each counted as often as its weight says."""
    if kept.weights is not None:
        weights = weights * kept.weights
    weighted = weights[:, None] * kept.x
    # A row without weight (a class that is left out, say) tells nothing about the noise either.
    told = jnp.sum(weights > 0) * kept.labels.shape[1]
    rows = product(weighted.T, kept.x)
    labels = product(weighted.T, kept.labels)
    squares = jnp.sum(kept.labels**2, axis=1)  # (N,)
    return Moments(
        rows=moments.rows + rows,
        labels=moments.labels + labels,
        squares=moments.squares + jnp.sum(weights * squares),
        numbers=moments.numbers + told.astype(weights.dtype),
    )


def normal_equations(params: Array, moments: Moments, wrong: Scalar) -> Quadratic:
    """Return Σ ½‖νx̃ − y‖² over all counted rows, exactly."""
    onto_rows = product(params, moments.rows)  # (K, d)
    onto_labels = moments.labels.T
    # ‖νx̃ − y‖² = ‖νx̃‖² − 2⟨νx̃, y⟩ + ‖y‖², each summed over the rows.
    of_outputs = jnp.sum(onto_rows * params)
    of_both = jnp.sum(onto_labels * params)
    value = 0.5 * (of_outputs - 2 * of_both + moments.squares)
    gradient = onto_rows - onto_labels
    identity = jnp.eye(len(params), dtype=params.dtype)
    return Quadratic(
        # Rounding can bring the difference below zero.
        value=jnp.maximum(value, 0.0),
        gradient=gradient.ravel(),
        curvature=jnp.kron(identity, moments.rows),
    )


def hessians(loss: Loss, alpha: Array, labels: Array) -> Float[Array, "N K K"]:
    """Return the second derivatives of the loss in the outputs, without their negative part."""
    outputs = alpha.shape[1]
    if loss is squared:
        identity = jnp.eye(outputs, dtype=alpha.dtype)
        return jnp.broadcast_to(identity, (*alpha.shape, outputs))
    if loss is cross_entropy:
        p = jax.nn.softmax(alpha, axis=1)
        identity = jnp.eye(outputs, dtype=alpha.dtype)
        return p[:, :, None] * (identity - p[:, None, :])

    def of_example(output: Array, label: Array) -> Array:
        values = loss.value(output[None], label[None])
        return values[0]

    second = jax.vmap(jax.hessian(of_example))(alpha, labels)
    if outputs == 1:
        return jnp.maximum(second, 0.0)
    eigenvalues, directions = jnp.linalg.eigh(second)
    positive = jnp.maximum(eigenvalues, 0.0)
    return jnp.einsum("nij,nj,nkj->nik", directions, positive, directions)


def in_parameters(second: Float[Array, "N K K"], x: Float[Array, "N d"]) -> Array:
    """Return Σₙ Hₙ ⊗ xₙxₙ′: second derivatives in the outputs as those in the parameters."""
    rows, features = x.shape
    outputs = second.shape[1]
    pairs = x[:, :, None] * x[:, None, :]  # (N, d, d)
    pairs = pairs.reshape(rows, -1)
    blocks = product(second.reshape(rows, -1).T, pairs)  # (K², d²)
    blocks = blocks.reshape(outputs, outputs, features, features)
    # Parameters are stored class by class, so rows and columns are split alike: (K, d, K, d).
    by_class = blocks.transpose(0, 2, 1, 3)
    return by_class.reshape(outputs * features, -1)


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
            alpha = product(kept.x, params.T)
            values = loss.value(alpha, kept.labels)
            if kept.weights is None:
                return values
            return kept.weights * values

        def gradients(kept: KeptRows) -> Array:
            alpha = product(kept.x, params.T)
            residuals = loss.derivative(alpha, kept.labels)
            if kept.weights is not None:
                residuals = kept.weights[:, None] * residuals
            # (N, K, 1) · (N, 1, d): the gradient of each row, class by class.
            by_class = residuals[:, :, None] * kept.x[:, None, :]
            return by_class.reshape(len(kept.x), -1)

        def curvature(kept: KeptRows, weights: Array) -> Array:
            if kept.weights is not None:
                weights = weights * kept.weights
            alpha = product(kept.x, params.T)
            second = weights[:, None, None] * hessians(loss, alpha, kept.labels)
            return in_parameters(second, kept.x)

        def wrong(kept: KeptRows) -> Array:
            """A wrong label is any class, all alike."""
            return jnp.full(len(kept.x), jnp.log(len(params)), params.dtype)

        if loss is squared:
            counted = functools.partial(normal_equations, params)
            return Evaluation(losses, gradients, curvature, counted)
        return Evaluation(losses, gradients, curvature, wrong=wrong)

    if loss is squared:
        moments = Statistics(
            empty=no_moments,
            add=add_moments,
            numbers=lambda moments: moments.numbers,
        )
        return Likelihood(keep, at, moments, gaussian=True)
    return Likelihood(keep, at, mixes=loss.classes)


def rows_of_pool(drawn: Array) -> Array:
    """Return the numbers of the drawn rows (B,): a mini-batch of a pool is drawn as just these."""
    return drawn


def size_of_pool(world: Any) -> int:
    """Return the number of rows of the pool."""
    return int(world.learner.labels.shape[0])
