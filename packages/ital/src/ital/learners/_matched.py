"""Controls for the length of the step: as long as ITAL's, but along a gradient without awareness.

    L = ‖ν′_ITAL − ν‖,     ν′ = ν − L·g/‖g‖

ITAL's two steps together are longer than a naive one. A control with the same length but another
direction shows how much the direction contributes.
"""

import functools
from typing import Any

import jax.numpy as jnp

from ital.gradients import add_scaled, squared_norm
from ital.learners._base import Learner, Rule, Situation, Update
from ital.learners._two_step import AwareNumbers, Literal, Schedule, literal_weights, teacher_aware
from ital.lessons import Lesson
from ital.tools.types import Params


def update_with_length(
    lesson: Lesson,
    settings: AwareNumbers,
    params: Params,
    memory: Any,
    *,
    aware: Rule,
) -> Update:
    """Take a step of ``aware``'s length along −g, with g = Σᵢ aᵢ gᵢ(ν); none if g = 0."""
    # ITAL always takes its literal step on the chosen example; a are the control's own weights.
    as_ital = settings._replace(literal=Literal(chosen=1.0))
    after_ital = aware.update(lesson, as_ital, params, memory).params
    way = add_scaled(after_ital, -1.0, params)
    length = jnp.sqrt(squared_norm(way))
    own_weights = literal_weights(lesson, settings.literal)
    gradient = lesson.here.weighted_sum(own_weights)
    norm = jnp.sqrt(squared_norm(gradient))
    # The divisor keeps 0/0 out of the branch that is not taken.
    divisor = jnp.where(norm == 0, 1.0, norm)
    scale = jnp.where(norm == 0, 0.0, length / divisor)
    return Update(add_scaled(params, -scale, gradient))


@functools.cache  # both controls are lanes of one program
def matched_rule(aware: Rule) -> Rule:
    """Return the rule whose steps have the length of ``aware``'s."""
    update = functools.partial(update_with_length, aware=aware)
    return Rule(init=aware.init, update=update)


def matched(
    name: str,
    label: str,
    literal: Literal,
    beta: float | str | Schedule | None,
    beta_decay: float | None,
    volume: str | None,
) -> Learner:
    """Return a control with the given direction.

    Its β, decay and volume are those of the ITAL step whose length it takes.
    """
    aware = teacher_aware(beta, beta_decay=beta_decay, volume=volume)

    def resolve(learner: Learner, situation: Situation) -> Learner:
        resolved = aware.resolve(aware, situation)
        settings = resolved.settings._replace(literal=literal)
        return learner._replace(rule=matched_rule(resolved.rule), settings=settings)

    return Learner(
        name=name,
        label=label,
        rule=matched_rule(aware.rule),
        settings=aware.settings._replace(literal=literal),
        resolve=resolve,
    )
