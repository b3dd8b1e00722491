"""Equations in x, y and z: reading and writing, operations, the rule simplifier, random equations. Exact and pure."""

from ital.tasks.equation._equation import DEGREE, LONGEST, MONOMIALS, Equation, Term, as_typed, latex, text
from ital.tasks.equation._operations import (
    Step,
    cancel_denominators,
    cancel_factors,
    merge,
    move_to_left,
    move_to_right,
    move_within_left,
    reduce,
    scale,
    steps,
    successors,
)
from ital.tasks.equation._pairs import Pairs, Trajectories, encode, generate_trajectories, some_pairs
from ital.tasks.equation._parsing import parse
from ital.tasks.equation._random import random_equation, trajectory
from ital.tasks.equation._rules import simplified, simplify
from ital.tasks.equation._search import Explorer, greedy, greedy_ends

__all__ = [
    "DEGREE",
    "LONGEST",
    "MONOMIALS",
    "Equation",
    "Explorer",
    "Pairs",
    "Step",
    "Term",
    "Trajectories",
    "as_typed",
    "cancel_denominators",
    "cancel_factors",
    "encode",
    "generate_trajectories",
    "greedy",
    "greedy_ends",
    "latex",
    "merge",
    "move_to_left",
    "move_to_right",
    "move_within_left",
    "parse",
    "random_equation",
    "reduce",
    "scale",
    "simplified",
    "simplify",
    "some_pairs",
    "steps",
    "successors",
    "text",
    "trajectory",
]
