"""Sequential cooperative Bayesian inference, the teacher's part."""

from typing import Any

from ital import beliefs
from ital.teachers._base import Teacher, TeacherView
from ital.teachers._rational import Noise, draw_noise
from ital.teachers._sampling import drawn
from ital.tools.types import Array, Int


def choose(noise: Noise, view: TeacherView, settings: Any) -> Int[Array, ""]:
    """Draw d ~ T(·,h*)/θ(h*), with the belief θ that the learner reports."""
    log_drawn = beliefs.scbi(view.examples, view.feedback)
    return drawn(noise, log_drawn[:, view.target])


def scbi() -> Teacher:
    """Teaches a hypothesis by SCBI (Wang et al. 2020): d ~ T(·,h*)/Σ.

    T is M, scaled to row sums 1/n and column sums θ.

    Returns:
        The teacher.
    """
    return Teacher("scbi", choose, prepare=draw_noise, needs=("likelihoods",))
