"""A teacher with no intention: the control for over-interpretation."""

import jax

from ital._types import PRNGKeyArray
from ital.teachers._base import Choice, Teacher, TeacherView


def choose(key: PRNGKeyArray, view: TeacherView, settings: tuple) -> Choice:
    """A uniformly random index of the mini-batch."""
    return jax.random.randint(key, (), 0, view.volumes.shape[0])


def random() -> Teacher:
    """Shows any example of the mini-batch with equal probability."""
    return Teacher("random", choose)
