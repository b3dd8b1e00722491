"""Operations on equations.

Each keeps the solutions: left − right changes only by a constant factor. An operation returns None
if it does not apply. It refers to a term by its index among all terms, left then right.
"""

import itertools
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
    """Return all terms, left then right."""
    return equation.left + equation.right


def _with(equation: Equation, index: int, *terms: Term) -> Equation:
    """Return the equation with the term at ``index`` replaced by zero or more terms."""
    left, right = equation
    if index < len(left):
        return Equation(left[:index] + terms + left[index + 1 :], right)
    index -= len(left)
    return Equation(left, right[:index] + terms + right[index + 1 :])


def scale(
    equation: Equation,
    index: int,
    factor: int,
) -> Equation | None:
    """Multiply numerator and denominator of a fraction by ``factor``."""
    numerator, denominator, monomial = _terms(equation)[index]
    if denominator == 1 or factor < 2:
        return None
    return _with(equation, index, Term(numerator * factor, denominator * factor, monomial))


def lowest(numerator: int, denominator: int) -> tuple[int, int]:
    """Return the same fraction in lowest terms."""
    common = math.gcd(numerator, denominator)
    return numerator // common, denominator // common


def reduce(equation: Equation, index: int) -> Equation | None:
    """Reduce a fraction to lowest terms; with denominator 1 it becomes an integer."""
    numerator, denominator, monomial = _terms(equation)[index]
    if math.gcd(numerator, denominator) == 1:
        return None
    return _with(equation, index, Term(*lowest(numerator, denominator), monomial))


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


def move_within_left(
    equation: Equation,
    index: int,
    to: int,
) -> Equation:
    """Move a term of the left side to position ``to`` of the left side."""
    left, right = equation
    rest = left[:index] + left[index + 1 :]
    return Equation((*rest[:to], left[index], *rest[to:]), right)


def move_to_left(
    equation: Equation,
    index: int,
    to: int,
) -> Equation:
    """Move the term at ``index`` of the right side to position ``to`` of the left.

    Its sign is flipped.
    """
    left, right = equation
    moved = -right[index]
    rest = right[:index] + right[index + 1 :]
    return Equation((*left[:to], moved, *left[to:]), rest)


def move_to_right(equation: Equation, index: int) -> Equation:
    """Move a left term to the front of the right side, with its sign flipped."""
    left, right = equation
    moved = -left[index]
    rest = left[:index] + left[index + 1 :]
    return Equation(rest, (moved, *right))


def merge(
    equation: Equation,
    first: int,
    second: int,
) -> Equation | None:
    """Add two terms of one monomial, the first of which comes first.

    The sum, in lowest terms, replaces the first; a zero sum removes both. Their denominators must
    be equal, or one term must be an integer. A term from the other side flips its sign first.
    """
    terms = _terms(equation)
    a = terms[first]
    b = terms[second]
    if a.monomial != b.monomial:
        return None
    if a.denominator != b.denominator and 1 not in (a.denominator, b.denominator):
        return None
    if first < len(equation.left) <= second:
        b = -b
    # The second goes first: what comes before it keeps its index.
    rest = _with(equation, second)
    numerator = a.numerator * b.denominator + b.numerator * a.denominator
    if numerator == 0:
        return _with(rest, first)
    total = lowest(numerator, a.denominator * b.denominator)
    return _with(rest, first, Term(*total, a.monomial))


def steps(equation: Equation) -> Iterator[Rewrite]:
    """Yield every operation that applies, possibly with repeated results.

    Their order matters: the search takes the first of several steps that are equally good.

    Args:
        equation: the equation.

    Yields:
        The rewrites.
    """
    count = len(equation.left) + len(equation.right)
    for index, term in enumerate(_terms(equation)):
        if term.denominator > 1:
            for factor in SCALES:
                yield from _step("scale", scale(equation, index, factor))
        yield from _step("reduce", reduce(equation, index))
    yield from _step("cancel common factors", cancel_factors(equation))
    yield from _moves(equation)
    for second in range(count):
        for first in range(second):
            yield from _step("merge", merge(equation, first, second))
    yield from _step("cancel denominators", cancel_denominators(equation))


def _moves(equation: Equation) -> Iterator[Rewrite]:
    left, right = equation
    for index in range(len(left)):
        for to in range(len(left)):
            if to != index:
                yield Rewrite("move", move_within_left(equation, index, to))
        yield Rewrite("move", move_to_right(equation, index))
    for index, to in itertools.product(range(len(right)), range(len(left) + 1)):
        yield Rewrite("move", move_to_left(equation, index, to))


def _step(operation: str, result: Equation | None) -> Iterator[Rewrite]:
    if result is not None:
        yield Rewrite(operation, result)


def successors(equation: Equation) -> list[Rewrite]:
    """Return all distinct results of one operation.

    The equation itself and results above the length limit are left out. If several operations lead
    to the same equation, the first one is named.

    Args:
        equation: the equation.

    Returns:
        The rewrites.
    """
    return list(successors_by_text(equation).values())


def successors_by_text(equation: Equation) -> dict[str, Rewrite]:
    """Return :func:`successors`, keyed by text."""
    written = ((text(step.equation), step) for step in distinct_steps(equation))
    return {result: step for result, step in written if len(result) <= LONGEST}


def distinct_steps(equation: Equation) -> list[Rewrite]:
    """Return :func:`successors`, including those that are too long.

    This is faster if few of them are ever written as text.
    """
    results: dict[Equation, Rewrite] = {}
    for step in steps(equation):
        results.setdefault(step.equation, step)
    results.pop(equation, None)
    return list(results.values())
