"""Tools for every package of this project, and for yours: files, progress, processes, devices, plug-ins, checks.

Each is a module: ``from ital.tools.files import write``. None of them knows about teaching.
"""
