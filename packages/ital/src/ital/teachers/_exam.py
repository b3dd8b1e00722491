"""The exam teacher: sees no feedback, and estimates the learner from exams (Liu et al. 2018)."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ital.errors import InputError
from ital.teachers._base import Answers, Choice, Query, Signals, Teacher, TeacherView, first_largest
from ital.teachers._imitation import no_estimate
from ital.teachers._simulated import exact_volumes, gradients_at, naive_step
from ital.teachers.protocols import AskFn
from ital.tools.types import Array, Int, PRNGKeyArray

# The penalty λ on a change of the estimate.
RIDGE = 1e-3


def fitted(answers: Answers, estimate: Array) -> Array:
    """Return the v nearest to the answers: the minimum of Σᵢ‖v xᵢ − αᵢ‖² + λ‖v − v_before‖².

    The penalty pulls toward the estimate before the exam, so that a short exam keeps what longer
    ones have shown.
    """
    x = answers.examples.x.x
    missed = answers.outputs - x @ estimate.T
    identity = jnp.eye(x.shape[1], dtype=x.dtype)
    # The change v − v_before solves (XᵀX + λI)·changeᵀ = Xᵀ(α − v_before X).
    gram = x.T @ x + RIDGE * identity
    change = jax.scipy.linalg.solve(gram, x.T @ missed, assume_a="pos")
    return estimate + change.T


def _kept(answers: Answers, estimate: Array) -> Array:
    """Return the estimate as it is: there was no exam."""
    return estimate


def choose_by_exam(
    key: Any,
    view: TeacherView,
    settings: Any,
    memory: Array,
) -> tuple[Choice, Array, Signals]:
    """Choose by the exact volume at v, and simulate the naive step; an exam comes before both."""
    answers = view.answers
    assert answers is not None
    estimate = jax.lax.cond(answers.given, fitted, _kept, answers, memory)
    at_estimate = gradients_at(view, estimate)
    chosen = first_largest(exact_volumes(view, estimate, at_estimate))
    after = naive_step(view, estimate, at_estimate, chosen)
    return Choice(chosen), after, {}


@functools.cache  # one object per pair of numbers: teachers that share it share a program
def asking(every: int, number: int) -> AskFn:
    """Return the function that asks ``number`` random rows every ``every`` steps; at most all."""

    def ask(key: PRNGKeyArray, side: Any, view: TeacherView, settings: Any, memory: Any) -> Query:
        total = len(side.examples.labels)
        count = min(number, total)
        # One row from each of ``count`` equal parts of the pool: distinct rows, without sorting it.
        bounds = np.arange(count + 1) * total // count
        rows: Int[Array, " n"] = jax.random.randint(key, (count,), bounds[:-1], bounds[1:])
        is_exam = view.step % every == 0
        return Query(rows, is_exam, count)

    return ask


def exam(text: str = "20:120") -> Teacher:
    """Sees no feedback; every m steps (20) it asks about n rows (120), e.g. exam:20:120.

    Args:
        text: "m:n", the steps between exams and the number of rows asked about.

    Returns:
        The teacher.

    Raises:
        InputError: if the text has another form.
    """
    every, _, number = str(text).partition(":")
    whole = every.isdecimal() and number.isdecimal()
    if not whole or int(every) == 0 or int(number) == 0:
        raise InputError(
            f"an exam teacher is written exam:m:n (every m steps, n rows), not exam:{text}"
        )
    return Teacher(
        f"exam:{int(every)}:{int(number)}",
        choose_by_exam,
        init=no_estimate,
        ask=asking(int(every), int(number)),
        feedback=False,
        needs=("simulation", "questions"),
    )
