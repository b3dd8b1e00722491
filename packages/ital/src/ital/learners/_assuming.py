"""Aware learners that assume one kind of teacher, whatever their teacher is."""

import functools
from typing import Any

from ital.learners._base import Learner, Situation
from ital.learners._two_step import teacher_aware
from ital.learners.protocols import ImagineFn


def resolve_assuming(
    learner: Learner,
    situation: Situation,
    *,
    assumed: Learner,
    sign: float,
) -> Learner:
    """Fill in what ITAL would, with the sign of β that fits the assumed teacher."""
    beta = situation.beta
    if not isinstance(beta, str):
        beta = sign * abs(beta)

    def auto_beta(imagine: ImagineFn, real: float = sign, /) -> Any:
        # Whatever sign is asked for, the assumed one counts.
        return situation.auto_beta(imagine, sign)

    as_assumed = situation._replace(beta=beta, auto_beta=auto_beta)
    return assumed.resolve(learner, as_assumed)


def _assuming(whom: str, sign: float) -> Learner:
    """Return ITAL with a β of fixed sign."""
    ital = teacher_aware()
    return ital._replace(
        name=f"ital-{whom}",
        label=f"ITAL {whom}",
        resolve=functools.partial(resolve_assuming, assumed=ital, sign=sign),
    )


def helpful() -> Learner:
    """ITAL that takes every teacher for a helper: β > 0.

    Returns:
        The learner.
    """
    return _assuming("helpful", 1.0)


def hostile() -> Learner:
    """ITAL that takes every teacher for an adversary: β < 0.

    Returns:
        The learner.
    """
    return _assuming("hostile", -1.0)
