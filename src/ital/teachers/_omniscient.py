"""The teacher of iterative machine teaching: shares the learner's view and reads his parameters."""

from ital._types import PRNGKeyArray
from ital.teachers._base import Choice, LearnerView, OmniscientTeacher, TeacherView, first_largest


def choose(key: PRNGKeyArray, view: TeacherView, learner: LearnerView, settings: tuple) -> Choice:
    """Argmax of the exact teaching volume, eq. (teaching-volume); ties take the lowest index."""
    return first_largest(learner.volumes)


def omniscient() -> OmniscientTeacher:
    """Shows the example of largest exact teaching volume, knowing ν and ν*."""
    return OmniscientTeacher("omniscient", choose)
