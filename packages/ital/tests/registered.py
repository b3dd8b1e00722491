"""The parts that the contract tests cover: all registered ones, including those of installed packages."""

import functools
import itertools

import numpy as np

from ital import learners, tasks, teachers

SMALL = {
    "regression": lambda: tasks.regression(dim=5, points=40),
    "gaussian": lambda: tasks.gaussian(classes=3, dim=4, per_class=8),
    "irl-dense": lambda: tasks.irl_dense(size=3),
    "irl-sparse": lambda: tasks.irl_sparse(size=3),
    "irl": lambda: tasks.irl(np.eye(3)),
    "kernel": lambda: tasks.kernel(size=4),
}


# Parts that need what only one kind of task offers, in a world of that kind.
AT_HOME = [
    ("hypotheses", "sampling", "bayes"),
    ("hypotheses", "pedagogical", "pedagogical"),
    ("hypotheses", "scbi", "scbi"),
]


def small_tasks():
    """A quick version of every registered task, by name: one from above, else the task as it is registered.

    Image and equation tasks become small through small feature files.
    """
    small = {name: functools.partial(tasks.make, name) for name in tasks.REGISTRY} | SMALL
    return small | {name: functools.partial(small[name], equations=1) for name in small if name.startswith("equation-")}


def every_combination():
    """Names of a task, a teacher and a method: all of them."""
    return list(itertools.product(small_tasks(), teachers.REGISTRY, learners.REGISTRY))


def sampled_combinations():
    """Every task, teacher and method at least once: iterates over the three registries in parallel."""
    registries = [list(registry) for registry in (small_tasks(), teachers.REGISTRY, learners.REGISTRY)]
    longest = max(map(len, registries))
    return [tuple(names[i % len(names)] for names in registries) for i in range(longest)] + AT_HOME
