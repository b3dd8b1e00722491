"""The pedagogical teacher: it picks data for the learner's sake."""

import math
from typing import Any, NamedTuple

from ital import beliefs
from ital.errors import InputError
from ital.teachers._base import Teacher, TeacherView
from ital.teachers._rational import Noise, draw_noise
from ital.teachers._sampling import drawn
from ital.tools.registry import number
from ital.tools.types import Array, Int


class Pedagogy(NamedTuple):
    """α (None: the task's abs(β)) and the number of rounds."""

    alpha: Any
    rounds: Any


def choose(noise: Noise, view: TeacherView, settings: Pedagogy) -> Int[Array, ""]:
    """d ~ P_T(·|h*), with the belief θ that the learner reports."""
    return drawn(
        noise, beliefs.pedagogical(view.examples, view.feedback, *settings)[:, view.target]
    )


def resolve(settings: Pedagogy, beta: float | str) -> Pedagogy:
    """Replace an open α by the task's abs(β), or 1 if it has none."""
    own = 1.0 if isinstance(beta, str) else abs(beta)
    return settings._replace(alpha=own if settings.alpha is None else settings.alpha)


def pedagogical(text: str = "") -> Teacher:
    """Draws d ~ P_T(·|h*) ∝ P_L(h*|d)^α (Shafto et al. 2014); pedagogical:2:50 for α = 2, 50 rounds.

    Args:
        text: "ALPHA" or "ALPHA:ROUNDS"; empty for the task's β and one round.

    Returns:
        The teacher.

    Raises:
        InputError: if the text has another form.
    """
    alpha, _, rounds = str(text).partition(":")
    rounds = rounds or "1"
    if (alpha and not math.isfinite(number(alpha))) or not rounds.isdecimal() or int(rounds) < 1:
        raise InputError(
            f"a pedagogical teacher is written pedagogical:ALPHA:ROUNDS, not pedagogical:{text}"
        )
    numbers = Pedagogy(number(alpha) if alpha else None, int(rounds))
    name = f"pedagogical:{text}" if text else "pedagogical"
    return Teacher(
        name, choose, numbers, prepare=draw_noise, resolve=resolve, needs=("likelihoods",)
    )
