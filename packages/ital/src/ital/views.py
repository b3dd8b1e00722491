"""Teaching risk: how much of the target the learner's view cannot express.

By Haug, Tschiatschek and Singla (2018).
"""

import numpy as np

from ital.errors import InputError

# Share of the features' length that rounding may add.
EXACT = 1e-4


def kernel_risk(view: np.ndarray, weights: np.ndarray) -> float:
    """Return the teaching risk ρ(A; w*) = max ⟨w*, v⟩ over v with Av = 0 and ‖v‖ ≤ 1.

    It is the length of w* in the kernel of A.

    Args:
        view: the learner's view A (l, d), a linear map of the teacher's features.
        weights: the teacher's weights w* (d,).

    Returns:
        The risk, 0 if and only if the learner can express w*; at most ‖w*‖.

    Raises:
        InputError: if the shapes do not fit.
    """
    view = np.asarray(view)
    weights = np.asarray(weights, float)
    if view.ndim != 2 or weights.shape != view.shape[1:]:
        raise InputError(
            f"the view has shape {view.shape} and the weights {weights.shape}, "
            "expected (l, d) and (d,)"
        )
    # The kernel is what is orthogonal to the rows.
    expressed = _projected(weights, onto=_basis(view.T))
    return float(np.linalg.norm(weights - expressed))


def feature_risk(learner: np.ndarray, teacher: np.ndarray, weights: np.ndarray) -> float:
    """Return the teaching risk of two tables of features, whose view A is the map φ_L(s) = Aφ_T(s).

    Weights that change no reward do not count.

    Args:
        learner: the learner's features of the states (S, l).
        teacher: the teacher's features (S, d).
        weights: the teacher's weights w* (d,).

    Returns:
        The risk of :func:`kernel_risk`.

    Raises:
        InputError: if the learner's features are no linear function of the teacher's.
    """
    learner = np.asarray(learner)
    teacher = np.asarray(teacher)
    # Least squares with several right-hand sides: φ_T Aᵀ = φ_L.
    transposed, *_ = np.linalg.lstsq(
        teacher.astype(float),
        learner.astype(float),
        rcond=_tolerance(teacher),
    )
    error = np.linalg.norm(teacher @ transposed - learner)
    if error > EXACT * np.linalg.norm(learner):
        raise InputError(
            "the learner's features are no linear function of the teacher's: their kernel is not "
            "defined"
        )
    view = transposed.T.astype(learner.dtype)
    # Weights that change no reward are orthogonal to all features of the teacher.
    that_matter = _projected(np.asarray(weights, float), onto=_basis(teacher.T))
    return kernel_risk(view, that_matter)


def pool_risk(learner: np.ndarray, teacher: np.ndarray, target: np.ndarray) -> float:
    """Return the teaching risk of a pool, ‖(I − P_L)X_Tω*‖ / ‖X_Tω*‖.

    P_L is the projection on the learner's columns. The risk is the smallest error, relative to the
    teacher's answers, with which the learner can give these answers.

    Args:
        learner: the learner's view of the rows X_L (N, l), with the constant.
        teacher: the teacher's view X_T (N, d), with the constant.
        target: the teacher's target ω* (K, d).

    Returns:
        The risk in [0, 1], 0 if and only if the learner can express the target on this pool.
    """
    target = np.asarray(target, float)
    answers = np.asarray(teacher, float) @ target.T  # (N, K)
    length = np.linalg.norm(answers)
    if length == 0:
        return 0.0
    columns = np.asarray(learner)
    expressed = _projected(answers, onto=_basis(columns))
    error = np.linalg.norm(answers - expressed)
    return float(error / length)


def _projected(vectors: np.ndarray, onto: np.ndarray) -> np.ndarray:
    """Project vectors (n,) or (n, m) onto the span of an orthonormal basis (n, l)."""
    coordinates = onto.T @ vectors
    return onto @ coordinates


def _basis(matrix: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the columns, in float64.

    Directions below the precision of the entries are left out.
    """
    directions, sizes, _ = np.linalg.svd(matrix.astype(float), full_matrices=False)
    # An empty matrix has no largest size, and no directions either.
    largest = sizes.max(initial=0.0)
    is_real = sizes > _tolerance(matrix) * largest
    return directions[:, is_real]


def _tolerance(matrix: np.ndarray) -> float:
    """Return the relative size of a singular value that rounding of the entries may cause."""
    eps = float(np.finfo(np.float64).eps)
    if matrix.dtype == np.float32:
        eps = float(np.finfo(np.float32).eps)
    return min(matrix.shape) * eps


__all__ = ["feature_risk", "kernel_risk", "pool_risk"]
