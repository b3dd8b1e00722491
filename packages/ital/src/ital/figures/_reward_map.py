"""A grid of rewards with the policy that follows from it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ital.figures._fit import letter_size

SMALLEST = 3.5  # points: smaller numbers are hidden, colours and arrows remain
PALETTE = "PuOr_r"  # purple below zero, orange above: safe for colour-blind readers; darker away from zero
WALL = "0.35"
UP, DOWN, LEFT, RIGHT = (0, 1), (0, -1), (-1, 0), (1, 0)


def draw_rewards(
    axis: Any,
    rewards: np.ndarray,
    policy: np.ndarray | None,
    limit: float,
    goals: Sequence[tuple[int, int]] = (),
    starts: Sequence[tuple[int, int]] = (),
) -> Any:
    """Draw rewards as colours and numbers, and a policy as one arrow per cell, longer where it is more certain.

    Walls are grey. A reward that is not finite is a cross.

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
    from matplotlib.patches import Rectangle

    walls = np.ma.getmaskarray(rewards)
    rewards = np.ma.getdata(rewards)
    size = max(rewards.shape)
    free = np.ma.masked_array(rewards, walls) if walls.any() else rewards
    image = axis.imshow(free, cmap=PALETTE, vmin=-limit, vmax=limit)
    if walls.any():
        axis.imshow(np.ma.masked_array(walls, ~walls), cmap=ListedColormap([WALL]))
    points = axis.get_window_extent().width * 72 / axis.figure.dpi / size  # of one cell
    dark = np.abs(rewards) > 0.6 * limit
    above = 0.0 if policy is None else 0.24  # of the arrow
    written = {
        place: _written(reward) for place, reward in np.ndenumerate(rewards) if not walls[place]
    }
    fontsize = letter_size([*written.values()], 0.95 * points, 0.38 * points, largest=11)
    for (row, column), words in written.items() if fontsize >= SMALLEST else ():
        axis.text(
            column, row - above, words, ha="center", va="center",
            fontsize=fontsize, color="white" if dark[row, column] else "0.1",
        )  # fmt: skip
    if policy is not None:
        _draw_policy(axis, policy, np.where(dark, "white", "0.1").ravel())
    for cells, dashes in ((goals, "-"), (starts, ":")):
        for row, column in cells:
            corner = (column - 0.46, row - 0.46)
            axis.add_patch(
                Rectangle(corner, 0.92, 0.92, fill=False, color="0.1", ls=dashes, lw=1.6)
            )
    axis.set(xticks=[], yticks=[])
    for spine in axis.spines.values():
        spine.set_color("0.6")
    return image


def _draw_policy(axis: Any, policy: np.ndarray, colours: np.ndarray) -> None:
    """One arrow per cell, in the lower half."""
    size = policy.shape[-1]
    has_arrow = ~np.ma.getmaskarray(policy)[0]
    directions = np.array([UP, DOWN, LEFT, RIGHT], float)
    towards = np.tensordot(directions, np.ma.getdata(policy), axes=(0, 0))
    rows, columns = np.nonzero(has_arrow)
    axis.quiver(
        columns, rows + 0.22, *towards[:, has_arrow], color=colours[has_arrow.ravel()], pivot="mid",
        angles="uv", scale_units="width", scale=1.35 * size, units="width", width=0.05 / size, minlength=0.5,
        headwidth=3.6, headlength=3.6, headaxislength=3.2,
    )  # fmt: skip


def _written(reward: float) -> str:
    """A reward with one decimal; none from 100 on; a cross if it is not finite."""
    if not np.isfinite(reward):
        return "×"
    return f"{reward:.{1 if abs(reward) < 100 else 0}f}".replace("-0.0", "0.0").replace("-", "−")
