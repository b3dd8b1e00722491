"""Equation simplification: a value function over learned features of equations.

Supplement, "Equation Simplification". In the exam, greedy search with the learner's value function
simplifies fresh equations.
"""

import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ital import losses
from ital.errors import InputError
from ital.tasks import Exam, Metric, Task, from_pool
from ital.tools.types import Params
from ital_paper import equation, features
from ital_paper.tasks._images import pool_of

EXAMS = (*range(10, 101, 10), 200, 300, 400, 500, 750, 1000, 2000)
EXAM_SEED = 20211  # seed of the fresh equations, the same for all seeds and methods


def simplification(
    teacher: int, *, equations: int = 30, teacher_loss: str = "own", label_noise: float = 0.0
) -> Task:
    """Values of equations through networks with 45 (learner) and 40 or 50 features (teacher).
    β = 5000.

    Args:
        teacher: features of the teacher's network, 40 or 50.
        equations: number of fresh equations in the exam.
        teacher_loss: the loss that the teacher assumes for its target: its "own", the paper's
            l(⟨ω*, x⟩, y) of w*·[φ, 1], or "zero", as in the authors' code.
        label_noise: probability that a label of the pool is replaced.

    Returns:
        The task.

    Raises:
        InputError: if an argument is not valid, or the feature file is missing.
    """
    if not 1 <= equations <= 100_000:
        raise InputError(f"the number of equations must lie in [1, 100000], not {equations}")
    file = features.equation_file()
    loaded = features.load(file)
    if str(teacher) not in loaded.views:
        raise InputError(
            f"{file} has no network {teacher!r}: choose from {', '.join(loaded.views)}"
        )
    task = from_pool(
        f"equation-{teacher}",
        pool_of(loaded, str(teacher)),
        losses.squared,
        beta=5000.0,
        title=f"Equation simplification, teacher {teacher}-D",
        teacher_loss=teacher_loss,
        label_noise=label_noise,
        data_version=loaded.version,
        settings={"equations": equations, "teacher_loss": teacher_loss},
    )
    accuracy = Metric("Simplification accuracy", higher_is_better=True)
    return task._replace(
        metrics={**task.metrics, "accuracy": accuracy},
        panels=("distance", "loss", "accuracy"),
        exam=_exam(file, loaded.version, equations),
    )


@functools.lru_cache(maxsize=8)
def _exam(
    file: Path,
    version: str,
    equations: int,
) -> Exam:
    """Make the exam: greedy search from fresh equations with the value function w of every lane.

    The metric is the share that ends exactly at the rule simplifier's result. The bias changes no
    order and is ignored.
    """
    rng = np.random.default_rng(EXAM_SEED)
    fresh = [equation.random_equation(rng) for _ in range(equations)]
    goals = [equation.simplified(start) for start in fresh]

    def accuracy(weights: np.ndarray, show: Callable[[float], None]) -> np.ndarray:
        explorer, _ = features.explorer(file, version)
        # At the start, for example, many lanes have the same weights: each is searched with once.
        distinct, row_of_lane = np.unique(weights, axis=0, return_inverse=True)
        ends = equation.greedy_ends(explorer, fresh, distinct, show)
        right = np.empty((equations, len(distinct)), bool)
        for i, goal in enumerate(goals):
            right[i] = [end == goal for end in ends[i]]
        return right.mean(axis=0)[row_of_lane.reshape(-1)]

    def take(params: Params, show: Callable[[float], None]) -> dict[str, np.ndarray]:
        weights = np.asarray(params)[..., 0, :-1]  # (…, d): without the bias
        lanes = weights.reshape(-1, weights.shape[-1])
        return {"accuracy": accuracy(lanes, show).reshape(weights.shape[:-1])}

    # Computed when it is needed: the search with w* takes seconds.
    @functools.cache
    def references() -> dict[str, dict[str, float]]:
        _, target = features.explorer(file, version)
        (reference,) = accuracy(target[None], lambda done: None)
        return {"accuracy": {"reference": float(reference), "questions": equations}}

    return Exam(EXAMS, ("accuracy",), take, references)
