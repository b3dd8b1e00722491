"""Linear regression on synthetic data (supplement, "Linear Models on Synthesized Data")."""

import functools

import numpy as np
from threadpoolctl import threadpool_limits

from ital import losses
from ital.errors import InputError
from ital.tasks._base import Task
from ital.tasks._pool import Pool, from_pool
from ital.tools.checks import require_whole
from ital.tools.memory import check_memory


def rotated(
    x: np.ndarray, target: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """A teacher's view of ``x`` and ``target``: rotated by a random (Haar) orthogonal matrix,
    except the bias.
    """
    turn = _haar(x.shape[1], rng) if x.shape[1] > 1 else np.ones((1, 1))
    return x @ turn, np.concatenate([target[:, :-1] @ turn, target[:, -1:]], axis=1)


def _haar(dim: int, rng: np.random.Generator) -> np.ndarray:
    """The same matrix as SciPy's ``ortho_group``, whose import takes longer than a short run."""
    q, r = np.linalg.qr(rng.normal(size=(dim, dim)))
    signs = r.diagonal() / np.abs(r.diagonal())
    return np.asarray(q * signs)


# For matrices this small, threads bring no gain, and cost much on a busy machine.
# The cache lets experiments with other teachers and starts share their worlds.
@functools.lru_cache(maxsize=64)
@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]
def draw(seed: int, dim: int, points: int) -> Pool:
    """Draw ω*, b and every entry of X ~ U[−1,1]; y = ω*·[x,1]; half of the points are for the test."""
    rng = np.random.default_rng(seed)
    target = rng.uniform(-1, 1, (1, dim + 1))
    x = rng.uniform(-1, 1, (points, dim))
    y = x @ target[:, :-1].T + target[:, -1]
    train, test = slice(points // 2), slice(points // 2, None)
    teacher_x, teacher_target = rotated(x[train], target, rng)
    return Pool(x[train], teacher_x, y[train], teacher_target, target, x[test], y[test])


def regression(dim: int = 100, *, points: int = 600, label_noise: float = 0.0) -> Task:
    """Linear regression, d = 100, the teacher's view rotated. Squared loss, β = 5000.

    Args:
        dim: number of features d.
        points: number of points, half of them for the test.
        label_noise: probability that a label of the pool is replaced.

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
    rotation, rows = (
        4 * dim**2,
        3 * points * dim,
    )  # numbers: the random rotation with its factors, both views
    check_memory(
        f"regression with {dim} features and {points} points",
        8 * (rotation + rows),
        "take fewer features or points",
    )
    return from_pool(
        "regression",
        lambda seed: draw(seed, dim, points),
        losses.squared,
        beta=5000.0,
        title="Linear regression",
        label_noise=label_noise,
        settings={"dim": dim, "points": points},
    )
