"""The data of a task with a pool, and its checks."""

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


class Pool(NamedTuple):
    """The data of one seed: two views of the same rows (paired), labels, the optimum in each view, and a test set.

    Views do not contain the constant 1; it is appended later. Targets are K × (d+1), with the bias last.

    Attributes:
        learner_x: the learner's view (N, d).
        teacher_x: the teacher's view, row by row (N, d′).
        labels: class indices (N,), or targets (N, K).
        teacher_target: the teacher's optimum ω*.
        learner_target: the learner's optimum ν*, or None if it is unknown (then no ``distance`` is recorded).
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


def check(name: str, pool: Any, loss: Loss, model: Model, teacher_model: Model) -> Pool:
    """Return the pool; raise InputError with one line about the fault if it is not valid."""
    if not isinstance(pool, Pool):
        raise InputError(
            f"task {name!r}: a pool must be an ital.tasks.Pool, or a function that returns one, not {shown(pool)}"
        )

    def refuse(fault: str) -> None:
        raise InputError(f"task {name!r}: {fault}")

    absent = {"learner_target", *(["weights"] if pool.weights is None else [])}
    arrays = {
        field: _array(name, field, value)
        for field, value in pool._asdict().items()
        if field not in absent
    }
    rows = len(arrays["labels"])
    if rows == 0:
        refuse("the pool has no rows")
    if len(arrays["test_labels"]) == 0:
        refuse("the test set has no rows")
    for view in ("learner_x", "teacher_x"):
        if arrays[view].ndim != 2 or len(arrays[view]) != rows:
            refuse(
                f"{view} has shape {arrays[view].shape}, but there are {rows} labels: views are paired row by row"
            )
    if arrays["test_x"].shape != (len(arrays["test_labels"]), arrays["learner_x"].shape[1]):
        refuse(
            f"test_x has shape {arrays['test_x'].shape}, expected "
            f"{(len(arrays['test_labels']), arrays['learner_x'].shape[1])} to fit test_labels and learner_x"
        )
    for field, array in arrays.items():
        if not np.issubdtype(array.dtype, np.number) or not _all_finite(array):
            refuse(f"{field} holds values that are not finite numbers")
        if any(too_large(array[first : first + 8192]) for first in range(0, len(array), 8192)):
            refuse(f"{field} {TOO_LARGE}")
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(pool.learner_target)):
        refuse("learner_target holds values that are not finite numbers")
    if "weights" in arrays:
        weights = arrays["weights"]
        if weights.shape != (rows,) or weights.min() < 0 or not weights.any():
            refuse(f"weights must be {rows} numbers of at least 0, one per row and not all 0")
    outputs = len(arrays["teacher_target"])
    columns = arrays["teacher_x"].shape[1] + 1
    if teacher_model.rows is linear_rows and arrays["teacher_target"].shape != (outputs, columns):
        refuse(
            f"teacher_target has shape {arrays['teacher_target'].shape}, expected (K, {columns}): "
            "a column per feature and the bias last"
        )
    if model.rows is linear_rows and isinstance(pool.learner_target, np.ndarray | jax.Array):
        expected = (outputs, arrays["learner_x"].shape[1] + 1)
        if pool.learner_target.shape != expected:
            refuse(f"learner_target has shape {pool.learner_target.shape}, expected {expected}")
    for field in ("labels", "test_labels"):
        labels = arrays[field]
        if loss.classes and (
            labels.ndim != 1
            or (labels != labels.astype(np.int64)).any()
            or labels.min() < 0
            or labels.max() >= outputs
        ):
            refuse(
                f"{field} must be class indices 0 … {outputs - 1} (found {labels.min():g} … {labels.max():g})"
            )
        if (
            not loss.classes
            and labels.shape != (len(labels), outputs)
            and (labels.ndim, outputs) != (1, 1)
        ):
            refuse(f"{field} has shape {labels.shape}, expected ({len(labels)}, {outputs})")
    return pool


def _all_finite(array: np.ndarray) -> bool:
    """Whether all values are finite, checked part by part to save memory."""
    return all(
        np.isfinite(array[first : first + 8192]).all() for first in range(0, len(array), 8192)
    )


def _array(name: str, field: str, value: Any) -> np.ndarray:
    """A field of a pool; raises InputError if it is not an array of numbers."""
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
    """The start: as given, or the model's default."""
    return model.init if init is None else Init.parse(init)


def check_start(model: Model, key: PRNGKeyArray, init: Init, rows: Any, outputs: int) -> None:
    """Refuses a start that the model ignores: its results would be stored under the name of another start."""
    if init.kind == OWN.kind:
        return
    traced = jax.make_jaxpr(lambda scale: model.start(key, Init(init.kind, scale), rows, outputs))(
        1.0
    ).jaxpr
    used = [variable for equation in traced.eqns for variable in equation.invars] + traced.outvars
    if not any(variable is traced.invars[0] for variable in used):
        raise InputError(
            f"model {model.name!r} ignores where learning starts ({init.kind}): let it draw its weights with "
            "init.draw, or give it init=ital.models.OWN"
        )


def check_model(model: Model, loss: Loss, params: Params, world: World) -> None:
    """Raise InputError if the model's outputs, the loss or the target have the wrong shape."""
    rows, outputs = world.learner.labels.shape[0], world.teacher.target.shape[0]
    alpha = traced(
        f"model {model.name!r} cannot be applied to the pool",
        model.outputs,
        params,
        world.learner.x,
    )
    if alpha.shape != (rows, outputs):
        raise InputError(
            f"model {model.name!r} gives outputs of shape {alpha.shape[1:]} for an example, expected ({outputs},): "
            "one output per row of teacher_target"
        )
    derivative = traced(
        f"loss {loss.name!r} cannot be applied", loss.derivative, alpha, world.learner.labels
    )
    if derivative.shape != alpha.shape:
        raise InputError(
            f"the derivative of loss {loss.name!r} has shape {derivative.shape}, expected {alpha.shape}"
        )
    target = world.truth.target
    if target is not None and _shapes(target) != _shapes(params):
        raise InputError(
            f"learner_target has shape {_shapes(target)}, but the parameters of model {model.name!r} have "
            f"{_shapes(params)}: give the optimum of this model, or None if it is unknown"
        )


def check_losses(loss: Loss, values: Any, rows: int) -> Any:
    """Return the losses; raise InputError if they are not one number per example."""
    if values.shape != (rows,):
        raise InputError(
            f"loss {loss.name!r} must be one number per example, shape ({rows},) on {rows} rows, not {values.shape}"
        )
    return values


def traced(fault: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """The shapes of a function's result; raises InputError with one line if the function fails."""
    try:
        return jax.eval_shape(function, *arguments)
    except InputError:
        raise
    except Exception as error:  # the function is the user's
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(f"{fault}: {reason[0]}") from error


def _shapes(tree: Any) -> Any:
    """The shape of an array, or the shapes of several."""
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(tree)]
    return shapes[0] if len(shapes) == 1 else shapes
