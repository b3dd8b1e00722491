"""Tools for every package of this project, and for yours.

Files, progress, processes, devices, plug-ins, checks. Each is a module: ``from ital.tools.files
import write``. None of them knows about teaching.
"""

__all__ = [
    "checks",
    "curve_files",
    "devices",
    "files",
    "interrupts",
    "memory",
    "pickling",
    "platform",
    "plugins",
    "processes",
    "progress",
    "randomness",
    "registry",
    "short",
    "types",
]
