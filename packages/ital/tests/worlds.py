"""Small worlds for the tests."""

import numpy as np

from ital import losses, tasks


def classes_pool(seed, *, rows=40, dim=4, classes=3, teacher_dim=5):
    """A random classification pool whose views differ in dimension."""
    rng = np.random.default_rng(seed)
    learner_x, teacher_x = rng.normal(size=(rows, dim)), rng.normal(size=(rows, teacher_dim))
    target, teacher_target = (
        rng.normal(size=(classes, dim + 1)),
        rng.normal(size=(classes, teacher_dim + 1)),
    )
    labels = rng.integers(0, classes, rows)
    return tasks.Pool(
        learner_x, teacher_x, labels, teacher_target, target, learner_x[:10], labels[:10]
    )


def numbers_pool(seed, *, rows=40, dim=4, outputs=2):
    """A random regression pool with two outputs and a shared view."""
    rng = np.random.default_rng(seed)
    x, target = rng.normal(size=(rows, dim)), rng.normal(size=(outputs, dim + 1))
    y = x @ target[:, :-1].T + target[:, -1]
    return tasks.Pool(x, x, y, target, target, x[:10], y[:10])


def small_classes(**options):
    return tasks.from_pool(
        "small-classes", classes_pool, losses.cross_entropy, beta=300.0, **options
    )


def small_numbers(**options):
    return tasks.from_pool("small-numbers", numbers_pool, losses.squared, beta=100.0, **options)
