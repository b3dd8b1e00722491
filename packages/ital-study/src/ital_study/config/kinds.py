"""The kinds of robots: the one place where they are declared.

To add a kind, add a function that makes its learner and an entry of :data:`KINDS`, and include its
name in :func:`study_kinds`. Colours of figures stand in ``report/figures.py`` and
``pages/static/charts.css``.
"""

from collections.abc import Callable
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
    """

    label: str
    core_learner: "Callable[[Config], Learner]"


def _naive(config: "Config") -> "Learner":
    from ital import learners

    return learners.imt()


def _aware(config: "Config") -> "Learner":
    from ital import learners

    return learners.teacher_aware(beta=config.beta, volume=config.volume)


def _adaptive(config: "Config") -> "Learner":
    from ital import learners

    return learners.adaptive()


NAIVE = "naive"
AWARE = "aware"
ADAPTIVE = "adaptive"

# The order is that of robots in a study: orders of robots, and with them published data, depend on
# it.
KINDS = {
    NAIVE: RobotKind("IMT", _naive),
    AWARE: RobotKind("ITAL", _aware),
    ADAPTIVE: RobotKind("ITAL adaptive", _adaptive),
}
LEARNERS = (NAIVE, AWARE)  # of every study


def study_kinds(*, adaptive: bool) -> tuple[str, ...]:
    """Return the kinds of robot on every map of a study.

    Args:
        adaptive: Whether the study includes the adaptive robot.

    Returns:
        Their names, in the order of :data:`KINDS`.
    """
    if adaptive:
        return (*LEARNERS, ADAPTIVE)
    return LEARNERS
