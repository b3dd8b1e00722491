"""The naive learner of iterative machine teaching."""

from ital.learners._base import Learner
from ital.learners._two_step import Literal, naive


def imt() -> Learner:
    """Steps on the chosen example: the naive learner of iterative machine teaching.

    Returns:
        The learner.
    """
    return naive("imt", "IMT", Literal(chosen=1.0))
