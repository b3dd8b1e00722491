"""The naive learner of a world of hypotheses, and the rule it shares with the aware ones."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from ital import beliefs
from ital.learners._base import Learner, Rule, Update
from ital.lessons import Lesson
from ital.tools.types import Array


def bayes_rule(drawn_from: Callable[[Array, Array, Any], Array]) -> Rule:
    """Return the rule θ ← θ·P_T(d|·)/Σ; several data of a step count as independent draws.

    Args:
        drawn_from: ``drawn_from(log_m, belief, settings)`` returns log P_T (n, m), the
            distributions from which the learner thinks the teacher draws.

    Returns:
        The rule.
    """

    def update(lesson: Lesson, settings: Any, params: Array, memory: Any) -> Update:
        # The parameters of this learner are its belief log θ (m,), an example is a row of log M.
        log_drawn = drawn_from(lesson.examples, params, settings)
        of_choices = jnp.atleast_2d(log_drawn[lesson.chosen])  # (k, m)
        log_likelihood = jnp.sum(of_choices, axis=0)
        return Update(beliefs.posterior(params, log_likelihood))

    return Rule(init=lambda params, settings: (), update=update)


# One object, so that all naive learners of beliefs are lanes of one program.
RULE = bayes_rule(lambda log_m, belief, settings: beliefs.literal(log_m, belief))


def bayes() -> Learner:
    """Takes each datum as a draw from the true hypothesis: θ ← θ·M(d,·)/Σ.

    Returns:
        The learner.
    """
    return Learner("bayes", "Bayes", RULE, needs=("likelihoods",))
