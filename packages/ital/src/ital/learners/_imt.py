"""The naive learner of iterative machine teaching."""

from typing import Any

from ital.learners._base import Learner
from ital.learners._optimizers import optimizer as make_optimizer
from ital.learners._two_step import Literal, naive, with_own


def imt(*, optimizer: Any = None) -> Learner:
    """Steps on the chosen example: the naive learner of iterative machine teaching.

    Args:
        optimizer: an Optax optimiser of its own, such as ``optax.adam(1e-3)``, or its name; None
            for the run's.

    Returns:
        The learner.
    """
    return with_own(make_optimizer(optimizer), naive("imt", "IMT", Literal(chosen=1.0)))
