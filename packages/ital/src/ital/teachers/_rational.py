"""The rule shared by the built-in teachers: the argmax of weight · volume + noise."""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ital.teachers._base import LearnerView, Teacher, TeacherView, first_largest, largest
from ital.teachers.protocols import ChooseFn
from ital.tools.types import Array, Int, PerExample, PRNGKeyArray

# Steps at which a teacher may change.
NEVER = math.inf
HALF_WAY = math.nan


class Rationality(NamedTuple):
    """The numbers of a teacher: how it weighs teaching volume and noise, and when that changes.

    weight 1 and noise 0 is the cooperative teacher, weight −1 the adversary, weight 0 and noise 1
    the random one, weight ρ and noise 1 the Boltzmann teacher with rationality ρ.

    Attributes:
        weight: the weight of the teaching volume.
        noise: the weight of Gumbel noise.
        change: the step from which the next two count instead.
        weight_after: the weight of the teaching volume from then on.
        noise_after: the weight of Gumbel noise from then on.
        lapse: the probability that a choice is random.
    """

    weight: Any = 1.0
    noise: Any = 0.0
    change: Any = NEVER
    weight_after: Any = 1.0
    noise_after: Any = 0.0
    lapse: Any = 0.0


class Noise(NamedTuple):
    """The random part of a choice.

    Attributes:
        gumbel: a Gumbel number for each example (B,).
        lapse: a number in [0, 1) that decides on a lapse.
    """

    gumbel: PerExample | float
    lapse: Array | float


def draw_noise(key: PRNGKeyArray, batch_size: int) -> Noise:
    """Draw the noise of one choice."""
    gumbel_key, lapse_key = jax.random.split(key)
    gumbel = jax.random.gumbel(gumbel_key, (batch_size,))
    return Noise(gumbel, jax.random.uniform(lapse_key))


def draw_none(key: PRNGKeyArray, batch_size: int) -> Noise:
    """Draw nothing, for teachers that need no noise."""
    return Noise(0.0, 1.0)


def choose(noise: Noise, view: TeacherView, settings: Rationality) -> Int[Array, ""]:
    """Return the argmax of weight · TV̂ + noise; ties go to the lowest index.

    With noise 1 this is a draw with probability ∝ exp(weight · TV̂), eq. (q-imit) with the true
    target.
    """
    return first_largest(scores(noise, view, view.volumes, settings))


def choose_knowing(
    noise: Noise, view: TeacherView, learner: LearnerView, settings: Rationality
) -> Int[Array, ""]:
    """Return the same for a teacher that sees the parameters: with eq. (teaching-volume)."""
    return first_largest(scores(noise, view, learner.volumes, settings))


@functools.cache  # one object per number: teachers that share it share a program
def several(count: int) -> ChooseFn:
    """Return the function that chooses the ``count`` largest in place of the largest.

    With noise 1 this is a draw from the Plackett–Luce distribution.
    """
    return lambda noise, view, settings: largest(scores(noise, view, view.volumes, settings), count)


@functools.cache
def several_knowing(count: int) -> ChooseFn:
    """Return the same with the exact teaching volume."""
    return lambda noise, view, learner, settings: largest(
        scores(noise, view, learner.volumes, settings), count
    )


def scores(
    noise: Noise, view: TeacherView, volumes: PerExample, settings: Rationality
) -> PerExample:
    """Return weight · volume + noise (B,), with the numbers of this step."""
    change = jnp.where(jnp.isnan(settings.change), view.steps / 2, settings.change)
    changed = view.step >= change
    lapses = noise.lapse < settings.lapse
    # A lapse is a random choice: only the noise counts.
    weight = jnp.where(lapses, 0.0, jnp.where(changed, settings.weight_after, settings.weight))
    scale = jnp.where(lapses, 1.0, jnp.where(changed, settings.noise_after, settings.noise))
    # With weight 0, a volume that is not finite must have no effect: 0 · ∞ is NaN.
    return jnp.where(weight == 0, 0.0, weight * volumes) + scale * noise.gumbel


def rational(name: str, numbers: Rationality, *, version: int = 1, **options: Any) -> Teacher:
    """Return a teacher with this rule; noise is drawn only if its numbers need it."""
    needs_noise = numbers.noise != 0 or numbers.noise_after != 0 or numbers.lapse != 0
    return Teacher(
        name,
        choose,
        numbers,
        prepare=draw_noise if needs_noise else draw_none,
        version=version,
        several=several,
        **options,
    )
