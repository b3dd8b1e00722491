"""Polynomial equations in x, y and z as ordered terms with exact coefficients, and how they are written."""

import functools
from typing import NamedTuple

Monomial = tuple[int, int, int]

DEGREE = 4
LONGEST = 173  # characters of an equation's text
MONOMIALS: tuple[Monomial, ...] = tuple(
    (a, b, c)
    for a in range(DEGREE + 1)
    for b in range(DEGREE + 1 - a)
    for c in range(DEGREE + 1 - a - b)
)


class Term(NamedTuple):
    """A signed numerator, a denominator (1: the coefficient is an integer), and the degrees of x, y and z.

    Attributes:
        numerator: the signed numerator; the fraction need not be in lowest terms.
        denominator: the denominator, positive.
        monomial: the degrees of x, y and z.
    """

    numerator: int
    denominator: int
    monomial: Monomial

    def __neg__(self) -> "Term":
        return Term(-self.numerator, self.denominator, self.monomial)


class Equation(NamedTuple):
    """Ordered terms on both sides; a side without terms is 0. Equations are equal if their texts are.

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
    coefficient = f"{term.numerator:+d}" + (f"/{term.denominator}" if term.denominator > 1 else "")
    powers = zip("xyz", term.monomial, strict=True)
    return coefficient + "".join(f"{letter}^{degree}" for letter, degree in powers if degree)


def text(equation: Equation) -> str:
    """The internal text: signs, coefficients (even 1) and exponents (even ^1) always written, spaces between terms.

    Args:
        equation: the equation.

    Returns:
        The text.
    """
    return " = ".join(" ".join(map(_term_text, side)) or "0" for side in equation)


def as_typed(equation: Equation) -> str:
    """What a person would type: ``-1/2x^2y + 1/3xy = -1/5y^3 + 1/3x^2y``.

    Args:
        equation: the equation.

    Returns:
        The text.
    """
    return " = ".join(
        _joined([_written(term, "{}/{}", "^{}") for term in side]) for side in equation
    )


def latex(equation: Equation) -> str:
    r"""LaTeX of the equation: ``-\frac{1}{2}x^{2}y + \frac{1}{3}xy = 0``.

    Args:
        equation: the equation.

    Returns:
        The LaTeX source, without dollar signs.
    """
    return " = ".join(
        _joined([_written(term, r"\frac{{{}}}{{{}}}", "^{{{}}}") for term in side])
        for side in equation
    )


def _written(term: Term, fraction: str, power: str) -> tuple[str, str]:
    """Sign and remainder of a term, without a coefficient or exponent of 1."""
    size = abs(term.numerator)
    coefficient = fraction.format(size, term.denominator) if term.denominator > 1 else str(size)
    powers = zip("xyz", term.monomial, strict=True)
    letters = "".join(
        letter + (power.format(degree) if degree > 1 else "") for letter, degree in powers if degree
    )
    return (
        "-" if term.numerator < 0 else "+",
        letters if letters and coefficient == "1" else coefficient + letters,
    )


def _joined(terms: list[tuple[str, str]]) -> str:
    if not terms:
        return "0"
    (sign, first), *others = terms
    return (
        ("-" if sign == "-" else "") + first + "".join(f" {sign} {rest}" for sign, rest in others)
    )
