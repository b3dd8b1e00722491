"""Teachers: pure functions from what they see to the index of the example they show."""

from collections.abc import Callable

from ital.teachers._base import (
    Answers,
    Choice,
    LearnerView,
    Query,
    Teacher,
    TeacherView,
    adversarial,
    cooperative,
    first_largest,
    largest,
    mixture,
    omniscient,
    random,
)
from ital.teachers._boltzmann import boltzmann
from ital.teachers._exam import exam
from ital.teachers._imitation import imitation
from ital.teachers._largest_error import largest_error
from ital.teachers._pedagogical import pedagogical
from ital.teachers._planner import plan_worths, planner
from ital.teachers._sampling import sampling
from ital.teachers._scbi import scbi
from ital.teachers._switching import switching
from ital.teachers._synthesis import synthesis
from ital.teachers._unsure import unsure
from ital.tools import plugins, registry

REGISTRY: dict[str, Callable[..., Teacher]] = {
    "cooperative": cooperative,
    "omniscient": omniscient,
    "adversarial": adversarial,
    "random": random,
    "boltzmann": boltzmann,
    "switching": switching,
    "imitation": imitation,
    "exam": exam,
    "synthesis": synthesis,
    "planner": planner,
    "mixture": mixture,
    "sampling": sampling,
    "pedagogical": pedagogical,
    "scbi": scbi,
    "unsure": unsure,
    "largest-error": largest_error,
}
# Other installed packages add teachers of their own through entry points.
REGISTRY |= plugins.parts("ital.teachers", REGISTRY)


def make(name: str) -> Teacher:
    """Return the teacher of that name, e.g. ``cooperative`` or ``boltzmann:500``.

    Args:
        name: a registered name, with its argument after a colon.

    Returns:
        The teacher.

    Raises:
        InputError: if there is no such teacher.

    Example:
        >>> ital.teachers.make("boltzmann:500")
    """
    return registry.make("teacher", REGISTRY, name)


__all__ = [
    "REGISTRY",
    "Answers",
    "Choice",
    "LearnerView",
    "Query",
    "Teacher",
    "TeacherView",
    "adversarial",
    "boltzmann",
    "cooperative",
    "exam",
    "first_largest",
    "imitation",
    "largest",
    "largest_error",
    "make",
    "mixture",
    "omniscient",
    "pedagogical",
    "plan_worths",
    "planner",
    "random",
    "sampling",
    "scbi",
    "switching",
    "synthesis",
    "unsure",
]
