"""How much of a proposed update is applied: all of it, a fixed length, or a safe length.

A learner proposes new parameters; the form of step decides how much of that update is applied. The paper's form is
``rate``: all of it. With ``length``, all methods take steps of one length, so that only directions are compared.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ital.errors import InputError
from ital.gradients import add_scaled, squared_norm
from ital.lessons import Lesson
from ital.tools import registry
from ital.tools.short import short
from ital.tools.types import Array, Params, Scalar

HALVINGS = 4


class Form(NamedTuple):
    """A form of step: how much of a proposed update is applied.

    Attributes:
        name: its name, as typed.
        take: ``take(lesson, settings, params, proposed)`` returns the parameters after the step.
        settings: its numbers, traced.
    """

    name: str
    take: Callable[[Lesson, Any, Params, Params], Params]
    settings: Any = ()

    def __repr__(self) -> str:
        return short("Form", self.name)


def as_proposed(lesson: Lesson, settings: Any, params: Params, proposed: Params) -> Params:
    """Apply the whole update: only the step size η limits a step (the paper's form)."""
    return proposed


class Length(NamedTuple):
    """L, and whether it decreases linearly to 0 over the run (1) or stays constant (0)."""

    length: Any
    decay: Any


def equal_length(lesson: Lesson, settings: Length, params: Params, proposed: Params) -> Params:
    """ν + L·(ν′−ν)/‖ν′−ν‖; no step if none is proposed."""
    length = settings.length * (1 - settings.decay * lesson.step / lesson.steps)
    return _scaled(params, proposed, length, shorten_only=False)


def within_reach(lesson: Lesson, settings: Any, params: Params, proposed: Params) -> Params:
    """Limit the step to a safe length, and skip it if it makes things worse.

    If an example's loss is quadratic along its gradient, it reaches 0 at the distance 2l/‖g‖. The safe length is the
    largest of these distances: beyond it, no example of the mini-batch gives any information. A step that raises both
    the mean loss and the loss of the chosen example is halved up to four times, and then skipped.

    Args:
        lesson: what the learner sees of this step.
        settings: an empty tuple.
        params: the parameters before the step.
        proposed: the parameters that the learner proposes.

    Returns:
        The parameters after the step.
    """
    here = lesson.here
    norms = jnp.sqrt(here.squared_norms)
    reach = 2 * jnp.max(jnp.where(norms > 0, here.losses / jnp.where(norms > 0, norms, 1.0), 0.0))
    near = _scaled(params, proposed, reach, shorten_only=True)

    def worse(candidate: Params) -> Array:
        losses = lesson.gradients(candidate).losses
        shown, before = losses[lesson.chosen], here.losses[lesson.chosen]
        if lesson.chosen.ndim:
            shown, before = jnp.mean(shown), jnp.mean(before)
        fine = (jnp.mean(losses) <= jnp.mean(here.losses)) | (shown <= before)
        return ~(fine & jnp.all(jnp.isfinite(losses)))

    # The verdict is carried along. If the loop condition computed it again, it could be rounded differently than in the
    # body, where finished lanes do not move, and the loop might never end.
    def undecided(state: tuple[Array, Params, Array]) -> Array:
        return (state[0] <= HALVINGS) & state[2]

    def halve(state: tuple[Array, Params, Array]) -> tuple[Array, Params, Array]:
        tries, candidate, _ = state
        share = jnp.where(tries < HALVINGS, 0.5, 0.0)
        nearer = jax.tree.map(lambda a, b: a + share * (b - a), params, candidate)
        return tries + 1, nearer, worse(nearer)

    return jax.lax.while_loop(undecided, halve, (jnp.zeros((), int), near, worse(near)))[1]


def _scaled(params: Params, proposed: Params, length: Scalar, *, shorten_only: bool) -> Params:
    """Step by ``length`` toward ``proposed`` (less if ``shorten_only`` and it is nearer); none if it is not finite."""
    way = add_scaled(proposed, -1.0, params)
    largest = jax.tree.reduce(jnp.maximum, jax.tree.map(lambda leaf: jnp.max(jnp.abs(leaf)), way))
    moves = (largest > 0) & jnp.isfinite(largest)
    unit = jax.tree.map(
        lambda leaf: jnp.where(moves, leaf / jnp.where(moves, largest, 1.0), 0.0), way
    )  # no overflow
    norm = jnp.where(moves, jnp.sqrt(squared_norm(unit)), 1.0)
    if shorten_only:
        length = jnp.where(length < largest * norm, length, jnp.where(moves, largest * norm, 0.0))
    return add_scaled(params, length / norm, unit)


def rate() -> Form:
    """Applies the whole update: only η limits a step (the paper's form).

    Returns:
        The form.
    """
    return Form("rate", as_proposed)


def length(text: float | str) -> Form:
    """Steps of one length L for all methods, constant or decreasing linearly to 0 (length:0.4, length:0.4:decay).

    Args:
        text: L, or "L:decay" for a length that decreases linearly to 0.

    Returns:
        The form.

    Raises:
        InputError: if L is not a positive number, or other text follows it.
    """
    number, _, decay = str(text).partition(":")
    value = registry.number(number)
    if not (math.isfinite(value) and value > 0) or decay not in ("", "decay"):
        raise InputError(
            f"a fixed-length step is written length:L or length:L:decay with L > 0, not length:{text}"
        )
    name = f"length:{repr(value).removesuffix('.0')}" + (":decay" if decay else "")
    return Form(name, equal_length, Length(value, 1.0 if decay else 0.0))


def safe() -> Form:
    """Limits steps to a safe length and skips those that make things worse: no β diverges.

    Returns:
        The form.
    """
    return Form("safe", within_reach)


REGISTRY: dict[str, Callable[..., Form]] = {"rate": rate, "length": length, "safe": safe}


def make(name: "str | Form") -> Form:
    """The form of that name, e.g. ``rate``, ``length:0.4:decay`` or ``safe``.

    Args:
        name: its name; a form is returned unchanged.

    Returns:
        The form.

    Raises:
        InputError: if there is no such form.
    """
    if isinstance(name, Form):
        return name
    if name == "length":
        raise InputError(
            "a fixed-length step is written length:L or length:L:decay, e.g. length:0.4:decay"
        )
    return registry.make("step", REGISTRY, name)


__all__ = ["REGISTRY", "Form", "length", "make", "rate", "safe", "within_reach"]
