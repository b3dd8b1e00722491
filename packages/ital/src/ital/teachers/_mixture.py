"""The mixture teacher: helps on some steps, and chooses at random on the others."""

from ital.errors import InputError
from ital.teachers._base import Teacher
from ital.teachers._rational import Rationality, rational
from ital.tools.registry import number


def mixture(helps: float | str = 0.5) -> Teacher:
    """Helps with probability P (mixture:P, default 0.5), else shows a random example.

    Args:
        helps: the probability P.

    Returns:
        The teacher.

    Raises:
        InputError: if P does not lie in [0, 1].
    """
    probability = number(helps)
    if not 0 <= probability <= 1:
        raise InputError(
            f"the probability of the mixture teacher must lie in [0, 1], not {helps!r}"
        )
    name = "mixture" if probability == 0.5 else f"mixture:{probability:g}"
    return rational(name, Rationality(lapse=1 - probability), version=2)
