"""Polynomial equations in x, y and z, and how they are written.

An equation is a pair of sides, a side is a tuple of terms, and coefficients are exact fractions.
"""

import functools
import itertools
from typing import NamedTuple

Monomial = tuple[int, int, int]

DEGREE = 4
LONGEST = 173  # characters of an equation's text
MONOMIALS: tuple[Monomial, ...] = tuple(
    (x, y, z) for x, y, z in itertools.product(range(DEGREE + 1), repeat=3) if x + y + z <= DEGREE
)


class Term(NamedTuple):
    """A term of an equation: a coefficient and a monomial.

    Attributes:
        numerator: the signed numerator; the fraction need not be in lowest terms.
        denominator: the denominator, positive; 1 if the coefficient is an integer.
        monomial: the degrees of x, y and z.
    """

    numerator: int
    denominator: int
    monomial: Monomial

    def __neg__(self) -> "Term":
        return Term(-self.numerator, self.denominator, self.monomial)


class Equation(NamedTuple):
    """Ordered terms on both sides; a side without terms is 0.

    Equations are equal if their texts are.

    Attributes:
        left: terms of the left side.
        right: terms of the right side.
    """

    left: tuple[Term, ...]
    right: tuple[Term, ...]

    def __str__(self) -> str:
        return text(self)


@functools.lru_cache(maxsize=200_000)
def _term_text(term: Term) -> str:
    coefficient = f"{term.numerator:+d}"
    if term.denominator > 1:
        coefficient += f"/{term.denominator}"
    powers = zip("xyz", term.monomial, strict=True)
    return coefficient + "".join(f"{letter}^{degree}" for letter, degree in powers if degree)


def text(equation: Equation) -> str:
    """Return the internal text.

    Signs, coefficients (even 1) and exponents (even ^1) are always written, with spaces between
    terms.

    Args:
        equation: the equation.

    Returns:
        The text.
    """
    return " = ".join(" ".join(map(_term_text, side)) or "0" for side in equation)


def as_typed(equation: Equation) -> str:
    """Return what a person would type: ``-1/2x^2y + 1/3xy = -1/5y^3 + 1/3x^2y``.

    Args:
        equation: the equation.

    Returns:
        The text.
    """
    return _write_sides(equation, "{}/{}", "^{}")


def latex(equation: Equation) -> str:
    r"""Return LaTeX of the equation: ``-\frac{1}{2}x^{2}y + \frac{1}{3}xy = 0``.

    Args:
        equation: the equation.

    Returns:
        The LaTeX source, without dollar signs.
    """
    return _write_sides(equation, r"\frac{{{}}}{{{}}}", "^{{{}}}")


def _write_sides(
    equation: Equation,
    fraction: str,
    power: str,
) -> str:
    """Write an equation with these formats of a fraction and of a power."""
    return " = ".join(_write_side(side, fraction, power) for side in equation)


def _write_side(
    side: tuple[Term, ...],
    fraction: str,
    power: str,
) -> str:
    if not side:
        return "0"
    first, *others = side
    # A side has no plus before its first term, and no space after its first minus.
    written = "-" if first.numerator < 0 else ""
    written += _write_size(first, fraction, power)
    for term in others:
        sign = "-" if term.numerator < 0 else "+"
        written += f" {sign} {_write_size(term, fraction, power)}"
    return written


def _write_size(
    term: Term,
    fraction: str,
    power: str,
) -> str:
    """Write a term without its sign, and without a coefficient or exponent of 1."""
    letters = ""
    for letter, degree in zip("xyz", term.monomial, strict=True):
        if degree:
            letters += letter
        if degree > 1:
            letters += power.format(degree)
    size = abs(term.numerator)
    if term.denominator > 1:
        return fraction.format(size, term.denominator) + letters
    if size == 1 and letters:
        return letters
    return str(size) + letters
