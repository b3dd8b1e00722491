"""The paper's guarantees: Theorem 1 (local improvement), and its corollary's premises."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ital import volume
from ital.errors import InputError
from ital.gradients import Gradients, add_scaled, squared_norm
from ital.models import LinearRows
from ital.tasks import Task, World, copies
from ital.tools import randomness
from ital.tools.types import Array, Bool, Float, Int, Params, PerExample, PRNGKeyArray, Scalar

# In units of ‖ν⁰−ν*‖²: with a larger error, the corollary promises little.
MOST_ERROR = 0.1
# The largest share of samples that may violate a premise.
MOST_VIOLATIONS = 0.01


class LocalImprovement(NamedTuple):
    """Theorem 1 on one step.

    If both conditions hold, the aware step is an improvement for a large enough β.

    Attributes:
        chosen_is_best: whether the chosen example has the largest imagined volume.
        advantage: ⟨ν̂−ν*, g_c−g_ĉ⟩, with ĉ the runner-up.
        conditions: whether both conditions hold.
        improved: whether the aware step ends closer to the target than the naive one.
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
    """Evaluate conditions and outcome of Theorem 1 on one step.

    Conditions: c maximises TV̂(ν̂), and ⟨ν̂−ν*, g_c−g_ĉ⟩ > 0 with ĉ the runner-up.
    Outcome: ‖ν′−ν*‖ < ‖ν̂−ν*‖.

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
    # TV̂(ν̂): the teacher that the learner imagines has the target ν̂.
    volumes = volume.imitated(lr, here.squared_norms, here.losses, there.losses)
    is_chosen = jnp.arange(volumes.shape[0]) == chosen
    others = jnp.where(is_chosen, -jnp.inf, volumes)
    chosen_is_best = volumes[chosen] >= jnp.max(others)
    progress = there.inner(add_scaled(naive, -1.0, target))  # ⟨ν̂−ν*, gᵢ⟩ (B,)
    runner_up = jnp.argmax(others)
    advantage = progress[chosen] - progress[runner_up]
    after_aware = squared_norm(add_scaled(aware, -1.0, target))
    after_naive = squared_norm(add_scaled(naive, -1.0, target))
    return LocalImprovement(
        chosen_is_best=chosen_is_best,
        advantage=advantage,
        conditions=chosen_is_best & (advantage > 0),
        improved=after_aware < after_naive,
    )


def after_best_lesson(distance_squared: Scalar, volumes: PerExample) -> Float[Array, ""]:
    """Return ‖ν−ν*‖² − max_D TV̂_{ν*}(·|ν), eq. (111): the squared distance after the best lesson.

    Args:
        distance_squared: ‖ν−ν*‖².
        volumes: imitated teaching volumes of the mini-batch (B,).

    Returns:
        The remaining squared distance, a scalar.
    """
    return distance_squared - jnp.max(volumes)


def monotonicity_violations(
    distances_squared: Float[Array, " n"],
    remaining: Float[Array, " n"],
) -> Float[Array, ""]:
    """Return the share of pairs that ‖ν−ν*‖² and ‖ν−ν*‖² − max TV̂ order differently.

    The corollary's condition is that there are none.

    Args:
        distances_squared: ‖ν−ν*‖² of n parameters (n,).
        remaining: ‖ν−ν*‖² − max TV̂ of the same parameters (n,).

    Returns:
        The share, a scalar in [0, 1].
    """
    is_closer = distances_squared[:, None] < distances_squared[None, :]
    remains_further = remaining[:, None] > remaining[None, :]
    violations = jnp.sum(is_closer & remains_further)
    pairs = jnp.sum(is_closer)
    return violations / jnp.maximum(pairs, 1)


def teaching_monotonicity(
    task: Task,
    seed: int = 0,
    *,
    lr: float = 1e-3,
    batch_size: int = 20,
    samples: int = 200,
    batches: int = 20,
) -> float:
    """Return the share of sampled pairs (ν₁, ν₂) that violate teaching monotonicity on a task.

    Everything is in the learner's own view. Samples lie between starts of the task and ν*; both of
    a pair are judged on the same mini-batch.

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
    world = _world_with_target(task, seed, "teaching monotonicity")
    start_key, scale_key, batch_key = _keys(seed)

    @jax.jit
    def violations(world: World) -> Array:
        target = world.truth.target
        params, _ = _on_the_way(task, world, start_key, scale_key, samples)

        def distance_squared(p: Params) -> Array:
            return squared_norm(add_scaled(p, -1.0, target))

        distances = jax.vmap(distance_squared)(params)  # (sample,)

        def on_batch(key: PRNGKeyArray) -> Array:
            drawn = task.rules.draw(key, world, batch_size)
            examples = task.rules.show(world.learner, drawn)
            target_losses = _gradients_at(task, world, examples, target).losses

            def remaining(p: Params, distance: Array) -> Array:
                here = _gradients_at(task, world, examples, p)
                volumes = volume.imitated(lr, here.squared_norms, here.losses, target_losses)
                return after_best_lesson(distance, volumes)

            after_lesson = jax.vmap(remaining)(params, distances)
            return monotonicity_violations(distances, after_lesson)

        keys = jax.random.split(batch_key, batches)
        by_batch = jax.lax.map(on_batch, keys)
        return jnp.mean(by_batch)

    return float(violations(world))


def teaching_risk(task: Task, seed: int = 0) -> float:
    """Return how much of the target the learner's view cannot express.

    It is 0 if and only if the learner can represent the target. On a pool, the smallest error of
    the teacher's answers in the learner's view, relative to these answers
    (:func:`ital.views.pool_risk`). In IRL, max ⟨w*, v⟩ over v in the kernel of the learner's view,
    ‖v‖ ≤ 1 (:func:`ital.views.kernel_risk`).

    Args:
        task: the task.
        seed: the seed whose world is used.

    Returns:
        The risk; in float32, rounding alone makes about 10⁻⁷.

    Raises:
        InputError: if the task does not compare two linear views.
    """
    if task.rules.risk is None:
        raise InputError(
            "teaching risk needs a learner that is linear in its view, "
            f"which task {task.name!r} has not"
        )
    return task.rules.risk(task.world(seed))


class Premises(NamedTuple):
    """The corollary's premises besides monotonicity, estimated from samples on a task.

    Attributes:
        loss_slope: L of the loss, the largest rate at which l changes with the example.
        norm_slope: L of the squared gradient norms.
        radius: δ, the largest distance of an example from the nearest one in a mini-batch.
        error: the resulting ε, T(η²L_g + 4ηL_l)δ, in units of ‖ν⁰−ν*‖².
        missed: the quantity that ε bounds, T(max_D TV̂ − max_Dᵗ TV̂), in the same units.
        convexity_violations: share of examples with l(ν) − l(ν*) above ⟨ν−ν*, g⟩ by at least a
            hundredth of its mean; the proof needs a convex loss.
    """

    loss_slope: float
    norm_slope: float
    radius: float
    error: float
    missed: float
    convexity_violations: float


def lipschitz(values: PerExample, apart: Float[Array, "B B"]) -> Float[Array, ""]:
    """Return the smallest Lipschitz constant of the sample.

    It is the largest |fᵢ−fⱼ| / ‖xᵢ−xⱼ‖ over distinct pairs.

    Args:
        values: f of every example (B,).
        apart: the distances ‖xᵢ−xⱼ‖ (B, B).

    Returns:
        The constant, a scalar.
    """
    distinct = apart > 0
    differences = jnp.abs(values[:, None] - values)
    # The inner ``where`` avoids 0/0 for an example and itself.
    slopes = differences / jnp.where(distinct, apart, 1.0)
    return jnp.max(jnp.where(distinct, slopes, 0.0))


def covering_radius(apart: Float[Array, "n B"]) -> Float[Array, ""]:
    """Return the density of a mini-batch: how far examples are from the nearest one in it, at most.

    Args:
        apart: the distances of n examples from those of the mini-batch (n, B).

    Returns:
        The radius δ, a scalar.
    """
    to_nearest = jnp.min(apart, axis=1)
    return jnp.max(to_nearest)


def error_allowed(
    steps: int,
    lr: Scalar,
    loss_slope: Scalar,
    norm_slope: Scalar,
    radius: Scalar,
) -> Scalar:
    """Return the corollary's ε, from δ = ε/(TL(η²+4η)).

    L is separate for each of the two functions, as in the proof.

    Args:
        steps: number of steps T.
        lr: the step size η.
        loss_slope: L of the loss.
        norm_slope: L of the squared gradient norms.
        radius: δ of the mini-batch.

    Returns:
        T(η²L_g + 4ηL_l)δ.
    """
    return steps * (lr**2 * norm_slope + 4 * lr * loss_slope) * radius


def corollary_premises(
    task: Task,
    seed: int = 0,
    *,
    lr: float = 1e-3,
    batch_size: int = 20,
    steps: int = 2000,
    samples: int = 20,
    pools: int = 4,
    examples: int = 200,
) -> Premises:
    """Estimate the corollary's premises on a task, in the learner's own view.

    Parameters are sampled between starts of the task and ν*. Every pool is a sample of examples;
    the first of them are the mini-batch. So slopes, radius and error are lower bounds: larger pools
    can only raise them. Rows of a pool are points; examples of other tasks are treated as one-hot,
    √2 apart unless they are equal.

    Args:
        task: the task.
        seed: the seed whose world is used.
        lr: the step size η.
        batch_size: examples in a mini-batch.
        steps: number of steps T of a run.
        samples: number of parameters sampled.
        pools: number of pools sampled.
        examples: number of examples in each.

    Returns:
        The estimates.

    Raises:
        InputError: if the task does not know the learner's target.
    """
    world = _world_with_target(task, seed, "the corollary")
    start_key, scale_key, pool_key = _keys(seed)

    @jax.jit
    def estimates(world: World) -> tuple[Array, ...]:
        target = world.truth.target
        params, start_squared = _on_the_way(task, world, start_key, scale_key, samples)

        def on_pool(key: PRNGKeyArray) -> tuple[Array, ...]:
            drawn = task.rules.draw(key, world, examples)
            views = task.rules.show(world.learner, drawn)
            apart = _distances(views, drawn, examples)

            def at(p: Params) -> tuple[Array, Array, Array]:
                here = _gradients_at(task, world, views, p)
                progress = here.inner(add_scaled(p, -1.0, target))
                return here.losses, here.squared_norms, progress

            # Arrays (sample, example); the last sample is ν* itself.
            losses, squared_norms, progress = jax.vmap(at)(with_target)
            at_target = losses[-1]
            judge = functools.partial(_judged, lr, batch_size, apart, at_target)
            radius = covering_radius(apart[:, :batch_size])
            judged = jax.vmap(judge)(losses[:-1], squared_norms[:-1], progress[:-1])
            return radius, *judged

        with_target = jax.tree.map(_appended, params, target)
        keys = jax.random.split(pool_key, pools)
        by_pool = jax.lax.map(on_pool, keys)
        return _over_pools(steps, lr, start_squared, *by_pool)

    # In the order of the fields.
    return Premises(*map(float, estimates(world)))


def failing(premises: Premises, monotonicity: float) -> list[str]:
    """Return the premises of the corollary that do not hold on a task.

    Args:
        premises: the estimates.
        monotonicity: share of pairs that violate teaching monotonicity.

    Returns:
        Their names; none if all may hold.
    """
    fails = {
        "density": premises.error > MOST_ERROR,
        "monotonicity": monotonicity > MOST_VIOLATIONS,
        "convexity": premises.convexity_violations > MOST_VIOLATIONS,
    }
    return [name for name, failed in fails.items() if failed]


def _world_with_target(task: Task, seed: int, what: str) -> World:
    """Draw the world of a seed; raise InputError if nobody knows the learner's target."""
    world = jax.tree.map(jnp.asarray, task.world(seed))
    if world.truth.target is None:
        raise InputError(
            f"{what} needs the learner's target, which task {task.name!r} does not have"
        )
    return world


def _keys(seed: int) -> Array:
    """Return three keys: for starts, for where samples lie on the way to ν*, and for examples."""
    of_seed = jax.random.fold_in(randomness.key(0), seed)
    return jax.random.split(of_seed, 3)


def _appended(leaf: Array, last: Array) -> Array:
    """Return an array with one more entry along its first axis."""
    return jnp.concatenate([leaf, last[None]])


def _on_the_way(
    task: Task,
    world: World,
    start_key: PRNGKeyArray,
    scale_key: PRNGKeyArray,
    samples: int,
) -> tuple[Params, Array]:
    """Return parameters between starts of the task and ν*, and the mean ‖ν⁰−ν*‖² of the starts."""
    target = world.truth.target

    def gap_of(key: PRNGKeyArray) -> Params:
        start = task.rules.start(key, task.init, world)
        return add_scaled(start, -1.0, target)

    def between(gap: Params, share: Array) -> Params:
        return add_scaled(target, share, gap)

    keys = jax.random.split(start_key, samples)
    gaps = jax.vmap(gap_of)(keys)
    shares = jax.random.uniform(scale_key, (samples,))
    params = jax.vmap(between)(gaps, shares)
    squared_distances = jax.vmap(squared_norm)(gaps)
    return params, jnp.mean(squared_distances)


def _gradients_at(task: Task, world: World, examples: Any, params: Params) -> Gradients:
    """Return the learner's losses and gradients at any parameters."""
    rules = task.rules
    previous = None
    if rules.first_previous:
        previous = rules.first_previous(params, world)
    feedback = rules.feedback(params, examples, previous)
    return rules.gradients(params, examples, feedback)


def _judged(
    lr: float,
    batch_size: int,
    apart: Array,
    at_target: Array,
    losses: Array,
    squared_norms: Array,
    progress: Array,
) -> tuple[Array, ...]:
    """Judge one ν.

    Returns:
        Both slopes, by how much the best of the mini-batch falls short of the best of the pool, and
        the share of examples on which the loss is not convex.
    """
    volumes = volume.imitated(lr, squared_norms, losses, at_target)
    missed = jnp.max(volumes) - jnp.max(volumes[:batch_size])
    gains = losses - at_target
    # Less than this does not affect the proof, and may be rounding.
    noticed = 0.01 * jnp.mean(jnp.abs(progress))
    not_convex = jnp.mean(gains > progress + noticed)
    loss_slope = lipschitz(losses, apart)
    norm_slope = lipschitz(squared_norms, apart)
    return loss_slope, norm_slope, missed, not_convex


def _over_pools(
    steps: int,
    lr: float,
    start_squared: Array,
    radii: Array,
    loss_slopes: Array,
    norm_slopes: Array,
    missed: Array,
    not_convex: Array,
) -> tuple[Array, ...]:
    """Return the fields of :class:`Premises`, in their order, from what each pool shows."""
    loss_slope = jnp.max(loss_slopes)
    norm_slope = jnp.max(norm_slopes)
    radius = jnp.mean(radii)
    error = error_allowed(steps, lr, loss_slope, norm_slope, radius)
    relative_error = error / start_squared
    relative_missed = steps * jnp.mean(missed) / start_squared
    violations = jnp.mean(not_convex)
    return loss_slope, norm_slope, radius, relative_error, relative_missed, violations


def _distances(views: Any, drawn: Any, size: int) -> Array:
    """Return the distances between examples (B, B)."""
    rows = getattr(views, "x", None)
    if isinstance(rows, LinearRows):
        differences = rows.x[:, None] - rows.x
        return jnp.linalg.norm(differences, axis=-1)
    # As one-hot vectors: √2 apart unless they are equal.
    return jnp.sqrt(2.0) * (1.0 - copies(drawn, size))


__all__ = [
    "LocalImprovement",
    "Premises",
    "after_best_lesson",
    "corollary_premises",
    "covering_radius",
    "error_allowed",
    "failing",
    "lipschitz",
    "local_improvement",
    "monotonicity_violations",
    "teaching_monotonicity",
    "teaching_risk",
]
