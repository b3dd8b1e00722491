"""The parts that the contract tests cover: all registered ones, including those of installed
packages.

The tasks of ital-paper are left out: its own tests cover them.
"""

import functools
import itertools

import numpy as np

from ital import learners, tasks, teachers
from ital.tools import plugins

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
    ("hypotheses", "unsure", "bayes"),
]


def is_the_papers(task):
    """Whether a registered task comes from ital-paper."""
    return isinstance(task, plugins.Part) and plugins.is_sibling(task.entry)


def small_tasks():
    """A quick version of every registered task, by name: one from above, else the task as it is
    registered.
    """
    others = [name for name, task in tasks.REGISTRY.items() if not is_the_papers(task)]
    return {name: functools.partial(tasks.make, name) for name in others} | SMALL


def every_combination():
    """Names of a task, a teacher and a method: all of them."""
    return list(itertools.product(small_tasks(), teachers.REGISTRY, learners.REGISTRY))


def in_parallel(*registries):
    """Every name of every registry at least once."""
    longest = max(map(len, registries))
    return [
        tuple([*registry][i % len(registry)] for registry in registries) for i in range(longest)
    ]


def sampled_combinations():
    """Every task, teacher and method at least once, by walking the three registries in parallel."""
    return in_parallel(small_tasks(), teachers.REGISTRY, learners.REGISTRY) + AT_HOME
