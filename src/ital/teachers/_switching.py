"""The teacher who changes her mind: first she helps, then she does not."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ital._types import PRNGKeyArray
from ital.errors import InputError
from ital.teachers._base import Choice, Teacher, TeacherView

THEN = ("adversarial", "random")


class Settings(NamedTuple):
    """The step at which she changes (NaN: half-way), and whether she is hostile (1) or indifferent (0) from then on."""

    step: Any
    hostile: Any


def choose(key: PRNGKeyArray, view: TeacherView, settings: Settings) -> Choice:
    """Argmax of the imitated teaching volume until the change; then argmin, or any index."""
    change = jnp.where(jnp.isnan(settings.step), view.steps / 2, settings.step)
    anything = jax.random.randint(key, (), 0, view.volumes.shape[0])
    after = jnp.where(settings.hostile == 1, jnp.argmin(view.volumes), anything)
    return jnp.where(view.step < change, jnp.argmax(view.volumes), after)


def switching(text: str = "") -> Teacher:
    """Helps until STEP (default: half-way), then is adversarial or random (e.g. switching:500:random)."""
    step, _, then = str(text).partition(":")
    if step in THEN and not then:
        step, then = "", step
    then = then or THEN[0]
    if then not in THEN or (step and not step.isdecimal()):
        raise InputError(f"a switching teacher is written switching:STEP:{'|'.join(THEN)}, not switching:{text}")
    name = "switching" + (f":{int(step)}" if step else "") + (f":{then}" if then != THEN[0] else "")
    return Teacher(name, choose, Settings(float(step) if step else float("nan"), float(then == THEN[0])))
