"""How data of one's own were encoded for teaching, and the way back to their units and labels."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital.errors import InputError
from ital.models import Model
from ital.tasks._base import as_float
from ital.tasks._labels import Labels, as_view
from ital.tasks._targets import Units


class Encoding(NamedTuple):
    """How :func:`ital.tasks.from_arrays` encoded your data, and the way back.

    Attributes:
        labels: the labels as encoded: class indices or targets, and the classes.
        teacher_units: the units of the teacher's columns.
        learner_units: the units of the learner's columns.
        y_units: the units of the targets of a regression.
        teacher_target: the teacher's optimum ω* (K, d+1), bias last, in these units.
        learner_target: the learner's optimum ν*, None if it is unknown.
        model: the learner's model.
    """

    labels: Labels
    teacher_units: Units
    learner_units: Units
    y_units: Units
    teacher_target: np.ndarray
    learner_target: np.ndarray | None
    model: Model

    def __repr__(self) -> str:
        """Say in one line: the rows, what they are labelled with, and the columns of each view."""
        rows = len(self.labels.values)
        kind = "targets"
        if self.labels.classes:
            kind = f"{len(self.labels.classes)} classes"
        columns = (
            f"{len(self.teacher_units.centre)} columns for the teacher, "
            f"{len(self.learner_units.centre)} for the learner"
        )
        return f"Encoding({rows} rows with {kind}; {columns})"

    def outputs(self, params: Any, x: Any) -> np.ndarray:
        """Compute a learner's outputs on rows: scores of classes, or targets in their own units.

        Args:
            params: the learner's parameters.
            x: rows (n, d) of the learner's view, in the units of the data.

        Returns:
            The outputs (n, K).
        """
        view = as_view(x, "x")
        columns = len(self.learner_units.centre)
        if view.shape[1] != columns:
            raise InputError(f"x has {view.shape[1]} columns, but the learner sees {columns}")
        rows = self.model.rows(as_float(self.learner_units.apply(view)))
        on_device = jax.tree.map(jnp.asarray, (params, rows))
        alpha = np.asarray(self.model.outputs(*on_device), float)
        if self.labels.classes:
            return alpha
        return self.y_units.invert(alpha)

    def predict(self, params: Any, x: Any) -> np.ndarray:
        """Return a learner's answers on rows: labels of classes, or targets in their own units.

        Args:
            params: the learner's parameters.
            x: rows (n, d) of the learner's view, in the units of the data.

        Returns:
            The answers (n,), or (n, K) for K > 1 targets.
        """
        outputs = self.outputs(params, x)
        if self.labels.classes:
            return np.asarray(self.labels.classes)[outputs.argmax(axis=1)]
        if outputs.shape[1] == 1:
            return outputs[:, 0]
        return outputs

    def coefficients(self, weights: np.ndarray) -> np.ndarray:
        """Convert weights of a linear learner, or of a target, to the units of the data.

        Args:
            weights: weights (K, d+1) on the encoded columns, bias last. They are those of the
                learner's view.

        Returns:
            Weights (K, d+1) on the columns as given, bias last.
        """
        weights = np.asarray(weights, float)
        slopes = weights[:, :-1] / self.learner_units.width
        bias = weights[:, -1] - slopes @ self.learner_units.centre
        if self.labels.classes:
            return np.column_stack([slopes, bias])
        # Outputs in the units of the data are outputs × width + centre.
        width = self.y_units.width
        own_slopes = slopes * width[:, None]
        own_bias = bias * width + self.y_units.centre
        return np.column_stack([own_slopes, own_bias])


__all__ = ["Encoding"]
