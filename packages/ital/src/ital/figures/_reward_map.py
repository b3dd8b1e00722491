"""A grid of rewards with the policy that follows from it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ital.figures._fit import letter_size

SMALLEST = 3.5  # points: smaller numbers are hidden, colours and arrows remain
# Purple below zero, orange above: safe for colour-blind readers. Darker away from zero.
PALETTE = "PuOr_r"
WALL = "0.35"
DIRECTIONS = np.array([(0, 1), (0, -1), (-1, 0), (1, 0)], float)  # up, down, left, right: (x, y)


def draw_rewards(
    axis: Any,
    rewards: np.ndarray,
    policy: np.ndarray | None,
    limit: float,
    goals: Sequence[tuple[int, int]] = (),
    starts: Sequence[tuple[int, int]] = (),
) -> Any:
    """Draw rewards as colours and numbers, and a policy as one arrow per cell.

    An arrow is longer where the policy is more certain. Walls are grey. A reward that is not finite
    is a cross.

    Args:
        axis: where to draw.
        rewards: reward of each cell (n, m); masked cells are walls.
        policy: probability of going up, down, left and right (4, n, m), masked where there is none;
            None for no arrows.
        limit: the reward with the strongest colour.
        goals: cells to frame, as (row, column).
        starts: cells with a dotted frame.

    Returns:
        The coloured image, for a colour bar.
    """
    from matplotlib.colors import ListedColormap

    walls = np.ma.getmaskarray(rewards)
    rewards = np.ma.getdata(rewards)
    free = np.ma.masked_array(rewards, walls) if walls.any() else rewards
    image = axis.imshow(free, cmap=PALETTE, vmin=-limit, vmax=limit)
    if walls.any():
        axis.imshow(np.ma.masked_array(walls, ~walls), cmap=ListedColormap([WALL]))
    # On strong colours, words and arrows are white.
    ink = np.where(np.abs(rewards) > 0.6 * limit, "white", "0.1")
    # The upper half of a cell is for the number, if the lower half has an arrow.
    _write_rewards(axis, rewards, walls, ink, above=0.0 if policy is None else 0.24)
    if policy is not None:
        _draw_policy(axis, policy, ink.ravel())
    _frame_cells(axis, goals, "-")
    _frame_cells(axis, starts, ":")
    axis.set(xticks=[], yticks=[])
    for spine in axis.spines.values():
        spine.set_color("0.6")
    return image


def _write_rewards(
    axis: Any,
    rewards: np.ndarray,
    walls: np.ndarray,
    ink: np.ndarray,
    above: float,
) -> None:
    """Write the rewards into their cells: all in one size, or nothing if that is too small."""
    words = {
        cell: _reward_text(reward) for cell, reward in np.ndenumerate(rewards) if not walls[cell]
    }
    width = axis.get_window_extent().width * 72 / axis.figure.dpi  # points
    points = width / max(rewards.shape)  # of one cell
    fontsize = letter_size([*words.values()], 0.95 * points, 0.38 * points, largest=11)
    if fontsize < SMALLEST:
        return
    for (row, column), text in words.items():
        axis.text(
            column,
            row - above,
            text,
            ha="center",
            va="center",
            fontsize=fontsize,
            color=ink[row, column],
        )


def _frame_cells(axis: Any, cells: Sequence[tuple[int, int]], dashes: str) -> None:
    from matplotlib.patches import Rectangle

    for row, column in cells:
        corner = (column - 0.46, row - 0.46)
        axis.add_patch(Rectangle(corner, 0.92, 0.92, fill=False, color="0.1", ls=dashes, lw=1.6))


def _draw_policy(axis: Any, policy: np.ndarray, colours: np.ndarray) -> None:
    """Draw one arrow per cell, in the lower half: the mean of the directions."""
    size = policy.shape[-1]
    has_arrow = ~np.ma.getmaskarray(policy)[0]
    # (x or y, row, column)
    towards = np.tensordot(DIRECTIONS, np.ma.getdata(policy), axes=(0, 0))
    rows, columns = np.nonzero(has_arrow)
    axis.quiver(
        columns,
        rows + 0.22,
        *towards[:, has_arrow],
        color=colours[has_arrow.ravel()],
        pivot="mid",
        angles="uv",
        scale_units="width",
        scale=1.35 * size,
        units="width",
        width=0.05 / size,
        minlength=0.5,
        headwidth=3.6,
        headlength=3.6,
        headaxislength=3.2,
    )


def _reward_text(reward: float) -> str:
    """Write a reward with one decimal; none from 100 on; a cross if it is not finite."""
    if not np.isfinite(reward):
        return "×"
    text = f"{reward:.1f}" if abs(reward) < 100 else f"{reward:.0f}"
    return text.replace("-0.0", "0.0").replace("-", "−")
