"""The rule simplifier: from any equation to its canonical form ``… = 0``, one operation at a time."""

import math
from collections.abc import Iterator

from ital_paper.equation import operations
from ital_paper.equation._equation import Equation, Monomial
from ital_paper.equation.operations import Rewrite


def simplify(equation: Equation) -> list[Rewrite]:
    """The steps of the simplification, without operations that change nothing.

    Args:
        equation: the equation to simplify.

    Returns:
        The steps in order.
    """
    done: list[Rewrite] = []
    for step in _simplifying(equation):
        if step.equation != equation:
            done.append(step)
            equation = step.equation
    return done


def simplified(equation: Equation) -> Equation:
    """The result of the simplification.

    Args:
        equation: the equation to simplify.

    Returns:
        The canonical form ``… = 0``: integers without a common factor above 1, monomials in descending lexicographic
        order.
    """
    return next((step.equation for step in reversed(simplify(equation))), equation)


def _simplifying(equation: Equation) -> Iterator[Rewrite]:
    def apply(operation: str, result: Equation | None) -> Iterator[Rewrite]:
        nonlocal equation
        if result is not None:
            equation = result
            yield Rewrite(operation, result)

    yield from apply("cancel common factors", operations.cancel_factors(equation))
    while pair := _alike(equation):
        yield from apply("merge", operations.merge(equation, *pair))
    while pair := _repeated(equation):
        first, second = pair
        for place in (second, first):
            yield from apply(
                "scale", operations.scale(equation, place, _factor(equation, place, first, second))
            )
        yield from apply("merge", operations.merge(equation, first, second))
    yield from apply("cancel denominators", operations.cancel_denominators(equation))
    for slot, monomial in enumerate(sorted(_places(equation), reverse=True)):
        place = _places(equation)[monomial][0]
        split = len(equation.left)
        if place >= split:
            yield from apply("move", operations.move_to_left(equation, place - split, slot))
        elif place != slot:
            yield from apply("move", operations.move_within_left(equation, place, slot))
    yield from apply(
        "cancel common factors", operations.cancel_factors(equation)
    )  # merging may create a common factor


def _places(equation: Equation) -> dict[Monomial, list[int]]:
    places: dict[Monomial, list[int]] = {}
    for place, term in enumerate(equation.left + equation.right):
        places.setdefault(term.monomial, []).append(place)
    return places


def _alike(equation: Equation) -> tuple[int, int] | None:
    """Indices of two terms with one monomial and one denominator: the largest such monomial, the right-most pair."""
    terms = equation.left + equation.right
    for _, places in sorted(_places(equation).items(), reverse=True):
        for j in range(len(places) - 1, 0, -1):
            for i in range(j - 1, -1, -1):
                if terms[places[i]].denominator == terms[places[j]].denominator:
                    return places[i], places[j]
    return None


def _repeated(equation: Equation) -> tuple[int, int] | None:
    """The last two terms of the largest monomial that is repeated."""
    repeated = [
        (monomial, places) for monomial, places in _places(equation).items() if len(places) > 1
    ]
    if not repeated:
        return None
    _, places = max(repeated)
    return places[-2], places[-1]


def _factor(equation: Equation, place: int, first: int, second: int) -> int:
    """The factor that brings a term's denominator to the least common multiple of both (``scale`` skips integers)."""
    terms = equation.left + equation.right
    return math.lcm(terms[first].denominator, terms[second].denominator) // terms[place].denominator
