"""Iterative Teacher-Aware Learning (NeurIPS 2021): its tasks, experiments, claims and report."""

__version__ = "0.1.0"
__all__ = ["__version__"]
