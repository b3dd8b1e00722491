"""Errors that are said in a line rather than shown as a traceback."""

from collections.abc import Sequence
from typing import Any


class InputError(ValueError):
    """Bad input: says what was wrong, what is allowed, and what to do. The command line ends with status 2 on it."""


class Incomplete(Exception):
    """Some cells of an experiment failed; all others are computed and written.

    ``failures`` tell of each; ``result`` is what there is without them, None if there is nothing.
    """

    def __init__(self, result: Any, failures: Sequence[Any], cells: int) -> None:
        super().__init__(f"{len(failures)} of {cells} cells failed; all others are computed and kept")
        self.result, self.failures = result, failures


__all__ = ["Incomplete", "InputError"]
