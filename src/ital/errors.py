"""Errors shown as one line, without a traceback."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any


class InputError(ValueError):
    """Bad input. The message says what is wrong, what is allowed, and what to do. The command line exits with 2."""


class DivergenceWarning(RuntimeWarning):
    """Parameters of some lanes are not finite. The message says which, since which step, and what to try."""


class Incomplete(Exception):
    """Some cells of an experiment failed; all others are computed and stored. The command line exits with 1.

    Args:
        result: the result without the failed cells; None if there is none.
        failures: the cells that failed, each with the traceback of its last attempt.
        cells: total number of cells.
        out: the folder for results.
    """

    def __init__(self, result: Any, failures: Sequence[Any], cells: int, out: Path) -> None:
        first = failures[0].traceback.strip().splitlines()[-1]
        super().__init__(f"{len(failures)} of {cells} cells failed ({first}); all others are computed and stored")
        self.result, self.failures, self.out = result, failures, out


__all__ = ["DivergenceWarning", "Incomplete", "InputError"]
