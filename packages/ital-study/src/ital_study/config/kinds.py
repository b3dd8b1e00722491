"""The kinds of robots: the one place where they are declared.

To add a kind, add a function that makes its learner and an entry of :data:`KINDS`. Studies include
it by the key ``robots``. Colours of figures stand in ``report/figures.py`` and
``pages/static/charts.css``.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

# Configurations are read by commands that must start quickly: the core's learners load when a robot
# is made.
if TYPE_CHECKING:
    from ital.learners import Learner
    from ital_study.config.configuration import Config


class RobotKind(NamedTuple):
    """A kind of robot.

    Attributes:
        label: Name in figures and reports.
        core_learner: Makes the core's learner for a study; numbers that it leaves open are filled
            in later.
        about: What it does, in a few words for researchers.
        believes: Whether it keeps a belief over its target. Such a robot begins with the mean of
            its prior, not with the participant's first belief, and its memory is large.
    """

    label: str
    core_learner: "Callable[[Config], Learner]"
    about: str
    believes: bool = False


def _naive(config: "Config") -> "Learner":
    from ital import learners

    return learners.imt()


def _aware(config: "Config") -> "Learner":
    from ital import learners

    return learners.teacher_aware(beta=config.beta, volume=config.volume)


def _adaptive(config: "Config") -> "Learner":
    from ital import learners

    return learners.adaptive()


def _posterior(config: "Config") -> "Learner":
    from ital import learners

    return learners.posterior()


def _aware_posterior(config: "Config") -> "Learner":
    from ital import learners

    return learners.aware_posterior()


NAIVE = "naive"
AWARE = "aware"
ADAPTIVE = "adaptive"
POSTERIOR = "posterior"
AWARE_POSTERIOR = "ital-posterior"

# The order is that of robots in a study: orders of robots, and with them published data, depend on
# it.
KINDS = {
    NAIVE: RobotKind("IMT", _naive, "takes each arrow at face value"),
    AWARE: RobotKind("ITAL", _aware, "asks why its teacher chose this arrow"),
    ADAPTIVE: RobotKind("ITAL adaptive", _adaptive, "finds out whether its teacher helps"),
    POSTERIOR: RobotKind(
        "Posterior", _posterior, "keeps a belief, from all arrows of each step", believes=True
    ),
    AWARE_POSTERIOR: RobotKind(
        "ITAL posterior", _aware_posterior, "keeps a belief, from arrows and choices", believes=True
    ),
}
LEARNERS = (NAIVE, AWARE)  # of a study that names no robots


def study_kinds(robots: Sequence[str] = (), *, adaptive: bool = False) -> tuple[str, ...]:
    """Return the kinds of robot on every map of a study.

    Args:
        robots: Those that the study names; none: :data:`LEARNERS`.
        adaptive: Whether a study that names no robots includes the adaptive one.

    Returns:
        Their names, in the order of :data:`KINDS`.
    """
    if robots:
        return tuple(name for name in KINDS if name in robots)
    if adaptive:
        return (*LEARNERS, ADAPTIVE)
    return LEARNERS
