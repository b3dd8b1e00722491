"""Experiments: settings in, files out. Interrupted work resumes; finished work is skipped.

A call goes through these modules, in this order:

- ``_settings``: what the user asks for; refuses what is not valid.
- ``_experiment``: its lanes and axes (where would a sweep get a third axis?), and its identity.
- ``_run``, ``_sweep``, ``_matrix``: the three calls. ``_run`` also has what they have in common:
  it completes a result, and is its single writer.
- ``_cells``: the parts that are computed, here or elsewhere (why can a kill not lose a step?).
- ``_engines``: where else they are computed, in local processes and on a cluster.
- ``_table``, ``_redraw``, ``_pictures``, ``_track``: what is shown of a result.
"""

from ital.errors import Incomplete
from ital.experiments._engines import LARGE_SWEEP, cluster, engine_for, processes
from ital.experiments._matrix import TEACHERS, Matrix, matrix, print_matrix
from ital.experiments._redraw import redraw
from ital.experiments._run import Outcome, run
from ital.experiments._settings import Settings
from ital.experiments._sweep import Sweep, load_sweep, sweep
from ital.experiments._table import print_differences, print_failures, print_outcome, print_sweep
from ital.tools.curve_files import Damaged, load_curves, save_curves

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
