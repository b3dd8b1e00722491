"""Pictures of results."""

from ital.figures._curves import in_legend_order, label, plot_curves, save
from ital.figures._maps import plot_sweep
from ital.figures._pictures import animate, plot_pictures
from ital.figures._scaling import plot_scaling

__all__ = ["animate", "in_legend_order", "label", "plot_curves", "plot_pictures", "plot_scaling", "plot_sweep", "save"]
