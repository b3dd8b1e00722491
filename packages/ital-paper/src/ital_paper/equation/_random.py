"""Random equations, and the trajectories of their simplification."""

import itertools

import numpy as np

from ital_paper.equation._equation import MONOMIALS, Equation, Term
from ital_paper.equation._rules import simplify
from ital_paper.equation.operations import Rewrite, lowest

_FRACTIONS = itertools.product(range(1, 21), range(1, 6))
# Each value once: 2/4 is 1/2.
COEFFICIENTS = tuple(sorted({lowest(i, j) for i, j in _FRACTIONS}))


def random_equation(rng: np.random.Generator) -> Equation:
    """Draw an equation.

    Sides of Poisson(4) terms (1 to 7), fair signs, 70 coefficients i/j, 35 monomials.

    Args:
        rng: the random numbers.

    Returns:
        The equation.
    """
    return Equation(_random_side(rng), _random_side(rng))


def _random_side(rng: np.random.Generator) -> tuple[Term, ...]:
    count = 0
    while not 1 <= count <= 7:
        count = int(rng.poisson(4))
    # The order of these calls decides which equations a seed gives; feature files depend on it.
    signs = rng.integers(0, 2, count).tolist()
    coefficients = rng.integers(0, len(COEFFICIENTS), count).tolist()
    monomials = rng.integers(0, len(MONOMIALS), count).tolist()
    terms = []
    for sign, coefficient, monomial in zip(signs, coefficients, monomials, strict=True):
        numerator, denominator = COEFFICIENTS[coefficient]
        terms.append(Term((1 - 2 * sign) * numerator, denominator, MONOMIALS[monomial]))
    return tuple(terms)


def trajectory(equation: Equation) -> list[Rewrite]:
    """Return the equation (its operation: "start") and every state of its simplification.

    Args:
        equation: the equation to simplify.

    Returns:
        The states in order.
    """
    return [Rewrite("start", equation), *simplify(equation)]
