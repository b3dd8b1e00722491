"""Optima of linear models, fitted or read from scikit-learn's estimators, in the units of a view."""

from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital.errors import InputError
from ital.losses import Loss, cross_entropy, squared
from ital.tasks._labels import Labels
from ital.tasks._pool_data import check_losses, result_shapes
from ital.tools.types import Array

MOST_ITERATIONS = 5000


class Units(NamedTuple):
    """The units of an array's columns: x ↦ (x − centre) / width.

    Attributes:
        centre: the value that becomes 0, per column.
        width: the difference that becomes 1, per column.
    """

    centre: np.ndarray
    width: np.ndarray

    def apply(self, x: np.ndarray) -> np.ndarray:
        """The array in these units.

        Args:
            x: the array as it was given.

        Returns:
            The array in these units.
        """
        return (x - self.centre) / self.width

    def invert(self, x: np.ndarray) -> np.ndarray:
        """An array in these units, as it was given.

        Args:
            x: the array in these units.

        Returns:
            The array in the units of the data.
        """
        return x * self.width + self.centre


def units_of(x: np.ndarray, standardise: bool) -> Units:
    """Mean and standard deviation of the columns (width 1 for constant ones), or unchanged units."""
    if not standardise:
        return Units(np.zeros(x.shape[1]), np.ones(x.shape[1]))
    width = x.std(axis=0)
    return Units(x.mean(axis=0), np.where(width > 1e-12 * np.abs(x).max(axis=0), width, 1.0))


def fit(
    x: np.ndarray,
    y: np.ndarray,
    loss: Loss,
    outputs: int,
    l2: float,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """The optimum (K, d+1) of Σ wᵢ·l(ωxᵢ, yᵢ) + ½·l2·‖ω‖², with the bias last and not penalised."""
    from sklearn.linear_model import LogisticRegression, Ridge

    if loss is cross_entropy:
        logistic = LogisticRegression(C=1 / l2, max_iter=MOST_ITERATIONS)
        return _weights(logistic.fit(x, y, sample_weight=weights))
    if loss is squared:
        return _weights(Ridge(alpha=l2).fit(x, y, sample_weight=weights))
    return _minimised(x, y, loss, outputs, l2, np.ones(len(x)) if weights is None else weights)


def _float64() -> AbstractContextManager[Any]:
    """JAX in float64."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64  # type: ignore[attr-defined]  # before version 0.8

    return enable_x64()


def _minimised(
    x: np.ndarray,
    y: np.ndarray,
    loss: Loss,
    outputs: int,
    l2: float,
    weights: np.ndarray,
) -> np.ndarray:
    """The same optimum for any loss, by L-BFGS from 0 in float64."""
    from scipy.optimize import minimize

    shape = (outputs, x.shape[1] + 1)
    total = weights.sum()

    with _float64(), jax.default_device(jax.devices("cpu")[0]):
        rows = jnp.asarray(np.column_stack([x, np.ones(len(x))]), float)
        labels = jnp.asarray(y, int if loss.classes else float)

        values = result_shapes(
            f"loss {loss.name!r} cannot be applied", loss.value, rows @ np.zeros(shape).T, labels
        )
        check_losses(loss, values, len(x))

        def objective(flat: Array) -> Array:
            omega = flat.reshape(shape)
            losses = loss.value(rows @ omega.T, labels)
            return (jnp.sum(weights * losses) + 0.5 * l2 * jnp.sum(omega[:, :-1] ** 2)) / total

        at = jax.jit(jax.value_and_grad(objective))
        start = np.zeros(shape[0] * shape[1])
        options = {
            "maxiter": MOST_ITERATIONS,
            "maxfun": 2 * MOST_ITERATIONS,
            "ftol": 0.0,
            "gtol": 1e-9,
        }
        found = minimize(
            lambda flat: jax.device_get(at(flat)),
            start,
            jac=True,
            method="L-BFGS-B",
            options=options,
        )
    if not (np.isfinite(found.fun) and np.isfinite(found.x).all()):
        raise InputError(
            f"loss {loss.name!r}: no optimum was found, because the loss or its derivative is not finite near 0: "
            "give teacher_target and learner_target, or another loss"
        )
    return np.asarray(found.x).reshape(shape)


def read_estimator(
    estimator: Any,
    columns: int,
    labels: Labels,
    name: str,
) -> np.ndarray:
    """The weights (K, d+1) of a fitted linear estimator; raises InputError if it does not match the
    data.
    """
    if not hasattr(estimator, "coef_"):
        kind = type(estimator).__name__
        hint = (
            "give its last step and the rows it gets"
            if hasattr(estimator, "steps")
            else "call its fit first"
        )
        raise InputError(
            f"{name} must be a fitted linear estimator with coef_ and intercept_, not {kind}: {hint}"
        )
    if bool(labels.classes) != hasattr(estimator, "classes_"):
        wanted = "a classifier" if labels.classes else "a regressor"
        raise InputError(
            f"{name} must be {wanted}, because y gives a {labels.kind}, not {type(estimator).__name__}"
        )
    if labels.classes and list(estimator.classes_) != list(labels.classes):
        raise InputError(
            f"{name} knows the classes {list(estimator.classes_)}, but y has {list(labels.classes)}"
        )
    weights = _weights(estimator)
    outputs = len(labels.classes) or labels.values.shape[1]
    if weights.shape != (outputs, columns + 1):
        raise InputError(
            f"{name} was fitted on {weights.shape[1] - 1} columns for {len(weights)} outputs, "
            f"expected {columns} columns and {outputs} outputs"
        )
    return weights


def in_units(weights: np.ndarray, x_units: Units, y_units: Units) -> np.ndarray:
    """The same linear map, expressed for rows and outputs in these units."""
    slopes, bias = weights[:, :-1], weights[:, -1]
    moved = (bias + slopes @ x_units.centre - y_units.centre) / y_units.width
    return np.column_stack([slopes * x_units.width / y_units.width[:, None], moved])


def _weights(estimator: Any) -> np.ndarray:
    """Slopes and bias (K, d+1). A binary classifier has one row w: −w/2 and w/2 give the same
    probabilities.
    """
    slopes = np.atleast_2d(np.asarray(estimator.coef_, float))
    weights = np.column_stack(
        [slopes, np.broadcast_to(np.asarray(estimator.intercept_, float), len(slopes))]
    )
    is_binary = len(getattr(estimator, "classes_", ())) == 2 and len(weights) == 1
    return np.concatenate([-weights / 2, weights / 2]) if is_binary else weights
