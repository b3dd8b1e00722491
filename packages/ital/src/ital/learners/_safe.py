"""ITAL with safe steps: no β makes them too long."""

import functools
from typing import Any

from ital.learners._base import Learner, Rule, Situation, Update
from ital.learners._two_step import AwareNumbers, Schedule, teacher_aware
from ital.lessons import Lesson
from ital.steps import within_reach
from ital.tools.types import Params


def update_safely(
    lesson: Lesson,
    settings: AwareNumbers,
    params: Params,
    memory: Any,
    *,
    aware: Rule,
) -> Update:
    """Take ``aware``'s step, limited to the safe length."""
    proposed = aware.update(lesson, settings, params, memory)
    limited = within_reach(lesson, (), params, proposed.params)
    return proposed._replace(params=limited)


@functools.cache
def safe_rule(aware: Rule) -> Rule:
    """Return the rule of ``aware`` with safe steps."""
    safe_update = functools.partial(update_safely, aware=aware)
    return Rule(aware.init, safe_update, aware.optimized)


def safe(
    beta: float | str | Schedule | None = None,
    *,
    beta_decay: float | None = None,
    volume: str | None = None,
) -> Learner:
    """ITAL with steps limited to a safe length, so that no β diverges.

    Args:
        beta: how rational the learner thinks the teacher is, as in :func:`teacher_aware`.
        beta_decay: the share that β loses per step.
        volume: the teaching volume that the learner imagines.

    Returns:
        The learner.
    """
    aware = teacher_aware(beta, beta_decay=beta_decay, volume=volume)

    def resolve(learner: Learner, situation: Situation) -> Learner:
        resolved = aware.resolve(aware, situation)
        return learner._replace(rule=safe_rule(resolved.rule), settings=resolved.settings)

    return Learner("ital-safe", "ITAL safe", safe_rule(aware.rule), aware.settings, resolve)
