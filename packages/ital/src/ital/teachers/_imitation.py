"""The imitation teacher: keeps an estimate of the learner in its own view (Liu et al. 2017)."""

import math
from typing import Any

import jax.numpy as jnp

from ital.errors import InputError
from ital.teachers._base import Choice, Signals, Teacher, TeacherView, first_largest
from ital.teachers._simulated import exact_volumes, gradients_at, naive_step
from ital.tools import registry
from ital.tools.types import Array, PRNGKeyArray

# The rate of the correction that makes the estimate agree with the answer: η_v = 1/‖x‖².
WHOLE = math.nan


def no_estimate(key: PRNGKeyArray, side: Any, settings: Any) -> Array:
    """Return v⁰: every parameter 0, as the teacher knows nothing about the learner yet."""
    return jnp.zeros_like(side.target)


def choose_by_imitation(
    key: Any,
    view: TeacherView,
    settings: Any,
    memory: Array,
) -> tuple[Choice, Array, Signals]:
    """Choose by the exact volume at v; then correct v by the answer, and simulate the step.

    The order matters: the answer was given before the step. With v = ν the correction is 0, so v
    stays equal to ν.
    """
    at_memory = gradients_at(view, memory)
    chosen = first_largest(exact_volumes(view, memory, at_memory))
    assert view.model is not None
    rows = view.examples.x
    # ⟨v,x⟩ − α on every example (B, K); only that of the chosen one corrects v.
    gaps = view.model.outputs(memory, rows) - view.feedback
    whole = 1 / rows.squared_norms[chosen]
    rate = jnp.where(jnp.isnan(settings), whole, settings)
    corrected = memory - rate * gaps[chosen][:, None] * rows.x[chosen]
    at_corrected = gradients_at(view, corrected)
    after = naive_step(view, corrected, at_corrected, chosen)
    squared_errors = jnp.sum(gaps**2, axis=-1)
    error = jnp.sqrt(jnp.mean(squared_errors))
    return Choice(chosen), after, {"imitation_error": error}


def imitation(rate: float | str = WHOLE) -> Teacher:
    """Estimates the learner from its answers, and shows what would help the estimate most.

    Args:
        rate: η_v, how far an answer corrects the estimate, 0 for never; by default 1/‖x‖², so that
            the estimate agrees with the latest answer.

    Returns:
        The teacher.

    Raises:
        InputError: if the rate is not a number of at least 0.
    """
    number = registry.number(rate)
    if not (0 <= number < math.inf or rate is WHOLE):
        raise InputError(
            "an imitation teacher is written imitation or imitation:RATE with RATE ≥ 0, "
            f"not {rate!r}"
        )
    name = "imitation"
    if not math.isnan(number):
        name = f"imitation:{number:g}"
    return Teacher(
        name,
        choose_by_imitation,
        number,
        init=no_estimate,
        needs=("simulation",),
    )
