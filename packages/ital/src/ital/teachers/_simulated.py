"""A learner that a teacher simulates in its own view: an estimate v of the learner's parameters."""

import jax.numpy as jnp

from ital import volume
from ital.gradients import Gradients, add_scaled, weighted
from ital.teachers._base import TeacherView
from ital.tools.types import Array, PerExample


def gradients_at(view: TeacherView, estimate: Array) -> Gradients:
    """Return losses and gradients of the estimate on the mini-batch."""
    assert view.model is not None
    examples = view.examples
    unweighted = view.model.gradients(estimate, examples.x, examples.labels)
    return weighted(unweighted, examples.weights)


def exact_volumes(view: TeacherView, estimate: Array, gradients: Gradients) -> PerExample:
    """Return the exact teaching volumes for a learner with parameters v, eq. (teaching-volume)."""
    progress = gradients.inner(add_scaled(estimate, -1.0, view.target))
    volumes = volume.exact(view.lr, gradients.squared_norms, progress)
    # Copies of an example get the volume of the first: rounding never decides between them.
    return volumes[view.first]


def naive_step(
    view: TeacherView,
    estimate: Array,
    gradients: Gradients,
    chosen: Array,
) -> Array:
    """Return v − ηg, the naive step on the chosen example."""
    is_chosen = jnp.arange(len(gradients.losses)) == chosen
    gradient = gradients.weighted_sum(is_chosen.astype(estimate.dtype))
    return add_scaled(estimate, -view.lr, gradient)
