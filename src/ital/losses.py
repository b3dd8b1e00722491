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
    return jax.nn.logsumexp(alpha, axis=-1) - jnp.sum(jnp.where(_is_label(alpha, y), alpha, 0.0), axis=-1)


def _cross_entropy_derivative(alpha: Outputs, y: Integer[Array, " B"]) -> Outputs:
    return jax.nn.softmax(alpha, axis=-1) - _is_label(alpha, y)


def _is_label(alpha: Array, y: Array) -> Array:
    """One-hot labels as a comparison, which fuses with what uses it (a gather of α_y does not)."""
    return jnp.arange(alpha.shape[-1]) == y[..., None]


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
