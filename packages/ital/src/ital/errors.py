"""Errors shown as one line, without a traceback."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class InputError(ValueError):
    """Bad input.

    The message says what is wrong, what is allowed, and what to do. The command line exits with 2.
    """


class DivergenceWarning(RuntimeWarning):
    """Parameters of some lanes are not finite.

    The message says which, since which step, and what to try.
    """


class AwarenessWarning(UserWarning):
    """An aware learner with ``beta="auto"`` that ends behind the naive one.

    The message says what to try.
    """


class PrecisionWarning(RuntimeWarning):
    """Values of a plan that are too large to tell actions apart.

    The message says how coarse they are, and what to do.
    """


class Incomplete(Exception):
    """Some cells of an experiment failed; all others are computed and stored.

    The command line exits with 1.

    Args:
        result: the result without the failed cells; None if there is none.
        failures: the cells that failed, each with the traceback of its last attempt.
        cells: total number of cells.
        out: the folder for results.
    """

    def __init__(self, result: Any, failures: Sequence[Any], cells: int, out: Path) -> None:
        others = "; all others are computed and stored" if cells > len(failures) else ""
        cause = _exception_line(failures[0].traceback)
        super().__init__(f"{len(failures)} of {cells} cells failed ({cause}){others}")
        self.result = result
        self.failures = failures
        self.out = out


def _exception_line(traceback: str) -> str:
    """Return the line of a traceback that names the exception."""
    lines = traceback.strip().splitlines()
    # JAX adds notes below the exception: the exception itself is the last line that names a type.
    named = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Interrupt)\b", line)]
    return (named or lines)[-1]


__all__ = ["AwarenessWarning", "DivergenceWarning", "Incomplete", "InputError", "PrecisionWarning"]
