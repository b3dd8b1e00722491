"""Per-example gradients gᵢ = ∂l(νx̃ᵢ, yᵢ)/∂ν, as the three operations that teaching needs.

These are squared norms ‖gᵢ‖², inner products ⟨v, gᵢ⟩ with a direction, and weighted sums Σᵢ wᵢgᵢ.
A linear model computes all three from factors, in O(B(K+d)) instead of O(BKd); other differentiable
models use vmapped autodiff.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ital.tools.types import Array, Float, Params, PerExample

# Full float32 on every device: TF32 would change curves between machines.
HIGHEST = jax.lax.Precision.HIGHEST


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
    """Return the gradients rᵢ ⊗ x̃ᵢ of a linear model, with residuals rᵢ = ∂l/∂α.

    No array of size B·K·d is created.

    Args:
        losses: the losses (B,).
        residuals: ∂l/∂α (B, K).
        x: rows with the constant 1 (B, d).
        x_squared_norms: ‖x̃ᵢ‖² (B,).

    Returns:
        The losses and the three operations.
    """

    def inner(v: Any) -> Array:
        # ⟨v, rᵢ ⊗ x̃ᵢ⟩ = ⟨rᵢ, vx̃ᵢ⟩.
        outputs_of_v = jnp.matmul(x, v.T, precision=HIGHEST)
        return jnp.sum(residuals * outputs_of_v, axis=-1)

    def weighted_sum(w: Any) -> Array:
        # Σᵢ wᵢ rᵢ ⊗ x̃ᵢ = Rᵀdiag(w)X̃.
        weighted_residuals = w[:, None] * residuals
        return jnp.matmul(weighted_residuals.T, x, precision=HIGHEST)

    return Gradients(
        losses=losses,
        # ‖rᵢ ⊗ x̃ᵢ‖² = ‖rᵢ‖²‖x̃ᵢ‖².
        squared_norms=jnp.sum(residuals**2, axis=-1) * x_squared_norms,
        inner=inner,
        weighted_sum=weighted_sum,
    )


def with_l2(gradients: Gradients, l2: float, weights: Params) -> Gradients:
    """Add (λ/2)‖weights‖² to every example's loss, hence λ·weights to its gradient.

    Args:
        gradients: losses and gradients without the penalty.
        l2: the factor λ.
        weights: the penalised parameters, 0 elsewhere.

    Returns:
        Losses and gradients with the penalty.
    """

    def inner(v: Any) -> Array:
        return gradients.inner(v) + l2 * inner_product(weights, v)

    def weighted_sum(w: Any) -> Params:
        return add_scaled(gradients.weighted_sum(w), l2 * jnp.sum(w), weights)

    # ‖gᵢ + λ·weights‖², multiplied out.
    cross = 2 * l2 * gradients.inner(weights)
    squared_norms = gradients.squared_norms + cross + l2**2 * squared_norm(weights)
    return Gradients(
        losses=gradients.losses + 0.5 * l2 * squared_norm(weights),
        squared_norms=squared_norms,
        inner=inner,
        weighted_sum=weighted_sum,
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
    """Return the gradients of a loss in any pytree of parameters, by vmapped autodiff.

    Args:
        example_loss: ``example_loss(params, *example)`` returns the loss of one example, a scalar.
        params: the parameters, any pytree.
        *examples: the mini-batch as ``example_loss`` takes it, each with a leading axis of
            examples.

    Returns:
        The losses and the three operations.
    """
    # The parameters are shared; each part of the mini-batch has a leading axis of examples.
    axes = (None, *(0 for _ in examples))

    def losses_at(elsewhere: Params) -> Array:
        return jax.vmap(example_loss, in_axes=axes)(elsewhere, *examples)

    # Only the norms need the gradient of each example; the other two operations are products with
    # the Jacobian of the losses, from the right and from the left.
    per_example = jax.vmap(jax.grad(example_loss), in_axes=axes)(params, *examples)
    losses, pull_back = jax.vjp(losses_at, params)

    def inner(v: Any) -> Array:
        _, changes = jax.jvp(losses_at, (params,), (v,))
        return changes

    def weighted_sum(w: Any) -> Params:
        (gradient,) = pull_back(w.astype(losses.dtype))
        return gradient

    return Gradients(
        losses=losses,
        squared_norms=jax.vmap(squared_norm)(per_example),
        inner=inner,
        weighted_sum=weighted_sum,
    )


def squared_norm(v: Params) -> Array:
    """Return ‖v‖² of a pytree.

    Args:
        v: a pytree of arrays.

    Returns:
        The sum of squares, a scalar.
    """
    return inner_product(v, v)


def inner_product(u: Params, v: Params) -> Array:
    """Return ⟨u, v⟩ of two pytrees with the same structure.

    Args:
        u: a pytree of arrays.
        v: a pytree of the same structure.

    Returns:
        The inner product, a scalar.
    """
    per_leaf = jax.tree.map(lambda a, b: jnp.sum(a * b), u, v)
    return jax.tree.reduce(jnp.add, per_leaf)


def add_scaled(u: Params, scale: Array | float, v: Params) -> Params:
    """Return u + scale · v, leaf by leaf.

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
