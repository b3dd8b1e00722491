"""The naive learner of a world of hypotheses, and what it shares with the aware ones: Bayes' rule."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from ital import beliefs
from ital.learners._base import Learner, Rule, Update
from ital.lessons import Lesson
from ital.tools.types import Array


def bayes_rule(drawn_from: Callable[[Array, Array, Any], Array]) -> Rule:
    """The rule θ ← θ·P_T(d|·)/Σ; several data of a step count as independent draws.

    ``drawn_from(log_m, belief, settings)`` returns log P_T, the distributions from which the learner thinks the teacher
    draws.
    """

    def update(lesson: Lesson, settings: Any, params: Array, memory: Any) -> Update:
        shown = drawn_from(lesson.examples, params, settings)[lesson.chosen]
        return Update(beliefs.posterior(params, jnp.sum(jnp.atleast_2d(shown), axis=0)))

    return Rule(init=lambda params, settings: (), update=update)


RULE = bayes_rule(lambda log_m, belief, settings: beliefs.literal(log_m, belief))


def bayes() -> Learner:
    """Takes each datum as a draw from the true hypothesis: θ ← θ·M(d,·)/Σ.

    Returns:
        The learner.
    """
    return Learner("bayes", "Bayes", RULE, needs=("likelihoods",))
