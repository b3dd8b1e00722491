"""What is measured: three tasks of the paper, and a pool of the size of Tiny ImageNet."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ital import losses, models, tasks
from ital.bench import _numpy_irl, _numpy_loop
from ital.learners import Learner, Rule, Update
from ital.tasks import Task
from ital.tasks._pool import _mean_over_rows, _rows_at_once, _rules
from ital.teachers import Teacher


class Case(NamedTuple):
    """A task to time, and its NumPy baseline: ``(world, beta, lr, steps, every)`` -> steps per second.

    ``pool`` says that it is a matrix product on rows of a pool, so that :func:`floor` applies.
    """

    task: Task
    numpy: Callable[..., float]
    pool: bool = True


def pool(classes: int = 200, dim: int = 10, rows: int = 100_000, test_rows: int = 10_000) -> Task:
    """A shared pool of random features and labels, 200 classes × 10-D."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, dim), dtype=np.float32)
    target = rng.standard_normal((classes, dim + 1), dtype=np.float32)
    labels = rng.integers(0, classes, rows)
    test_x, test_labels = rng.standard_normal((test_rows, dim), dtype=np.float32), rng.integers(0, classes, test_rows)
    data = tasks.Pool(x, x, labels, target, target, test_x, test_labels)
    return tasks.from_pool("pool", data, losses.cross_entropy, beta=1000.0, title=f"{classes}-class pool")


def cases(test_rows: int) -> dict[str, Case]:
    """All cases by name."""
    rows = functools.partial(functools.partial, _numpy_loop.steps_per_second)
    return {
        "regression": Case(tasks.regression(), rows(_numpy_loop.squared)),
        "gaussian": Case(tasks.gaussian(), rows(_numpy_loop.cross_entropy)),
        "pool": Case(pool(test_rows=test_rows), rows(_numpy_loop.cross_entropy)),
        "irl-dense": Case(tasks.irl_dense(), _numpy_irl.steps_per_second, pool=False),
    }


# The floor: the same loop with a loss that costs nothing, so that the matrix products and the sampling remain.
_NO_LOSS = losses.Loss("none", "none", lambda alpha, y: jnp.zeros(alpha.shape[:1]), lambda alpha, y: alpha, False)


def _two_products_each_way(lesson: Any, settings: Any, params: Any, memory: Any) -> Update:
    weights = jnp.full(lesson.order.shape, lesson.lr)
    guess = params - lesson.here.weighted_sum(weights)
    return Update(guess - lesson.gradients(guess).weighted_sum(weights))


def floor(task: Task) -> tuple[Task, Teacher, Learner]:
    """The task, teacher and learner whose program makes the same matrix products on the same samples, and no more."""
    model = models.linear(_NO_LOSS)
    rules = _rules(model, _NO_LOSS)._replace(
        volumes=lambda alpha, examples, target, lr: jnp.zeros(alpha.shape[:1]),
        measure=lambda params, truth: _mean_over_rows(
            lambda rows: {"loss": model.outputs(params, rows.x)}, truth.test, _rows_at_once(params.shape[0])
        ),
    )
    products = Rule(init=lambda params, settings: (), update=_two_products_each_way)
    first = Teacher("first", lambda key, view, settings: jnp.zeros((), int))
    return task._replace(rules=rules), first, Learner("products", "Products", products, settings=jnp.zeros(()))
