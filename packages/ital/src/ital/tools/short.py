"""One-line representations of parts for the prompt, without arrays and addresses."""

import functools
from collections.abc import Mapping
from typing import Any


def short(kind: str, *names: str, numbers: Any = ()) -> str:
    """Write ``Kind('name', key=number)``: the names as given, and the scalars among ``numbers``.

    Args:
        kind: name of the class.
        *names: shown first.
        numbers: a mapping or a named tuple; values other than scalars and text are left out.

    Returns:
        One line.
    """
    fields: Mapping[str, Any] = {}
    if hasattr(numbers, "_asdict"):
        fields = numbers._asdict()
    elif isinstance(numbers, Mapping):
        fields = numbers
    words = [repr(name) for name in names]
    for name, value in fields.items():
        written = _short_value(value)
        if written:
            words.append(f"{name}={written}")
    return f"{kind}({', '.join(words)})"


def called(function: Any) -> str:
    """Return the name of a function, or of the function that a partial wraps."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _short_value(value: Any) -> str:
    """Write a number or a text in a few characters; an empty text for anything larger."""
    if isinstance(value, str):
        return repr(value if len(value) <= 20 else f"{value[:19]}…")
    if isinstance(value, bool | int):
        return str(value)
    is_scalar_array = hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0
    if not isinstance(value, float) and not is_scalar_array:
        return ""
    try:
        return f"{float(value):g}"
    except TypeError:
        # JAX traces it: it is not a number yet.
        return ""
