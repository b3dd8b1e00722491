"""The data of a task with a pool, and its checks."""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from ital.errors import InputError
from ital.losses import Loss
from ital.models import OWN, Init, Model, linear_rows
from ital.tasks._base import World
from ital.tools.checks import TOO_LARGE, shown, too_large
from ital.tools.types import Params, PRNGKeyArray

PART = 8192  # rows that are read at a time


class Pool(NamedTuple):
    """The data of one seed: labelled rows in two views, the optimum in each, and a test set.

    Views do not contain the constant 1; it is appended later. Targets are K × (d+1), with the bias
    last.

    Attributes:
        learner_x: the learner's view (N, d).
        teacher_x: the teacher's view, row by row (N, d′).
        labels: class indices (N,), or targets (N, K).
        teacher_target: the teacher's optimum ω*.
        learner_target: the learner's optimum ν*, or None if it is unknown (then no ``distance`` is
            recorded).
        test_x: the learner's view of the test set.
        test_labels: its labels.
        weights: the factor of each row's loss (N,), if the rows do not count equally.
    """

    learner_x: np.ndarray
    teacher_x: np.ndarray
    labels: np.ndarray
    teacher_target: np.ndarray
    learner_target: Params | None
    test_x: np.ndarray
    test_labels: np.ndarray
    weights: np.ndarray | None = None


def row_parts(rows: int) -> list[slice]:
    """Return slices of consecutive rows: a large pool is read part by part, never copied whole."""
    return [slice(first, first + PART) for first in range(0, rows, PART)]


def check_pool(
    name: str,
    pool: Any,
    loss: Loss,
    model: Model,
    teacher_model: Model,
) -> Pool:
    """Return the pool; raise InputError with one line about the fault if it is not valid."""
    if not isinstance(pool, Pool):
        raise InputError(
            f"task {name!r}: a pool must be an ital.tasks.Pool, or a function that returns one, "
            f"not {shown(pool)}"
        )
    arrays = _pool_arrays(name, pool)
    try:
        _check_rows(arrays)
        _check_numbers(arrays, pool.learner_target)
        _check_weights(arrays)
        _check_targets(arrays, pool.learner_target, model, teacher_model)
        outputs = len(arrays["teacher_target"])
        for field in ("labels", "test_labels"):
            if loss.classes:
                _check_class_labels(field, arrays[field], outputs)
            else:
                _check_numeric_labels(field, arrays[field], outputs)
    except InputError as fault:
        raise InputError(f"task {name!r}: {fault}") from None
    return pool


def _pool_arrays(name: str, pool: Pool) -> dict[str, np.ndarray]:
    """Return the fields that are arrays: all but the learner's target, and absent weights."""
    given = pool._asdict()
    # The learner's target is a pytree: it has one array per layer of a network.
    del given["learner_target"]
    if pool.weights is None:
        del given["weights"]
    return {field: _as_array(name, field, value) for field, value in given.items()}


def _check_rows(arrays: dict[str, np.ndarray]) -> None:
    """Raise InputError unless there are rows, paired in both views, and test rows like them."""
    rows = len(arrays["labels"])
    test_rows = len(arrays["test_labels"])
    if rows == 0:
        raise InputError("the pool has no rows")
    if test_rows == 0:
        raise InputError("the test set has no rows")
    for view in ("learner_x", "teacher_x"):
        shape = arrays[view].shape
        if len(shape) != 2 or shape[0] != rows:
            raise InputError(
                f"{view} has shape {shape}, but there are {rows} labels: "
                "views are paired row by row"
            )
    test_shape = arrays["test_x"].shape
    expected = (test_rows, arrays["learner_x"].shape[1])
    if test_shape != expected:
        raise InputError(
            f"test_x has shape {test_shape}, expected {expected} to fit test_labels and learner_x"
        )


def _check_numbers(arrays: dict[str, np.ndarray], learner_target: Params | None) -> None:
    """Raise InputError for values that cannot be computed with."""
    for field, array in arrays.items():
        if not np.issubdtype(array.dtype, np.number) or not _all_finite(array):
            raise InputError(f"{field} holds values that are not finite numbers")
        if any(too_large(array[part]) for part in row_parts(len(array))):
            raise InputError(f"{field} {TOO_LARGE}")
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(learner_target)):
        raise InputError("learner_target holds values that are not finite numbers")


def _check_weights(arrays: dict[str, np.ndarray]) -> None:
    """Raise InputError unless each row has a weight, if there are weights."""
    if "weights" not in arrays:
        return
    weights = arrays["weights"]
    rows = len(arrays["labels"])
    if weights.shape != (rows,) or weights.min() < 0 or not weights.any():
        raise InputError(f"weights must be {rows} numbers of at least 0, one per row and not all 0")


def _check_targets(
    arrays: dict[str, np.ndarray],
    learner_target: Params | None,
    model: Model,
    teacher_model: Model,
) -> None:
    """Raise InputError unless the targets of linear models fit the views."""
    teacher_target = arrays["teacher_target"]
    outputs = len(teacher_target)
    columns = arrays["teacher_x"].shape[1] + 1
    if teacher_model.rows is linear_rows and teacher_target.shape != (outputs, columns):
        raise InputError(
            f"teacher_target has shape {teacher_target.shape}, expected (K, {columns}): "
            "a column per feature and the bias last"
        )
    if model.rows is linear_rows and isinstance(learner_target, np.ndarray | jax.Array):
        expected = (outputs, arrays["learner_x"].shape[1] + 1)
        if learner_target.shape != expected:
            raise InputError(
                f"learner_target has shape {learner_target.shape}, expected {expected}"
            )


def _check_class_labels(field: str, labels: np.ndarray, outputs: int) -> None:
    """Raise InputError unless labels are class indices (N,), a class per output."""
    are_classes = (
        labels.ndim == 1
        and (labels == labels.astype(np.int64)).all()
        and labels.min() >= 0
        and labels.max() < outputs
    )
    if not are_classes:
        raise InputError(
            f"{field} must be class indices 0 … {outputs - 1} "
            f"(found {labels.min():g} … {labels.max():g})"
        )


def _check_numeric_labels(field: str, labels: np.ndarray, outputs: int) -> None:
    """Raise InputError unless labels are targets (N, K), or (N,) for one output."""
    is_one_column = labels.ndim == 1 and outputs == 1
    if labels.shape != (len(labels), outputs) and not is_one_column:
        raise InputError(f"{field} has shape {labels.shape}, expected ({len(labels)}, {outputs})")


def _all_finite(array: np.ndarray) -> bool:
    """Tell whether all values are finite."""
    return all(np.isfinite(array[part]).all() for part in row_parts(len(array)))


def _as_array(name: str, field: str, value: Any) -> np.ndarray:
    """Return a field of a pool as an array; raise InputError if it does not have rows."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):  # rows of different lengths
        array = np.asarray(None)
    if array.ndim == 0:
        raise InputError(
            f"task {name!r}: {field} must be an array with one row per example, not {shown(value)}"
        )
    return array


def start_of(model: Model, init: str | Init | None) -> Init:
    """Return the start: as given, or the model's default."""
    if init is None:
        return model.init
    return Init.parse(init)


def check_start(
    model: Model,
    key: PRNGKeyArray,
    init: Init,
    rows: Any,
    outputs: int,
) -> None:
    """Refuse a start that the model ignores.

    Its results would be stored under the name of another start.
    """
    if init.kind == OWN.kind:
        return

    def start_at(scale: Any) -> Params:
        return model.start(key, Init(init.kind, scale), rows, outputs)

    # The model uses the start if its scale is an input of some operation, or is itself returned.
    program = jax.make_jaxpr(start_at)(1.0).jaxpr
    scale = program.invars[0]
    read = itertools.chain(*(equation.invars for equation in program.eqns), program.outvars)
    # Variables are compared as objects: literals among them have no equality.
    if not any(variable is scale for variable in read):
        raise InputError(
            f"model {model.name!r} ignores where learning starts ({init.kind}): "
            "let it draw its weights with init.draw, or give it init=ital.models.OWN"
        )


def check_model(
    model: Model,
    loss: Loss,
    params: Params,
    world: World,
) -> None:
    """Raise InputError if the model's outputs, the loss or the target have the wrong shape."""
    rows = world.learner.labels.shape[0]
    outputs = world.teacher.target.shape[0]
    alpha = result_shapes(
        f"model {model.name!r} cannot be applied to the pool",
        model.outputs,
        params,
        world.learner.x,
    )
    if alpha.shape != (rows, outputs):
        raise InputError(
            f"model {model.name!r} gives outputs of shape {alpha.shape[1:]} for an example, "
            f"expected ({outputs},): one output per row of teacher_target"
        )
    derivative = result_shapes(
        f"loss {loss.name!r} cannot be applied", loss.derivative, alpha, world.learner.labels
    )
    if derivative.shape != alpha.shape:
        raise InputError(
            f"the derivative of loss {loss.name!r} has shape {derivative.shape}, "
            f"expected {alpha.shape}"
        )
    target = world.truth.target
    if target is not None and _shapes(target) != _shapes(params):
        raise InputError(
            f"learner_target has shape {_shapes(target)}, but the parameters of model "
            f"{model.name!r} have {_shapes(params)}: give the optimum of this model, "
            "or None if it is unknown"
        )


def check_losses(loss: Loss, values: Any, rows: int) -> Any:
    """Return the losses; raise InputError if they are not one number per example."""
    if values.shape != (rows,):
        raise InputError(
            f"loss {loss.name!r} must be one number per example, shape ({rows},) on {rows} rows, "
            f"not {values.shape}"
        )
    return values


def result_shapes(fault: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the shapes of a function's result; raise InputError with one line if it fails."""
    try:
        return jax.eval_shape(function, *arguments)
    except InputError:
        raise
    except jax.errors.TracerArrayConversionError as error:
        raise InputError(f"{fault}: write it with jax.numpy in place of NumPy") from error
    except Exception as error:  # the function is the user's
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(f"{fault}: {reason[0]}") from error


def _shapes(tree: Any) -> Any:
    """Return the shape of an array, or the shapes of several."""
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(tree)]
    if len(shapes) == 1:
        return shapes[0]
    return shapes
