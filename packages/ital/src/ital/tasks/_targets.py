"""Optima of linear models, fitted or read from estimators, in the units of a view."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital.errors import InputError
from ital.losses import Loss, cross_entropy, squared
from ital.tasks._labels import Labels
from ital.tasks._pool_data import check_losses, result_shapes
from ital.tools.platform import double_precision
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
    largest = np.abs(x).max(axis=0)
    # The deviation of a constant column is rounding: such columns keep their width.
    varies = width > 1e-12 * largest
    return Units(centre=x.mean(axis=0), width=np.where(varies, width, 1.0))


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


def _minimised(
    x: np.ndarray,
    y: np.ndarray,
    loss: Loss,
    outputs: int,
    l2: float,
    weights: np.ndarray,
) -> np.ndarray:
    """Find the same optimum for any loss, by L-BFGS from 0 in float64."""
    shape = (outputs, x.shape[1] + 1)
    total = weights.sum()
    kind_of_labels: type = float
    if loss.classes:
        kind_of_labels = int

    with double_precision(), jax.default_device(jax.devices("cpu")[0]):
        with_ones = np.column_stack([x, np.ones(len(x))])
        rows = jnp.asarray(with_ones, float)
        labels = jnp.asarray(y, kind_of_labels)

        fault = f"loss {loss.name!r} cannot be applied"
        values = result_shapes(fault, loss.value, rows @ np.zeros(shape).T, labels)
        check_losses(loss, values, len(x))

        def objective(flat: Array) -> Array:
            omega = flat.reshape(shape)
            slopes = omega[:, :-1]
            losses = loss.value(rows @ omega.T, labels)
            penalty = 0.5 * l2 * jnp.sum(slopes**2)
            return (jnp.sum(weights * losses) + penalty) / total

        found = _found_from_zero(objective, math.prod(shape))
    if not (np.isfinite(found.fun) and np.isfinite(found.x).all()):
        raise InputError(
            f"loss {loss.name!r}: no optimum was found, because the loss or its derivative is not "
            "finite near 0: give teacher_target and learner_target, or another loss"
        )
    return np.asarray(found.x).reshape(shape)


def _found_from_zero(objective: Callable[[Array], Array], size: int) -> Any:
    """Return what L-BFGS finds from 0: the value ``fun`` and the parameters ``x`` (size,)."""
    from scipy.optimize import minimize

    value_and_gradient = jax.jit(jax.value_and_grad(objective))
    return minimize(
        lambda flat: jax.device_get(value_and_gradient(flat)),
        np.zeros(size),
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
    _check_kind_of_estimator(estimator, labels, name)
    weights = _weights_of(estimator)
    outputs = len(labels.classes) or labels.values.shape[1]
    if weights.shape != (outputs, columns + 1):
        fitted_columns = weights.shape[1] - 1
        raise InputError(
            f"{name} was fitted on {fitted_columns} columns for {len(weights)} outputs, "
            f"expected {columns} columns and {outputs} outputs"
        )
    return weights


def _check_kind_of_estimator(estimator: Any, labels: Labels, name: str) -> None:
    """Raise InputError unless an estimator predicts the same kind of labels, in the same order."""
    kind = type(estimator).__name__
    is_classifier = hasattr(estimator, "classes_")
    if labels.classes and not is_classifier:
        raise InputError(
            f"{name} must be a classifier, because y gives a {labels.kind}, not {kind}"
        )
    if is_classifier and not labels.classes:
        raise InputError(f"{name} must be a regressor, because y gives a {labels.kind}, not {kind}")
    if not is_classifier:
        return
    known = list(estimator.classes_)
    given = list(labels.classes)
    if known != given:
        raise InputError(f"{name} knows the classes {known}, but y has {given}")


def in_units(weights: np.ndarray, x_units: Units, y_units: Units) -> np.ndarray:
    """Express the same linear map for rows and outputs in these units."""
    slopes = weights[:, :-1]
    bias = weights[:, -1]
    at_centre = bias + slopes @ x_units.centre  # the outputs where all columns become 0
    moved_bias = (at_centre - y_units.centre) / y_units.width
    scaled_slopes = slopes * x_units.width / y_units.width[:, None]
    return np.column_stack([scaled_slopes, moved_bias])


def _weights_of(estimator: Any) -> np.ndarray:
    """Return slopes and bias (K, d+1) of a fitted estimator."""
    slopes = np.atleast_2d(np.asarray(estimator.coef_, float))
    bias = np.broadcast_to(np.asarray(estimator.intercept_, float), len(slopes))
    weights = np.column_stack([slopes, bias])
    classes = getattr(estimator, "classes_", ())
    is_binary = len(classes) == 2 and len(weights) == 1
    if is_binary:
        # A binary classifier has one row w: −w/2 and w/2 give the same probabilities.
        half = weights / 2
        return np.concatenate([-half, half])
    return weights
