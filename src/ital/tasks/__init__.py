"""Tasks: worlds to teach in, and measurements of what was learned."""

import functools
from collections.abc import Callable
from typing import Any

from ital import _plugins, _registry
from ital.errors import InputError
from ital.tasks._arrays import describe_data, from_arrays
from ital.tasks._base import Exam, Metric, Picture, Rules, Task, TeacherSide, Truth, World, copies, stack_worlds
from ital.tasks._encoding import Encoding
from ital.tasks._gaussian import gaussian
from ital.tasks._hypotheses import from_likelihoods, hypotheses
from ital.tasks._images import cifar10, from_features, mnist, pool_of, tiny_imagenet, tiny_imagenet_vgg
from ital.tasks._irl import irl, irl_dense, irl_sparse, irl_tabular
from ital.tasks._irl_rules import Demonstrations, TrueWorld, implicit_gradients, irl_rules
from ital.tasks._kernel import kernel
from ital.tasks._neural import mlp, mnist_mlp
from ital.tasks._pool import Pool, from_pool
from ital.tasks._regression import regression
from ital.tasks._simplification import simplification
from ital.tasks._table import from_table
from ital.tasks._targets import Units

REGISTRY: dict[str, Callable[..., Task]] = {
    "regression": regression,
    "gaussian": gaussian,
    "mnist-20": functools.partial(mnist, teacher=20),
    "mnist-30": functools.partial(mnist, teacher=30),
    "mnist-mlp": mnist_mlp,
    "cifar10-6": functools.partial(cifar10, teacher=6),
    "cifar10-12": functools.partial(cifar10, teacher=12),
    "tiny-imagenet-lite0": functools.partial(tiny_imagenet, teacher="lite0"),
    "tiny-imagenet-lite2": functools.partial(tiny_imagenet, teacher="lite2"),
    "tiny-imagenet-13": functools.partial(tiny_imagenet_vgg, teacher=13),
    "tiny-imagenet-19": functools.partial(tiny_imagenet_vgg, teacher=19),
    "equation-40": functools.partial(simplification, teacher=40),
    "equation-50": functools.partial(simplification, teacher=50),
    "irl-dense": irl_dense,
    "irl-sparse": irl_sparse,
    "irl": irl,
    "hypotheses": hypotheses,
    "kernel": kernel,
}
REGISTRY |= _plugins.parts("ital.tasks", REGISTRY)


def make(name: str, **options: Any) -> Task:
    """The task of that name, e.g. ``regression``.

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
        raise InputError(_registry.nearest("task", name, REGISTRY))
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
    "cifar10",
    "copies",
    "describe_data",
    "from_arrays",
    "from_features",
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
    "mnist",
    "mnist_mlp",
    "pool_of",
    "regression",
    "simplification",
    "stack_worlds",
    "tiny_imagenet",
    "tiny_imagenet_vgg",
]
