"""Figures of results; charts as plain data from which figures and reports are drawn."""

from ital.figures import charts
from ital.figures._card import card
from ital.figures._curves import colours, curve_panel, in_legend_order, label, plot_curves, save
from ital.figures._maps import plot_sweep, sweep_panels
from ital.figures._matrix import (
    ASSUMED,
    MATRIX_NOTE,
    MatrixCell,
    main_metric,
    matrix_cells,
    matrix_panel,
    plot_matrix,
)
from ital.figures._pictures import Watched, animate, extent, picture_of, plot_pictures
from ital.figures._runs import plot_runs
from ital.figures._scaling import plot_scaling
from ital.figures._shares import OBSERVED, plot_shares
from ital.figures._teachers import plot_teachers

__all__ = [
    "ASSUMED",
    "MATRIX_NOTE",
    "OBSERVED",
    "MatrixCell",
    "Watched",
    "animate",
    "card",
    "charts",
    "colours",
    "curve_panel",
    "extent",
    "in_legend_order",
    "label",
    "main_metric",
    "matrix_cells",
    "matrix_panel",
    "picture_of",
    "plot_curves",
    "plot_matrix",
    "plot_pictures",
    "plot_runs",
    "plot_scaling",
    "plot_shares",
    "plot_sweep",
    "plot_teachers",
    "save",
    "sweep_panels",
]
