"""Look up parts by name, as typed on the command line: ``name`` or ``name:argument``."""

import difflib
import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ital.errors import InputError
from ital.tools.plugins import Part

T = TypeVar("T")


def nearest(kind: str, name: str, names: Iterable[str]) -> str:
    """The error message for an unknown name, with the nearest known one."""
    names = list(names)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"unknown {kind} {name!r}: {hint}choose from {', '.join(names)}"


def make(kind: str, registry: Mapping[str, Callable[..., T]], text: str) -> T:
    """Call the constructor registered under ``text``; text after a colon is its argument."""
    name, colon, argument = text.partition(":")
    if name not in registry:
        raise InputError(nearest(kind, name, registry))
    arguments = (argument,) if colon else ()
    try:
        inspect.signature(registry[name]).bind(*arguments)
    except TypeError:
        raise InputError(
            f"{kind} {name!r} takes no argument, but {argument!r} follows its name"
        ) from None
    try:
        return registry[name](*arguments)
    except (ValueError, TypeError) as error:  # of a constructor that does not check its argument
        if not arguments or isinstance(error, InputError):
            raise
        raise InputError(f"{kind} {name!r} refused {argument!r}: {error}") from None


def number(text: float | str) -> float:
    """The text as a number; NaN if it is not one."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def describe(make: Any) -> str:
    """The first line of a constructor's documentation, with the arguments a registry line has bound.

    Args:
        make: the constructor.

    Returns:
        One line.
    """
    if isinstance(make, Part):  # declared by another package: imported now
        try:
            make = make.load()
        except InputError as error:
            return str(error)
    bound = getattr(make, "keywords", {})
    line = ((getattr(make, "func", make).__doc__ or "").strip().splitlines() or [""])[0]
    return line + (
        f" Here {', '.join(f'{key} = {value}' for key, value in bound.items())}." if bound else ""
    )
