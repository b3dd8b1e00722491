"""What a teacher is, and what she may see."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from ital._platform import on_cpu
from ital._types import Array, Int, Params, PerExample, PRNGKeyArray, Scalar
from ital.teachers.protocols import ChooseFn, ChooseKnowingFn, PrepareFn, ResolveFn


class TeacherView(NamedTuple):
    """All that a teacher sees of one step. Nothing of the learner is in it but his feedback.

    ``volumes`` are the imitated teaching volumes of the mini-batch, computed from the rest of this view. ``step``
    counts from 0, ``steps`` is how many there will be.
    """

    volumes: PerExample
    feedback: Any
    examples: Any
    target: Params
    lr: Scalar
    step: Int[Array, ""]
    steps: Int[Array, ""]


class LearnerView(NamedTuple):
    """What only the omniscient teacher sees besides: the learner's parameters ν, his optimum ν*, exact volumes."""

    volumes: PerExample
    params: Params
    target: Params


Choice = Int[Array, ""]


def the_key(key: PRNGKeyArray, batch_size: int) -> PRNGKeyArray:
    """The random key itself: the teacher draws from it."""
    return key


class Teacher(NamedTuple):
    """A teacher who knows the learner by its feedback alone: ``choose(key, view, settings) -> index``.

    ``settings`` is a pytree of numbers, traced by the compiled program: teachers of one ``choose`` that differ in
    numbers alone share a program. ``sign`` is the sign of a β that fits the teacher; ``resolve(settings, beta)``
    fills in settings left open, given the task's β. ``prepare(key, B)``, where given, draws what ``choose`` gets in
    place of the key, for many steps at once. ``version`` changes whenever the same key would mean another choice.
    """

    name: str
    choose: ChooseFn
    settings: Any = ()
    sign: float = 1.0
    resolve: ResolveFn = lambda settings, beta: settings
    prepare: PrepareFn = the_key
    version: int = 1


class OmniscientTeacher(NamedTuple):
    """A teacher who sees the learner's mind as well: ``choose(key, view, learner, settings) -> index``."""

    name: str
    choose: ChooseKnowingFn
    settings: Any = ()
    sign: float = 1.0
    resolve: ResolveFn = lambda settings, beta: settings
    prepare: PrepareFn = the_key
    version: int = 1


def first_largest(values: PerExample) -> Choice:
    """Where ``jnp.argmax`` points, NaN included. XLA's argmax is slow on a CPU, but a single kernel on a GPU."""
    if not on_cpu():
        return jnp.argmax(values)
    largest = (values == jnp.max(values)) | jnp.isnan(values)
    return jnp.min(jnp.where(largest, jnp.arange(len(values)), len(values)))


AnyTeacher = Teacher | OmniscientTeacher
