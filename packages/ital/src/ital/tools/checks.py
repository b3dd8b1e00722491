"""Input checks shared by several packages.

Each raises one line: what is wrong, and what is allowed.
"""

import math
import numbers
import os
from pathlib import Path
from typing import Any

import numpy as np

from ital.errors import InputError

# Squares of larger numbers, summed over columns, would overflow in single precision.
LARGEST = 1e18
TOO_LARGE = (
    f"has values beyond ±{LARGEST:g}, too large to compute with: "
    "use other units, or mark them as missing"
)

# In a checkout, the folder of ital, ital-study and ital-paper.
PACKAGES = Path(__file__).parents[4]


def install(requirement: str) -> str:
    """Name the command that installs a package of this project, if possible from the checkout.

    Args:
        requirement: the package and its extra, e.g. ``ital-study[server]``.

    Returns:
        A command for the shell.
    """
    name, bracket, extra = requirement.partition("[")
    if (PACKAGES / name / "pyproject.toml").is_file():
        return f"pip install -e '{os.path.relpath(PACKAGES / name)}{bracket}{extra}'"
    return f"pip install '{requirement}'"


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number: not text, not a boolean, not 2.0."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_finite(value: Any) -> bool:
    """Return whether a value is one finite real number."""
    # A boolean is a number to Python.
    if isinstance(value, bool):
        return False
    is_scalar_array = isinstance(value, np.ndarray) and value.shape == ()
    if not isinstance(value, numbers.Real | np.number) and not is_scalar_array:
        return False
    return math.isfinite(float(value))


def require_whole(**values: Any) -> None:
    """Raise InputError for any value that is not a whole number; the message gives its name."""
    for name, value in values.items():
        if not is_whole(value):
            raise InputError(f"{name} must be a whole number, not {shown(value)}")


def require_finite(**values: Any) -> None:
    """Raise InputError for any value that is not a finite number; the message gives its name."""
    for name, value in values.items():
        if not is_finite(value):
            raise InputError(f"{name} must be a finite number, not {shown(value)}")


def path_of(value: Any, what: str) -> Path:
    """Return a path that a user gave; raise InputError for anything else, and for an empty name."""
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"{what} must be a path, not {shown(value)}")
    if not os.fspath(value):
        raise InputError(
            f"the name of the {what} is empty: give a path, or . for the working folder"
        )
    return Path(value)


def too_large(values: np.ndarray) -> bool:
    """Return whether some finite values cannot be computed with in single precision."""
    finite = values[np.isfinite(values)]
    # As a Python float, because float16 cannot hold the limit.
    return finite.size > 0 and float(np.abs(finite).max()) > LARGEST


def shown(value: Any) -> str:
    """Quote a value for an error message: on one line, shortened if it is long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
