"""Linear regression on synthetic data (supplement, "Linear Models on Synthesized Data")."""

import functools

import numpy as np
from threadpoolctl import threadpool_limits

from ital import losses
from ital.errors import InputError
from ital.tasks._base import Task
from ital.tasks._label_noise import label_noise_of
from ital.tasks._pool import Pool, from_pool
from ital.tools.checks import require_whole
from ital.tools.memory import check_memory


def rotated(
    x: np.ndarray, target: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return a teacher's view of ``x`` and ``target``.

    Both are rotated by a random (Haar) orthogonal matrix; the bias stays as it is.
    """
    dim = x.shape[1]
    rotation = np.ones((1, 1))
    if dim > 1:
        rotation = _haar(dim, rng)
    slopes = target[:, :-1]
    bias = target[:, -1:]
    return x @ rotation, np.concatenate([slopes @ rotation, bias], axis=1)


def _haar(dim: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the same matrix as SciPy's ``ortho_group``, whose import outlasts a short run."""
    q, r = np.linalg.qr(rng.normal(size=(dim, dim)))
    # QR alone prefers some rotations; with a positive diagonal of R all are equally likely.
    signs = r.diagonal() / np.abs(r.diagonal())
    return np.asarray(q * signs)


# For matrices this small, threads bring no gain, and cost much on a busy machine.
# The cache lets experiments with other teachers and starts share their worlds.
@functools.lru_cache(maxsize=64)
@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]
def _draw_regression(seed: int, dim: int, points: int) -> Pool:
    """Draw ω*, b and every entry of X ~ U[−1,1]; y = ω*·[x,1]. Half of the points are for tests."""
    rng = np.random.default_rng(seed)
    target = rng.uniform(-1, 1, (1, dim + 1))
    x = rng.uniform(-1, 1, (points, dim))
    y = x @ target[:, :-1].T + target[:, -1]
    taught = slice(points // 2)
    tested = slice(points // 2, None)
    teacher_x, teacher_target = rotated(x[taught], target, rng)
    return Pool(
        x[taught],
        teacher_x,
        y[taught],
        teacher_target,
        target,
        test_x=x[tested],
        test_labels=y[tested],
    )


def regression(
    dim: int = 100, *, points: int = 600, label_noise: float | str = 0.0, noise: float = 0.0
) -> Task:
    """Linear regression, d = 100, the teacher's view rotated. Squared loss, β = 5000.

    Args:
        dim: number of features d.
        points: number of points, half of them for the test.
        label_noise: probability that a label of the pool is replaced, or "sd:NUMBER".
        noise: standard deviation of Gaussian noise of the pool's labels, fixed per row.

    Returns:
        The task.

    Raises:
        InputError: if a number is too small, or the data would not fit into memory.

    Example:
        >>> ital.teach(ital.tasks.regression(dim=20), steps=200, seeds=5).summary()
    """
    require_whole(dim=dim, points=points)
    if dim < 1 or points < 2:
        raise InputError(
            f"regression needs dim >= 1 and points >= 2, not dim={dim}, points={points}"
        )
    of_rotation = 4 * dim**2  # numbers of the random rotation and its factors
    of_views = 3 * points * dim
    check_memory(
        f"regression with {dim} features and {points} points",
        8 * (of_rotation + of_views),
        "take fewer features or points",
    )
    return from_pool(
        "regression",
        lambda seed: _draw_regression(seed, dim, points),
        losses.squared,
        beta=5000.0,
        title="Linear regression",
        label_noise=label_noise_of(label_noise, noise),
        settings={"dim": dim, "points": points},
    )
