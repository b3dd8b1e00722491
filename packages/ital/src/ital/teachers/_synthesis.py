"""The synthesis teacher: shows a random example with the label that helps most (label synthesis, LAST)."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from ital.errors import InputError
from ital.teachers._base import Choice, LearnerView, Teacher, TeacherView
from ital.tools import registry
from ital.tools.types import PRNGKeyArray


def choose(key: PRNGKeyArray, view: TeacherView, learner: LearnerView, settings: Any) -> Choice:
    """A random example; its label is the ideal one, at most r away from the true one.

    Classes get a distribution over the classes, and r has no meaning.
    """
    index = jax.random.randint(key, (), 0, len(learner.volumes))
    label, true = learner.labels[index], view.examples.labels[index]
    if true.ndim:
        label = true + jnp.clip(label - true, -settings, settings)
    return Choice(index, label)


def synthesis(reach: float | str = math.inf) -> Teacher:
    """Shows a random example with the most helpful label, at most r from the true one (e.g. synthesis:0.5).

    Args:
        reach: r, the largest distance between the label and the true one; for classes it is ignored.

    Returns:
        The teacher.

    Raises:
        InputError: if r is not a number of at least 0.
    """
    number = registry.number(reach)
    if not number >= 0:
        raise InputError(
            f"a synthesis teacher is written synthesis or synthesis:r with r ≥ 0, not synthesis:{reach}"
        )
    name = "synthesis" if number == math.inf else f"synthesis:{number:g}"
    return Teacher(name, choose, number, omniscient=True, needs=("labels", "ideal labels"))
