"""Mini-batch gradient descent, blind to the teacher's choice."""

from ital.learners._base import Learner
from ital.learners._two_step import Literal, naive


def batch() -> Learner:
    """Steps along the mean gradient of the mini-batch and ignores the choice.

    Returns:
        The learner.
    """
    return naive("batch", "Batch", Literal(mean=1.0))
