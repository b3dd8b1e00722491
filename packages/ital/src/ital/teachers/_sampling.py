"""The teacher with no intention in a world of hypotheses, and the draw that others share."""

from typing import Any

from ital import beliefs
from ital.teachers._base import Noise, Teacher, TeacherView, draw_noise, first_largest
from ital.tools.types import Array, Int, PerExample


def drawn(noise: Noise, log_probabilities: PerExample) -> Int[Array, ""]:
    """Draw an example with these probabilities, by the Gumbel trick."""
    # The same noise gives nearby teachers the same datum: they can be compared in pairs.
    perturbed = log_probabilities + noise.gumbel
    return first_largest(perturbed)


def choose_by_chance(noise: Noise, view: TeacherView, settings: Any) -> Int[Array, ""]:
    """Draw d ~ M(·,h*)."""
    log_drawn = beliefs.literal(view.examples, view.feedback)
    return drawn(noise, log_drawn[:, view.target])


def sampling() -> Teacher:
    """Draws data from the target hypothesis, d ~ M(·,h*), with no intention.

    Returns:
        The teacher.
    """
    return Teacher(
        "sampling",
        choose_by_chance,
        prepare=draw_noise,
        needs=("likelihoods",),
    )
