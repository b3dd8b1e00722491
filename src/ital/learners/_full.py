"""The learner who wastes nothing: all examples of the mini-batch and the choice."""

import functools

from ital.learners._base import Learner, Situation
from ital.learners._teacher_aware import teacher_aware
from ital.learners._two_step import Literal, Schedule, resolve


def full(
    beta: float | str | Schedule | None = None, *, beta_decay: float | None = None, volume: str | None = None
) -> Learner:
    """Learns from every example of the mini-batch, and from the choice among them (ITAL full).

    One step up the gradient of Σᵢ log p(xᵢ, yᵢ) + log q(c), the likelihood of all that was seen: the literal weights
    are 1 for each example.

    Args:
        beta: how rational the teacher is taken to be, as in :func:`teacher_aware`.
        beta_decay: the share that β loses per step.
        volume: the teaching volume that the learner imagines.

    Returns:
        The learner.
    """
    aware = teacher_aware(beta, beta_decay=beta_decay, volume=volume)
    return aware._replace(name="ital-full", label="ITAL full", resolve=functools.partial(_resolve, volume=volume))


def _resolve(learner: Learner, situation: Situation, *, volume: str | None) -> Learner:
    resolved = resolve(learner, situation, volume=volume)
    literal = Literal(mean=float(situation.batch_size))  # a sum, not a mean
    return resolved._replace(settings=resolved.settings._replace(literal=literal))
