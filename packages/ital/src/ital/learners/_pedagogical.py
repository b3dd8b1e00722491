"""The pedagogical learner: it thinks that the teacher picks data for a learner's sake."""

from typing import Any, NamedTuple

from ital import beliefs
from ital.errors import InputError
from ital.learners._base import Learner, Situation
from ital.learners._bayes import bayes_rule
from ital.tools.checks import is_finite, require_whole


class PedagogicalNumbers(NamedTuple):
    """Numbers of a pedagogical learner.

    Attributes:
        alpha: how rational the learner thinks the teacher is; None for the experiment's β.
        rounds: how often teacher and learner reason about each other.
    """

    alpha: Any
    rounds: Any


RULE = bayes_rule(lambda log_m, belief, settings: beliefs.pedagogical(log_m, belief, *settings))


def resolve_pedagogical(learner: Learner, situation: Situation) -> Learner:
    """Replace an open α by the experiment's β, which has the sign that fits the teacher."""
    alpha, rounds = learner.settings
    if alpha is None:
        alpha = situation.beta
    if isinstance(alpha, str):
        raise InputError(
            f"method {learner.name!r} finds no β by itself: give a number as beta, or leave it out"
        )
    return learner._replace(settings=PedagogicalNumbers(alpha, rounds))


def pedagogical(alpha: float | None = None, rounds: int = 1) -> Learner:
    """Expects a teacher with P_T(d|h) ∝ P_L(h|d)^α (Shafto et al. 2014); α is the run's β.

    Teacher and learner reason about each other for one round by default.

    Args:
        alpha: how rational the learner thinks the teacher is; None for the run's β.
        rounds: how often teacher and learner reason about each other; many for the fixed point.

    Returns:
        The learner.

    Raises:
        InputError: if α is not a finite number, or there is no round.
    """
    require_whole(rounds=rounds)
    finite = alpha is None or is_finite(alpha)
    if not finite or rounds < 1:
        raise InputError(
            f"pedagogical needs a finite α and at least one round, not {alpha!r} and {rounds}"
        )
    settings = PedagogicalNumbers(alpha, rounds)
    return Learner(
        "pedagogical",
        "Pedagogical",
        RULE,
        settings,
        resolve_pedagogical,
        needs=("likelihoods",),
    )
