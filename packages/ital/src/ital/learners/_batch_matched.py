"""Mini-batch gradient descent with steps as long as ITAL's."""

from ital.learners._base import Learner
from ital.learners._matched import matched
from ital.learners._two_step import Literal, Schedule


def batch_matched(
    beta: float | str | Schedule | None = None,
    *,
    beta_decay: float | None = None,
    volume: str | None = None,
) -> Learner:
    """Steps along the mean gradient of the mini-batch, as far as ITAL: a control for step length.

    Args:
        beta: β of the ITAL learner whose step length it takes, as in :func:`teacher_aware`.
        beta_decay: its decay.
        volume: the teaching volume that it imagines.

    Returns:
        The learner.
    """
    return matched("batch-matched", "Batch matched", Literal(mean=1.0), beta, beta_decay, volume)
