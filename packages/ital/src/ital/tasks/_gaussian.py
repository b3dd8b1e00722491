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


@functools.lru_cache(maxsize=64)
@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]
def draw(
    seed: int,
    classes: int,
    dim: int,
    per_class: int,
) -> Pool:
    """Draw centres ~ U[−1,1]ᵈ and points ~ N(centre, 0.5² I); ω* is scikit-learn's multinomial
    logistic regression.
    """
    from sklearn.linear_model import LogisticRegression  # slow to import

    rng = np.random.default_rng(seed)
    centres = rng.uniform(-1, 1, (classes, dim))

    def points() -> tuple[np.ndarray, np.ndarray]:
        y = np.repeat(np.arange(classes), per_class)
        return centres[y] + 0.5 * rng.standard_normal((len(y), dim)), y

    (x, y), (test_x, test_y) = points(), points()
    with_one = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    fit = LogisticRegression(fit_intercept=False, max_iter=10_000, tol=1e-6).fit(with_one, y)
    target = fit.coef_
    teacher_x, teacher_target = rotated(x, target, rng)
    return Pool(x, teacher_x, y, teacher_target, target, test_x, test_y)


def gaussian(
    classes: int = 10,
    dim: int = 30,
    *,
    per_class: int = 90,
    label_noise: float = 0.0,
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
            f"gaussian needs classes >= 3, dim >= 1, per_class >= 1, not {classes}, {dim}, {per_class}"
        )
    rotation, rows = 4 * dim**2, 4 * classes * per_class * dim  # numbers, as in regression
    what = f"gaussian with {classes} classes of {per_class} points with {dim} features"
    check_memory(what, 8 * (rotation + rows), "take fewer classes, points or features")
    return from_pool(
        "gaussian",
        lambda seed: draw(seed, classes, dim, per_class),
        losses.cross_entropy,
        beta=60000.0,
        title="Gaussian classes",
        label_noise=label_noise,
        settings={"classes": classes, "dim": dim, "per_class": per_class},
    )
