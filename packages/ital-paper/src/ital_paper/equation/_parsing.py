"""Reading equations, in the internal text or as a person types them."""

import re
from fractions import Fraction

from ital.errors import InputError
from ital_paper.equation._equation import DEGREE, LONGEST, Equation, Monomial, Term, text

_PLAIN = str.maketrans({"−": "-", "–": "-", "·": "*", "×": "*", "²": "2", "³": "3", "⁴": "4"})
_COEFFICIENT = re.compile(r"(\d*\.\d+|\d+\.(?!\d)|\d+)(?:\s*/\s*(\d*\.\d+|\d+))?")
_POWER = re.compile(r"\s*\*?\s*([a-zA-Z])(?:\s*(?:\^|\*\*)\s*\{?\s*(\d+)\s*\}?|([234]))?")

_BEYOND = (
    (r"(\^|\*\*)\s*\{?\s*-", "negative powers are not supported: powers are whole numbers from 1"),
    (r"(\^|\*\*)", "powers are whole numbers from 1, of x, y or z"),
    (
        r"[a-zA-Z]{2,}\s*\(|[√]|sqrt|sin|cos|tan|exp|log|ln",
        "functions are not supported: only sums of terms like 1/2x^2y",
    ),
    (r"\*?\s*\(", "brackets are not supported: multiply them out"),
    (r"/", "only numbers can be divided, e.g. 1/2x"),
)


def parse(written: str) -> Equation:
    """Read one equation, as typed or in the internal text.

    Args:
        written: the text, e.g. ``-1/2x^2y + 0.25xy = 0``; decimals are read as exact fractions.

    Returns:
        The equation.

    Raises:
        InputError: if it is not an equation, or too long; the message gives the position.

    Example:
        >>> str(ital_paper.equation.simplified(ital_paper.equation.parse("2x + 3x = 10")))
    """
    source = _with_carets(written).translate(_PLAIN)
    if len(written) > 4 * LONGEST:
        raise InputError(
            f"an equation of {len(written)} characters is too long: its full form may have {LONGEST}"
        )
    if source.count("=") != 1:
        raise InputError(f"an equation has one '=', not {source.count('=')}: {written!r}")
    middle = source.index("=")
    equation = Equation(_side(source, 0, middle), _side(source, middle + 1, len(source)))
    if len(text(equation)) > LONGEST:
        raise InputError(
            f"the full form of the equation has {len(text(equation))} characters: at most {LONGEST} fit"
        )
    return equation


def _with_carets(written: str) -> str:
    """Write x² as x^2, so that a digit after a letter is always a superscript."""
    return re.sub("[²³⁴]", lambda match: "^" + str("²³⁴".index(match[0]) + 2), written)


def _fail(source: str, place: int, fault: str) -> InputError:
    near = source[max(0, place - 8) : place] + "»" + source[place : place + 8]
    return InputError(
        f"cannot read the equation at character {place + 1} ({near.strip()}): {fault}"
    )


def _side(source: str, place: int, end: int) -> tuple[Term, ...]:
    terms: list[Term] = []
    began = _skip(source, place, end)
    place = began
    if place == end:
        raise _fail(source, min(place, len(source) - 1), "this side is empty; write 0")
    while place < end:
        sign, place = _sign(source, place, end, first=place == began)
        start = place
        number = _COEFFICIENT.match(source, place, end)
        numerator, denominator = _fraction(source, number) if number else (1, 1)
        place = number.end() if number else place
        monomial, place = _monomial(source, place, end)
        if place == start:
            raise _fail(
                source, place, _beyond(source, place, end) or "expected a number or one of x, y, z"
            )
        if numerator == 0:
            if terms or _skip(source, place, end) < end or monomial != (0, 0, 0):
                raise _fail(source, start, "a coefficient cannot be 0")
            return ()
        terms.append(Term(sign * numerator, denominator, monomial))
        place = _skip(source, place, end)
    return tuple(terms)


def _fraction(source: str, number: re.Match[str]) -> tuple[int, int]:
    """Numerator and denominator as typed; decimals become the exact fraction in lowest terms."""
    written, below = number[1], number[2]
    if below and Fraction(below) == 0:
        raise _fail(source, number.start(2), "a denominator cannot be 0")
    if "." in written + (below or ""):
        return (Fraction(written) / Fraction(below or 1)).as_integer_ratio()
    if below and int(below) == 1:
        raise _fail(source, number.start(2), "a fraction needs a denominator of at least 2")
    return int(written), int(below or 1)


def _sign(source: str, place: int, end: int, *, first: bool) -> tuple[int, int]:
    if place < end and source[place] in "+-":
        return (1 if source[place] == "+" else -1), _skip(source, place + 1, end)
    if not first:
        raise _fail(source, place, _beyond(source, place, end) or "expected + or -")
    return 1, place


def _beyond(source: str, place: int, end: int) -> str:
    """An explanation of text that no polynomial contains, if it is recognised."""
    return next((fault for pattern, fault in _BEYOND if re.match(pattern, source[place:end])), "")


def _monomial(source: str, place: int, end: int) -> tuple[Monomial, int]:
    degrees = {"x": 0, "y": 0, "z": 0}
    while power := _POWER.match(source, place, end):
        letter = power[1]
        if letter not in degrees:
            known = f"only x, y and z are known, not {letter!r}"
            raise _fail(source, power.start(1), _beyond(source, power.start(1), end) or known)
        if power[3]:
            raise _fail(source, power.start(3), "write a power with ^")
        if degrees[letter]:
            raise _fail(source, power.start(1), f"{letter} occurs twice in a term")
        degrees[letter] = int(power[2] or 1)
        if sum(degrees.values()) > DEGREE or degrees[letter] == 0:
            raise _fail(
                source,
                power.start(1),
                f"the degree of a term must be from 0 to {DEGREE}, with powers from 1",
            )
        place = power.end()
    return (degrees["x"], degrees["y"], degrees["z"]), place


def _skip(source: str, place: int, end: int) -> int:
    while place < end and source[place].isspace():
        place += 1
    return place
