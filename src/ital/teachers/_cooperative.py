"""The paper's teacher: shows the example that, as far as she can tell, helps most."""

from ital._types import PRNGKeyArray
from ital.teachers._base import Choice, Teacher, TeacherView, first_largest


def choose(key: PRNGKeyArray, view: TeacherView, settings: tuple) -> Choice:
    """Argmax of the imitated teaching volume, eq. (imit-teacher); ties take the lowest index."""
    return first_largest(view.volumes)


def cooperative() -> Teacher:
    """Shows the example of largest imitated teaching volume."""
    return Teacher("cooperative", choose)
