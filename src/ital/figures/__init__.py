"""Pictures of results."""

from ital.figures._curves import in_legend_order, label, plot_curves, save

__all__ = ["in_legend_order", "label", "plot_curves", "save"]
