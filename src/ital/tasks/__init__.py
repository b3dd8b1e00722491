"""Tasks: worlds to be taught in, and how to measure what was learned."""

from collections.abc import Callable

from ital import _registry
from ital.errors import InputError
from ital.tasks._base import Metric, Rules, Task, TeacherSide, Truth, World
from ital.tasks._gaussian import gaussian
from ital.tasks._irl import irl_dense, irl_sparse
from ital.tasks._pool import Pool, from_pool
from ital.tasks._regression import regression

REGISTRY: dict[str, Callable[..., Task]] = {
    "regression": regression,
    "gaussian": gaussian,
    "irl-dense": irl_dense,
    "irl-sparse": irl_sparse,
}


def make(name: str, **options: float) -> Task:
    """The task of that name, e.g. ``regression``; ``options`` go to its constructor."""
    if name not in REGISTRY:
        raise InputError(_registry.nearest("task", name, REGISTRY))
    return REGISTRY[name](**options)


__all__ = [
    "REGISTRY",
    "Metric",
    "Pool",
    "Rules",
    "Task",
    "TeacherSide",
    "Truth",
    "World",
    "from_pool",
    "gaussian",
    "irl_dense",
    "irl_sparse",
    "make",
    "regression",
]
