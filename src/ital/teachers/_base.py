"""What a teacher is, and what it may see."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from ital._platform import on_cpu
from ital._short import short
from ital._types import Array, Int, Params, PerExample, PRNGKeyArray, Scalar
from ital.teachers.protocols import ChooseFn, ChooseKnowingFn, PrepareFn, ResolveFn


class TeacherView(NamedTuple):
    """All that a teacher sees of one step. Nothing of the learner is in it but its feedback.

    Attributes:
        volumes: the imitated teaching volumes of the mini-batch (B,), computed from the rest of this view.
        feedback: what the learner reported of the mini-batch.
        examples: the teacher's view of the mini-batch.
        target: the teacher's target ω*.
        lr: the step size η.
        step: number of the step, from 0.
        steps: number of steps of the run.
    """

    volumes: PerExample
    feedback: Any
    examples: Any
    target: Params
    lr: Scalar
    step: Int[Array, ""]
    steps: Int[Array, ""]


class LearnerView(NamedTuple):
    """What only the omniscient teacher sees besides.

    Attributes:
        volumes: the exact teaching volumes of the mini-batch (B,).
        params: the learner's parameters ν.
        target: the learner's target ν*.
    """

    volumes: PerExample
    params: Params
    target: Params


Choice = Int[Array, ""]


def the_key(key: PRNGKeyArray, batch_size: int) -> PRNGKeyArray:
    """The random key itself: the teacher draws from it."""
    return key


class Teacher(NamedTuple):
    """A teacher that knows the learner by its feedback alone.

    Teachers of one ``choose`` that differ in numbers alone share a program.

    Attributes:
        name: its name.
        choose: ``choose(key, view, settings)`` returns an index of the mini-batch.
        settings: its numbers, a pytree, traced by the compiled program.
        sign: the sign of a β that fits the teacher.
        resolve: ``resolve(settings, beta)`` fills in settings left open, given the task's β.
        prepare: ``prepare(key, B)``, where given, draws what ``choose`` gets in place of the key, for many steps at
            once.
        version: changes whenever the same key would mean another choice.
    """

    name: str
    choose: ChooseFn
    settings: Any = ()
    sign: float = 1.0
    resolve: ResolveFn = lambda settings, beta: settings
    prepare: PrepareFn = the_key
    version: int = 1

    def __repr__(self) -> str:
        return short("Teacher", self.name, numbers=self.settings)


class OmniscientTeacher(NamedTuple):
    """A teacher that sees the learner's mind as well.

    Attributes:
        name: its name.
        choose: ``choose(key, view, learner, settings)`` returns an index of the mini-batch.
        settings: as in :class:`Teacher`, like all that follow.
        sign: the sign of a β that fits the teacher.
        resolve: fills in settings left open.
        prepare: draws what ``choose`` gets in place of the key.
        version: changes whenever the same key would mean another choice.
    """

    name: str
    choose: ChooseKnowingFn
    settings: Any = ()
    sign: float = 1.0
    resolve: ResolveFn = lambda settings, beta: settings
    prepare: PrepareFn = the_key
    version: int = 1

    def __repr__(self) -> str:
        return short("OmniscientTeacher", self.name, numbers=self.settings)


def first_largest(values: PerExample) -> Choice:
    """Where ``jnp.argmax`` points, NaN included. XLA's argmax is slow on a CPU, but a single kernel on a GPU."""
    if not on_cpu():
        return jnp.argmax(values)
    largest = (values == jnp.max(values)) | jnp.isnan(values)
    return jnp.min(jnp.where(largest, jnp.arange(len(values)), len(values)))


AnyTeacher = Teacher | OmniscientTeacher
