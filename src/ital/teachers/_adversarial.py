"""The hostile teacher: true labels, but always the least helpful example."""

from ital._types import PRNGKeyArray
from ital.teachers._base import Choice, Teacher, TeacherView, first_largest


def choose(key: PRNGKeyArray, view: TeacherView, settings: tuple) -> Choice:
    """Argmin of the imitated teaching volume; ties take the lowest index."""
    return first_largest(-view.volumes)


def adversarial() -> Teacher:
    """Shows the example of smallest imitated teaching volume; a learner who knows uses β < 0."""
    return Teacher("adversarial", choose, sign=-1.0)
