"""The teacher that switches: first it helps, then it does not."""

from ital.errors import InputError
from ital.teachers._base import HALF_WAY, Rationality, Teacher, rational

# What a teacher may become: the weights of teaching volume and noise after the change.
THEN = {"adversarial": (-1.0, 0.0), "random": (0.0, 1.0)}


def switching(text: str = "") -> Teacher:
    """Helps until STEP (default: half-way), then is adversarial or random: switching:500:random.

    Args:
        text: "STEP", "STEP:adversarial", "STEP:random", or one of the two words alone.

    Returns:
        The teacher.

    Raises:
        InputError: if the text has another form.
    """
    step, _, then = str(text).partition(":")
    if step in THEN and not then:
        # One of the two words alone.
        then = step
        step = ""
    then = then or "adversarial"
    if then not in THEN or (step and not step.isdecimal()):
        raise InputError(
            f"a switching teacher is written switching:STEP:{'|'.join(THEN)}, not switching:{text}"
        )
    name = "switching"
    change = HALF_WAY
    if step:
        name += f":{int(step)}"
        change = float(step)
    if then != "adversarial":
        name += f":{then}"
    weight, noise = THEN[then]
    numbers = Rationality(change=change, weight_after=weight, noise_after=noise)
    version = 1
    if noise:
        version = 2
    return rational(name, numbers, version=version)
