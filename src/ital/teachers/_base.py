"""The types of a teacher, and what a teacher may see."""

from typing import Any, NamedTuple

import jax.numpy as jnp

from ital._platform import on_cpu
from ital._short import short
from ital._types import Array, Int, Params, PerExample, PRNGKeyArray, Scalar
from ital.teachers.protocols import ChooseFn, ChooseKnowingFn, PrepareFn, ResolveFn


class TeacherView(NamedTuple):
    """Everything that a teacher sees of one step. Of the learner it sees only the feedback.

    Attributes:
        volumes: the imitated teaching volumes of the mini-batch (B,), computed from the rest of this view.
        feedback: the learner's report on the mini-batch.
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
    """What the omniscient teacher sees in addition.

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
    """The random key itself, for a teacher that draws from it."""
    return key


class Teacher(NamedTuple):
    """A teacher that knows the learner only through its feedback.

    Teachers with the same ``choose`` that differ only in numbers share a program.

    Attributes:
        name: its name.
        choose: ``choose(key, view, settings)`` returns an index of the mini-batch.
        settings: its numbers, a pytree, traced by the compiled program.
        sign: the sign of a β that fits the teacher.
        resolve: ``resolve(settings, beta)`` fills in open settings, given the task's β.
        prepare: ``prepare(key, B)``, if given, draws what ``choose`` gets in place of the key, for many steps at
            once.
        version: changes whenever the same key would give another choice.
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
    """A teacher that also sees the learner's parameters.

    Attributes:
        name: its name.
        choose: ``choose(key, view, learner, settings)`` returns an index of the mini-batch.
        settings: as in :class:`Teacher`, like all other attributes.
        sign: the sign of a β that fits the teacher.
        resolve: fills in open settings.
        prepare: draws what ``choose`` gets in place of the key.
        version: changes whenever the same key would give another choice.
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
    """The same as ``jnp.argmax``, also for NaN. XLA's argmax is slow on a CPU, but a single kernel on a GPU."""
    if not on_cpu():
        return jnp.argmax(values)
    largest = (values == jnp.max(values)) | jnp.isnan(values)
    return jnp.min(jnp.where(largest, jnp.arange(len(values)), len(values)))


AnyTeacher = Teacher | OmniscientTeacher
