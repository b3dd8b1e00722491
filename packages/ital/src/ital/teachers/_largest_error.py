"""The greedy teacher of nonparametric teaching: shows where the learner is most wrong."""

import functools
from typing import Any

import jax.numpy as jnp

from ital.teachers._base import Teacher, TeacherView, draw_none, first_largest, largest
from ital.teachers.protocols import ChooseFn
from ital.tools.types import Array, Int, PerExample


def errors(view: TeacherView) -> PerExample:
    """Return ‖f(x) − f*(x)‖² of every example (B,).

    That is the learner's feedback against the outputs of the teacher's target.
    """
    assert view.model is not None  # the task offers "simulation"
    wanted = view.model.outputs(view.target, view.examples.x)
    return jnp.sum((view.feedback - wanted) ** 2, axis=-1)


def choose_largest_error(noise: Any, view: TeacherView, settings: Any) -> Int[Array, ""]:
    """Return the first example of largest error."""
    return first_largest(errors(view))


@functools.cache  # one object per number: teachers that share it share a program
def several_largest_errors(count: int) -> ChooseFn:
    """Return the function that chooses the ``count`` examples of largest error."""
    return lambda noise, view, settings: largest(errors(view), count)


def largest_error() -> Teacher:
    """Shows where the learner's output differs most from the target's: argmax ‖f(x) − f*(x)‖.

    Returns:
        The teacher.
    """
    return Teacher(
        "largest-error",
        choose_largest_error,
        prepare=draw_none,
        several=several_largest_errors,
        needs=("simulation",),
    )
