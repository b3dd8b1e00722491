"""Experiments: settings in, files out. Interrupted work resumes, finished work is never computed twice."""

from ital.errors import Incomplete
from ital.experiments._engines import LARGE_SWEEP, cluster, engine_for, processes
from ital.experiments._run import Outcome, run
from ital.experiments._settings import Settings
from ital.experiments._store import Damaged, load_curves, save_curves
from ital.experiments._sweep import Sweep, sweep
from ital.experiments._table import print_failures, print_outcome, print_sweep

__all__ = [
    "LARGE_SWEEP",
    "Damaged",
    "Incomplete",
    "Outcome",
    "Settings",
    "Sweep",
    "cluster",
    "engine_for",
    "load_curves",
    "print_failures",
    "print_outcome",
    "print_sweep",
    "processes",
    "run",
    "save_curves",
    "sweep",
]
