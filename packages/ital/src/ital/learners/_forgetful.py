"""Learners that forget: each step also takes them a little back to where they started.

    ν ← (1 − λ)ν + λν⁰ − ηg

With awareness, the awareness step follows −ηg as in ITAL. λ = 0 is the learner that does not
forget.
"""

import functools
from typing import Any, NamedTuple

from ital.errors import InputError
from ital.gradients import add_scaled
from ital.learners._base import Learner, Rule, Situation, Update
from ital.learners._two_step import imt, teacher_aware
from ital.lessons import Lesson
from ital.tools import registry
from ital.tools.types import Params


class ForgetfulNumbers(NamedTuple):
    """Numbers of a learner that forgets.

    Attributes:
        forgetting: the share λ that it forgets in each step.
        learner: the numbers of the learner that forgets.
    """

    forgetting: Any
    learner: Any

    @property
    def beta(self) -> Any:
        """β of the learner that forgets, for the record."""
        return getattr(self.learner, "beta", float("nan"))


class ForgetfulMemory(NamedTuple):
    """Memory of a learner that forgets.

    Attributes:
        start: ν⁰.
        learner: the memory of the learner that forgets.
    """

    start: Params
    learner: Any


def remember_start(
    params: Params,
    settings: ForgetfulNumbers,
    *,
    learner: Rule,
) -> ForgetfulMemory:
    """Remember ν⁰."""
    return ForgetfulMemory(params, learner.init(params, settings.learner))


def update_and_forget(
    lesson: Lesson,
    settings: ForgetfulNumbers,
    params: Params,
    memory: ForgetfulMemory,
    *,
    learner: Rule,
) -> Update:
    """Take the learner's step, and move by λ(ν⁰ − ν)."""
    learned = learner.update(lesson, settings.learner, params, memory.learner)
    # The way back begins at ν, before the step: what the step teaches is not forgotten at once.
    back = add_scaled(memory.start, -1.0, params)
    return learned._replace(
        params=add_scaled(learned.params, settings.forgetting, back),
        memory=memory._replace(learner=learned.memory),
    )


@functools.cache  # one object per rule: learners that share it are lanes of one program
def forgetful_rule(learner: Rule) -> Rule:
    """Return the rule of ``learner``, with forgetting."""
    return Rule(
        init=functools.partial(remember_start, learner=learner),
        update=functools.partial(update_and_forget, learner=learner),
        optimized=learner.optimized,
    )


def forgetful(forgetting: float | str = 0.01, *, learner: Learner | None = None) -> Learner:
    """Steps on the chosen example, forgetting a share of what it knows (forgetful:λ, default 0.01).

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
    written = repr(share).removesuffix(".0")
    if learner is None:
        inner = imt()
        name = f"forgetful:{written}"
        label = f"Forgetful {written}"
    else:
        inner = learner
        name = f"{inner.name}-forgetful:{written}"
        label = f"{inner.label} forgetful {written}"

    def resolve(outer: Learner, situation: Situation) -> Learner:
        resolved = inner.resolve(inner, situation)
        settings = ForgetfulNumbers(share, resolved.settings)
        return outer._replace(rule=forgetful_rule(resolved.rule), settings=settings)

    return inner._replace(
        name=name,
        label=label,
        rule=forgetful_rule(inner.rule),
        settings=ForgetfulNumbers(share, inner.settings),
        resolve=resolve,
    )


def aware_forgetful(forgetting: float | str = 0.01) -> Learner:
    """ITAL that forgets a share of what it knows in each step (ital-forgetful:λ, default 0.01).

    Args:
        forgetting: the share λ.

    Returns:
        The learner.
    """
    return forgetful(forgetting, learner=teacher_aware())
