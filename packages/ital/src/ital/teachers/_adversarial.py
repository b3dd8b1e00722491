"""The adversarial teacher: true labels, but always the least helpful example."""

from ital.teachers._base import Teacher
from ital.teachers._rational import Rationality, rational


def adversarial() -> Teacher:
    """Shows the example of smallest imitated teaching volume; a learner that knows this uses β < 0.

    Returns:
        The teacher.
    """
    return rational("adversarial", Rationality(weight=-1.0), sign=-1.0)
