"""Experiments: settings in, files out. Interrupted work resumes, finished work is never computed twice."""

from ital.experiments._run import Outcome, run
from ital.experiments._settings import Settings
from ital.experiments._store import Damaged, load_curves, save_curves

__all__ = ["Damaged", "Outcome", "Settings", "load_curves", "run", "save_curves"]
