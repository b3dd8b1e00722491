"""Tasks with a pool of labelled examples that a learner and a linear teacher see through different features."""

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital import models, rationality, views, volume
from ital.errors import InputError
from ital.gradients import HIGHEST, Gradients, add_scaled, squared_norm, weighted
from ital.losses import Loss, cross_entropy
from ital.models import Init, LinearRows, Model
from ital.tasks._base import Metric, Rules, Task, TeacherSide, Truth, World, as_float
from ital.tasks._pool_data import Pool, check, check_losses, check_model, check_start, start_of
from ital.tools.checks import is_finite, require_finite, shown
from ital.tools.platform import on_cpu
from ital.tools.types import Array, Params, PRNGKeyArray, Scalar

_NOTHING = np.empty((0, 0))
BY_CLASS = {
    "balanced_accuracy": Metric("Balanced accuracy", higher_is_better=True),
    "macro_f1": Metric("Macro F1", higher_is_better=True),
}
PIECE = 2**26  # bytes copied to a GPU at a time
SHARES = (
    "_labelled",
    "_answered",
    "_right",
)  # of each class, from which the scores by class are computed


class Rows(NamedTuple):
    """The learner's side of a pool: the rows in the form of its model, the labels, and the weights of the rows."""

    x: Any
    labels: Any
    weights: Any = None


class TeacherRows(NamedTuple):
    """The teacher's side of a pool: its rows, the labels, the loss wᵢ·l(ω*xᵢ, yᵢ) of its optimum on each, and w."""

    x: LinearRows
    labels: Any
    target_losses: Any
    weights: Any = None


def from_pool(
    name: str,
    pool: Pool | Callable[[int], Pool],
    loss: Loss,
    *,
    beta: float | str,
    model: Model | None = None,
    teacher_model: Model | None = None,
    title: str | None = None,
    beta_decay: float = 0.0,
    init: str | Init | None = None,
    eval_every: int = 10,
    label_noise: float = 0.0,
    top5: bool = False,
    by_class: bool = False,
    teacher_loss: str = "own",
    data_version: str = "1",
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> Task:
    """Make a task from arrays: one :class:`Pool` for all seeds, or a function that draws one per seed.

    Args:
        name: name of the task.
        pool: the data, or ``pool(seed)`` that draws it.
        loss: the loss of the outputs.
        beta: β of the task; "auto" finds one per seed.
        model: the learner's model; None for a linear one.
        teacher_model: the teacher's model, a linear or a kernel one; None for a linear one.
        title: its name in figures; the name if None.
        beta_decay: the share that β loses per step.
        init: the start of the learners; None for the model's default.
        eval_every: steps between measurements.
        label_noise: probability that a label of the pool is replaced, once per seed (by another class, or by the label
            of another row); targets and test set stay clean.
        top5: also record how often the label is among the five largest outputs.
        by_class: also record the balanced accuracy (the mean over the classes of their share of right answers) and
            macro F1, in which every class counts equally.
        teacher_loss: the l(ω*x, y) that the teacher assumes: "own", the loss of its optimum in its view, or "zero".
        data_version: changes whenever the same seed would give other data.
        settings: stored with every result.

    Returns:
        The task.

    Raises:
        InputError: if an argument or the data are not valid; the message says why.
    """
    if beta != "auto" and not is_finite(beta):
        raise InputError(f"beta must be a finite number or 'auto', not {shown(beta)}")
    if teacher_loss not in ("own", "zero"):
        raise InputError(f"teacher_loss must be 'own' or 'zero', not {teacher_loss!r}")
    if not is_finite(label_noise) or not 0 <= label_noise <= 1:
        raise InputError(f"label noise must be a probability in [0, 1], not {shown(label_noise)}")
    require_finite(beta_decay=beta_decay)
    if not isinstance(loss, Loss):
        raise InputError(f"task {name!r}: loss must be an ital.losses.Loss, not {shown(loss)}")
    for role, part in (("model", model), ("teacher_model", teacher_model)):
        if part is not None and not isinstance(part, Model):
            raise InputError(
                f"task {name!r}: {role} must be an ital.models.Model or None, not {shown(part)}"
            )
    both = (model or models.linear(loss), teacher_model or models.linear(loss))
    if not callable(pool):
        handed = [check(name, pool, loss, *both)]
        del pool  # frees a view that the caller no longer holds, before its rows are made
        shared = _world(handed.pop(), loss, *both, teacher_loss, put=_to_device)
        draw: Callable[[int], World] = lambda seed: shared  # noqa: E731
    else:
        draw = lambda seed: _world(check(name, pool(seed), loss, *both), loss, *both, teacher_loss)  # noqa: E731

    def world(seed: int) -> World:
        return (
            _with_noise(draw(seed), loss, label_noise, seed, teacher_loss)
            if label_noise
            else draw(seed)
        )

    metrics = {
        "distance": Metric("Distance to the target"),
        "distance_centred": Metric("Distance to the target, centred"),
        "accuracy": Metric("Accuracy", higher_is_better=True),
        **({"top5_accuracy": Metric("Top-5 accuracy", higher_is_better=True)} if top5 else {}),
        **(BY_CLASS if by_class else {}),
        "loss": Metric(loss.title),
    }
    rules = _rules(*both, loss, top5, by_class)
    offers = (
        "gradients",
        "simulation",
        "questions",
        "labels",
        *(["ideal labels"] if rules.ideal_labels else []),
    )
    return Task(
        name=name,
        title=title or name,
        world=world,
        rules=rules,
        beta=beta,
        beta_decay=beta_decay,
        metrics=metrics,
        panels=("distance", "accuracy", *(["top5_accuracy"] if top5 else []), "loss"),
        init=start_of(both[0], init),
        eval_every=eval_every,
        settings={**settings, "label_noise": label_noise},
        data_version=data_version,
        offers=offers,
    )


@functools.cache  # equal tasks share one compiled program
def _rules(
    model: Model, teacher_model: Model, loss: Loss, top5: bool = False, by_class: bool = False
) -> Rules:
    def start(key: PRNGKeyArray, init: Init, world: World) -> Params:
        outputs = world.teacher.target.shape[0]
        params = model.start(key, init, world.learner.x, outputs)
        check_model(model, loss, params, world)
        check_start(model, key, init, world.learner.x, outputs)
        return params

    def draw(key: PRNGKeyArray, world: World, batch_size: int) -> Array:
        return jax.random.randint(key, (batch_size,), 0, world.learner.labels.shape[0])

    def show(side: Any, rows: Array) -> Any:
        return jax.tree.map(lambda column: column[rows], side)

    def feedback(params: Params, examples: Rows, previous: None) -> Array:
        return model.outputs(params, examples.x)

    def volumes(alpha: Array, examples: TeacherRows, target: Array, lr: Scalar) -> Array:
        """Eq. (imit-teacher): the gradient ∂l/∂α ⊗ x is imitated in the teacher's own view x."""
        residuals = loss.derivative(alpha, examples.labels)
        squared_norms = jnp.sum(residuals**2, axis=-1) * examples.x.squared_norms
        losses = loss.value(alpha, examples.labels)
        if examples.weights is not None:
            squared_norms = examples.weights**2 * squared_norms
            losses = examples.weights * losses
        return volume.imitated(lr, squared_norms, losses, examples.target_losses)

    def gradients(params: Params, examples: Rows, feedback: Array) -> Gradients:
        return weighted(model.gradients(params, examples.x, examples.labels), examples.weights)

    def on_rows(params: Params, rows: Rows) -> dict[str, Array]:
        alpha = model.outputs(params, rows.x)
        metrics = {"loss": loss.value(alpha, rows.labels)}
        if loss.classes:
            metrics["accuracy"] = is_argmax(alpha, rows.labels).astype(alpha.dtype)
        if top5:
            metrics["top5_accuracy"] = is_among(alpha, rows.labels, 5).astype(alpha.dtype)
        if by_class:
            metrics |= _shares_by_class(alpha, rows.labels)
        return metrics

    def measure(params: Params, truth: Truth) -> dict[str, Array]:
        outputs = jax.eval_shape(model.outputs, params, truth.test.x).shape[-1]
        metrics = _mean_over_rows(
            functools.partial(on_rows, params), truth.test, _rows_at_once(outputs)
        )
        if by_class:
            metrics |= _scores_by_class(*(metrics.pop(name) for name in SHARES))
        if truth.target is not None:
            gap = add_scaled(params, -1.0, truth.target)
            metrics["distance"] = jnp.sqrt(squared_norm(gap))
            if has_floor:
                metrics["distance_centred"] = jnp.sqrt(squared_norm(gap - jnp.mean(gap, axis=0)))
        return metrics

    is_linear = model.outputs is models.linear(loss).outputs  # also a kernel model, in its features
    has_floor = loss is cross_entropy and is_linear

    def references(start: Params, truth: Truth) -> dict[str, dict[str, Array]]:
        """The floor of the distance, √K·‖mean_k ν⁰ − mean_k ν*‖: adding a vector to all classes changes no loss."""
        if not has_floor or truth.target is None:
            return {}
        gap = jnp.mean(start - truth.target, axis=0)
        return {"distance": {"floor": jnp.sqrt(start.shape[0] * squared_norm(gap))}}

    def ideal_labels(params: Array, target: Array, examples: Rows, lr: Scalar) -> Array:
        """A naive step moves the answer α on its own example by −η‖x̃‖²·∂l/∂α."""
        assert loss.label is not None
        alpha, aim = model.outputs(params, examples.x), model.outputs(target, examples.x)
        per_residual = lr * examples.x.squared_norms[:, None]
        if examples.weights is not None:
            # A row without weight moves nothing, whatever its label is.
            per_residual = (
                per_residual * jnp.where(examples.weights > 0, examples.weights, 1.0)[:, None]
            )
        return loss.label(alpha, (alpha - aim) / per_residual)

    def risk(world: World) -> float:
        return views.pool_risk(world.learner.x.x, world.teacher.examples.x.x, world.teacher.target)

    return Rules(
        start, draw, show, feedback, volumes, gradients, measure, references,
        most_awareness=rationality.LINEAR if is_linear else rationality.NETWORK,
        relabel=functools.partial(_relabel, loss),
        ideal_labels=ideal_labels if is_linear and loss.label else None,
        teacher_model=teacher_model,
        risk=risk if is_linear else None,
    )  # fmt: skip


def _relabel(loss: Loss, examples: Rows, index: Array, label: Array) -> Rows:
    """The mini-batch with other labels; where labels are classes, all become distributions over the classes."""
    labels = (
        jax.nn.one_hot(examples.labels, label.shape[-1], dtype=label.dtype)
        if loss.classes
        else examples.labels
    )
    return examples._replace(labels=labels.at[index].set(label))


def is_argmax(alpha: Array, y: Array) -> Array:
    """Whether argmax would pick the label: its output is the largest, and larger than all at lower indices.

    This takes two maxima, one of which the loss needs anyway. XLA's argmax is several times slower on a CPU.
    """
    labelled = jnp.take_along_axis(alpha, y[:, None], axis=-1)[:, 0]
    before = jnp.max(jnp.where(jnp.arange(alpha.shape[-1]) < y[:, None], alpha, -jnp.inf), axis=-1)
    return (labelled == jnp.max(alpha, axis=-1)) & (labelled > before)


def is_among(alpha: Array, y: Array, top: int) -> Array:
    """Whether fewer than ``top`` outputs rank above the label's (larger, or equal at a lower index)."""
    labelled = jnp.take_along_axis(alpha, y[:, None], axis=-1)
    first = jnp.arange(alpha.shape[-1]) < y[:, None]
    return jnp.sum((alpha > labelled) | ((alpha == labelled) & first), axis=-1) < top


def _shares_by_class(alpha: Array, y: Array) -> dict[str, Array]:
    """Per row and class: whether the label, the answer, or both are this class."""
    classes = jnp.arange(alpha.shape[-1])
    labelled = y[:, None] == classes
    is_number = ~jnp.isnan(alpha).any(
        axis=-1, keepdims=True
    )  # argmax of NaN would answer the first class
    answered = (jnp.argmax(alpha, axis=-1)[:, None] == classes) & is_number
    per_class = (labelled, answered, labelled & answered)
    return {name: flags.astype(alpha.dtype) for name, flags in zip(SHARES, per_class, strict=True)}


def _scores_by_class(labelled: Array, answered: Array, right: Array) -> dict[str, Array]:
    """Balanced accuracy and macro F1, from the shares of the rows that each class has (K,).

    A class that no label has does not count for the balanced accuracy. For macro F1, one that no answer has either.
    """
    exists = labelled > 0
    recalls = right / jnp.where(exists, labelled, 1)
    either = labelled + answered
    f1 = 2 * right / jnp.where(either > 0, either, 1)
    return {
        "balanced_accuracy": jnp.sum(recalls) / jnp.sum(exists),
        "macro_f1": jnp.sum(f1) / jnp.sum(either > 0),
    }


def _mean_over_rows(
    per_row: Callable[[Rows], dict[str, Array]], rows: Rows, at_once: int
) -> dict[str, Array]:
    """The means of ``per_row`` over all rows, ``at_once`` rows at a time.

    All lanes measure in parallel: the outputs of a whole test set would not fit into a CPU's cache.
    """
    n = rows.labels.shape[0]
    sliced = n - n % at_once

    def total(rows: Rows) -> dict[str, Array]:
        return jax.tree.map(lambda values: jnp.sum(values, axis=0), per_row(rows))

    def slices(column: Array) -> Array:
        return column[:sliced].reshape(-1, at_once, *column.shape[1:])

    totals = total(jax.tree.map(lambda column: column[sliced:], rows))
    if sliced:
        parts = jax.lax.map(total, jax.tree.map(slices, rows))
        totals = jax.tree.map(lambda rest, part: rest + jnp.sum(part, axis=0), totals, parts)
    return jax.tree.map(lambda total: total / n, totals)


def _rows_at_once(outputs: int) -> int:
    """The number of rows whose outputs fit into a part of the cache (CPU) or of the memory (GPU)."""
    return max(1, (2**13 if on_cpu() else 2**21) // outputs)


def _world(
    pool: Pool,
    loss: Loss,
    model: Model,
    teacher_model: Model,
    teacher_loss: str,
    put: Callable[[Any], Any] = lambda leaf: leaf,
) -> World:
    """Both sides of a pool. ``put`` places its rows: those of a shared pool go directly to the device, so that no
    second copy remains. If both views are one array, its rows are stored once.
    """
    labels, test_labels = (_as_labels(y, loss) for y in (pool.labels, pool.test_labels))
    one_view = pool.learner_x is pool.teacher_x and model.rows is teacher_model.rows
    learner_x = jax.tree.map(put, model.rows(as_float(pool.learner_x)))
    pool = pool._replace(learner_x=_NOTHING)
    teacher_x = (
        learner_x if one_view else jax.tree.map(put, teacher_model.rows(as_float(pool.teacher_x)))
    )
    pool = pool._replace(teacher_x=_NOTHING)
    target = as_float(pool.teacher_target)
    weights = None if pool.weights is None else as_float(pool.weights)
    target_losses = _target_losses(loss, teacher_x, target, labels, teacher_loss, weights)
    return World(
        learner=Rows(learner_x, labels, weights),
        teacher=TeacherSide(TeacherRows(teacher_x, labels, target_losses, weights), target),
        truth=Truth(
            jax.tree.map(as_float, pool.learner_target),
            Rows(model.rows(as_float(pool.test_x)), test_labels),
        ),
    )


@functools.partial(jax.jit, donate_argnums=0)
def _write(rows: Array, piece: Array, first: Array) -> Array:
    return jax.lax.dynamic_update_slice_in_dim(rows, piece, first, 0)


def _to_device(leaf: np.ndarray) -> Array:
    """Copy rows to the device. A GPU gets them in pieces, because each piece is held twice during the copy."""
    size = max(1, PIECE // leaf[:1].nbytes)
    if jax.default_backend() == "cpu" or len(leaf) <= size:
        return jax.device_put(leaf)
    rows = jnp.zeros(leaf.shape, leaf.dtype)
    for first in range(0, len(leaf), size):
        rows = _write(rows, leaf[first : first + size], first).block_until_ready()
    return rows


def _target_losses(
    loss: Loss,
    x: LinearRows,
    target: np.ndarray,
    labels: np.ndarray,
    teacher_loss: str,
    weights: np.ndarray | None,
) -> np.ndarray:
    """The teacher's losses of its target, computed part by part: a large pool is never copied as a whole."""
    if teacher_loss == "zero":
        return np.zeros(len(labels), target.dtype)
    parts = [slice(first, first + 8192) for first in range(0, len(labels), 8192)]
    losses = np.concatenate(
        [np.asarray(_losses(loss, x.x[rows], target, labels[rows])) for rows in parts]
    )
    return losses if weights is None else weights * losses


@functools.partial(jax.jit, static_argnums=0)
def _losses(loss: Loss, x: Array, target: Array, labels: Array) -> Array:
    return check_losses(
        loss, loss.value(jnp.matmul(x, target.T, precision=HIGHEST), labels), len(x)
    )


def _with_noise(
    world: World, loss: Loss, probability: float, seed: int, teacher_loss: str
) -> World:
    """The same world with some labels replaced; arrays that do not depend on labels stay the same objects."""
    rng = np.random.default_rng([seed, 0x6E6F6973])
    labels = world.learner.labels
    replaced = rng.random(len(labels)) < probability
    if loss.classes:
        classes = len(world.teacher.target)
        others = (labels + rng.integers(1, classes, len(labels))) % classes
    else:
        others = labels[
            (np.arange(len(labels)) + rng.integers(1, len(labels), len(labels))) % len(labels)
        ]
    noisy = np.where(replaced.reshape(-1, *(1,) * (labels.ndim - 1)), others, labels).astype(
        labels.dtype
    )
    rows, target = world.teacher.examples, world.teacher.target
    target_losses = _target_losses(loss, rows.x, target, noisy, teacher_loss, rows.weights)
    return World(
        learner=world.learner._replace(labels=noisy),
        teacher=TeacherSide(rows._replace(labels=noisy, target_losses=target_losses), target),
        truth=world.truth,
    )


def _as_labels(y: np.ndarray, loss: Loss) -> np.ndarray:
    y = np.asarray(y)
    if loss.classes:
        return y.astype(np.int32)
    return as_float(y[:, None] if y.ndim == 1 else y)


__all__ = ["Pool", "from_pool"]
