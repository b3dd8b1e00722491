"""The noisily rational teacher: the one that a teacher-aware learner imagines."""

import math

from ital.errors import InputError
from ital.teachers._base import Rationality, Teacher, rational
from ital.tools.registry import number


def resolve_boltzmann(settings: Rationality, beta: float | str) -> Rationality:
    """Replace an open ρ by the task's |β|."""
    if isinstance(beta, str):
        raise InputError(
            "this task has no β of its own, so the boltzmann teacher needs its rationality: "
            "boltzmann:RHO"
        )
    return settings._replace(weight=abs(beta))


def boltzmann(rationality: float | str | None = None) -> Teacher:
    """Shows an example with probability ∝ exp(ρ·TV̂); ρ defaults to the task's |β|.

    Args:
        rationality: ρ; None for the task's abs(β).

    Returns:
        The teacher.

    Raises:
        InputError: if ρ is not a finite number.
    """
    if rationality is None:
        of_the_task = Rationality(weight=None, noise=1.0)
        return rational("boltzmann", of_the_task, version=2, resolve=resolve_boltzmann)
    rho = number(rationality)
    if not math.isfinite(rho):
        raise InputError(
            f"the rationality of the boltzmann teacher must be a finite number, not {rationality!r}"
        )
    name = f"boltzmann:{repr(rho).removesuffix('.0')}"
    numbers = Rationality(weight=rho, noise=1.0)
    return rational(name, numbers, version=2, sign=math.copysign(1.0, rho))
