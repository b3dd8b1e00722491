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


def begin(key: PRNGKeyArray, side: Any, settings: Any) -> Array:
    """Return the beliefs that the learner may have (K, m)."""
    return jnp.atleast_2d(side.examples.log_prior)


def choose(
    noise: Noise, view: TeacherView, settings: Any, memory: Array
) -> tuple[Int[Array, ""], Array, Signals]:
    """Draw d ~ P_T(·|h*); then every possible learner takes the datum as a draw from M."""
    # The memory holds the log belief of every possible learner (K, m); all are equally likely.
    log_weights = jnp.full(len(memory), -math.log(len(memory)), memory.dtype)
    log_drawn = beliefs.unsure(view.examples, memory, log_weights, settings)
    chosen = drawn(noise, log_drawn[:, view.target])
    log_likelihoods = beliefs.offered(view.examples).log_m[chosen]
    after = jax.vmap(beliefs.posterior, in_axes=(0, None))(memory, log_likelihoods)
    return chosen, after, {}


def resolve(settings: Any, beta: float | str) -> Any:
    """Replace an open α by the task's abs(β), or 1 if it has none."""
    if settings is not None:
        return settings
    return 1.0 if isinstance(beta, str) else abs(beta)


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
    given = None if alpha is None or alpha == "" else number(alpha)
    if given is not None and not math.isfinite(given):
        raise InputError(f"an unsure teacher is written unsure:ALPHA, not unsure:{alpha}")
    return Teacher(
        "unsure" if given is None else f"unsure:{given:g}",
        choose,
        given,
        prepare=draw_noise,
        resolve=resolve,
        init=begin,
        feedback=False,
        needs=("likelihoods",),
    )
