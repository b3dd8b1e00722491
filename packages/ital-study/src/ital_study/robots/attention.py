"""Attention checks: where they come, which arrows they show, and which arrow is right.

A check has arrows of its own, one of them in the corner that the page names. No robot sees the
choice, so beliefs and the arrows of the steps are the same with and without checks.
"""

import hashlib
from typing import TYPE_CHECKING, Any

from ital_study.config.configuration import Config

if TYPE_CHECKING:
    from ital_study.robots.rules import Arrow


def check_at(
    config: Config,
    map_name: str,
    robot: int,
    step: int,
) -> int | None:
    """Find the check that comes before a step.

    Args:
        config: The study.
        map_name: Name of the map.
        robot: 1 for the first robot on the map, 2 for the second, …
        step: Number of the step, from 1.

    Returns:
        Index of the check in the configuration; None if there is none.
    """
    wanted = (map_name, robot, step)
    for index, check in enumerate(config.attention):
        if (check.map, check.robot, check.step) == wanted:
            return index
    return None


def corner(choose: str, size: int) -> int:
    """Return the cell in a corner.

    Args:
        choose: Name of the corner, such as ``top-left``.
        size: Cells along one side of the map.

    Returns:
        The cell, row by row from the top left, from 0.
    """
    vertical, horizontal = choose.split("-")
    last = size - 1
    row = last if vertical == "bottom" else 0
    column = last if horizontal == "right" else 0
    return row * size + column


def arrows_of(config: Config, number: int, check: int) -> "list[Arrow]":
    """Draw the arrows of a check.

    One in the right corner, the others anywhere, in an order that tells nothing.

    Args:
        config: The study.
        number: Number of the participant.
        check: Index of the check.

    Returns:
        As many arrows as a step has.
    """
    # The rules load JAX, which readers of configurations do not need.
    from ital_study.robots.rules import Arrow

    def draw_number(cell: int, purpose: str) -> int:
        """Draw a number for one purpose; it depends on no other cell."""
        text = f"attention {config.seed} {number} {check} {cell} {purpose}"
        digest = hashlib.sha256(text.encode()).digest()
        return int.from_bytes(digest[:8])

    choose = config.attention[check].choose
    right_cell = corner(choose, config.size)
    other_cells = [cell for cell in range(config.size**2) if cell != right_cell]
    # Sorting by numbers of their own shuffles the cells. The purposes, "drawn", "place" and
    # "direction", are part of what participants have seen: another word would draw other arrows.
    shuffled = sorted(other_cells, key=lambda cell: draw_number(cell, "drawn"))
    drawn = shuffled[: config.candidates - 1]
    listed = sorted([right_cell, *drawn], key=lambda cell: draw_number(cell, "place"))
    arrows = []
    for cell in listed:
        action = draw_number(cell, "direction") % 4
        arrows.append(Arrow(cell, action))
    return arrows


def answer(
    config: Config,
    number: int,
    check: int,
    choice: int,
) -> dict[str, Any]:
    """Judge the answer to a check.

    Args:
        config: The study.
        number: Number of the participant.
        check: Index of the check.
        choice: Index of the chosen arrow.

    Returns:
        What the event of the answer holds.
    """
    choose = config.attention[check].choose
    arrows = arrows_of(config, number, check)
    cells = [arrow.cell for arrow in arrows]
    right = right_choice(choose, cells, config.size)
    return {
        "check": check,
        "choose": choose,
        "choice": choice,
        "right": right,
        "passed": choice == right,
    }


def right_choice(choose: str, cells: list[int], size: int) -> int:
    """Find the right arrow.

    Args:
        choose: Name of the corner.
        cells: Cells of the arrows.
        size: Cells along one side of the map.

    Returns:
        Its index.
    """
    return cells.index(corner(choose, size))


__all__ = ["answer", "arrows_of", "check_at", "corner", "right_choice"]
