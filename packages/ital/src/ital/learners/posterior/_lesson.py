"""What a learner takes from a lesson into its memory: labels that count, and the choice."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import solve_triangular

from ital import volume
from ital.gradients import HIGHEST
from ital.learners.posterior._types import Belief, BeliefNumbers, StepWindow, Structure
from ital.lessons import Lesson
from ital.tools.types import Array, Float, Params, PerExample, Scalar


def weights_of_labels(lesson: Lesson, settings: BeliefNumbers, seen: Any) -> tuple[PerExample, Any]:
    """Return how much each label counts (B,), and which rows of the pool were seen afterwards.

    The label of a pool's row is one fact, however often the row is drawn.

    Args:
        lesson: what the learner sees of the step.
        settings: the numbers of the belief.
        seen: which rows were seen before (N,); () without a pool.

    Returns:
        The weights, 0 or 1, and the rows that were seen.
    """
    index = jnp.arange(lesson.order.shape[0])
    chosen = jnp.atleast_1d(lesson.chosen)
    is_chosen = jnp.any(index == chosen[:, None], axis=0)
    counts = is_chosen | (settings.all_labels > 0)
    dtype = lesson.here.losses.dtype
    rows = lesson.rows
    if rows is None:
        return counts.astype(dtype), seen
    # The first of the copies that count stands for all of them.
    is_copy = rows[:, None] == rows
    is_earlier = index < index[:, None]
    has_earlier_copy = jnp.any(is_copy & is_earlier & counts, axis=1)
    is_new = counts & ~has_earlier_copy & ~seen[rows]
    return is_new.astype(dtype), seen.at[rows].max(counts)


def gradient_rows(lesson: Lesson) -> Float[Array, "B D"]:
    """Return the gradient of every example at the parameters that the learner showed."""
    size = lesson.order.shape[0]
    one_each = jnp.eye(size, dtype=lesson.here.losses.dtype)
    per_example = jax.vmap(lesson.here.weighted_sum)(one_each)

    def row_of(gradient: Params) -> Float[Array, " D"]:
        flat, _ = ravel_pytree(gradient)
        return flat

    return jax.vmap(row_of)(per_example)


def first_unit(
    lesson: Lesson,
    shown: Float[Array, " D"],
    belief: Belief,
    rows: Float[Array, "B D"],
) -> Scalar:
    """Return the inverse of the spread of the volumes that the prior expects.

    To first order TVᵢ = 2η⟨ν − ν*, gᵢ⟩ with ν* ~ N(m, s²I). The learner does not know the target,
    so it cannot look at the volumes themselves.
    """
    centred = rows - jnp.mean(rows, axis=0)
    of_mean = jnp.matmul(centred, shown - belief.mean, precision=HIGHEST)
    of_prior = belief.scale**2 * jnp.sum(centred**2, axis=1)
    variance = jnp.mean(of_mean**2 + of_prior)
    spread = 2 * lesson.lr * jnp.sqrt(variance)
    # The inner ``where`` keeps 1/0 out of the branch that is not taken.
    divisor = jnp.where(spread > 0, spread, 1.0)
    return jnp.where(spread > 0, 1 / divisor, 1.0)


def sharpness_of(
    lesson: Lesson,
    settings: BeliefNumbers,
    rows: Float[Array, "B D"],
    b: Scalar,
    factor: Float[Array, "D D"],
) -> Scalar:
    """Return the b with which to read this step's choice: b, or less if the belief is too wide.

    A choice that is much sharper than the belief cuts it at a plane, and a normal distribution
    describes a half of itself badly: its evidence would be far too high. A softer choice tells
    nearly as much, since later choices are read more sharply as the belief shrinks.

    Args:
        lesson: what the learner sees of the step.
        settings: the numbers of the belief.
        rows: the gradient of every example.
        b: the rationality.
        factor: the Cholesky factor of the belief's precision.

    Returns:
        The sharpness, with the sign of b.
    """
    centred = rows - jnp.mean(rows, axis=0)
    whitened = solve_triangular(factor, centred.T, lower=True)  # (D, B)
    variance = jnp.mean(jnp.sum(whitened**2, axis=0))
    spread = 2 * lesson.lr * jnp.sqrt(variance)
    most = settings.sharpest / jnp.where(spread > 0, spread, 1.0)
    return jnp.clip(b, -most, most)


def into_window(
    structure: Structure,
    window: StepWindow,
    lesson: Lesson,
    weights: PerExample,
    shown: Float[Array, " D"],
    rows: Float[Array, "B D"] | None,
) -> StepWindow:
    """Return the window with this step in its slot."""
    assert lesson.likelihood is not None
    slot = lesson.step % structure.window
    kept = lesson.likelihood.keep(lesson.examples)

    def into_slot(ring: Array, of_step: Array) -> Array:
        return ring.at[slot].set(of_step)

    window = window._replace(
        kept=jax.tree.map(into_slot, window.kept, kept),
        label_weights=into_slot(window.label_weights, weights),
    )
    if rows is None:
        return window
    here = lesson.here
    progress = here.losses
    directions = window.directions
    if structure.exact:
        progress = jnp.matmul(rows, shown, precision=HIGHEST)
        directions = into_slot(directions, rows)
    # The volume of a target without any loss: what the target takes off is not known yet.
    known = volume.exact(lesson.lr, here.squared_norms, progress)
    chosen = jnp.atleast_1d(lesson.chosen).astype(window.chosen.dtype)
    return window._replace(
        known=into_slot(window.known, known),
        directions=directions,
        chosen=into_slot(window.chosen, chosen),
        present=window.present.at[slot].set(1.0),
    )


def slot_of(window: Any, slot: Array) -> Any:
    """Return one step of arrays (W, …), as arrays (1, …)."""

    def only_slot(ring: Array) -> Array:
        return jax.lax.dynamic_slice_in_dim(ring, slot, slice_size=1)

    return jax.tree.map(only_slot, window)


def without_slot(window: StepWindow, slot: Array) -> StepWindow:
    """Return the window with one slot empty."""
    return window._replace(
        present=window.present.at[slot].set(0.0),
        label_weights=window.label_weights.at[slot].set(0.0),
    )
