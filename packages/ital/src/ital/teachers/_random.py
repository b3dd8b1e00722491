"""A teacher with no intention: the control for over-interpretation."""

from ital.teachers._base import Teacher
from ital.teachers._rational import Rationality, rational


def random() -> Teacher:
    """Shows a random example of the mini-batch, all with equal probability.

    Returns:
        The teacher.
    """
    return rational("random", Rationality(weight=0.0, noise=1.0), version=2)
