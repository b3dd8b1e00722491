"""Losses l(α, y): the value and its derivative in the output α, for a whole mini-batch at once."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ital.errors import InputError
from ital.tools.pickling import reduced
from ital.tools.types import Array, Float, Integer, PerExample

Outputs = Float[Array, "B K"]
# Labels of a classification: class indices, or distributions over the classes.
Classes = Integer[Array, " B"] | Float[Array, "B K"]


class Loss(NamedTuple):
    """A loss of the outputs α (B × K) and the labels y of B examples.

    Attributes:
        name: name of the loss.
        title: its name on an axis.
        value: ``value(α, y)`` returns the losses (B,).
        derivative: ``derivative(α, y)`` returns ∂l/∂α (B, K).
        classes: whether labels are class indices (B,) rather than targets (B, K).
        label: ``label(α, r)``, if given, returns the labels (B, K) at which ∂l/∂α is r, or as near
            to it as a label can bring it.
        likelihood: whether the loss is a negative log-likelihood, −log p(y | α) up to a constant:
            learners that keep a belief read labels by it.
    """

    name: str
    title: str
    value: Callable[[Array, Array], Array]
    derivative: Callable[[Array, Array], Array]
    classes: bool
    label: Callable[[Array, Array], Array] | None = None
    likelihood: bool = False

    def __reduce__(self) -> "str | tuple[Any, ...]":
        # The losses of this module stay the same objects when they are stored and read again:
        # tasks ask whether a loss is the cross-entropy.
        if globals().get(self.name) is self:
            return self.name
        return reduced(self)


def _squared_value(alpha: Outputs, y: Outputs) -> PerExample:
    return 0.5 * jnp.sum((alpha - y) ** 2, axis=-1)


def _squared_derivative(alpha: Outputs, y: Outputs) -> Outputs:
    return alpha - y


def _cross_entropy_value(alpha: Outputs, y: Classes) -> PerExample:
    largest, _, total = _exponentials(alpha)
    log_sum_exp = largest + jnp.log(total)
    if y.ndim == 2:
        return log_sum_exp - jnp.sum(y * alpha, axis=-1)
    of_the_class = jnp.take_along_axis(alpha, y[:, None], axis=-1)[:, 0]
    return log_sum_exp - of_the_class


def _cross_entropy_derivative(alpha: Outputs, y: Classes) -> Outputs:
    distribution = y if y.ndim == 2 else jnp.arange(alpha.shape[-1]) == y[:, None]
    return _softmax(alpha) - distribution


def _cross_entropy_label(alpha: Outputs, residual: Outputs) -> Outputs:
    """Return Π(p − r), the nearest distribution over the classes."""
    import optax  # takes a tenth of a second to load, and few runs need it

    return jax.vmap(optax.projections.projection_simplex)(_softmax(alpha) - residual)


def _softmax(alpha: Outputs) -> Outputs:
    """Return the probabilities p of the classes."""
    _, exponentials, total = _exponentials(alpha)
    return exponentials / total[:, None]


def _exponentials(alpha: Outputs) -> tuple[PerExample, Outputs, PerExample]:
    """Return max α, exp(α − max α) and its sum over the outputs."""
    largest = jnp.max(alpha, axis=-1)
    exponentials = jnp.exp(alpha - largest[:, None])
    # The sum is a product with ones, which XLA vectorises on a CPU. It does not vectorise a
    # reduction over the last axis: logsumexp would take twice as long.
    ones = jnp.ones(alpha.shape[-1], alpha.dtype)
    total = jnp.matmul(exponentials, ones, precision=jax.lax.Precision.HIGHEST)
    return largest, exponentials, total


squared = Loss(
    "squared",
    "Square loss",
    _squared_value,
    _squared_derivative,
    classes=False,
    label=jnp.subtract,
    likelihood=True,
)
"""½‖α − y‖²"""

cross_entropy = Loss(
    "cross_entropy",
    "Cross-entropy",
    _cross_entropy_value,
    _cross_entropy_derivative,
    classes=True,
    label=_cross_entropy_label,
    likelihood=True,
)
"""logsumexp(α) − α_y; for a label that is a distribution p, logsumexp(α) − ⟨p, α⟩"""


def custom(
    name: str,
    value: Callable[[Array, Array], Array],
    *,
    classes: bool = False,
    title: str | None = None,
    likelihood: bool = False,
) -> Loss:
    """Make a custom loss from its value on one example; autodiff computes the derivative.

    Args:
        name: name of the loss.
        value: ``value(α, y)`` returns the loss of one example with outputs α (K,), a scalar.
        classes: whether labels are class indices rather than targets.
        title: its name on an axis; the name if None.
        likelihood: whether the loss is a negative log-likelihood, −log p(y | α) up to a constant.

    Returns:
        The loss, for whole mini-batches.

    Example:
        >>> absolute = ital.losses.custom("absolute", lambda alpha, y: abs(alpha - y).sum())
    """

    def scalar(alpha: Array, y: Array) -> Array:
        loss = value(alpha, y)
        shape = jnp.shape(loss)
        if shape != ():
            raise InputError(
                f"loss {name!r} must be one number per example, not an array of shape {shape}"
            )
        return loss

    return Loss(
        name,
        title or name,
        jax.vmap(scalar),
        jax.vmap(jax.grad(scalar)),
        classes,
        likelihood=likelihood,
    )


__all__ = ["Loss", "cross_entropy", "custom", "squared"]
