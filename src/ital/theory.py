"""The paper's guarantees, as functions of one step: Theorem 1 (local improvement) and its corollary."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from ital import _random, volume
from ital._types import Array, Bool, Float, Int, Params, PerExample, PRNGKeyArray, Scalar
from ital.errors import InputError
from ital.gradients import Gradients, add_scaled, squared_norm
from ital.tasks import Task, World


class LocalImprovement(NamedTuple):
    """Theorem 1 on one step. If both conditions hold, a large enough β makes the aware step an improvement.

    Attributes:
        chosen_is_best: whether the chosen example has the largest imagined volume.
        advantage: ⟨ν̂−ν*, g_c−g_ĉ⟩, with ĉ the runner-up.
        conditions: whether both conditions hold.
        improved: whether the aware step ends nearer to the target than the naive one.
    """

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
    """Conditions and outcome of Theorem 1 on one step.

    Conditions: c maximises TV̂(ν̂), and ⟨ν̂−ν*, g_c−g_ĉ⟩ > 0 with ĉ the runner-up. Outcome: ‖ν′−ν*‖ < ‖ν̂−ν*‖.

    Args:
        lr: the step size η.
        chosen: the index c of the chosen example.
        here: losses and gradients at ν.
        there: losses and gradients at ν̂.
        naive: ν̂, the parameters after a naive step.
        aware: ν′, the parameters after the step that was taken.
        target: the learner's target ν*.

    Returns:
        What holds on this step.
    """
    volumes = volume.imitated(lr, here.squared_norms, here.losses, there.losses)
    is_chosen = jnp.arange(volumes.shape[0]) == chosen
    others = jnp.where(is_chosen, -jnp.inf, volumes)
    chosen_is_best = volumes[chosen] >= jnp.max(others)
    progress = there.inner(add_scaled(naive, -1.0, target))
    advantage = progress[chosen] - progress[jnp.argmax(others)]
    improved = squared_norm(add_scaled(aware, -1.0, target)) < squared_norm(add_scaled(naive, -1.0, target))
    return LocalImprovement(chosen_is_best, advantage, chosen_is_best & (advantage > 0), improved)


def after_best_lesson(distance_squared: Scalar, volumes: PerExample) -> Float[Array, ""]:
    """‖ν−ν*‖² − max_D TV̂_{ν*}(·|ν): what the best lesson of the mini-batch leaves, eq. (111).

    Args:
        distance_squared: ‖ν−ν*‖².
        volumes: imitated teaching volumes of the mini-batch (B,).

    Returns:
        What is left, a scalar.
    """
    return distance_squared - jnp.max(volumes)


def monotonicity_violations(distances_squared: Float[Array, " n"], remaining: Float[Array, " n"]) -> Float[Array, ""]:
    """Share of pairs that ‖ν−ν*‖² orders one way and ‖ν−ν*‖² − max TV̂ the other (the corollary's condition).

    Args:
        distances_squared: ‖ν−ν*‖² of n parameters (n,).
        remaining: ‖ν−ν*‖² − max TV̂ of the same parameters (n,).

    Returns:
        The share, a scalar in [0, 1].
    """
    closer = distances_squared[:, None] < distances_squared[None, :]
    violated = closer & (remaining[:, None] > remaining[None, :])
    return jnp.sum(violated) / jnp.maximum(jnp.sum(closer), 1)


def teaching_monotonicity(
    task: Task, seed: int = 0, *, lr: float = 1e-3, batch_size: int = 20, samples: int = 200, batches: int = 20
) -> float:
    """The share of sampled pairs (ν₁, ν₂) that violate teaching monotonicity on a task, in the learner's own view.

    Samples lie between starts of the task and ν*, each pair judged on the same mini-batch.

    Args:
        task: the task.
        seed: the seed whose world is used.
        lr: the step size η.
        batch_size: examples in a mini-batch.
        samples: number of parameters sampled.
        batches: number of mini-batches.

    Returns:
        The share, in [0, 1].

    Raises:
        InputError: if the task does not know the learner's target.
    """
    world = jax.tree.map(jnp.asarray, task.world(seed))
    if world.truth.target is None:
        raise InputError(f"teaching monotonicity needs the learner's target, which task {task.name!r} does not have")
    start_key, scale_key, batch_key = jax.random.split(jax.random.fold_in(_random.key(0), seed), 3)

    @jax.jit
    def violations(world: World) -> Array:
        target = world.truth.target
        starts = jax.vmap(lambda key: task.rules.start(key, task.init, world))(jax.random.split(start_key, samples))
        shares = jax.random.uniform(scale_key, (samples,))
        params = jax.vmap(lambda start, share: add_scaled(target, share, add_scaled(start, -1.0, target)))(
            starts, shares
        )
        distances = jax.vmap(lambda p: squared_norm(add_scaled(p, -1.0, target)))(params)

        def on_batch(key: PRNGKeyArray) -> Array:
            examples = task.rules.show(world.learner, task.rules.draw(key, world, batch_size))

            def at(p: Params) -> Gradients:
                first = task.rules.first_previous(p, world) if task.rules.first_previous else None
                return task.rules.gradients(p, examples, task.rules.feedback(p, examples, first))

            at_target = at(target).losses

            def remaining(p: Params, distance: Array) -> Array:
                here = at(p)
                return after_best_lesson(distance, volume.imitated(lr, here.squared_norms, here.losses, at_target))

            return monotonicity_violations(distances, jax.vmap(remaining)(params, distances))

        return jnp.mean(jax.lax.map(on_batch, jax.random.split(batch_key, batches)))

    return float(violations(world))


__all__ = [
    "LocalImprovement",
    "after_best_lesson",
    "local_improvement",
    "monotonicity_violations",
    "teaching_monotonicity",
]
