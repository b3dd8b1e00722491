"""The teacher with no intention in a world of hypotheses, and what it shares with the others there: a draw."""

from typing import Any

from ital import beliefs
from ital.teachers._base import Teacher, TeacherView, first_largest
from ital.teachers._rational import Noise, draw_noise
from ital.tools.types import Array, Int, PerExample


def drawn(noise: Noise, log_probabilities: PerExample) -> Int[Array, ""]:
    """A draw with these probabilities, by the Gumbel trick: the same noise gives nearby teachers the same datum."""
    return first_largest(log_probabilities + noise.gumbel)


def choose(noise: Noise, view: TeacherView, settings: Any) -> Int[Array, ""]:
    """d ~ M(·,h*)."""
    return drawn(noise, beliefs.literal(view.examples, view.feedback)[:, view.target])


def sampling() -> Teacher:
    """Draws data from the target hypothesis, d ~ M(·,h*), with no intention.

    Returns:
        The teacher.
    """
    return Teacher("sampling", choose, prepare=draw_noise, needs=("likelihoods",))
