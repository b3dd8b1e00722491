"""A learner that uses all examples of the mini-batch and the choice."""

import functools

from ital.learners._base import Learner, Situation
from ital.learners._two_step import Literal, Schedule, resolve, teacher_aware


def full(
    beta: float | str | Schedule | None = None,
    *,
    beta_decay: float | None = None,
    volume: str | None = None,
) -> Learner:
    """Learns from every example of the mini-batch, and from the choice among them (ITAL full).

    It takes one step up the gradient of Σᵢ log p(xᵢ, yᵢ) + log q(c), the log-likelihood of
    everything it saw. Each example has the literal weight 1.

    Args:
        beta: how rational the learner thinks the teacher is, as in :func:`teacher_aware`.
        beta_decay: the share that β loses per step.
        volume: the teaching volume that the learner imagines.

    Returns:
        The learner.
    """
    aware = teacher_aware(beta, beta_decay=beta_decay, volume=volume)
    return aware._replace(
        name="ital-full",
        label="ITAL full",
        resolve=functools.partial(_resolve_full, volume=volume),
    )


def _resolve_full(learner: Learner, situation: Situation, *, volume: str | None) -> Learner:
    resolved = resolve(learner, situation, volume=volume)
    # The likelihoods of the examples multiply: B times their mean gradient is the sum.
    literal = Literal(mean=float(situation.batch_size))
    settings = resolved.settings._replace(literal=literal)
    return resolved._replace(settings=settings)
