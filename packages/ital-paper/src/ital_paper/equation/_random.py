"""Random equations, and the trajectories of their simplification."""

import numpy as np

from ital_paper.equation._equation import MONOMIALS, Equation, Term
from ital_paper.equation._rules import simplify
from ital_paper.equation.operations import Rewrite, lowest

COEFFICIENTS = tuple(sorted({lowest(i, j) for i in range(1, 21) for j in range(1, 6)}))


def random_equation(rng: np.random.Generator) -> Equation:
    """Draw an equation: sides of Poisson(4) terms (1 to 7), fair signs, 70 coefficients i/j, 35 monomials.

    Args:
        rng: the random numbers.

    Returns:
        The equation.
    """
    return Equation(_side(rng), _side(rng))


def _side(rng: np.random.Generator) -> tuple[Term, ...]:
    count = 0
    while not 1 <= count <= 7:
        count = int(rng.poisson(4))
    signs = rng.integers(0, 2, count).tolist()
    coefficients = rng.integers(0, len(COEFFICIENTS), count).tolist()
    monomials = rng.integers(0, len(MONOMIALS), count).tolist()
    return tuple(
        Term((1 - 2 * sign) * COEFFICIENTS[c][0], COEFFICIENTS[c][1], MONOMIALS[m])
        for sign, c, m in zip(signs, coefficients, monomials, strict=True)
    )


def trajectory(equation: Equation) -> list[Rewrite]:
    """The equation (its operation: "start") and every state of its simplification.

    Args:
        equation: the equation to simplify.

    Returns:
        The states in order.
    """
    return [Rewrite("start", equation), *simplify(equation)]
