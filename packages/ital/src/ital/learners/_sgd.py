"""Stochastic gradient descent, blind to the teacher's choice."""

from ital.learners._base import Learner
from ital.learners._two_step import Literal, naive


def sgd() -> Learner:
    """Steps on a random example of the mini-batch and ignores the choice.

    Returns:
        The learner.
    """
    return naive("sgd", "SGD", Literal(bystander=1.0))
