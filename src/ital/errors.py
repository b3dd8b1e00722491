"""Errors that are said in a line rather than shown as a traceback."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any


class InputError(ValueError):
    """Bad input: says what was wrong, what is allowed, and what to do. The command line ends with status 2 on it."""


class DivergenceWarning(RuntimeWarning):
    """Parameters of some lanes are not finite: says which, since when, and what to try."""


class Incomplete(Exception):
    """Some cells of an experiment failed; all others are computed and written. The command line ends with status 1.

    Args:
        result: what there is without the failed cells; None if there is nothing.
        failures: the cells that failed, each with the traceback of its last attempt.
        cells: number of cells in all.
        out: the folder for results.
    """

    def __init__(self, result: Any, failures: Sequence[Any], cells: int, out: Path) -> None:
        first = failures[0].traceback.strip().splitlines()[-1]
        super().__init__(f"{len(failures)} of {cells} cells failed ({first}); all others are computed and kept")
        self.result, self.failures, self.out = result, failures, out


__all__ = ["DivergenceWarning", "Incomplete", "InputError"]
