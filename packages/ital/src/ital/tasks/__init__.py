"""Tasks: worlds to teach in, and measurements of what was learned."""

from collections.abc import Callable
from typing import Any

from ital.errors import InputError
from ital.tasks._arrays import describe_data, from_arrays
from ital.tasks._base import (
    Exam,
    Metric,
    Picture,
    Rules,
    Task,
    TeacherSide,
    Truth,
    World,
    copies,
    stack_worlds,
)
from ital.tasks._encoding import Encoding
from ital.tasks._gaussian import gaussian
from ital.tasks._hypotheses import from_likelihoods, hypotheses
from ital.tasks._irl import (
    Demonstrations,
    TrueWorld,
    implicit_gradients,
    irl_dense,
    irl_rules,
    irl_sparse,
)
from ital.tasks._irl_own import irl, irl_tabular
from ital.tasks._kernel import kernel
from ital.tasks._neural import mlp
from ital.tasks._pool import Pool, from_pool
from ital.tasks._regression import regression
from ital.tasks._table import from_table
from ital.tasks._targets import Units
from ital.tools import plugins, registry

REGISTRY: dict[str, Callable[..., Task]] = {
    "regression": regression,
    "gaussian": gaussian,
    "irl-dense": irl_dense,
    "irl-sparse": irl_sparse,
    "irl": irl,
    "hypotheses": hypotheses,
    "kernel": kernel,
}
REGISTRY |= plugins.parts("ital.tasks", REGISTRY)


def make(name: str, **options: Any) -> Task:
    """Make the task of that name, e.g. ``regression``.

    Args:
        name: a registered name.
        **options: passed to its constructor.

    Returns:
        The task.

    Raises:
        InputError: if there is no such task.

    Example:
        >>> ital.tasks.make("regression", label_noise=0.1)
    """
    if name not in REGISTRY:
        raise InputError(
            plugins.missing("ital.tasks", name) or registry.nearest("task", name, REGISTRY)
        )
    return REGISTRY[name](**options)


__all__ = [
    "REGISTRY",
    "Demonstrations",
    "Encoding",
    "Exam",
    "Metric",
    "Picture",
    "Pool",
    "Rules",
    "Task",
    "TeacherSide",
    "TrueWorld",
    "Truth",
    "Units",
    "World",
    "copies",
    "describe_data",
    "from_arrays",
    "from_likelihoods",
    "from_pool",
    "from_table",
    "gaussian",
    "hypotheses",
    "implicit_gradients",
    "irl",
    "irl_dense",
    "irl_rules",
    "irl_sparse",
    "irl_tabular",
    "kernel",
    "make",
    "mlp",
    "regression",
    "stack_worlds",
]
