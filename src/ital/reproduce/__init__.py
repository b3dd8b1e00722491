"""The paper in one command: every figure and table, and what holds of its claims."""

from ital.reproduce._work import reproduce

__all__ = ["reproduce"]
