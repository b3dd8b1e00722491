"""The absent-minded teacher: helps now and then."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ital._types import PRNGKeyArray
from ital.errors import InputError
from ital.teachers._base import Choice, Teacher, TeacherView


class Settings(NamedTuple):
    """The probability P that she helps."""

    helps: Any


def choose(key: PRNGKeyArray, view: TeacherView, settings: Settings) -> Choice:
    """Argmax of the imitated teaching volume with probability P, any index otherwise."""
    whether, which = jax.random.split(key)
    anything = jax.random.randint(which, (), 0, view.volumes.shape[0])
    return jnp.where(jax.random.uniform(whether) < settings.helps, jnp.argmax(view.volumes), anything)


def mixture(helps: float | str = 0.5) -> Teacher:
    """Helps with probability P (mixture:P, default 0.5), else shows any example."""
    try:
        probability = float(helps)
    except ValueError:
        probability = math.nan
    if not 0 <= probability <= 1:
        raise InputError(f"the mixture teacher helps with a probability in [0, 1], not {helps!r}")
    name = "mixture" if probability == 0.5 else f"mixture:{probability:g}"
    return Teacher(name, choose, Settings(probability))
