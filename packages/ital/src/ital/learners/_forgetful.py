"""Learners that forget: each step also takes them a little back to where they started.

    ν ← (1 − λ)ν + λν⁰ − ηg

With awareness, the awareness step follows −ηg as in ITAL. λ = 0 is the learner that does not forget.
"""

import functools
from typing import Any, NamedTuple

from ital.errors import InputError
from ital.gradients import add_scaled
from ital.learners._base import Learner, Rule, Situation, Update
from ital.learners._imt import imt
from ital.learners._teacher_aware import teacher_aware
from ital.lessons import Lesson
from ital.tools import registry
from ital.tools.types import Params


class ForgetfulNumbers(NamedTuple):
    """``forgetting``: λ; ``learner``: the numbers of the learner that forgets."""

    forgetting: Any
    learner: Any

    @property
    def beta(self) -> Any:
        """β of the learner that forgets, for the record."""
        return getattr(self.learner, "beta", float("nan"))


class ForgetfulMemory(NamedTuple):
    """ν⁰, and the memory of the learner that forgets."""

    start: Params
    learner: Any


def init(params: Params, settings: ForgetfulNumbers, *, learner: Rule) -> ForgetfulMemory:
    """Remember ν⁰."""
    return ForgetfulMemory(params, learner.init(params, settings.learner))


def update(
    lesson: Lesson,
    settings: ForgetfulNumbers,
    params: Params,
    memory: ForgetfulMemory,
    *,
    learner: Rule,
) -> Update:
    """Take the learner's step, and move by λ(ν⁰ − ν)."""
    learned = learner.update(lesson, settings.learner, params, memory.learner)
    back = add_scaled(memory.start, -1.0, params)
    return learned._replace(
        params=add_scaled(learned.params, settings.forgetting, back),
        memory=memory._replace(learner=learned.memory),
    )


@functools.cache  # one object per rule: learners that share it are lanes of one program
def rule(learner: Rule) -> Rule:
    """The rule of ``learner``, with forgetting."""
    return Rule(
        functools.partial(init, learner=learner),
        functools.partial(update, learner=learner),
        learner.optimized,
    )


def forgetful(forgetting: float | str = 0.01, *, learner: Learner | None = None) -> Learner:
    """Steps on the chosen example and forgets the share λ of what it learned (forgetful:λ, default 0.01).

    Args:
        forgetting: the share λ that it forgets in each step.
        learner: the learner that forgets; None for the naive one.

    Returns:
        The learner.

    Raises:
        InputError: if λ does not lie in [0, 1].

    Example:
        >>> ital.teach("regression", learner=["imt", "forgetful:0.001", "ital-forgetful:0.001"])
    """
    share = registry.number(forgetting)
    if not 0 <= share <= 1:
        raise InputError(
            f"the share that a forgetful learner forgets must lie in [0, 1], not {forgetting!r}"
        )
    inner = imt() if learner is None else learner

    def resolve(outer: Learner, situation: Situation) -> Learner:
        resolved = inner.resolve(inner, situation)
        return outer._replace(
            rule=rule(resolved.rule), settings=ForgetfulNumbers(share, resolved.settings)
        )

    written = repr(share).removesuffix(".0")
    return inner._replace(
        name=("" if learner is None else f"{inner.name}-") + f"forgetful:{written}",
        label=("Forgetful" if learner is None else f"{inner.label} forgetful") + f" {written}",
        rule=rule(inner.rule),
        settings=ForgetfulNumbers(share, inner.settings),
        resolve=resolve,
    )


def aware_forgetful(forgetting: float | str = 0.01) -> Learner:
    """ITAL that forgets the share λ of what it learned in each step (ital-forgetful:λ, default 0.01).

    Args:
        forgetting: the share λ.

    Returns:
        The learner.
    """
    return forgetful(forgetting, learner=teacher_aware())
