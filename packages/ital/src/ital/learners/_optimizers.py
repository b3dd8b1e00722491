"""Optax optimisers for learners.

An optimiser gets the gradient that a learner proposes, in place of the step −η·gradient. Optax is
imported only where an optimiser is used.
"""

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from ital.errors import InputError
from ital.tools import registry
from ital.tools.checks import shown
from ital.tools.types import Array, Params

NAMES = ("adabelief", "adagrad", "adam", "adamw", "lion", "nadam", "radam", "rmsprop", "sgd")
"""Optimisers that are known by name; those of Optax that need no other argument than their rate."""


class Optimizer(NamedTuple):
    """An optimiser: code, and its rate.

    Attributes:
        name: its name, as typed.
        make: ``make(rate)`` returns the transformation of Optax. Learners with the same function
            share a program.
        rate: its rate, traced; 0 for the step size of the run.
    """

    name: str
    make: Callable[[Any], Any]
    rate: float = 0.0


def optimizer(given: Any) -> Optimizer | None:
    """Return the optimiser of that name, e.g. ``adam`` or ``adam:0.001``.

    Args:
        given: a name, with its rate after a colon (the run's step size if there is none); a
            transformation of Optax such as ``optax.adam(1e-3)``; None for no optimiser.

    Returns:
        The optimiser, or None.

    Raises:
        InputError: if there is no such optimiser, or its rate is not a positive number.
    """
    if given is None or isinstance(given, Optimizer):
        return given
    if isinstance(given, str):
        return _named(given)
    if callable(getattr(given, "init", None)) and callable(getattr(given, "update", None)):
        return Optimizer("optax", _always(given))
    # A likely slip: the constructor ``optax.adam`` in place of ``optax.adam(1e-3)``.
    hint = "; it is a function: call it" if inspect.isfunction(given) else ""
    raise InputError(
        "expected an optimizer such as optax.adam(1e-3), or a name like 'adam', "
        f"not {shown(given)}{hint}"
    )


def _named(text: str) -> Optimizer:
    """Return the optimiser that is written ``name`` or ``name:rate``."""
    import optax

    name, colon, rate = text.partition(":")
    if name not in NAMES:
        raise InputError(registry.nearest("optimizer", name, NAMES))
    make = getattr(optax, name)
    if not colon:
        return Optimizer(name, make)
    value = registry.number(rate)
    if not (math.isfinite(value) and value > 0):
        raise InputError(
            f"the rate of an optimizer must be a positive number, as in {name}:0.001, not {rate!r}"
        )
    return Optimizer(f"{name}:{repr(value).removesuffix('.0')}", make, value)


@functools.cache  # one object per transformation: learners that share it share a program
def _always(transformation: Any) -> Callable[[Any], Any]:
    return lambda rate: transformation


def descend(
    make: Callable[[Any], Any], rate: Array, gradient: Params, params: Params, state: Any
) -> tuple[Params, Any]:
    """Hand a gradient to an optimiser; return the parameters after its step, and its state."""
    import optax

    updates, state = make(rate).update(gradient, state, params)
    return optax.apply_updates(params, updates), state


def first_state(make: Callable[[Any], Any], params: Params) -> Any:
    """Return the state of an optimiser before the first step; it does not depend on the rate."""
    return make(jnp.ones(())).init(params)
