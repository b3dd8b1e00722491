"""A picture of the participants' page for reports.

``tools/interface.py`` takes it from the page itself.
"""

from importlib import resources
from pathlib import Path

from ital import report
from ital_study.config.configuration import Config
from ital_study.config.load import load_config

# Keys that change what the picture shows.
LOOK = ("title", "maps", "steps", "candidates", "palette", "numbers")
ALT = (
    "Three maps side by side: the true map and the robot's belief, both with ten arrows of which "
    "one is picked, and "
    "the robot's plan. Below them the button that confirms, and the legend."
)
CAPTION = (
    "The participants' page at the first step of a robot, with an arrow picked: the true map, "
    "what the robot "
    "believes, and its most probable action in every cell."
)


def interface(config: Config, file: Path | None = None) -> report.Block:
    """Show what participants of a study see, as a block of a report.

    Args:
        config: The study.
        file: A picture of its page, an ``.svg`` or a ``.png`` file; None for the picture that comes
            with ital.

    Returns:
        The block; its caption says how the study differs from the one in the picture.

    Raises:
        InputError: The file cannot be read, or is of another kind.
    """
    caption = CAPTION
    if file is None:
        shipped = load_config()
        different = [key for key in LOOK if getattr(config, key) != getattr(shipped, key)]
        if different:
            caption += (
                " It shows the study that comes with ital; "
                f"this one differs in: {', '.join(different)}."
            )
    with resources.as_file(resources.files("ital_study") / "pages" / "interface.svg") as own:
        return report.picture("interface", "What participants see", file or own, caption, alt=ALT)
