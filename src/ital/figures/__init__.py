"""Pictures of results."""

from ital.figures._curves import DASHES, colours, in_legend_order, label, plot_curves, save
from ital.figures._maps import plot_sweep
from ital.figures._pictures import animate, extent, picture_of, plot_pictures
from ital.figures._reward_map import draw_rewards
from ital.figures._scaling import plot_scaling

__all__ = [
    "DASHES",
    "animate",
    "colours",
    "draw_rewards",
    "extent",
    "in_legend_order",
    "label",
    "picture_of",
    "plot_curves",
    "plot_pictures",
    "plot_scaling",
    "plot_sweep",
    "save",
]
