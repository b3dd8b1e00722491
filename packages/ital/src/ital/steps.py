"""The form of a step: how much of a proposed update is applied.

A learner proposes new parameters; the form decides how much of that update is applied. The paper's
form is ``rate``: all of it. With ``length``, all methods take steps of one length, so that only
directions are compared. With ``safe``, no step is so long that it makes things worse.
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

# How often a safe step is halved before it is skipped.
HALVINGS = 4


class Form(NamedTuple):
    """A form of the step: how much of a proposed update is applied.

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
    """Numbers of steps of one length.

    Attributes:
        length: the length L.
        decay: 1 if L decreases linearly to 0 over the run, 0 if it stays constant.
    """

    length: Any
    decay: Any


def equal_length(lesson: Lesson, settings: Length, params: Params, proposed: Params) -> Params:
    """Return ν + L·(ν′−ν)/‖ν′−ν‖; no step if none is proposed."""
    decayed = settings.decay * lesson.step / lesson.steps
    length = settings.length * (1 - decayed)
    return _scaled(params, proposed, length, shorten_only=False)


def within_reach(lesson: Lesson, settings: Any, params: Params, proposed: Params) -> Params:
    """Limit the step to a safe length, and skip it if it makes things worse.

    If an example's loss is quadratic along its gradient, it reaches 0 at the distance 2l/‖g‖. The
    safe length is the largest of these distances: beyond it, no example of the mini-batch gives any
    information. A step that raises both the mean loss and the loss of the chosen example is halved
    up to four times, and then skipped.

    Args:
        lesson: what the learner sees of this step.
        settings: an empty tuple.
        params: the parameters before the step.
        proposed: the parameters that the learner proposes.

    Returns:
        The parameters after the step.
    """
    near = _scaled(params, proposed, _reach(lesson), shorten_only=True)
    losses_before = lesson.here.losses

    def is_worse(candidate: Params) -> Array:
        losses = lesson.gradients(candidate).losses
        mean_falls = jnp.mean(losses) <= jnp.mean(losses_before)
        chosen = _chosen_loss(lesson, losses)
        chosen_before = _chosen_loss(lesson, losses_before)
        chosen_falls = chosen <= chosen_before
        one_falls = mean_falls | chosen_falls
        all_finite = jnp.all(jnp.isfinite(losses))
        return ~(one_falls & all_finite)

    # The state is (tries, candidate, whether it is worse). The verdict is carried along: if the
    # loop condition computed it again, it could be rounded differently than in the body, where
    # finished lanes do not move, and the loop might never end.
    def undecided(state: tuple[Array, Params, Array]) -> Array:
        tries, _, worse = state
        return (tries <= HALVINGS) & worse

    def halve(state: tuple[Array, Params, Array]) -> tuple[Array, Params, Array]:
        tries, candidate, _ = state
        # After the last halving, the share 0 leads back to where the step began.
        share = jnp.where(tries < HALVINGS, 0.5, 0.0)

        def toward(begun: Any, tried: Any) -> Any:
            return begun + share * (tried - begun)

        nearer = jax.tree.map(toward, params, candidate)
        return tries + 1, nearer, is_worse(nearer)

    no_tries = jnp.zeros((), int)
    untried = (no_tries, near, is_worse(near))
    _, after, _ = jax.lax.while_loop(undecided, halve, untried)
    return after


def _reach(lesson: Lesson) -> Array:
    """Return the safe length: the largest 2lᵢ/‖gᵢ‖ of the mini-batch."""
    norms = jnp.sqrt(lesson.here.squared_norms)
    # An example without a gradient says nothing about the length; the inner ``where`` avoids 0/0.
    divisors = jnp.where(norms > 0, norms, 1.0)
    losses_per_norm = lesson.here.losses / divisors
    known = jnp.where(norms > 0, losses_per_norm, 0.0)
    return 2 * jnp.max(known)


def _chosen_loss(lesson: Lesson, losses: Array) -> Array:
    """Return the loss of the chosen example; with several choices, their mean."""
    chosen_losses = losses[lesson.chosen]
    if lesson.chosen.ndim == 0:
        return chosen_losses
    return jnp.mean(chosen_losses)


def _scaled(params: Params, proposed: Params, length: Scalar, *, shorten_only: bool) -> Params:
    """Step by ``length`` toward ``proposed``; none if it is not finite.

    With ``shorten_only`` a proposal that is nearer than ``length`` is taken as it is.
    """
    way = add_scaled(proposed, -1.0, params)
    largest_of_leaves = jax.tree.map(lambda leaf: jnp.max(jnp.abs(leaf)), way)
    largest = jax.tree.reduce(jnp.maximum, largest_of_leaves)
    moves = (largest > 0) & jnp.isfinite(largest)
    divisor = jnp.where(moves, largest, 1.0)

    def shrunk(leaf: Any) -> Array:
        # Divided by its largest entry, the way has a squared norm that cannot overflow.
        return jnp.where(moves, leaf / divisor, 0.0)

    direction = jax.tree.map(shrunk, way)
    norm_of_direction = jnp.sqrt(squared_norm(direction))
    norm = jnp.where(moves, norm_of_direction, 1.0)
    if shorten_only:
        proposed_length = largest * norm
        # A length that is not finite compares as false, and ``moves`` then decides for no step.
        whole_way = jnp.where(moves, proposed_length, 0.0)
        length = jnp.where(length < proposed_length, length, whole_way)
    return add_scaled(params, length / norm, direction)


def rate() -> Form:
    """Applies the whole update: only η limits a step (the paper's form).

    Returns:
        The form.
    """
    return Form("rate", as_proposed)


def length(text: float | str) -> Form:
    """Steps of one length L for all methods (length:0.4), or decreasing to 0 (length:0.4:decay).

    Args:
        text: L, or "L:decay" for a length that decreases linearly to 0.

    Returns:
        The form.

    Raises:
        InputError: if L is not a positive number, or other text follows it.
    """
    number, _, decay = str(text).partition(":")
    value = registry.number(number)
    is_positive = math.isfinite(value) and value > 0
    if not is_positive or decay not in ("", "decay"):
        raise InputError(
            "a fixed-length step is written length:L or length:L:decay with L > 0, "
            f"not length:{text}"
        )
    written = repr(value).removesuffix(".0")
    name = f"length:{written}"
    if decay:
        decreasing = Length(value, decay=1.0)
        return Form(f"{name}:decay", equal_length, decreasing)
    constant = Length(value, decay=0.0)
    return Form(name, equal_length, constant)


def safe() -> Form:
    """Limits steps to a safe length and skips those that make things worse: no β diverges.

    Returns:
        The form.
    """
    return Form("safe", within_reach)


REGISTRY: dict[str, Callable[..., Form]] = {"rate": rate, "length": length, "safe": safe}


def make(name: "str | Form") -> Form:
    """Return the form of that name, e.g. ``rate``, ``length:0.4:decay`` or ``safe``.

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
