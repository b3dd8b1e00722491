"""Optima of linear models, fitted by scikit-learn or read from its estimators, in the units of a view."""

from typing import Any, NamedTuple

import numpy as np

from ital.errors import InputError
from ital.tasks._labels import Labels

MOST_ITERATIONS = 5000


class Units(NamedTuple):
    """The units of an array's columns, given by centre and width: x ↦ (x − centre) / width."""

    centre: np.ndarray
    width: np.ndarray

    def apply(self, x: np.ndarray) -> np.ndarray:
        """The array in these units."""
        return (x - self.centre) / self.width


def units_of(x: np.ndarray, standardise: bool) -> Units:
    """Mean and standard deviation of the columns (width 1 for constant ones), or unchanged units."""
    if not standardise:
        return Units(np.zeros(x.shape[1]), np.ones(x.shape[1]))
    width = x.std(axis=0)
    return Units(x.mean(axis=0), np.where(width > 1e-12 * np.abs(x).max(axis=0), width, 1.0))


def fit(x: np.ndarray, y: np.ndarray, classes: bool, l2: float) -> np.ndarray:
    """The optimum (K, d+1) of Σ l(w x, y) + ½·l2·‖w‖², with the bias last and not penalised."""
    from sklearn.linear_model import LogisticRegression, Ridge

    estimator = LogisticRegression(C=1 / l2, max_iter=MOST_ITERATIONS) if classes else Ridge(alpha=l2)
    return _weights(estimator.fit(x, y))


def read_estimator(estimator: Any, columns: int, labels: Labels, name: str) -> np.ndarray:
    """The weights (K, d+1) of a fitted linear estimator; raises InputError if it does not match the data."""
    if not hasattr(estimator, "coef_"):
        kind = type(estimator).__name__
        hint = "give its last step and the rows it gets" if hasattr(estimator, "steps") else "call its fit first"
        raise InputError(f"{name} must be a fitted linear estimator with coef_ and intercept_, not {kind}: {hint}")
    if bool(labels.classes) != hasattr(estimator, "classes_"):
        wanted = "a classifier" if labels.classes else "a regressor"
        raise InputError(f"{name} must be {wanted}, because y gives a {labels.kind}, not {type(estimator).__name__}")
    if labels.classes and list(estimator.classes_) != list(labels.classes):
        raise InputError(f"{name} knows the classes {list(estimator.classes_)}, but y has {list(labels.classes)}")
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
    """Slopes and bias (K, d+1). A binary classifier has one row w: −w/2 and w/2 give the same probabilities."""
    slopes = np.atleast_2d(np.asarray(estimator.coef_, float))
    weights = np.column_stack([slopes, np.broadcast_to(np.asarray(estimator.intercept_, float), len(slopes))])
    is_binary = len(getattr(estimator, "classes_", ())) == 2 and len(weights) == 1
    return np.concatenate([-weights / 2, weights / 2]) if is_binary else weights
