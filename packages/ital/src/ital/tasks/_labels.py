"""Convert labels of any kind to class indices or numbers, and infer which of the two they are."""

from typing import Any, NamedTuple

import numpy as np

from ital.errors import InputError
from ital.tools.checks import TOO_LARGE, too_large

KINDS = ("classification", "regression")
FEW = 20  # up to this many distinct whole numbers can be classes, however few the rows


class Labels(NamedTuple):
    """Labels in the form that tasks use.

    Attributes:
        values: class indices (N,), or targets (N, K).
        classes: the label of each index; empty for regression.
        is_one_hot: whether the classes were given as columns.
    """

    values: np.ndarray
    classes: tuple[Any, ...] = ()
    is_one_hot: bool = False

    @property
    def kind(self) -> str:
        """One of :data:`KINDS`."""
        return KINDS[0] if self.classes else KINDS[1]


def encode(y: Any, kind: str | None = None, name: str = "y") -> Labels:
    """Encode labels as class indices or targets; ``kind`` None infers which.

    Text and booleans are classes. So are columns with a single 1 in each row (one-hot), and whole
    numbers with few distinct values: at most 20 or a tenth of the rows, and at most half of the
    rows. Everything else is regression.
    """
    if kind not in (None, *KINDS):
        raise InputError(f"kind must be 'classification', 'regression' or None, not {kind!r}")
    values = _plain(y, name)
    if values.ndim == 2:
        if kind != "regression" and _is_one_hot(values):
            return Labels(
                values.argmax(axis=1).astype(np.int64),
                tuple(range(values.shape[1])),
                is_one_hot=True,
            )
        if kind == "classification":
            raise InputError(
                f"{name} has {values.shape[1]} columns: classes need one column, or one-hot columns"
            )
    if (_infer(values) if kind is None else kind) == "classification":
        classes, indices = np.unique(values, return_inverse=True)
        if len(classes) < 2:
            raise InputError(
                f"{name} holds one class only ({classes[0]!s}): at least two are needed"
            )
        return Labels(indices.reshape(-1), tuple(classes.tolist()))
    if values.dtype.kind == "U":
        raise InputError(
            f"{name} holds text, so it cannot be a regression: leave kind out, or give numbers"
        )
    numbers = values.astype(float)
    if too_large(numbers):
        raise InputError(f"{name} {TOO_LARGE}")
    return Labels(numbers[:, None] if numbers.ndim == 1 else numbers)


def encode_like(labels: Labels, y: Any, name: str) -> np.ndarray:
    """Encode further labels in the same way as ``labels``."""
    values = _plain(y, name)
    if (
        labels.is_one_hot
        and values.ndim == 2
        and values.shape[1] == len(labels.classes)
        and _is_one_hot(values)
    ):
        return values.argmax(axis=1)
    if labels.classes:
        index = {label: i for i, label in enumerate(labels.classes)}
        unknown = [label for label in values.reshape(-1).tolist() if label not in index]
        if values.ndim == 2 or unknown:
            fault = (
                f"holds the class {unknown[0]!r}, which y does not have"
                if unknown
                else "must be like y"
            )
            raise InputError(f"{name} {fault}")
        return np.array([index[label] for label in values.tolist()])
    numbers = encode(y, "regression", name).values
    if numbers.shape[1] != labels.values.shape[1]:
        raise InputError(
            f"{name} has {numbers.shape[1]} columns, but y has {labels.values.shape[1]}"
        )
    return numbers


def as_view(x: Any, name: str) -> np.ndarray:
    """A view as finite numbers (N, d); raises InputError with the names of the argument and the
    column.
    """
    values = dense(x, name, "be a table of rows and columns (N, d)")
    if values.ndim != 2 or 0 in values.shape:
        hint = f": use {name}.reshape(len({name}), -1)" if values.ndim > 2 and values.size else ""
        raise InputError(
            f"{name} must be a table of rows and columns (N, d), not shape {values.shape}{hint}"
        )
    names = list(getattr(x, "columns", range(values.shape[1])))
    if values.dtype.kind not in "biuf":
        for column, each in zip(names, values.T, strict=True):
            try:
                np.asarray(each.tolist(), float)
            except (TypeError, ValueError):
                raise InputError(
                    f"{name}: column {column!r} holds values that are not numbers: leave it out, or encode it"
                ) from None
    values = values.astype(float)
    faults = ~np.isfinite(values).all(axis=0)
    if faults.any():
        column = names[int(faults.argmax())]
        raise InputError(
            f"{name}: column {column!r} has missing or infinite values: fill them, or drop the rows"
        )
    for column, each in zip(names, values.T, strict=True):
        if too_large(each):
            raise InputError(f"{name}: column {column!r} {TOO_LARGE}")
    return values


def dense(array: Any, name: str, form: str) -> np.ndarray:
    """Any array-like as an array; raises InputError for a sparse one, or rows of different lengths."""
    if hasattr(array, "toarray"):
        raise InputError(f"{name} is sparse, but must be dense: use {name}.toarray()")
    try:
        return np.asarray(array)
    except ValueError:
        raise InputError(f"{name} must {form}, but its rows differ in length") from None


def _plain(y: Any, name: str) -> np.ndarray:
    """Labels as text, booleans or finite numbers, (N,) or (N, K) with K > 1."""
    if y is None:
        raise InputError(
            f"{name} is missing: call from_arrays(x_teacher, x_learner, y), or from_arrays(x, y=y) for one view"
        )
    import pandas as pd

    values = dense(y, name, "have one label per row, (N,) or (N, K)")
    if values.ndim not in (1, 2) or values.size == 0:
        raise InputError(
            f"{name} must have one label per row, (N,) or (N, K), not shape {values.shape}"
        )
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.dtype.kind not in "biufUS":  # objects: text, or numbers and booleans of pandas
        if pd.isna(values.reshape(-1)).any():
            raise InputError(f"{name} has missing values: drop those rows")
        values = np.array(values.tolist())
    if values.dtype.kind not in "biufUS":
        raise InputError(f"{name} must hold text, booleans or numbers, not {values.dtype}")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError(f"{name} has missing or infinite values: drop those rows")
    return values.astype(str) if values.dtype.kind == "S" else values


def _is_one_hot(values: np.ndarray) -> bool:
    numbers = values if values.dtype.kind in "biuf" else np.full(values.shape, np.nan)
    return bool(((numbers == 0) | (numbers == 1)).all() and (numbers.sum(axis=1) == 1).all())


def _infer(values: np.ndarray) -> str:
    """The kind of plain labels that are not one-hot."""
    if values.ndim == 2:
        return "regression"
    if values.dtype.kind in "bU":
        return "classification"
    distinct, rows = len(np.unique(values)), len(values)
    is_whole = bool((values == np.round(values)).all())
    return (
        "classification"
        if is_whole and distinct <= min(rows / 2, max(FEW, rows / 10))
        else "regression"
    )
