"""The paper's teacher: shows the example that, as far as it can tell, helps most."""

from ital.teachers._base import Teacher
from ital.teachers._rational import Rationality, rational


def cooperative() -> Teacher:
    """Shows the example of largest imitated teaching volume, eq. (imit-teacher).

    Returns:
        The teacher.
    """
    return rational("cooperative", Rationality(weight=1.0))
