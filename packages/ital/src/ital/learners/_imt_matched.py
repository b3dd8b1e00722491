"""The naive learner with steps as long as ITAL's."""

from ital.learners._base import Learner
from ital.learners._matched import matched
from ital.learners._two_step import Literal, Schedule


def imt_matched(
    beta: float | str | Schedule | None = None,
    *,
    beta_decay: float | None = None,
    volume: str | None = None,
) -> Learner:
    """Steps on the chosen example, as far as ITAL: a control for the length of the step.

    Args:
        beta: β of the ITAL learner whose step length it takes, as in :func:`teacher_aware`.
        beta_decay: its decay.
        volume: the teaching volume that it imagines.

    Returns:
        The learner.
    """
    return matched("imt-matched", "IMT matched", Literal(chosen=1.0), beta, beta_decay, volume)
