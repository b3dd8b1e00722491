"""Classification of Gaussian classes (supplement, "Linear Models on Synthesized Data")."""

import functools

import numpy as np
from threadpoolctl import threadpool_limits

from ital import losses
from ital.errors import InputError
from ital.tasks._base import Task
from ital.tasks._pool import Pool, from_pool
from ital.tasks._regression import rotated
from ital.tools.checks import require_whole
from ital.tools.memory import check_memory


# One thread and a cache, for the reasons given in _regression.py.
@functools.lru_cache(maxsize=64)
@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]
def _draw_gaussian(
    seed: int,
    classes: int,
    dim: int,
    per_class: int,
) -> Pool:
    """Draw centres ~ U[−1,1]ᵈ and points ~ N(centre, 0.5² I).

    ω* is that of scikit-learn's multinomial logistic regression.
    """
    from sklearn.linear_model import LogisticRegression  # slow to import

    rng = np.random.default_rng(seed)
    centres = rng.uniform(-1, 1, (classes, dim))
    labels = np.repeat(np.arange(classes), per_class)

    def points() -> np.ndarray:
        return centres[labels] + 0.5 * rng.standard_normal((len(labels), dim))

    x = points()
    test_x = points()
    with_one = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    # The constant is a column like the others, so that its weight is penalised too.
    regression = LogisticRegression(fit_intercept=False, max_iter=10_000, tol=1e-6)
    target = regression.fit(with_one, labels).coef_
    teacher_x, teacher_target = rotated(x, target, rng)
    return Pool(
        x,
        teacher_x,
        labels,
        teacher_target,
        target,
        test_x=test_x,
        test_labels=labels,
    )


def gaussian(
    classes: int = 10,
    dim: int = 30,
    *,
    per_class: int = 90,
    label_noise: float | str = 0.0,
) -> Task:
    """Gaussian classes, K = 10, d = 30, the teacher's view rotated. Cross-entropy, β = 60000.

    Args:
        classes: number of classes K.
        dim: number of features d.
        per_class: points of each class, for training and for the test.
        label_noise: probability that a label of the pool is replaced.

    Returns:
        The task.

    Raises:
        InputError: if a number is too small, or the data would not fit into memory.
    """
    require_whole(classes=classes, dim=dim, per_class=per_class)
    if classes < 3 or dim < 1 or per_class < 1:
        raise InputError(
            "gaussian needs classes >= 3, dim >= 1, per_class >= 1, "
            f"not {classes}, {dim}, {per_class}"
        )
    of_rotation = 4 * dim**2  # numbers of the random rotation and its factors
    of_views = 4 * classes * per_class * dim
    check_memory(
        f"gaussian with {classes} classes of {per_class} points with {dim} features",
        8 * (of_rotation + of_views),
        "take fewer classes, points or features",
    )
    return from_pool(
        "gaussian",
        lambda seed: _draw_gaussian(seed, classes, dim, per_class),
        losses.cross_entropy,
        beta=60000.0,
        title="Gaussian classes",
        label_noise=label_noise,
        settings={"classes": classes, "dim": dim, "per_class": per_class},
    )
