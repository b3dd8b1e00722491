"""The pedagogical teacher: it picks data for the learner's sake."""

import math
from typing import Any, NamedTuple

from ital import beliefs
from ital.errors import InputError
from ital.teachers._base import Noise, Teacher, TeacherView, draw_noise
from ital.teachers._sampling import drawn
from ital.tools.registry import number
from ital.tools.types import Array, Int


class Pedagogy(NamedTuple):
    """Numbers of a pedagogical teacher.

    Attributes:
        alpha: how rational it is; None for the task's abs(β).
        rounds: how often teacher and learner reason about each other.
    """

    alpha: Any
    rounds: Any


def choose_by_pedagogy(noise: Noise, view: TeacherView, settings: Pedagogy) -> Int[Array, ""]:
    """Draw d ~ P_T(·|h*), with the belief θ that the learner reports."""
    # Examples are the rows of log M; feedback is log θ; the target is the column h*.
    log_drawn = beliefs.pedagogical(view.examples, view.feedback, *settings)
    return drawn(noise, log_drawn[:, view.target])


def resolve_pedagogy(settings: Pedagogy, beta: float | str) -> Pedagogy:
    """Replace an open α by the task's abs(β), or 1 if it has none."""
    if settings.alpha is not None:
        return settings
    if isinstance(beta, str):
        return settings._replace(alpha=1.0)
    return settings._replace(alpha=abs(beta))


def pedagogical(text: str = "") -> Teacher:
    """Draws d ~ P_T(·|h*) ∝ P_L(h*|d)^α (Shafto et al. 2014), e.g. pedagogical:2:50 (α, rounds).

    Args:
        text: "ALPHA" or "ALPHA:ROUNDS"; empty for the task's β and one round.

    Returns:
        The teacher.

    Raises:
        InputError: if the text has another form.
    """
    alpha, _, rounds = str(text).partition(":")
    rounds = rounds or "1"
    finite = not alpha or math.isfinite(number(alpha))
    if not finite or not rounds.isdecimal() or int(rounds) < 1:
        raise InputError(
            f"a pedagogical teacher is written pedagogical:ALPHA:ROUNDS, not pedagogical:{text}"
        )
    name = "pedagogical"
    if text:
        name = f"pedagogical:{text}"
    settings = Pedagogy(alpha=None, rounds=int(rounds))
    if alpha:
        settings = settings._replace(alpha=number(alpha))
    return Teacher(
        name=name,
        choose=choose_by_pedagogy,
        settings=settings,
        resolve=resolve_pedagogy,
        prepare=draw_noise,
        needs=("likelihoods",),
    )
