"""The paper's guarantees, as functions of one step: Theorem 1 (local improvement) and its corollary."""

from typing import NamedTuple

import jax.numpy as jnp

from ital import volume
from ital._types import Array, Bool, Float, Int, Params, PerExample, Scalar
from ital.gradients import Gradients, add_scaled, squared_norm


class LocalImprovement(NamedTuple):
    """Theorem 1 on one step. If both conditions hold, a large enough β makes the aware step an improvement."""

    chosen_is_best: Bool[Array, ""]
    advantage: Float[Array, ""]
    conditions: Bool[Array, ""]
    improved: Bool[Array, ""]


def local_improvement(
    lr: Scalar,
    chosen: Int[Array, ""],
    here: Gradients,
    there: Gradients,
    naive: Params,
    aware: Params,
    target: Params,
) -> LocalImprovement:
    """Conditions and outcome of Theorem 1, with gradients ``here`` at ν and ``there`` at ν̂ = ``naive``.

    Conditions: c maximises TV̂(ν̂), and ⟨ν̂−ν*, g_c−g_ĉ⟩ > 0 with ĉ the runner-up. Outcome: ‖ν′−ν*‖ < ‖ν̂−ν*‖.
    """
    volumes = volume.imitated(lr, here.squared_norms, here.losses, there.losses)
    is_chosen = jnp.arange(volumes.shape[0]) == chosen
    others = jnp.where(is_chosen, -jnp.inf, volumes)
    chosen_is_best = volumes[chosen] >= jnp.max(others)
    progress = there.inner(add_scaled(naive, -1.0, target))
    advantage = progress[chosen] - progress[jnp.argmax(others)]
    improved = squared_norm(add_scaled(aware, -1.0, target)) < squared_norm(add_scaled(naive, -1.0, target))
    return LocalImprovement(chosen_is_best, advantage, chosen_is_best & (advantage > 0), improved)


def after_best_lesson(distance_squared: Scalar, volumes_at_target: PerExample) -> Float[Array, ""]:
    """‖ν−ν*‖² − max_D TV̂_{ν*}(·|ν): the quantity that teaching monotonicity orders, eq. (111)."""
    return distance_squared - jnp.max(volumes_at_target)


def monotonicity_violations(distances_squared: Float[Array, " n"], remaining: Float[Array, " n"]) -> Float[Array, ""]:
    """Share of pairs ordered one way by ‖ν−ν*‖² and the other way by ‖ν−ν*‖² − max TV̂ (the corollary's condition)."""
    closer = distances_squared[:, None] < distances_squared[None, :]
    violated = closer & (remaining[:, None] > remaining[None, :])
    return jnp.sum(violated) / jnp.maximum(jnp.sum(closer), 1)


__all__ = ["LocalImprovement", "after_best_lesson", "local_improvement", "monotonicity_violations"]
