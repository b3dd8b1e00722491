"""The synthesis teacher: a random example with the label that helps most (LAST)."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from ital.errors import InputError
from ital.teachers._base import Choice, LearnerView, Teacher, TeacherView
from ital.tools import registry
from ital.tools.types import PRNGKeyArray


def choose_with_label(
    key: PRNGKeyArray,
    view: TeacherView,
    learner: LearnerView,
    settings: Any,
) -> Choice:
    """Show a random example; its label is the ideal one, at most r away from the true one."""
    index = jax.random.randint(key, (), 0, len(learner.volumes))
    ideal = learner.labels[index]
    true = view.examples.labels[index]
    # A class has no distance to another: its ideal label is a distribution, and r has no meaning.
    if true.ndim == 0:
        return Choice(index, ideal)
    way = jnp.clip(ideal - true, -settings, settings)
    return Choice(index, true + way)


def synthesis(reach: float | str = math.inf) -> Teacher:
    """Shows a random example with the best label at most r from the true one (e.g. synthesis:0.5).

    Args:
        reach: r, the largest distance between the label and the true one; for classes it is
            ignored.

    Returns:
        The teacher.

    Raises:
        InputError: if r is not a number of at least 0.
    """
    number = registry.number(reach)
    if not number >= 0:
        raise InputError(
            "a synthesis teacher is written synthesis or synthesis:r with r ≥ 0, "
            f"not synthesis:{reach}"
        )
    name = "synthesis"
    if number < math.inf:
        name = f"synthesis:{number:g}"
    return Teacher(
        name,
        choose_with_label,
        number,
        omniscient=True,
        needs=("labels", "ideal labels"),
    )
