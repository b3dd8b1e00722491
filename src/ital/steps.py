"""How far a learner goes toward what it proposes: all the way, a given length, or no further than is safe.

A learner proposes new parameters; the form of the step decides how much of the way it takes. The paper's form is
``rate``: all of it. With ``length`` all methods take steps of one length, so that only directions are compared.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from ital import _registry
from ital._short import short
from ital._types import Array, Params, Scalar
from ital.errors import InputError
from ital.gradients import add_scaled, squared_norm

if TYPE_CHECKING:
    from ital.learners import Lesson

HALVINGS = 4


class Form(NamedTuple):
    """A form of step: how much of a proposed update the learner takes.

    Attributes:
        name: its name, as typed.
        take: ``take(lesson, settings, params, proposed)`` returns the parameters after the step.
        settings: its numbers, traced.
    """

    name: str
    take: Callable[["Lesson", Any, Params, Params], Params]
    settings: Any = ()

    def __repr__(self) -> str:
        return short("Form", self.name)


def as_proposed(lesson: "Lesson", settings: Any, params: Params, proposed: Params) -> Params:
    """The paper's form: the step size η is all that limits a step."""
    return proposed


class Length(NamedTuple):
    """L, and whether it falls linearly to 0 over the run (1) or stays (0)."""

    length: Any
    decay: Any


def equal_length(lesson: "Lesson", settings: Length, params: Params, proposed: Params) -> Params:
    """ν + L·(ν′−ν)/‖ν′−ν‖; no step where none is proposed."""
    length = settings.length * (1 - settings.decay * lesson.step / lesson.steps)
    return _scaled(params, proposed, length, shorten_only=False)


def within_reach(lesson: "Lesson", settings: Any, params: Params, proposed: Params) -> Params:
    """No further than the mini-batch can tell, and only where it is not worse off.

    An example whose loss is quadratic along its gradient has none left at the distance 2l/‖g‖: beyond the largest of
    these distances no example of the mini-batch says anything. A step that raises both the mean loss and that of the
    chosen example is halved up to four times, and then not taken.

    Args:
        lesson: what the learner sees of this step.
        settings: none, an empty tuple.
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
        fine = (jnp.mean(losses) <= jnp.mean(here.losses)) | (losses[lesson.chosen] <= here.losses[lesson.chosen])
        return ~(fine & jnp.all(jnp.isfinite(losses)))

    # The verdict is carried along. Asked again in the loop's condition it could be rounded otherwise than in its body,
    # where lanes that are done stand still, and such a loop has no end.
    def undecided(state: tuple[Array, Params, Array]) -> Array:
        return (state[0] <= HALVINGS) & state[2]

    def halve(state: tuple[Array, Params, Array]) -> tuple[Array, Params, Array]:
        tries, candidate, _ = state
        share = jnp.where(tries < HALVINGS, 0.5, 0.0)
        nearer = jax.tree.map(lambda a, b: a + share * (b - a), params, candidate)
        return tries + 1, nearer, worse(nearer)

    return jax.lax.while_loop(undecided, halve, (jnp.zeros((), int), near, worse(near)))[1]


def _scaled(params: Params, proposed: Params, length: Scalar, *, shorten_only: bool) -> Params:
    """A step of that length toward ``proposed`` (or a shorter one, if that is nearer); none that is not finite."""
    way = add_scaled(proposed, -1.0, params)
    largest = jax.tree.reduce(jnp.maximum, jax.tree.map(lambda leaf: jnp.max(jnp.abs(leaf)), way))
    moves = (largest > 0) & jnp.isfinite(largest)
    unit = jax.tree.map(lambda leaf: jnp.where(moves, leaf / jnp.where(moves, largest, 1.0), 0.0), way)  # no overflow
    norm = jnp.where(moves, jnp.sqrt(squared_norm(unit)), 1.0)
    if shorten_only:
        length = jnp.where(length < largest * norm, length, jnp.where(moves, largest * norm, 0.0))
    return add_scaled(params, length / norm, unit)


def rate() -> Form:
    """Goes where the learner says: η alone decides (the paper's form).

    Returns:
        The form.
    """
    return Form("rate", as_proposed)


def length(text: float | str) -> Form:
    """Steps of one length L for all methods, constant or falling linearly to 0 (length:0.4, length:0.4:decay).

    Args:
        text: L, or "L:decay" for a length that falls linearly to 0.

    Returns:
        The form.

    Raises:
        InputError: if L is not a positive number, or something else follows it.
    """
    number, _, decay = str(text).partition(":")
    value = _registry.number(number)
    if not (math.isfinite(value) and value > 0) or decay not in ("", "decay"):
        raise InputError(f"a step of one length is written length:L or length:L:decay with L > 0, not length:{text}")
    name = f"length:{repr(value).removesuffix('.0')}" + (":decay" if decay else "")
    return Form(name, equal_length, Length(value, 1.0 if decay else 0.0))


def safe() -> Form:
    """No further than the mini-batch can tell, and only where it is not worse off: no β diverges.

    Returns:
        The form.
    """
    return Form("safe", within_reach)


REGISTRY: dict[str, Callable[..., Form]] = {"rate": rate, "length": length, "safe": safe}


def make(name: "str | Form") -> Form:
    """The form of that name, e.g. ``rate``, ``length:0.4:decay`` or ``safe``.

    Args:
        name: its name; a form is returned as it is.

    Returns:
        The form.

    Raises:
        InputError: if there is no such form.
    """
    if isinstance(name, Form):
        return name
    if name == "length":
        raise InputError("a step of one length is written length:L or length:L:decay, e.g. length:0.4:decay")
    return _registry.make("step", REGISTRY, name)


__all__ = ["REGISTRY", "Form", "length", "make", "rate", "safe", "within_reach"]
