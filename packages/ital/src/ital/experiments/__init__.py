"""Experiments: settings in, files out. Interrupted work resumes; finished work is skipped."""

from ital.errors import Incomplete
from ital.experiments._cluster import LARGE_SWEEP, cluster, engine_for
from ital.experiments._engines import processes
from ital.experiments._matrix import TEACHERS, Matrix, matrix, print_matrix
from ital.experiments._redraw import redraw
from ital.experiments._run import Outcome, run
from ital.experiments._settings import Settings
from ital.experiments._store import Damaged, load_curves, save_curves
from ital.experiments._sweep import Sweep, load_sweep, sweep
from ital.experiments._table import print_differences, print_failures, print_outcome, print_sweep

__all__ = [
    "LARGE_SWEEP",
    "TEACHERS",
    "Damaged",
    "Incomplete",
    "Matrix",
    "Outcome",
    "Settings",
    "Sweep",
    "cluster",
    "engine_for",
    "load_curves",
    "load_sweep",
    "matrix",
    "print_differences",
    "print_failures",
    "print_matrix",
    "print_outcome",
    "print_sweep",
    "processes",
    "redraw",
    "run",
    "save_curves",
    "sweep",
]
