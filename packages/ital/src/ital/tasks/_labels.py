"""Convert labels of any kind to class indices or numbers, and infer which of the two they are."""

from typing import Any, NamedTuple

import numpy as np

from ital.errors import InputError
from ital.tools.checks import TOO_LARGE, too_large

KINDS = ("classification", "regression")
PLAIN_KINDS = "biufUS"  # kinds of NumPy's types: booleans, numbers and text
FEW = 20  # up to this many distinct whole numbers can be classes, however few the rows


class Labels(NamedTuple):
    """Labels as tasks use them.

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
        of_classes, of_numbers = KINDS
        if self.classes:
            return of_classes
        return of_numbers


def encode(y: Any, kind: str | None = None, name: str = "y") -> Labels:
    """Encode labels as class indices or targets; ``kind`` None infers which.

    Text and booleans are classes. So are columns with a single 1 in each row (one-hot), and whole
    numbers with few distinct values: at most 20 or a tenth of the rows, and at most half of the
    rows. Everything else is regression.
    """
    if kind not in (None, *KINDS):
        raise InputError(f"kind must be 'classification', 'regression' or None, not {kind!r}")
    values = _given_labels(y, name)
    if values.ndim == 2:
        if kind != "regression" and _is_one_hot(values):
            columns = values.shape[1]
            indices = values.argmax(axis=1).astype(np.int64)
            return Labels(indices, tuple(range(columns)), is_one_hot=True)
        if kind == "classification":
            raise InputError(
                f"{name} has {values.shape[1]} columns: classes need one column, or one-hot columns"
            )
    if kind is None:
        kind = _inferred_kind(values)
    if kind == "classification":
        return _encoded_classes(values, name)
    return Labels(_encoded_numbers(values, name))


def _encoded_classes(values: np.ndarray, name: str) -> Labels:
    """Return the index of each label among the sorted classes."""
    classes, indices = np.unique(values, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"{name} holds one class only ({classes[0]!s}): at least two are needed")
    return Labels(indices, tuple(classes.tolist()))


def _encoded_numbers(values: np.ndarray, name: str) -> np.ndarray:
    """Return targets (N, K)."""
    if values.dtype.kind == "U":
        raise InputError(
            f"{name} holds text, so it cannot be a regression: leave kind out, or give numbers"
        )
    numbers = values.astype(float)
    if too_large(numbers):
        raise InputError(f"{name} {TOO_LARGE}")
    if numbers.ndim == 1:
        return numbers[:, None]
    return numbers


def encode_like(labels: Labels, y: Any, name: str) -> np.ndarray:
    """Encode further labels in the same way as ``labels``."""
    values = _given_labels(y, name)
    if labels.is_one_hot and values.ndim == 2:
        has_all_columns = values.shape[1] == len(labels.classes)
        if has_all_columns and _is_one_hot(values):
            return values.argmax(axis=1)
    if labels.classes:
        return _indices_of(values, labels.classes, name)
    numbers = _encoded_numbers(values, name)
    columns = labels.values.shape[1]
    if numbers.shape[1] != columns:
        raise InputError(f"{name} has {numbers.shape[1]} columns, but y has {columns}")
    return numbers


def _indices_of(values: np.ndarray, classes: tuple[Any, ...], name: str) -> np.ndarray:
    """Return the indices of classes that are known."""
    index = {label: i for i, label in enumerate(classes)}
    unknown = [label for label in values.reshape(-1).tolist() if label not in index]
    if unknown:
        raise InputError(f"{name} holds the class {unknown[0]!r}, which y does not have")
    if values.ndim == 2:
        raise InputError(f"{name} must be like y")
    return np.array([index[label] for label in values.tolist()])


def as_view(x: Any, name: str) -> np.ndarray:
    """Return a view as finite numbers (N, d).

    Raises:
        InputError: if it is none; the message names the argument and the column.
    """
    values = dense(x, name, "be a table of rows and columns (N, d)")
    if values.ndim != 2 or 0 in values.shape:
        hint = ""
        if values.ndim > 2 and values.size:
            hint = f": use {name}.reshape(len({name}), -1)"
        raise InputError(
            f"{name} must be a table of rows and columns (N, d), not shape {values.shape}{hint}"
        )
    column_names = list(getattr(x, "columns", range(values.shape[1])))
    if values.dtype.kind not in "biuf":
        _check_columns_are_numbers(values, column_names, name)
    values = values.astype(float)
    is_finite = np.isfinite(values).all(axis=0)
    if not is_finite.all():
        column = column_names[int(is_finite.argmin())]
        raise InputError(
            f"{name}: column {column!r} has missing or infinite values: fill them, or drop the rows"
        )
    for column, numbers in zip(column_names, values.T, strict=True):
        if too_large(numbers):
            raise InputError(f"{name}: column {column!r} {TOO_LARGE}")
    return values


def _check_columns_are_numbers(values: np.ndarray, column_names: list[Any], name: str) -> None:
    """Raise InputError for a column of objects that are not all numbers."""
    for column, objects in zip(column_names, values.T, strict=True):
        try:
            np.asarray(objects.tolist(), float)
        except (TypeError, ValueError):
            raise InputError(
                f"{name}: column {column!r} holds values that are not numbers: "
                "leave it out, or encode it"
            ) from None


def dense(array: Any, name: str, demand: str) -> np.ndarray:
    """Return any array-like as an array; ``demand`` says in messages what it must be.

    Raises:
        InputError: if it is sparse, or its rows differ in length.
    """
    if hasattr(array, "toarray"):
        raise InputError(f"{name} is sparse, but must be dense: use {name}.toarray()")
    try:
        return np.asarray(array)
    except ValueError:
        raise InputError(f"{name} must {demand}, but its rows differ in length") from None


def _given_labels(y: Any, name: str) -> np.ndarray:
    """Return labels as text, booleans or finite numbers, (N,) or (N, K) with K > 1."""
    if y is None:
        raise InputError(
            f"{name} is missing: call from_arrays(x_teacher, x_learner, y), "
            "or from_arrays(x, y=y) for one view"
        )
    import pandas as pd

    values = dense(y, name, "have one label per row, (N,) or (N, K)")
    if values.ndim not in (1, 2) or values.size == 0:
        raise InputError(
            f"{name} must have one label per row, (N,) or (N, K), not shape {values.shape}"
        )
    # A single column is the same as none: labels often come as a table.
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.dtype.kind not in PLAIN_KINDS:
        # Objects: text, or numbers and booleans of pandas, which may be missing.
        if pd.isna(values.reshape(-1)).any():
            raise InputError(f"{name} has missing values: drop those rows")
        values = np.array(values.tolist())
    if values.dtype.kind not in PLAIN_KINDS:
        raise InputError(f"{name} must hold text, booleans or numbers, not {values.dtype}")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError(f"{name} has missing or infinite values: drop those rows")
    if values.dtype.kind == "S":
        return values.astype(str)
    return values


def _is_one_hot(values: np.ndarray) -> bool:
    """Tell whether each row (N, K) holds a single 1, and 0 elsewhere."""
    if values.dtype.kind not in "biuf":
        return False
    is_zero_or_one = (values == 0) | (values == 1)
    return bool(is_zero_or_one.all() and (values.sum(axis=1) == 1).all())


def _inferred_kind(values: np.ndarray) -> str:
    """Return the kind of labels that are not one-hot."""
    if values.ndim == 2:
        return "regression"
    if values.dtype.kind in "bU":
        return "classification"
    # Many rows may have many classes, but a class needs rows: two on average.
    rows = len(values)
    distinct = len(np.unique(values))
    is_whole = bool((values == np.round(values)).all())
    if is_whole and distinct <= min(rows / 2, max(FEW, rows / 10)):
        return "classification"
    return "regression"
