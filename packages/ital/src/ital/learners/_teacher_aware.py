"""ITAL: the learner that asks why the teacher chose this example and not the others."""

from typing import Any

from ital.errors import InputError
from ital.learners._base import Learner
from ital.learners._optimizers import optimizer as make_optimizer
from ital.learners._two_step import AwareNumbers, Literal, Schedule, rule, with_own
from ital.tools.checks import is_finite, require_whole, shown


def teacher_aware(
    beta: float | str | Schedule | None = None,
    *,
    view: int | None = None,
    beta_decay: float | None = None,
    volume: str | None = None,
    optimizer: Any = None,
) -> Learner:
    """Steps on the chosen example, then makes the teacher's choice more likely (ITAL-M).

    Args:
        beta: how rational the learner thinks the teacher is: a number (negative for an adversary),
            a function of the step, "auto", or None for the task's.
        view: M, the number of examples of the mini-batch that the learner sees; None for all.
        beta_decay: the share ε that β loses per step, βₜ = β(1−ε)ᵗ; None for the task's if β is the
            task's, else 0.
        volume: the teaching volume that the learner imagines, "imitated" or "exact"; None for what
            fits the teacher.
        optimizer: an Optax optimiser of its own, such as ``optax.adam(1e-3)``, or its name; None
            for the run's.

    Returns:
        The learner.

    Raises:
        InputError: if an argument has a value that is not allowed.

    Example:
        >>> aware = ital.learners.teacher_aware(beta="auto", view=5)
        >>> ital.teach("regression", learner=[ital.learners.imt(), aware])
    """
    _check_beta(beta, beta_decay)
    if view is not None:
        require_whole(view=view)
        if view < 1:
            raise InputError(f"view must be at least 1 example, not {view}")
    if volume not in (None, "imitated", "exact"):
        raise InputError(f"volume must be 'imitated' or 'exact', not {volume!r}")
    learner = Learner(
        name="ital" if view is None else f"ital-{view}",
        label="ITAL" if view is None else f"ITAL {view}",
        rule=rule(volume or "imitated"),
        settings=AwareNumbers(Literal(chosen=1.0), beta, beta_decay, view),
        # Its literal step reads one label; the others only say what the teacher could have chosen.
        labels=("all", "chosen"),
    )
    return with_own(make_optimizer(optimizer), learner, volume)


def _check_beta(beta: Any, beta_decay: Any) -> None:
    """Raise InputError for a rationality or a decay that is not allowed."""
    if isinstance(beta, str) and beta != "auto":
        raise InputError(f"beta must be a finite number or 'auto', not {beta!r}")
    if not (beta is None or isinstance(beta, str) or callable(beta) or is_finite(beta)):
        raise InputError(f"beta must be a finite number or 'auto', not {shown(beta)}")
    if beta_decay is not None and not (is_finite(beta_decay) and 0 <= beta_decay < 1):
        raise InputError(f"beta_decay must lie in [0, 1), not {shown(beta_decay)}")
