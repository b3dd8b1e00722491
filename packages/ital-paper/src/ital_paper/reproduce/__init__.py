"""The paper in one command: every figure and table, and a verdict on every claim."""

from ital_paper.reproduce._work import reproduce

__all__ = ["reproduce"]
