"""A learner that a teacher simulates in its own view: an estimate v of the learner's parameters."""

import jax.numpy as jnp

from ital import volume
from ital.gradients import Gradients, add_scaled, weighted
from ital.teachers._base import TeacherView
from ital.tools.types import Array, PerExample


def gradients_at(view: TeacherView, estimate: Array) -> Gradients:
    """Losses and gradients of the estimate on the mini-batch."""
    assert view.model is not None
    examples = view.examples
    return weighted(view.model.gradients(estimate, examples.x, examples.labels), examples.weights)


def exact_volumes(view: TeacherView, estimate: Array, there: Gradients) -> PerExample:
    """The exact teaching volumes for a learner with parameters v, eq. (teaching-volume)."""
    progress = there.inner(add_scaled(estimate, -1.0, view.target))
    return volume.exact(view.lr, there.squared_norms, progress)[view.first]


def naive_step(view: TeacherView, estimate: Array, there: Gradients, chosen: Array) -> Array:
    """v − ηg, the naive step on the chosen example."""
    shown = (jnp.arange(len(there.losses)) == chosen).astype(estimate.dtype)
    return add_scaled(estimate, -view.lr, there.weighted_sum(shown))
