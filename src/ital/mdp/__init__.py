"""Worlds of states and actions: transitions, planning with a reward, and the return of a policy."""

from ital.mdp._dynamics import Dynamics, following, grid, real, tabular
from ital.mdp._planning import (
    MOST_SWEEPS,
    Onward,
    Planning,
    Solution,
    bellman,
    check,
    expected_return,
    log_policy,
    onward,
    plan,
    replan,
)

__all__ = [
    "MOST_SWEEPS",
    "Dynamics",
    "Onward",
    "Planning",
    "Solution",
    "bellman",
    "check",
    "expected_return",
    "following",
    "grid",
    "log_policy",
    "onward",
    "plan",
    "real",
    "replan",
    "tabular",
]
