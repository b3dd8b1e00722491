"""The rule shared by the built-in teachers: the argmax of weight · volume + noise."""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ital.teachers._base import LearnerView, Teacher, TeacherView, first_largest, largest
from ital.teachers.protocols import ChooseFn
from ital.tools.types import Array, Int, PerExample, PRNGKeyArray

NEVER = math.inf
HALF_WAY = math.nan


class Rationality(NamedTuple):
    """The numbers of a teacher: the weights of teaching volume and Gumbel noise, and when they change.

    weight 1 and noise 0 is the cooperative teacher, weight −1 the adversary, weight 0 and noise 1 the random one,
    weight ρ and noise 1 the Boltzmann teacher with rationality ρ. From step ``change`` on, ``weight_after`` and
    ``noise_after`` count instead. With probability ``lapse`` a choice is random.
    """

    weight: Any = 1.0
    noise: Any = 0.0
    change: Any = NEVER
    weight_after: Any = 1.0
    noise_after: Any = 0.0
    lapse: Any = 0.0


class Noise(NamedTuple):
    """The random part of a choice: a Gumbel number for each example, and a number in [0, 1) that decides on a lapse."""

    gumbel: PerExample | float
    lapse: Array | float


def draw_noise(key: PRNGKeyArray, batch_size: int) -> Noise:
    """The noise of one choice."""
    gumbel_key, lapse_key = jax.random.split(key)
    return Noise(jax.random.gumbel(gumbel_key, (batch_size,)), jax.random.uniform(lapse_key))


def draw_none(key: PRNGKeyArray, batch_size: int) -> Noise:
    """No noise, for teachers that need none: nothing is drawn."""
    return Noise(0.0, 1.0)


def choose(noise: Noise, view: TeacherView, settings: Rationality) -> Int[Array, ""]:
    """The argmax of weight · TV̂ + noise; ties go to the lowest index.

    With noise 1 this is a draw with probability ∝ exp(weight · TV̂), eq. (q-imit) with the true target.
    """
    return first_largest(scores(noise, view, view.volumes, settings))


def choose_knowing(
    noise: Noise, view: TeacherView, learner: LearnerView, settings: Rationality
) -> Int[Array, ""]:
    """The same with the exact teaching volume, eq. (teaching-volume), for a teacher that sees the parameters."""
    return first_largest(scores(noise, view, learner.volumes, settings))


@functools.cache  # one object per number: teachers that share it share a program
def several(count: int) -> ChooseFn:
    """The ``count`` largest in place of the largest; with noise 1, a draw from the Plackett–Luce distribution."""
    return lambda noise, view, settings: largest(scores(noise, view, view.volumes, settings), count)


@functools.cache
def several_knowing(count: int) -> ChooseFn:
    """The same with the exact teaching volume."""
    return lambda noise, view, learner, settings: largest(
        scores(noise, view, learner.volumes, settings), count
    )


def scores(
    noise: Noise, view: TeacherView, volumes: PerExample, settings: Rationality
) -> PerExample:
    """weight · volume + noise, with the numbers of this step."""
    change = jnp.where(jnp.isnan(settings.change), view.steps / 2, settings.change)
    after, lapse = view.step >= change, noise.lapse < settings.lapse
    weight = jnp.where(lapse, 0.0, jnp.where(after, settings.weight_after, settings.weight))
    scale = jnp.where(lapse, 1.0, jnp.where(after, settings.noise_after, settings.noise))
    # With weight 0, a volume that is not finite must have no effect: 0 · ∞ is NaN.
    return jnp.where(weight == 0, 0.0, weight * volumes) + scale * noise.gumbel


def rational(name: str, numbers: Rationality, *, version: int = 1, **options: Any) -> Teacher:
    """A teacher with this rule; noise is drawn only if its numbers need it."""
    quiet = numbers.noise == numbers.noise_after == numbers.lapse == 0
    prepare = draw_none if quiet else draw_noise
    return Teacher(
        name, choose, numbers, prepare=prepare, version=version, several=several, **options
    )
