"""The unsure teacher: it mixes over what the learner may believe."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from ital import beliefs
from ital.errors import InputError
from ital.teachers._base import Signals, Teacher, TeacherView
from ital.teachers._rational import Noise, draw_noise
from ital.teachers._sampling import drawn
from ital.tools.registry import number
from ital.tools.types import Array, Int, PRNGKeyArray


def begin(key: PRNGKeyArray, side: Any, alpha: Any) -> Array:
    """The beliefs that the learner may have (K, m)."""
    return jnp.atleast_2d(side.examples.log_prior)


def choose(
    noise: Noise, view: TeacherView, alpha: Any, possible: Array
) -> tuple[Int[Array, ""], Array, Signals]:
    """d ~ P_T(·|h*); then every possible learner takes the datum as a draw from M."""
    weights = jnp.full(len(possible), -math.log(len(possible)), possible.dtype)
    chosen = drawn(noise, beliefs.unsure(view.examples, possible, weights, alpha)[:, view.target])
    log_likelihoods = beliefs.offered(view.examples).log_m[chosen]
    after = jax.vmap(beliefs.posterior, in_axes=(0, None))(possible, log_likelihoods)
    return chosen, after, {}


def resolve(alpha: Any, beta: float | str) -> Any:
    """Replace an open α by the task's abs(β), or 1 if it has none."""
    if alpha is not None:
        return alpha
    return 1.0 if isinstance(beta, str) else abs(beta)


def unsure(alpha: float | str | None = None) -> Teacher:
    """Teaches naive learners of several possible beliefs at once, without feedback (after Chen et
    al. 2024).

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
