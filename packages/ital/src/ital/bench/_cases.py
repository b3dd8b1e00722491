"""The cases of the benchmark: three tasks of the paper, and a pool as large as Tiny ImageNet."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ital import learners, losses, tasks, teachers
from ital.bench import _numpy_irl, _numpy_loop
from ital.learners import Learner, Lesson, Rule, Update
from ital.tasks import Rules, Task
from ital.teachers import Teacher
from ital.teaching import Run, Session, open_sessions
from ital.tools.types import Array

LR = 1e-3
EVERY = 20  # steps between measurements


class Case(NamedTuple):
    """A task to time.

    Attributes:
        task: the task.
        numpy: its NumPy baseline, ``(world, beta, lr, steps, every)`` → steps per second.
        pool: whether the task multiplies rows of a pool by a matrix, so that :func:`floor` applies.
    """

    task: Task
    numpy: Callable[..., float]
    pool: bool = True


def pool(classes: int = 200, dim: int = 10, rows: int = 100_000, test_rows: int = 10_000) -> Task:
    """Make a task on a shared pool of random features and labels, 200 classes × 10-D."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, dim), dtype=np.float32)
    target = rng.standard_normal((classes, dim + 1), dtype=np.float32)
    labels = rng.integers(0, classes, rows)
    test_x = rng.standard_normal((test_rows, dim), dtype=np.float32)
    test_labels = rng.integers(0, classes, test_rows)
    data = tasks.Pool(
        learner_x=x,
        teacher_x=x,
        labels=labels,
        teacher_target=target,
        learner_target=target,
        test_x=test_x,
        test_labels=test_labels,
    )
    return tasks.from_pool(
        "pool",
        data,
        losses.cross_entropy,
        beta=1000.0,
        title=f"{classes}-class pool",
    )


def cases(test_rows: int) -> dict[str, Case]:
    """Return all cases by name."""
    loop = _numpy_loop.steps_per_second
    squared = functools.partial(loop, _numpy_loop.squared)
    cross_entropy = functools.partial(loop, _numpy_loop.cross_entropy)
    return {
        "regression": Case(tasks.regression(), squared),
        "gaussian": Case(tasks.gaussian(), cross_entropy),
        "pool": Case(pool(test_rows=test_rows), cross_entropy),
        "irl-dense": Case(tasks.irl_dense(), _numpy_irl.steps_per_second, pool=False),
    }


def session(
    task: Task,
    lanes: int,
    steps: int,
    teacher: Teacher | None = None,
    methods: Sequence[Learner] = (),
) -> Session:
    """Open a session of eight methods, by default those of the paper, on ``lanes / 8`` seeds."""
    if teacher is None:
        teacher = teachers.cooperative()
    methods = methods or [learners.make(method) for method in learners.PAPER]
    run = Run(steps=steps, seeds=lanes // 8, lr=LR, eval_every=EVERY)
    # All these methods share a form, so one session holds them.
    (opened,) = open_sessions(task, teacher, methods, run)
    return opened


# The floor: the same loop with a loss that costs almost nothing, so that only matrix products and
# sampling remain. The loss is the sum of the outputs, so that the compiler cannot drop the products
# of a measurement.
_NO_LOSS = losses.Loss(
    name="none",
    title="none",
    value=lambda alpha, y: jnp.sum(alpha, axis=-1),
    derivative=lambda alpha, y: alpha,
    classes=False,
)


def _two_products_each_way(
    lesson: Lesson,
    settings: Any,
    params: Array,
    memory: Any,
) -> Update:
    weights = jnp.full(lesson.order.shape, lesson.lr)
    guess = params - lesson.here.weighted_sum(weights)
    there = lesson.gradients(guess)
    return Update(guess - there.weighted_sum(weights))


def _no_volumes(alpha: Array, examples: Any, target: Any, lr: Any) -> Array:
    return jnp.zeros(alpha.shape[:1])


def _choose_the_first(key: Any, view: Any, settings: Any) -> Array:
    return jnp.zeros((), int)


def floor(task: Task) -> tuple[Task, Teacher, Learner]:
    """Make a task, teacher and learner whose program computes only the same matrix products.

    They are on the same samples as those of the given task.
    """
    rules = _floor_rules()

    def measure_without_target(params: Any, truth: Any) -> dict[str, Array]:
        return rules.measure(params, truth._replace(target=None))

    products_only = rules._replace(volumes=_no_volumes, measure=measure_without_target)
    teacher = Teacher("first", _choose_the_first)
    products = Rule(init=lambda params, settings: (), update=_two_products_each_way)
    learner = Learner("products", "Products", products, settings=jnp.zeros(()))
    return task._replace(rules=products_only), teacher, learner


def _floor_rules() -> Rules:
    """Return the rules of a task with the loss that costs almost nothing."""
    # Its rules do not depend on the data, so the smallest pool will do.
    row = np.zeros((1, 1))
    smallest = tasks.Pool(
        learner_x=row,
        teacher_x=row,
        labels=row,
        teacher_target=np.zeros((1, 2)),
        learner_target=None,
        test_x=row,
        test_labels=row,
    )
    return tasks.from_pool("floor", smallest, _NO_LOSS, beta=0.0).rules
