"""Reading equations, in the internal text or as a person types them."""

import re
from fractions import Fraction

from ital.errors import InputError
from ital_paper.equation._equation import DEGREE, LONGEST, Equation, Monomial, Term, text

# Signs that look like those of a keyboard:
_TYPED = str.maketrans({"−": "-", "–": "-", "·": "*", "×": "*", "²": "2", "³": "3", "⁴": "4"})
_COEFFICIENT = re.compile(r"(\d*\.\d+|\d+\.(?!\d)|\d+)(?:\s*/\s*(\d*\.\d+|\d+))?")
_POWER = re.compile(r"\s*\*?\s*([a-zA-Z])(?:\s*(?:\^|\*\*)\s*\{?\s*(\d+)\s*\}?|([234]))?")

# What a person may type that is no polynomial, and what to say; the first that fits is taken.
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
    source = _with_carets(written).translate(_TYPED)
    # Long texts are refused before they are read.
    if len(written) > 4 * LONGEST:
        raise InputError(
            f"an equation of {len(written)} characters is too long: "
            f"its full form may have {LONGEST}"
        )
    if source.count("=") != 1:
        raise InputError(f"an equation has one '=', not {source.count('=')}: {written!r}")
    middle = source.index("=")
    left = _parse_side(source, 0, middle)
    right = _parse_side(source, middle + 1, len(source))
    equation = Equation(left, right)
    length = len(text(equation))
    if length > LONGEST:
        raise InputError(
            f"the full form of the equation has {length} characters: at most {LONGEST} fit"
        )
    return equation


def _with_carets(written: str) -> str:
    """Write x² as x^2, so that a digit after a letter is always a superscript."""
    for superscript, digit in zip("²³⁴", "234", strict=True):
        written = written.replace(superscript, f"^{digit}")
    return written


def _unreadable(
    source: str,
    position: int,
    fault: str,
) -> InputError:
    """Make the error for a fault at a position, with the text around it."""
    before = source[max(0, position - 8) : position]
    after = source[position : position + 8]
    near = f"{before}»{after}"
    return InputError(
        f"cannot read the equation at character {position + 1} ({near.strip()}): {fault}"
    )


def _parse_side(
    source: str,
    position: int,
    end: int,
) -> tuple[Term, ...]:
    """Read the terms between two positions."""
    terms: list[Term] = []
    first = position = _skip_spaces(source, position, end)
    if position == end:
        raise _unreadable(source, min(position, len(source) - 1), "this side is empty; write 0")
    while position < end:
        sign, position = _sign(source, position, end, first=position == first)
        begin = position
        numerator, denominator, position = _coefficient(source, position, end)
        monomial, position = _monomial(source, position, end)
        if position == begin:
            fault = _beyond(source, position, end) or "expected a number or one of x, y, z"
            raise _unreadable(source, position, fault)
        if numerator == 0:
            # A 0 is a whole side, not a term of one.
            alone = not terms and _skip_spaces(source, position, end) == end
            if not alone or monomial != (0, 0, 0):
                raise _unreadable(source, begin, "a coefficient cannot be 0")
            return ()
        terms.append(Term(sign * numerator, denominator, monomial))
        position = _skip_spaces(source, position, end)
    return tuple(terms)


def _sign(
    source: str,
    position: int,
    end: int,
    *,
    first: bool,
) -> tuple[int, int]:
    """Read a sign, which only the first term may lack; return it and where it ends."""
    if position < end and source[position] in "+-":
        sign = 1 if source[position] == "+" else -1
        return sign, _skip_spaces(source, position + 1, end)
    if not first:
        fault = _beyond(source, position, end) or "expected + or -"
        raise _unreadable(source, position, fault)
    return 1, position


def _coefficient(
    source: str,
    position: int,
    end: int,
) -> tuple[int, int, int]:
    """Read a coefficient; return its numerator, its denominator, and where it ends.

    A term without one has the coefficient 1.
    """
    number = _COEFFICIENT.match(source, position, end)
    if number is None:
        return 1, 1, position
    numerator, denominator = _fraction(source, number)
    return numerator, denominator, number.end()


def _fraction(source: str, number: re.Match[str]) -> tuple[int, int]:
    """Return numerator and denominator as typed.

    Decimals become the exact fraction in lowest terms.
    """
    above = number[1]
    below = number[2] or ""
    if below and Fraction(below) == 0:
        raise _unreadable(source, number.start(2), "a denominator cannot be 0")
    if "." in above + below:
        return (Fraction(above) / Fraction(below or 1)).as_integer_ratio()
    if below and int(below) == 1:
        # A denominator of 1 is how a term says that its coefficient is an integer.
        raise _unreadable(source, number.start(2), "a fraction needs a denominator of at least 2")
    return int(above), int(below or 1)


def _monomial(
    source: str,
    position: int,
    end: int,
) -> tuple[Monomial, int]:
    """Read the letters of a term with their powers; return their degrees and where they end."""
    degrees = {"x": 0, "y": 0, "z": 0}
    while power := _POWER.match(source, position, end):
        letter = power[1]
        if letter not in degrees:
            fault = _beyond(source, power.start(1), end)
            fault = fault or f"only x, y and z are known, not {letter!r}"
            raise _unreadable(source, power.start(1), fault)
        if power[3]:
            raise _unreadable(source, power.start(3), "write a power with ^")
        if degrees[letter]:
            raise _unreadable(source, power.start(1), f"{letter} occurs twice in a term")
        degrees[letter] = int(power[2] or 1)
        if sum(degrees.values()) > DEGREE or degrees[letter] == 0:
            fault = f"the degree of a term must be from 0 to {DEGREE}, with powers from 1"
            raise _unreadable(source, power.start(1), fault)
        position = power.end()
    return (degrees["x"], degrees["y"], degrees["z"]), position


def _beyond(
    source: str,
    position: int,
    end: int,
) -> str:
    """Explain text that no polynomial contains, if it is recognised."""
    rest = source[position:end]
    return next((fault for pattern, fault in _BEYOND if re.match(pattern, rest)), "")


def _skip_spaces(
    source: str,
    position: int,
    end: int,
) -> int:
    while position < end and source[position].isspace():
        position += 1
    return position
