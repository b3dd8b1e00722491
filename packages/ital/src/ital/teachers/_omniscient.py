"""The teacher of iterative machine teaching: shares the learner's view and reads its parameters."""

from ital.teachers._base import Teacher
from ital.teachers._rational import Rationality, choose_knowing, draw_none, several_knowing


def omniscient() -> Teacher:
    """Shows the example of largest exact teaching volume, eq. (teaching-volume), knowing ν and ν*.

    Returns:
        The teacher.
    """
    return Teacher(
        "omniscient",
        choose_knowing,
        Rationality(weight=1.0),
        prepare=draw_none,
        omniscient=True,
        several=several_knowing,
    )
