"""Operations on equations. Each keeps the solutions: left − right changes only by a constant factor."""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ital_paper.equation._equation import LONGEST, Equation, Term, text

SCALES = range(2, 10)


class Rewrite(NamedTuple):
    """A step of a simplification: an operation by name, and the equation it leads to.

    Attributes:
        operation: name of the operation.
        equation: the equation after it.
    """

    operation: str
    equation: Equation


def _terms(equation: Equation) -> tuple[Term, ...]:
    """All terms, left then right; operations refer to a term by its index in this tuple."""
    return equation.left + equation.right


def _with(equation: Equation, place: int, *terms: Term) -> Equation:
    """The equation with the term at ``place`` replaced by zero or more terms."""
    left, right = equation
    if place < len(left):
        return Equation(left[:place] + terms + left[place + 1 :], right)
    place -= len(left)
    return Equation(left, right[:place] + terms + right[place + 1 :])


def scale(equation: Equation, place: int, factor: int) -> Equation | None:
    """Multiply numerator and denominator of a fraction by ``factor``."""
    term = _terms(equation)[place]
    if term.denominator == 1 or factor < 2:
        return None
    return _with(
        equation, place, Term(term.numerator * factor, term.denominator * factor, term.monomial)
    )


def lowest(numerator: int, denominator: int) -> tuple[int, int]:
    """The same fraction in lowest terms."""
    common = math.gcd(numerator, denominator)
    return numerator // common, denominator // common


def reduce(equation: Equation, place: int) -> Equation | None:
    """Reduce a fraction to lowest terms; with denominator 1 it becomes an integer."""
    term = _terms(equation)[place]
    if math.gcd(term.numerator, term.denominator) == 1:
        return None
    return _with(equation, place, Term(*lowest(term.numerator, term.denominator), term.monomial))


def cancel_factors(equation: Equation) -> Equation | None:
    """Divide all integers and numerators by their greatest common divisor."""
    common = math.gcd(*(term.numerator for term in _terms(equation)))
    if common <= 1:
        return None
    return _each(
        equation, lambda term: Term(term.numerator // common, term.denominator, term.monomial)
    )


def cancel_denominators(equation: Equation) -> Equation | None:
    """Multiply everything by the least common multiple of the denominators."""
    common = math.lcm(*(term.denominator for term in _terms(equation)))
    if common <= 1:
        return None
    return _each(
        equation, lambda term: Term(term.numerator * common // term.denominator, 1, term.monomial)
    )


def _each(equation: Equation, change: Callable[[Term], Term]) -> Equation:
    return Equation(tuple(map(change, equation.left)), tuple(map(change, equation.right)))


def move_within_left(equation: Equation, place: int, to: int) -> Equation:
    """Move a term of the left side to position ``to`` of the left side."""
    left, right = equation
    rest = left[:place] + left[place + 1 :]
    return Equation((*rest[:to], left[place], *rest[to:]), right)


def move_to_left(equation: Equation, place: int, to: int) -> Equation:
    """Move the term at ``place`` of the right side to position ``to`` of the left, with its sign flipped."""
    left, right = equation
    return Equation((*left[:to], -right[place], *left[to:]), right[:place] + right[place + 1 :])


def move_to_right(equation: Equation, place: int) -> Equation:
    """Move a left term to the front of the right side, with its sign flipped."""
    left, right = equation
    return Equation(left[:place] + left[place + 1 :], (-left[place], *right))


def merge(equation: Equation, first: int, second: int) -> Equation | None:
    """Add two terms of one monomial, in lowest terms, in the place of the first; a zero sum removes both.

    Their denominators must be equal, or one term must be an integer. A term from the other side flips its sign first.
    """
    terms, split = _terms(equation), len(equation.left)
    a, b = terms[first], terms[second]
    if a.monomial != b.monomial or (
        a.denominator != b.denominator and 1 not in (a.denominator, b.denominator)
    ):
        return None
    if first < split <= second:
        b = -b
    numerator = a.numerator * b.denominator + b.numerator * a.denominator
    rest = _with(equation, second)
    if numerator == 0:
        return _with(rest, first)
    return _with(rest, first, Term(*lowest(numerator, a.denominator * b.denominator), a.monomial))


def steps(equation: Equation) -> Iterator[Rewrite]:
    """Every operation that applies, possibly with repeated results.

    Args:
        equation: the equation.

    Yields:
        The rewrites.
    """
    left, right = equation
    count = len(left) + len(right)
    for place, term in enumerate(_terms(equation)):
        for factor in SCALES if term.denominator > 1 else ():
            yield from _step("scale", scale(equation, place, factor))
        yield from _step("reduce", reduce(equation, place))
    yield from _step("cancel common factors", cancel_factors(equation))
    for place in range(len(left)):
        for to in range(len(left)):
            if to != place:
                yield Rewrite("move", move_within_left(equation, place, to))
        yield Rewrite("move", move_to_right(equation, place))
    for place in range(len(right)):
        for to in range(len(left) + 1):
            yield Rewrite("move", move_to_left(equation, place, to))
    for second in range(count):
        for first in range(second):
            yield from _step("merge", merge(equation, first, second))
    yield from _step("cancel denominators", cancel_denominators(equation))


def _step(operation: str, result: Equation | None) -> Iterator[Rewrite]:
    if result is not None:
        yield Rewrite(operation, result)


def successors(equation: Equation) -> list[Rewrite]:
    """All distinct results of one operation, except the equation itself and results above the length limit.

    If several operations lead to the same equation, the first one is named.

    Args:
        equation: the equation.

    Returns:
        The rewrites.
    """
    return list(successors_by_text(equation).values())


def successors_by_text(equation: Equation) -> dict[str, Rewrite]:
    """:func:`successors`, keyed by text."""
    written = ((text(step.equation), step) for step in distinct_steps(equation))
    return {result: step for result, step in written if len(result) <= LONGEST}


def distinct_steps(equation: Equation) -> list[Rewrite]:
    """:func:`successors`, including those that are too long: faster when few of them are ever written as text."""
    results: dict[Equation, Rewrite] = {}
    for step in steps(equation):
        results.setdefault(step.equation, step)
    results.pop(equation, None)
    return list(results.values())
