"""Optima of linear models, fitted or read from estimators, in the units of a view."""

import math
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
        """Convert an array to these units.

        Args:
            x: the array as it was given.

        Returns:
            The array in these units.
        """
        return (x - self.centre) / self.width

    def invert(self, x: np.ndarray) -> np.ndarray:
        """Convert an array in these units back.

        Args:
            x: the array in these units.

        Returns:
            The array in the units of the data.
        """
        return x * self.width + self.centre


def units_of(x: np.ndarray, standardise: bool) -> Units:
    """Return mean and standard deviation of the columns, or unchanged units."""
    columns = x.shape[1]
    if not standardise:
        return Units(np.zeros(columns), np.ones(columns))
    width = x.std(axis=0)
    # The deviation of a constant column is rounding: such columns keep their width.
    varies = width > 1e-12 * np.abs(x).max(axis=0)
    return Units(x.mean(axis=0), np.where(varies, width, 1.0))


def fit(
    x: np.ndarray,
    y: np.ndarray,
    loss: Loss,
    outputs: int,
    l2: float,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Fit the optimum (K, d+1) of Σ wᵢ·l(ωxᵢ, yᵢ) + ½·l2·‖ω‖².

    The bias comes last and is not penalised.
    """
    from sklearn.linear_model import LogisticRegression, Ridge

    if loss is cross_entropy:
        logistic = LogisticRegression(C=1 / l2, max_iter=MOST_ITERATIONS)
        return _weights_of(logistic.fit(x, y, sample_weight=weights))
    if loss is squared:
        ridge = Ridge(alpha=l2)
        return _weights_of(ridge.fit(x, y, sample_weight=weights))
    if weights is None:
        weights = np.ones(len(x))
    return _minimised(x, y, loss, outputs, l2, weights)


def _float64() -> AbstractContextManager[Any]:
    """Let JAX compute in float64 within a block."""
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
    """Find the same optimum for any loss, by L-BFGS from 0 in float64."""
    from scipy.optimize import minimize

    shape = (outputs, x.shape[1] + 1)
    total = weights.sum()
    kind_of_labels = int if loss.classes else float

    with _float64(), jax.default_device(jax.devices("cpu")[0]):
        rows = jnp.asarray(np.column_stack([x, np.ones(len(x))]), float)
        labels = jnp.asarray(y, kind_of_labels)

        fault = f"loss {loss.name!r} cannot be applied"
        values = result_shapes(fault, loss.value, rows @ np.zeros(shape).T, labels)
        check_losses(loss, values, len(x))

        def objective(flat: Array) -> Array:
            omega = flat.reshape(shape)
            losses = loss.value(rows @ omega.T, labels)
            penalty = 0.5 * l2 * jnp.sum(omega[:, :-1] ** 2)
            return (jnp.sum(weights * losses) + penalty) / total

        value_and_gradient = jax.jit(jax.value_and_grad(objective))
        found = minimize(
            lambda flat: jax.device_get(value_and_gradient(flat)),
            np.zeros(math.prod(shape)),
            jac=True,
            method="L-BFGS-B",
            options={
                "maxiter": MOST_ITERATIONS,
                "maxfun": 2 * MOST_ITERATIONS,
                # Only the gradient decides: the default would stop at a small change of the value.
                "ftol": 0.0,
                "gtol": 1e-9,
            },
        )
    if not (np.isfinite(found.fun) and np.isfinite(found.x).all()):
        raise InputError(
            f"loss {loss.name!r}: no optimum was found, because the loss or its derivative is not "
            "finite near 0: give teacher_target and learner_target, or another loss"
        )
    return np.asarray(found.x).reshape(shape)


def read_estimator(
    estimator: Any,
    columns: int,
    labels: Labels,
    name: str,
) -> np.ndarray:
    """Return the weights (K, d+1) of a fitted linear estimator.

    Raises:
        InputError: if it does not match the data.
    """
    kind = type(estimator).__name__
    if not hasattr(estimator, "coef_"):
        hint = "call its fit first"
        if hasattr(estimator, "steps"):  # a pipeline
            hint = "give its last step and the rows it gets"
        raise InputError(
            f"{name} must be a fitted linear estimator with coef_ and intercept_, not {kind}: "
            f"{hint}"
        )
    if labels.classes and not hasattr(estimator, "classes_"):
        raise InputError(
            f"{name} must be a classifier, because y gives a {labels.kind}, not {kind}"
        )
    if not labels.classes and hasattr(estimator, "classes_"):
        raise InputError(f"{name} must be a regressor, because y gives a {labels.kind}, not {kind}")
    if labels.classes and list(estimator.classes_) != list(labels.classes):
        raise InputError(
            f"{name} knows the classes {list(estimator.classes_)}, but y has {list(labels.classes)}"
        )
    weights = _weights_of(estimator)
    outputs = len(labels.classes) or labels.values.shape[1]
    if weights.shape != (outputs, columns + 1):
        raise InputError(
            f"{name} was fitted on {weights.shape[1] - 1} columns for {len(weights)} outputs, "
            f"expected {columns} columns and {outputs} outputs"
        )
    return weights


def in_units(weights: np.ndarray, x_units: Units, y_units: Units) -> np.ndarray:
    """Express the same linear map for rows and outputs in these units."""
    slopes = weights[:, :-1]
    bias = weights[:, -1]
    moved_bias = (bias + slopes @ x_units.centre - y_units.centre) / y_units.width
    scaled_slopes = slopes * x_units.width / y_units.width[:, None]
    return np.column_stack([scaled_slopes, moved_bias])


def _weights_of(estimator: Any) -> np.ndarray:
    """Return slopes and bias (K, d+1) of a fitted estimator."""
    slopes = np.atleast_2d(np.asarray(estimator.coef_, float))
    bias = np.broadcast_to(np.asarray(estimator.intercept_, float), len(slopes))
    weights = np.column_stack([slopes, bias])
    has_two_classes = len(getattr(estimator, "classes_", ())) == 2
    if has_two_classes and len(weights) == 1:
        # A binary classifier has one row w: −w/2 and w/2 give the same probabilities.
        return np.concatenate([-weights / 2, weights / 2])
    return weights
