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
    """Write the error message for an unknown name, with the nearest known one."""
    names = list(names)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"unknown {kind} {name!r}: {hint}choose from {', '.join(names)}"


def make(kind: str, registry: Mapping[str, Callable[..., T]], text: str) -> T:
    """Call the constructor registered under ``text``; text after a colon is its argument."""
    name, colon, argument = text.partition(":")
    if name not in registry:
        raise InputError(nearest(kind, name, registry))
    # "boltzmann:" has an argument, which is empty; "boltzmann" has none.
    arguments = (argument,) if colon else ()
    try:
        inspect.signature(registry[name]).bind(*arguments)
    except TypeError:
        raise InputError(
            f"{kind} {name!r} takes no argument, but {argument!r} follows its name"
        ) from None
    try:
        return registry[name](*arguments)
    except (ValueError, TypeError) as error:
        # Only a constructor that does not check its argument raises these.
        if not arguments or isinstance(error, InputError):
            raise
        raise InputError(f"{kind} {name!r} refused {argument!r}: {error}") from None


def number(text: float | str) -> float:
    """Return the text as a number; NaN if it is not one."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def describe(make: Any) -> str:
    """Return the first paragraph of a constructor's docstring, with the arguments that are bound.

    Args:
        make: the constructor.

    Returns:
        One line.
    """
    if isinstance(make, Part):
        # Another package declares it: it is imported only now.
        try:
            make = make.load()
        except InputError as error:
            return str(error)
    # A registry may hold partials, whose own docstring is that of functools.partial.
    docstring = getattr(make, "func", make).__doc__ or ""
    # A paragraph, not a line: sources have 100 columns, and a description may need more.
    paragraph = docstring.strip().partition("\n\n")[0]
    line = " ".join(paragraph.split())
    bound = getattr(make, "keywords", {})
    if bound:
        line += f" Here {', '.join(f'{key} = {value}' for key, value in bound.items())}."
    return line
