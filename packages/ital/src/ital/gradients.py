"""Per-example gradients gᵢ = ∂l(νx̃ᵢ, yᵢ)/∂ν, as the three operations that teaching needs.

These are squared norms ‖gᵢ‖², inner products ⟨v, gᵢ⟩ with a direction, and weighted sums Σᵢ wᵢgᵢ. A linear model
computes all three from factors, in O(B(K+d)) instead of O(BKd); other differentiable models use vmapped autodiff.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ital.tools.types import Array, Float, Params, PerExample

HIGHEST = (
    jax.lax.Precision.HIGHEST
)  # full float32 on every device: TF32 would change curves between machines


class Gradients(NamedTuple):
    """The losses of a mini-batch at some parameters, and the three operations on their gradients.

    Attributes:
        losses: l(νx̃ᵢ, yᵢ) of every example (B,).
        squared_norms: ‖gᵢ‖² of every example (B,).
        inner: ``inner(v)`` returns the inner products ⟨v, gᵢ⟩ (B,).
        weighted_sum: ``weighted_sum(w)`` returns Σᵢ wᵢgᵢ, a pytree like the parameters.
    """

    losses: PerExample
    squared_norms: PerExample
    inner: Callable[[Params], PerExample]
    weighted_sum: Callable[[PerExample], Params]


def factored(
    losses: PerExample,
    residuals: Float[Array, "B K"],
    x: Float[Array, "B d"],
    x_squared_norms: PerExample,
) -> Gradients:
    """Gradients rᵢ ⊗ x̃ᵢ of a linear model, with residuals rᵢ = ∂l/∂α; no array of size B·K·d is created.

    Args:
        losses: the losses (B,).
        residuals: ∂l/∂α (B, K).
        x: rows with the constant 1 (B, d).
        x_squared_norms: ‖x̃ᵢ‖² (B,).

    Returns:
        The losses and the three operations.
    """
    return Gradients(
        losses=losses,
        squared_norms=jnp.sum(residuals**2, axis=-1) * x_squared_norms,
        inner=lambda v: jnp.sum(residuals * jnp.matmul(x, v.T, precision=HIGHEST), axis=-1),
        weighted_sum=lambda w: jnp.matmul((w[:, None] * residuals).T, x, precision=HIGHEST),
    )


def with_l2(gradients: Gradients, l2: float, weights: Params) -> Gradients:
    """Add (λ/2)‖weights‖² to every example's loss; ``weights`` is zero for parameters without a penalty.

    Args:
        gradients: losses and gradients without the penalty.
        l2: the factor λ.
        weights: the penalised parameters, 0 elsewhere.

    Returns:
        Losses and gradients with the penalty.
    """
    return Gradients(
        losses=gradients.losses + 0.5 * l2 * squared_norm(weights),
        squared_norms=gradients.squared_norms
        + 2 * l2 * gradients.inner(weights)
        + l2**2 * squared_norm(weights),
        inner=lambda v: gradients.inner(v) + l2 * inner_product(weights, v),
        weighted_sum=lambda w: add_scaled(gradients.weighted_sum(w), l2 * jnp.sum(w), weights),
    )


def weighted(gradients: Gradients, weights: PerExample | None) -> Gradients:
    """Multiply every example's loss by its own weight.

    Args:
        gradients: losses and gradients without weights.
        weights: the weights (B,); None for 1.

    Returns:
        Losses and gradients of the weighted losses.
    """
    if weights is None:
        return gradients
    return Gradients(
        losses=weights * gradients.losses,
        squared_norms=weights**2 * gradients.squared_norms,
        inner=lambda v: weights * gradients.inner(v),
        weighted_sum=lambda w: gradients.weighted_sum(weights * w),
    )


def autodiff(example_loss: Callable[..., Array], params: Params, *examples: Params) -> Gradients:
    """Gradients of ``example_loss(params, *example) -> scalar`` for any pytree of parameters, by vmapped autodiff.

    Args:
        example_loss: ``example_loss(params, *example)`` returns the loss of one example, a scalar.
        params: the parameters, any pytree.
        *examples: the mini-batch as ``example_loss`` takes it, each with a leading axis of examples.

    Returns:
        The losses and the three operations.
    """

    def losses(p: Params) -> Array:
        return jax.vmap(example_loss, in_axes=(None, *(0,) * len(examples)))(p, *examples)

    per_example = jax.vmap(jax.grad(example_loss), in_axes=(None, *(0,) * len(examples)))(
        params, *examples
    )
    values, pull_back = jax.vjp(losses, params)
    return Gradients(
        losses=values,
        squared_norms=jax.vmap(squared_norm)(per_example),
        inner=lambda v: jax.jvp(losses, (params,), (v,))[1],
        weighted_sum=lambda w: pull_back(w.astype(values.dtype))[0],
    )


def squared_norm(v: Params) -> Array:
    """‖v‖² of a pytree.

    Args:
        v: a pytree of arrays.

    Returns:
        The sum of squares, a scalar.
    """
    return inner_product(v, v)


def inner_product(u: Params, v: Params) -> Array:
    """⟨u, v⟩ of two pytrees with the same structure.

    Args:
        u: a pytree of arrays.
        v: a pytree of the same structure.

    Returns:
        The inner product, a scalar.
    """
    return jax.tree.reduce(jnp.add, jax.tree.map(lambda a, b: jnp.sum(a * b), u, v))


def add_scaled(u: Params, scale: Array | float, v: Params) -> Params:
    """u + scale · v, leaf by leaf.

    Args:
        u: a pytree of arrays.
        scale: a number.
        v: a pytree of the same structure.

    Returns:
        The sum, a pytree of the same structure.
    """
    return jax.tree.map(lambda a, b: a + scale * b, u, v)


__all__ = [
    "Gradients",
    "add_scaled",
    "autodiff",
    "factored",
    "inner_product",
    "squared_norm",
    "weighted",
    "with_l2",
]
