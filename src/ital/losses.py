"""Losses l(α, y): the value and its derivative in the output α, for a whole mini-batch at once."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ital._types import Array, Float, Integer, PerExample

Outputs = Float[Array, "B K"]


class Loss(NamedTuple):
    """A loss of the outputs α (B × K) and the labels y of B examples.

    ``value(α, y)`` has shape (B,), ``derivative(α, y)`` = ∂l/∂α has shape (B, K). ``classes`` says
    whether labels are class indices (B,) or targets (B, K); ``title`` names the loss on an axis.
    """

    name: str
    title: str
    value: Callable[[Array, Array], Array]
    derivative: Callable[[Array, Array], Array]
    classes: bool


def _squared_value(alpha: Outputs, y: Outputs) -> PerExample:
    return 0.5 * jnp.sum((alpha - y) ** 2, axis=-1)


def _squared_derivative(alpha: Outputs, y: Outputs) -> Outputs:
    return alpha - y


def _cross_entropy_value(alpha: Outputs, y: Integer[Array, " B"]) -> PerExample:
    largest, _, total = _exponentials(alpha)
    return largest + jnp.log(total) - jnp.take_along_axis(alpha, y[:, None], axis=-1)[:, 0]


def _cross_entropy_derivative(alpha: Outputs, y: Integer[Array, " B"]) -> Outputs:
    _, exponentials, total = _exponentials(alpha)
    return exponentials / total[:, None] - (jnp.arange(alpha.shape[-1]) == y[:, None])


def _exponentials(alpha: Outputs) -> tuple[PerExample, Outputs, PerExample]:
    """Max α, exp(α − max α) and its sum over the outputs; the sum as a product with ones, which XLA's CPU compiler
    vectorises (a reduction over the last axis it does not, and logsumexp then takes twice as long).
    """
    largest = jnp.max(alpha, axis=-1)
    exponentials = jnp.exp(alpha - largest[:, None])
    total = jnp.matmul(exponentials, jnp.ones(alpha.shape[-1], alpha.dtype), precision=jax.lax.Precision.HIGHEST)
    return largest, exponentials, total


squared = Loss("squared", "Square loss", _squared_value, _squared_derivative, classes=False)
"""½‖α − y‖²"""

cross_entropy = Loss("cross_entropy", "Cross-entropy", _cross_entropy_value, _cross_entropy_derivative, classes=True)
"""logsumexp(α) − α_y"""


def custom(
    name: str, value: Callable[[Array, Array], Array], *, classes: bool = False, title: str | None = None
) -> Loss:
    """A loss of one's own from its value on one example, ``value(α (K,), y) -> scalar``; autodiff derives it."""
    return Loss(name, title or name, jax.vmap(value), jax.vmap(jax.grad(value)), classes)


__all__ = ["Loss", "cross_entropy", "custom", "squared"]
