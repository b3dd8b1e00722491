"""The rule simplifier.

From any equation to its canonical form ``… = 0``, one operation at a time.
"""

import itertools
import math
from collections.abc import Iterator

from ital_paper.equation import operations
from ital_paper.equation._equation import Equation, Monomial
from ital_paper.equation.operations import Rewrite


def simplify(equation: Equation) -> list[Rewrite]:
    """Return the steps of the simplification, without operations that change nothing.

    Args:
        equation: the equation to simplify.

    Returns:
        The steps in order.
    """
    path: list[Rewrite] = []
    for step in _simplifying(equation):
        if step.equation != equation:
            path.append(step)
            equation = step.equation
    return path


def simplified(equation: Equation) -> Equation:
    """Return the result of the simplification.

    Args:
        equation: the equation to simplify.

    Returns:
        The canonical form ``… = 0``: integers without a common factor above 1, monomials in
        descending lexicographic order.
    """
    steps = simplify(equation)
    return steps[-1].equation if steps else equation


def _simplifying(equation: Equation) -> Iterator[Rewrite]:
    """Yield the steps, including some that change nothing."""

    def apply(operation: str, result: Equation | None) -> Iterator[Rewrite]:
        # An operation that does not apply is left out.
        nonlocal equation
        if result is not None:
            equation = result
            yield Rewrite(operation, result)

    yield from apply("cancel common factors", operations.cancel_factors(equation))
    while pair := _alike(equation):
        yield from apply("merge", operations.merge(equation, *pair))
    # Terms of one monomial that are left have different denominators: make them equal first.
    while pair := _repeated(equation):
        first, second = pair
        for index in (second, first):
            factor = _factor(equation, index, first, second)
            yield from apply("scale", operations.scale(equation, index, factor))
        yield from apply("merge", operations.merge(equation, first, second))
    yield from apply("cancel denominators", operations.cancel_denominators(equation))

    # Each monomial occurs once now: move the largest to the first slot, and so on.
    for slot, monomial in enumerate(sorted(_indices(equation), reverse=True)):
        (index,) = _indices(equation)[monomial]
        on_the_left = len(equation.left)
        if index >= on_the_left:
            moved = operations.move_to_left(equation, index - on_the_left, slot)
            yield from apply("move", moved)
        elif index != slot:
            yield from apply("move", operations.move_within_left(equation, index, slot))
    # Merging may have created a common factor.
    yield from apply("cancel common factors", operations.cancel_factors(equation))


def _indices(equation: Equation) -> dict[Monomial, list[int]]:
    """Return the indices of each monomial's terms, left then right."""
    indices: dict[Monomial, list[int]] = {}
    for index, term in enumerate(equation.left + equation.right):
        indices.setdefault(term.monomial, []).append(index)
    return indices


def _alike(equation: Equation) -> tuple[int, int] | None:
    """Return the indices of two terms with one monomial and one denominator.

    They are of the largest such monomial, and the right-most pair of it.
    """
    terms = equation.left + equation.right
    for _, indices in sorted(_indices(equation).items(), reverse=True):
        # From the right, so that the second of a pair is as far to the right as possible.
        for second, first in itertools.combinations(reversed(indices), 2):
            if terms[first].denominator == terms[second].denominator:
                return first, second
    return None


def _repeated(equation: Equation) -> tuple[int, int] | None:
    """Return the indices of the last two terms of the largest monomial that is repeated."""
    repeated = [item for item in _indices(equation).items() if len(item[1]) > 1]
    if not repeated:
        return None
    _, indices = max(repeated)
    return indices[-2], indices[-1]


def _factor(
    equation: Equation,
    index: int,
    first: int,
    second: int,
) -> int:
    """Return the factor that makes a term's denominator the least common multiple of both.

    An integer is not scaled: ``scale`` skips it, and ``merge`` takes it as it is.
    """
    terms = equation.left + equation.right
    common = math.lcm(terms[first].denominator, terms[second].denominator)
    return common // terms[index].denominator
