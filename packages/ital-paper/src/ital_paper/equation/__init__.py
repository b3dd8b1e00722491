"""Equations in x, y and z.

Reading and writing, operations, the rule simplifier, random equations, greedy search: exact and
pure. The network that learns features needs JAX and is a separate module,
``ital_paper.equation.network``.
"""

from ital_paper.equation._equation import (
    DEGREE,
    LONGEST,
    MONOMIALS,
    Equation,
    Term,
    as_typed,
    latex,
    text,
)
from ital_paper.equation._pairs import (
    CHUNK,
    Pairs,
    Trajectories,
    encode,
    generate_trajectories,
    in_parallel,
    some_pairs,
)
from ital_paper.equation._parsing import parse
from ital_paper.equation._random import random_equation, trajectory
from ital_paper.equation._rules import simplified, simplify
from ital_paper.equation._search import Explorer, greedy, greedy_ends
from ital_paper.equation.operations import Rewrite, steps, successors

__all__ = [
    "CHUNK",
    "DEGREE",
    "LONGEST",
    "MONOMIALS",
    "Equation",
    "Explorer",
    "Pairs",
    "Rewrite",
    "Term",
    "Trajectories",
    "as_typed",
    "encode",
    "generate_trajectories",
    "greedy",
    "greedy_ends",
    "in_parallel",
    "latex",
    "parse",
    "random_equation",
    "simplified",
    "simplify",
    "some_pairs",
    "steps",
    "successors",
    "text",
    "trajectory",
]
