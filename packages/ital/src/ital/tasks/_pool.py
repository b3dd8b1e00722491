"""Tasks with a pool of labelled examples.

A learner and a linear teacher see the examples through different features.
"""

import dataclasses
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
from ital.tasks._label_noise import LabelNoise
from ital.tasks._pool_data import (
    Pool,
    check_losses,
    check_model,
    check_pool,
    check_start,
    row_parts,
    start_of,
)
from ital.tasks._pool_likelihood import linear_likelihood, rows_of_pool, size_of_pool
from ital.tasks.protocols import MeasureFn
from ital.tools.checks import is_finite, require_finite, shown
from ital.tools.platform import on_cpu
from ital.tools.types import Array, Params, PRNGKeyArray, Scalar

_NOTHING = np.empty((0, 0))
BY_CLASS = {
    "balanced_accuracy": Metric("Balanced accuracy", higher_is_better=True),
    "macro_f1": Metric("Macro F1", higher_is_better=True),
}
PANELS = ("distance", "accuracy", "top5_accuracy", "loss")  # drawn, if there are such metrics
PIECE = 2**26  # bytes copied to a GPU at a time


# The indicators of each class from which the scores by class are computed.
SHARES = ("_labelled", "_answered", "_right")


class Rows(NamedTuple):
    """The learner's side of a pool.

    Attributes:
        x: the rows in the form of the learner's model.
        labels: class indices (N,), or targets (N, K).
        weights: the factor w of each row's loss (N,), None if all count equally.
    """

    x: Any
    labels: Any
    weights: Any = None


class TeacherRows(NamedTuple):
    """The teacher's side of a pool.

    Attributes:
        x: the rows as the teacher sees them, with the constant 1.
        labels: class indices (N,), or targets (N, K).
        target_losses: the loss wᵢ·l(ω*xᵢ, yᵢ) of the teacher's optimum on each row (N,).
        weights: the factor w of each row's loss (N,), None if all count equally.
    """

    x: LinearRows
    labels: Any
    target_losses: Any
    weights: Any = None


def from_pool(  # noqa: PLR0913
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
    label_noise: float | str = 0.0,
    top5: bool = False,
    by_class: bool = False,
    teacher_loss: str = "own",
    data_version: str = "1",
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> Task:
    """Make a task from arrays: one :class:`Pool` for all seeds, or a function that draws one per
    seed.

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
        label_noise: probability that a label of the pool is replaced, once per seed (by another
            class, or by the label of another row); or "sd:NUMBER" for Gaussian noise of that
            standard deviation on numeric labels; targets and test set stay clean.
        top5: also record how often the label is among the five largest outputs.
        by_class: also record the balanced accuracy (the mean over the classes of their share of
            right answers) and macro F1, in which every class counts equally.
        teacher_loss: the l(ω*x, y) that the teacher assumes: "own", the loss of its optimum in its
            view, or "zero".
        data_version: changes whenever the same seed would give other data.
        settings: stored with every result.

    Returns:
        The task.

    Raises:
        InputError: if an argument or the data are not valid; the message says why.
    """
    _check_pool_settings(beta, beta_decay, teacher_loss)
    _check_pool_parts(name, loss, model, teacher_model)
    noise = LabelNoise.parse(label_noise)
    noise.check_loss(loss)
    learner_model = model or models.linear(loss)
    linear_teacher = teacher_model or models.linear(loss)
    parts = (loss, learner_model, linear_teacher)
    # No name may hold a checked pool: its views are freed one by one while their rows are made.
    if callable(pool):
        draw_pool = pool

        def clean_world(seed: int) -> World:
            return _pool_world(check_pool(name, draw_pool(seed), *parts), *parts, teacher_loss)

    else:
        handed = [check_pool(name, pool, *parts)]
        del pool
        shared = _pool_world(handed.pop(), *parts, teacher_loss, put=_to_device)

        def clean_world(seed: int) -> World:
            return shared

    def world(seed: int) -> World:
        clean = clean_world(seed)
        if not noise.size:
            return clean
        return _with_label_noise(clean, loss, noise, seed, teacher_loss)

    metrics = _pool_metrics(loss, top5, by_class)
    rules = _pool_rules(learner_model, linear_teacher, loss, top5, by_class)
    offers = ["gradients", "simulation", "questions", "labels"]
    if rules.ideal_labels:
        offers.append("ideal labels")
    if rules.likelihood:
        offers.append("likelihood")
        # A choice is evidence about the target only if its volumes contain the target's loss.
        if teacher_loss == "own":
            offers.append("target losses")
    return Task(
        name=name,
        title=title or name,
        world=world,
        rules=rules,
        beta=beta,
        beta_decay=beta_decay,
        metrics=metrics,
        panels=tuple(metric for metric in PANELS if metric in metrics),
        init=start_of(learner_model, init),
        eval_every=eval_every,
        settings={**settings, "label_noise": noise.setting},
        data_version=data_version,
        offers=tuple(offers),
    )


def _check_pool_settings(
    beta: Any,
    beta_decay: Any,
    teacher_loss: Any,
) -> None:
    """Raise InputError for a setting that is no number of its range, or no allowed word."""
    if beta != "auto" and not is_finite(beta):
        raise InputError(f"beta must be a finite number or 'auto', not {shown(beta)}")
    if teacher_loss not in ("own", "zero"):
        raise InputError(f"teacher_loss must be 'own' or 'zero', not {teacher_loss!r}")
    require_finite(beta_decay=beta_decay)


def _check_pool_parts(
    name: str,
    loss: Any,
    model: Any,
    teacher_model: Any,
) -> None:
    """Raise InputError unless the loss is a loss, and each model a model or None."""
    if not isinstance(loss, Loss):
        raise InputError(f"task {name!r}: loss must be an ital.losses.Loss, not {shown(loss)}")
    for role, given in (("model", model), ("teacher_model", teacher_model)):
        if given is not None and not isinstance(given, Model):
            raise InputError(
                f"task {name!r}: {role} must be an ital.models.Model or None, not {shown(given)}"
            )


def _pool_metrics(loss: Loss, top5: bool, by_class: bool) -> dict[str, Metric]:
    """Return how the metrics of a pool are shown, in the order of tables."""
    metrics = {
        "distance": Metric("Distance to the target"),
        "distance_centred": Metric("Distance to the target, centred"),
        "accuracy": Metric("Accuracy", higher_is_better=True),
    }
    if top5:
        metrics["top5_accuracy"] = Metric("Top-5 accuracy", higher_is_better=True)
    if by_class:
        metrics |= BY_CLASS
    metrics["loss"] = Metric(loss.title)
    return metrics


# Compared by identity: equal arguments make one object anyway.
@dataclasses.dataclass(frozen=True, eq=False)
class _PoolTeaching:
    """The rules that depend on the learner's model and on the loss.

    Attributes:
        model: the learner's model.
        loss: the loss of the outputs.
        has_floor: whether no step moves the mean over the classes.
    """

    model: Model
    loss: Loss
    has_floor: bool

    def start(self, key: PRNGKeyArray, init: Init, world: World) -> Params:
        """Return ν⁰; refuse a model that does not fit the data, or ignores the start."""
        outputs = world.teacher.target.shape[0]
        params = self.model.start(key, init, world.learner.x, outputs)
        check_model(self.model, self.loss, params, world)
        check_start(self.model, key, init, world.learner.x, outputs)
        return params

    def feedback(self, params: Params, examples: Rows, previous: None) -> Array:
        """Return the learner's outputs α (B, K)."""
        return self.model.outputs(params, examples.x)

    def volumes(
        self,
        alpha: Array,
        examples: TeacherRows,
        target: Array,
        lr: Scalar,
    ) -> Array:
        """Eq. (imit-teacher): the gradient ∂l/∂α ⊗ x is imitated in the teacher's own view x."""
        residuals = self.loss.derivative(alpha, examples.labels)  # ∂l/∂α (B, K)
        squared_norms = jnp.sum(residuals**2, axis=-1) * examples.x.squared_norms
        losses = self.loss.value(alpha, examples.labels)
        if examples.weights is not None:
            squared_norms = examples.weights**2 * squared_norms
            losses = examples.weights * losses
        return volume.imitated(lr, squared_norms, losses, examples.target_losses)

    def gradients(self, params: Params, examples: Rows, feedback: Array) -> Gradients:
        """Return the learner's losses and gradients on its own view."""
        unweighted = self.model.gradients(params, examples.x, examples.labels)
        return weighted(unweighted, examples.weights)

    def references(self, start: Params, truth: Truth) -> dict[str, dict[str, Array]]:
        """Return the floor of the distance, √K·‖mean_k ν⁰ − mean_k ν*‖.

        No step moves the mean over the classes: adding a vector to all classes changes no loss.
        """
        if not self.has_floor or truth.target is None:
            return {}
        gap = jnp.mean(start - truth.target, axis=0)
        return {"distance": {"floor": jnp.sqrt(start.shape[0] * squared_norm(gap))}}

    def ideal_labels(
        self,
        params: Array,
        target: Array,
        examples: Rows,
        lr: Scalar,
    ) -> Array:
        """Solve for the labels: a naive step moves the answer α on its example by −η‖x̃‖²·∂l/∂α."""
        assert self.loss.label is not None
        alpha = self.model.outputs(params, examples.x)
        aim = self.model.outputs(target, examples.x)
        per_residual = lr * examples.x.squared_norms[:, None]  # the move of α per ∂l/∂α (B, 1)
        if examples.weights is not None:
            # A row without weight moves nothing, whatever its label is.
            factors = jnp.where(examples.weights > 0, examples.weights, 1.0)
            per_residual = per_residual * factors[:, None]
        residuals = (alpha - aim) / per_residual
        return self.loss.label(alpha, residuals)


def draw_rows(key: PRNGKeyArray, world: World, batch_size: int) -> Array:
    """Draw rows of the pool with replacement (B,)."""
    return jax.random.randint(key, (batch_size,), 0, world.learner.labels.shape[0])


def show_rows(side: Any, rows: Array) -> Any:
    """Return the drawn rows of one player's side."""
    return jax.tree.map(lambda column: column[rows], side)


def risk_of_view(world: World) -> float:
    """Return how much of the teacher's target the learner's view cannot express."""
    return views.pool_risk(world.learner.x.x, world.teacher.examples.x.x, world.teacher.target)


@functools.cache  # equal tasks share one compiled program
def _pool_rules(
    model: Model,
    teacher_model: Model,
    loss: Loss,
    top5: bool = False,
    by_class: bool = False,
) -> Rules:
    """Return the rules of a pool; the same object for the same arguments."""
    is_linear = model.outputs is models.linear(loss).outputs  # also a kernel model, in its features
    has_floor = loss is cross_entropy and is_linear
    pool = _PoolTeaching(model, loss, has_floor)
    rules = Rules(
        start=pool.start,
        draw=draw_rows,
        show=show_rows,
        feedback=pool.feedback,
        volumes=pool.volumes,
        gradients=pool.gradients,
        measure=_measure_of_pool(model, loss, top5, by_class, has_floor),
        references=pool.references,
        most_awareness=rationality.NETWORK,
        relabel=functools.partial(_relabel, loss),
        teacher_model=teacher_model,
    )
    if not is_linear:
        return rules
    linear_rules = rules._replace(most_awareness=rationality.LINEAR, risk=risk_of_view)
    if loss.likelihood:
        linear_rules = linear_rules._replace(
            likelihood=linear_likelihood(loss),
            rows=rows_of_pool,
            pool_size=size_of_pool,
        )
    if not loss.label:
        return linear_rules
    return linear_rules._replace(ideal_labels=pool.ideal_labels)


def _measure_of_pool(
    model: Model,
    loss: Loss,
    top5: bool,
    by_class: bool,
    has_floor: bool,
) -> MeasureFn:
    """Return the function that measures a learner on the test set, and its distance."""

    def metrics_by_row(params: Params, rows: Rows) -> dict[str, Array]:
        """Return the metrics of each row (n,), or (n, K) where scores by class need them."""
        alpha = model.outputs(params, rows.x)
        metrics = {"loss": loss.value(alpha, rows.labels)}
        if loss.classes:
            metrics["accuracy"] = is_argmax(alpha, rows.labels).astype(alpha.dtype)
        if top5:
            metrics["top5_accuracy"] = is_among(alpha, rows.labels, 5).astype(alpha.dtype)
        if by_class:
            metrics |= _indicators_by_class(alpha, rows.labels)
        return metrics

    def measure(params: Params, truth: Truth) -> dict[str, Array]:
        *_, outputs = jax.eval_shape(model.outputs, params, truth.test.x).shape
        per_row = functools.partial(metrics_by_row, params)
        metrics = _mean_over_rows(per_row, truth.test, _rows_at_once(outputs))
        if by_class:
            labelled, answered, right = (metrics.pop(name) for name in SHARES)
            metrics |= _scores_by_class(labelled, answered, right)
        if truth.target is not None:
            gap = add_scaled(params, -1.0, truth.target)
            metrics["distance"] = jnp.sqrt(squared_norm(gap))
            if has_floor:
                centred = gap - jnp.mean(gap, axis=0)
                metrics["distance_centred"] = jnp.sqrt(squared_norm(centred))
        return metrics

    return measure


def _relabel(
    loss: Loss,
    examples: Rows,
    index: Array,
    label: Array,
) -> Rows:
    """Return the mini-batch with other labels.

    Where labels are classes, all of them become distributions over the classes.
    """
    labels = examples.labels
    if loss.classes:
        labels = jax.nn.one_hot(labels, label.shape[-1], dtype=label.dtype)
    return examples._replace(labels=labels.at[index].set(label))


def is_argmax(alpha: Array, y: Array) -> Array:
    """Tell whether argmax would pick the label (n,).

    It does if the label's output is the largest, and larger than all at lower indices. This takes
    two maxima, one of which the loss needs anyway. XLA's argmax is several times slower on a CPU.
    """
    label = y[:, None]
    labelled = jnp.take_along_axis(alpha, label, axis=-1)[:, 0]
    is_before = jnp.arange(alpha.shape[-1]) < label  # classes below the label (n, K)
    before = jnp.max(jnp.where(is_before, alpha, -jnp.inf), axis=-1)
    is_largest = labelled == jnp.max(alpha, axis=-1)
    return is_largest & (labelled > before)


def is_among(alpha: Array, y: Array, top: int) -> Array:
    """Tell whether the label's output is among the ``top`` largest (n,).

    Of equal outputs, the one at the lower index ranks first.
    """
    label = y[:, None]
    labelled = jnp.take_along_axis(alpha, label, axis=-1)
    is_before = jnp.arange(alpha.shape[-1]) < label
    is_larger = alpha > labelled
    is_equal = alpha == labelled
    ranks_above = is_larger | (is_equal & is_before)
    return jnp.sum(ranks_above, axis=-1) < top


def _indicators_by_class(alpha: Array, y: Array) -> dict[str, Array]:
    """Tell per row and class (n, K) whether the label, the answer, or both are this class."""
    classes = jnp.arange(alpha.shape[-1])
    labelled = y[:, None] == classes
    # Without this, argmax of NaN would answer the first class.
    is_number = ~jnp.isnan(alpha).any(axis=-1, keepdims=True)
    largest = jnp.argmax(alpha, axis=-1)[:, None]
    answered = (largest == classes) & is_number
    right = labelled & answered
    indicators = [flags.astype(alpha.dtype) for flags in (labelled, answered, right)]
    return dict(zip(SHARES, indicators, strict=True))


def _scores_by_class(labelled: Array, answered: Array, right: Array) -> dict[str, Array]:
    """Return balanced accuracy and macro F1, from the shares of the rows that each class has (K,).

    A class that no label has does not count for the balanced accuracy. For macro F1, one that no
    answer has either.
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
    per_row: Callable[[Rows], dict[str, Array]],
    rows: Rows,
    at_once: int,
) -> dict[str, Array]:
    """Return the means of ``per_row`` over all rows, ``at_once`` rows at a time.

    All lanes measure in parallel: the outputs of a whole test set would not fit into a CPU's cache.
    """
    n = rows.labels.shape[0]
    in_slices = n - n % at_once  # the other rows, fewer than a slice, are summed apart

    def sums(rows: Rows) -> dict[str, Array]:
        return jax.tree.map(lambda values: jnp.sum(values, axis=0), per_row(rows))

    def slices(column: Array) -> Array:
        """Return the first rows as (slices, at_once, …)."""
        _, *of_row = column.shape
        return column[:in_slices].reshape(-1, at_once, *of_row)

    def added(rest: Array, by_slice: Array) -> Array:
        return rest + jnp.sum(by_slice, axis=0)

    remaining = jax.tree.map(lambda column: column[in_slices:], rows)
    totals = sums(remaining)
    if in_slices:
        sliced = jax.tree.map(slices, rows)
        by_slice = jax.lax.map(sums, sliced)
        totals = jax.tree.map(added, totals, by_slice)
    return jax.tree.map(lambda total: total / n, totals)


def _rows_at_once(outputs: int) -> int:
    """Return how many rows have outputs that fit into a part of the cache (CPU) or memory (GPU)."""
    numbers = 2**21
    if on_cpu():
        numbers = 2**13
    return max(1, numbers // outputs)


def _pool_world(
    pool: Pool,
    loss: Loss,
    model: Model,
    teacher_model: Model,
    teacher_loss: str,
    put: Callable[[Any], Any] = lambda leaf: leaf,
) -> World:
    """Return both sides of a pool. If both views are one array, its rows are stored once.

    ``put`` moves the rows: those of a shared pool go directly to the device, and each view is
    forgotten before the next is read, so that no second copy remains.
    """
    labels = _as_labels(pool.labels, loss)
    test_labels = _as_labels(pool.test_labels, loss)
    has_one_view = pool.learner_x is pool.teacher_x and model.rows is teacher_model.rows
    learner_x = jax.tree.map(put, model.rows(as_float(pool.learner_x)))
    pool = pool._replace(learner_x=_NOTHING)
    teacher_x = learner_x
    if not has_one_view:
        teacher_x = jax.tree.map(put, teacher_model.rows(as_float(pool.teacher_x)))
    pool = pool._replace(teacher_x=_NOTHING)

    target = as_float(pool.teacher_target)
    weights = pool.weights
    if weights is not None:
        weights = as_float(weights)
    target_losses = _target_losses(loss, teacher_x, target, labels, teacher_loss, weights)
    learner_target = jax.tree.map(as_float, pool.learner_target)
    test_x = model.rows(as_float(pool.test_x))
    examples = TeacherRows(teacher_x, labels, target_losses, weights)
    return World(
        learner=Rows(learner_x, labels, weights),
        teacher=TeacherSide(examples, target),
        truth=Truth(learner_target, Rows(test_x, test_labels)),
    )


@functools.partial(jax.jit, donate_argnums=0)
def _write_rows(rows: Array, piece: Array, first: Array) -> Array:
    """Write a piece into rows, from row ``first`` on; the rows' memory is used again."""
    return jax.lax.dynamic_update_slice_in_dim(rows, piece, first, 0)


def _to_device(leaf: np.ndarray) -> Array:
    """Copy rows to the device. A GPU gets them in pieces, because each is held twice meanwhile."""
    size = max(1, PIECE // leaf[:1].nbytes)
    if jax.default_backend() == "cpu" or len(leaf) <= size:
        return jax.device_put(leaf)
    rows = jnp.zeros(leaf.shape, leaf.dtype)
    for first in range(0, len(leaf), size):
        piece = leaf[first : first + size]
        rows = _write_rows(rows, piece, first)
        # One piece at a time, or the pieces that wait would take the memory that this saves.
        rows = rows.block_until_ready()
    return rows


def _target_losses(
    loss: Loss,
    x: LinearRows,
    target: np.ndarray,
    labels: np.ndarray,
    teacher_loss: str,
    weights: np.ndarray | None,
) -> np.ndarray:
    """Return the teacher's losses of its target (N,).

    They are computed part by part, so that a large pool is never copied as a whole.
    """
    if teacher_loss == "zero":
        return np.zeros(len(labels), target.dtype)
    parts = [
        np.asarray(_losses_of_rows(loss, x.x[rows], target, labels[rows]))
        for rows in row_parts(len(labels))
    ]
    losses = np.concatenate(parts)
    if weights is None:
        return losses
    return weights * losses


@functools.partial(jax.jit, static_argnums=0)
def _losses_of_rows(
    loss: Loss,
    x: Array,
    target: Array,
    labels: Array,
) -> Array:
    """Return the losses (n,) of a linear model on some rows."""
    outputs = jnp.matmul(x, target.T, precision=HIGHEST)
    return check_losses(loss, loss.value(outputs, labels), len(x))


def _with_label_noise(
    world: World,
    loss: Loss,
    noise: LabelNoise,
    seed: int,
    teacher_loss: str,
) -> World:
    """Return the world with noisy labels.

    Arrays that do not depend on labels stay the same objects, so that seeds go on sharing them.
    """
    examples, target = world.teacher
    noisy = noise.applied(world.learner.labels, loss, len(target), seed)
    target_losses = _target_losses(loss, examples.x, target, noisy, teacher_loss, examples.weights)
    noisy_examples = examples._replace(labels=noisy, target_losses=target_losses)
    return World(
        learner=world.learner._replace(labels=noisy),
        teacher=TeacherSide(noisy_examples, target),
        truth=world.truth,
    )


def _as_labels(y: np.ndarray, loss: Loss) -> np.ndarray:
    """Convert labels to class indices (N,), or targets (N, K) in the precision of this run."""
    y = np.asarray(y)
    if loss.classes:
        return y.astype(np.int32)
    if y.ndim == 1:
        y = y[:, None]
    return as_float(y)


__all__ = ["Pool", "from_pool"]
