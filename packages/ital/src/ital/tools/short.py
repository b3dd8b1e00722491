"""One-line representations of parts for the prompt, without arrays and addresses."""

import functools
from collections.abc import Mapping
from typing import Any


def short(kind: str, *names: str, numbers: Any = ()) -> str:
    """``Kind('name', key=number)``: the names as given, and the scalars among ``numbers``.

    Args:
        kind: name of the class.
        *names: shown first.
        numbers: a mapping or a named tuple; values other than scalars and text are left out.

    Returns:
        One line.
    """
    fields = (
        numbers._asdict()
        if hasattr(numbers, "_asdict")
        else numbers
        if isinstance(numbers, Mapping)
        else {}
    )
    shown = [f"{name}={written}" for name, value in fields.items() if (written := _single(value))]
    return f"{kind}({', '.join([*map(repr, names), *shown])})"


def called(function: Any) -> str:
    """The name of a function, or of the function that a partial wraps."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _single(value: Any) -> str:
    """A number or a text in a few characters; an empty text for anything larger."""
    if isinstance(value, str):
        return repr(value if len(value) <= 20 else f"{value[:19]}…")
    if isinstance(value, bool | int):
        return str(value)
    if isinstance(value, float) or (hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0):
        try:
            return f"{float(value):g}"
        except TypeError:  # traced by JAX: not a number yet
            return ""
    return ""
