"""A grid of rewards with the policy that follows from it."""

from typing import Any

import numpy as np

from ital.figures._fit import letter_size

SMALLEST = 3.5  # points: smaller numbers are hidden, colours and arrows remain
PALETTE = "PuOr_r"  # purple below zero, orange above: safe for colour-blind readers; darker away from zero
UP, DOWN, LEFT, RIGHT = (0, 1), (0, -1), (-1, 0), (1, 0)


def draw_rewards(axis: Any, rewards: np.ndarray, policy: np.ndarray | None, limit: float) -> Any:
    """Draw rewards as colours and numbers, and a policy as one arrow per cell, longer where it is more certain.

    Args:
        axis: where to draw.
        rewards: reward of each cell (n, m).
        policy: probability of going up, down, left and right (4, n, m); None for no arrows.
        limit: the reward with the strongest colour.

    Returns:
        The coloured image, for a colour bar.
    """
    size = rewards.shape[1]
    image = axis.imshow(rewards, cmap=PALETTE, vmin=-limit, vmax=limit)
    points = axis.get_window_extent().width * 72 / axis.figure.dpi / size  # of one cell
    dark = np.abs(rewards) > 0.6 * limit
    above = 0.0 if policy is None else 0.24  # of the arrow
    written = {place: _written(reward) for place, reward in np.ndenumerate(rewards)}
    fontsize = letter_size([*written.values()], 0.95 * points, 0.38 * points, largest=11)
    for (row, column), words in written.items() if fontsize >= SMALLEST else ():
        axis.text(
            column, row - above, words, ha="center", va="center",
            fontsize=fontsize, color="white" if dark[row, column] else "0.1",
        )  # fmt: skip
    if policy is not None:
        _draw_policy(axis, policy, np.where(dark, "white", "0.1").ravel())
    axis.set(xticks=[], yticks=[])
    for spine in axis.spines.values():
        spine.set_color("0.6")
    return image


def _draw_policy(axis: Any, policy: np.ndarray, colours: np.ndarray) -> None:
    """One arrow per cell, in the lower half."""
    size = policy.shape[-1]
    towards = np.tensordot(np.array([UP, DOWN, LEFT, RIGHT], float), policy, axes=(0, 0))
    rows, columns = np.indices(policy.shape[1:])
    axis.quiver(
        columns, rows + 0.22, *towards, color=colours, pivot="mid",
        angles="uv", scale_units="width", scale=1.35 * size, units="width", width=0.05 / size, minlength=0.5,
        headwidth=3.6, headlength=3.6, headaxislength=3.2,
    )  # fmt: skip


def _written(reward: float) -> str:
    """A reward with one decimal; none from 100 on."""
    return f"{reward:.{1 if abs(reward) < 100 else 0}f}".replace("-0.0", "0.0").replace("-", "−")
