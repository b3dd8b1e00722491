"""The unsure teacher: it mixes over what the learner may believe."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from ital import beliefs
from ital.errors import InputError
from ital.teachers._base import Noise, Signals, Teacher, TeacherView, draw_noise
from ital.teachers._sampling import drawn
from ital.tools.registry import number
from ital.tools.types import Array, Int, PRNGKeyArray


def possible_beliefs(key: PRNGKeyArray, side: Any, settings: Any) -> Array:
    """Return the beliefs that the learner may have (K, m)."""
    return jnp.atleast_2d(side.examples.log_prior)


def choose_for_all(
    noise: Noise,
    view: TeacherView,
    settings: Any,
    memory: Array,
) -> tuple[Int[Array, ""], Array, Signals]:
    """Draw d ~ P_T(·|h*); then every possible learner takes the datum as a draw from M."""
    # The memory holds the log belief of every possible learner (K, m); all are equally likely.
    count = len(memory)
    log_weights = jnp.full(count, -math.log(count), memory.dtype)
    log_drawn = beliefs.unsure(view.examples, memory, log_weights, settings)
    chosen = drawn(noise, log_drawn[:, view.target])
    log_likelihoods = beliefs.offered(view.examples).log_m[chosen]
    posterior_of_each = jax.vmap(beliefs.posterior, in_axes=(0, None))
    after = posterior_of_each(memory, log_likelihoods)
    return chosen, after, {}


def resolve_unsure(settings: Any, beta: float | str) -> Any:
    """Replace an open α by the task's abs(β), or 1 if it has none."""
    if settings is not None:
        return settings
    if isinstance(beta, str):
        return 1.0
    return abs(beta)


def unsure(alpha: float | str | None = None) -> Teacher:
    """Teaches learners of several possible beliefs at once, without feedback (Chen et al. 2024).

    Args:
        alpha: how rational the teacher is; None for the task's β. The possible beliefs are the
            task's ``teacher_prior``.

    Returns:
        The teacher.

    Raises:
        InputError: if α is not a finite number.
    """
    name = "unsure"
    given = None
    if alpha not in (None, ""):
        given = number(alpha)
        if not math.isfinite(given):
            raise InputError(f"an unsure teacher is written unsure:ALPHA, not unsure:{alpha}")
        name = f"unsure:{given:g}"
    return Teacher(
        name,
        choose_for_all,
        given,
        prepare=draw_noise,
        resolve=resolve_unsure,
        init=possible_beliefs,
        feedback=False,
        needs=("likelihoods",),
    )
