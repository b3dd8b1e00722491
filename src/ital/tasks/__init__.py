"""Tasks: worlds to be taught in, and how to measure what was learned."""

from collections.abc import Callable
from typing import Any

from ital import _registry
from ital.errors import InputError
from ital.tasks._base import Metric, Picture, Rules, Task, TeacherSide, Truth, World
from ital.tasks._gaussian import gaussian
from ital.tasks._irl import irl, irl_dense, irl_sparse, irl_tabular
from ital.tasks._pool import Pool, from_pool
from ital.tasks._regression import regression

REGISTRY: dict[str, Callable[..., Task]] = {
    "regression": regression,
    "gaussian": gaussian,
    "irl-dense": irl_dense,
    "irl-sparse": irl_sparse,
    "irl": irl,
}


def make(name: str, **options: Any) -> Task:
    """The task of that name, e.g. ``regression``; ``options`` go to its constructor."""
    if name not in REGISTRY:
        raise InputError(_registry.nearest("task", name, REGISTRY))
    return REGISTRY[name](**options)


__all__ = [
    "REGISTRY",
    "Metric",
    "Picture",
    "Pool",
    "Rules",
    "Task",
    "TeacherSide",
    "Truth",
    "World",
    "from_pool",
    "gaussian",
    "irl",
    "irl_dense",
    "irl_sparse",
    "irl_tabular",
    "make",
    "regression",
]
