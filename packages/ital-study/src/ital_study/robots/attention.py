"""Attention checks: where they come, which arrows they show, and which arrow is right.

A check has arrows of its own, one of them in the corner that the page names. No robot sees the choice, so beliefs and
the arrows of the steps are the same with and without checks.
"""

import hashlib
from typing import TYPE_CHECKING, Any

from ital_study.config.configuration import Config

if TYPE_CHECKING:
    from ital_study.robots.rules import Arrow


def check_at(config: Config, map_name: str, robot: int, step: int) -> int | None:
    """Find the check that comes before a step.

    Args:
        config: The study.
        map_name: Name of the map.
        robot: 1 for the first robot on the map, 2 for the second, …
        step: Number of the step, from 1.

    Returns:
        Index of the check in the configuration; None if there is none.
    """
    place = (map_name, robot, step)
    return next(
        (
            i
            for i, check in enumerate(config.attention)
            if (check.map, check.robot, check.step) == place
        ),
        None,
    )


def corner(choose: str, size: int) -> int:
    """The cell in a corner.

    Args:
        choose: Name of the corner, such as ``top-left``.
        size: Cells along one side of the map.

    Returns:
        The cell, row by row from the top left, from 0.
    """
    row, column = choose.split("-")
    return (size - 1) * size * (row == "bottom") + (size - 1) * (column == "right")


def arrows_of(config: Config, number: int, check: int) -> "list[Arrow]":
    """The arrows of a check: one in the right corner, the others anywhere, in an order that tells nothing.

    Args:
        config: The study.
        number: Number of the participant.
        check: Index of the check.

    Returns:
        As many arrows as a step has.
    """
    from ital_study.robots.rules import Arrow

    def drawn(cell: int, what: str) -> int:
        text = f"attention {config.seed} {number} {check} {cell} {what}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])

    right = corner(config.attention[check].choose, config.size)
    others = sorted(set(range(config.size**2)) - {right}, key=lambda cell: drawn(cell, "drawn"))
    cells = sorted([right, *others[: config.candidates - 1]], key=lambda cell: drawn(cell, "place"))
    return [Arrow(cell, drawn(cell, "direction") % 4) for cell in cells]


def answer(config: Config, number: int, check: int, choice: int) -> dict[str, Any]:
    """Judge the answer to a check.

    Args:
        config: The study.
        number: Number of the participant.
        check: Index of the check.
        choice: Index of the chosen arrow.

    Returns:
        What the event of the answer holds.
    """
    choose, cells = (
        config.attention[check].choose,
        [arrow.cell for arrow in arrows_of(config, number, check)],
    )
    right = right_choice(choose, cells, config.size)
    return {
        "check": check,
        "choose": choose,
        "choice": choice,
        "right": right,
        "passed": choice == right,
    }


def right_choice(choose: str, cells: list[int], size: int) -> int:
    """Index of the right arrow.

    Args:
        choose: Name of the corner.
        cells: Cells of the arrows.
        size: Cells along one side of the map.

    Returns:
        The index.
    """
    return cells.index(corner(choose, size))


__all__ = ["answer", "arrows_of", "check_at", "corner", "right_choice"]
