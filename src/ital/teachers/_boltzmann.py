"""The noisily rational teacher: the one that a teacher-aware learner has in mind."""

import math
from typing import Any, NamedTuple

import jax

from ital._types import PRNGKeyArray
from ital.errors import InputError
from ital.teachers._base import Choice, Teacher, TeacherView


class Settings(NamedTuple):
    """Rationality ρ; None stands for the task's |β|."""

    rationality: Any = None


def choose(key: PRNGKeyArray, view: TeacherView, settings: Settings) -> Choice:
    """An index drawn with probability ∝ exp(ρ·TV̂), eq. (q-imit) with the true target."""
    return jax.random.categorical(key, settings.rationality * view.volumes)


def resolve(settings: Settings, beta: float) -> Settings:
    """Fills in an open ρ with the task's |β|."""
    return Settings(abs(beta)) if settings.rationality is None else settings


def boltzmann(rationality: float | str | None = None) -> Teacher:
    """Shows an example with probability ∝ exp(ρ·TV̂); ρ defaults to the task's |β|."""
    if rationality is None:
        return Teacher("boltzmann", choose, Settings(), resolve=resolve)
    try:
        rho = float(rationality)
    except ValueError:
        rho = math.nan
    if not math.isfinite(rho):
        raise InputError(f"rationality of the boltzmann teacher must be a finite number, not {rationality!r}")
    return Teacher(f"boltzmann:{repr(rho).removesuffix('.0')}", choose, Settings(rho), sign=math.copysign(1.0, rho))
