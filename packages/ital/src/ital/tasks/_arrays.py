"""A task from your own arrays: encodes labels, splits off a test set, and fits both optima."""

import hashlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ital import losses, models
from ital.errors import InputError
from ital.losses import Loss
from ital.models import Init, Model
from ital.tasks._base import Task
from ital.tasks._encoding import Encoding
from ital.tasks._labels import KINDS, Labels, as_view, dense, encode, encode_like
from ital.tasks._pool import Pool, from_pool
from ital.tasks._targets import Units, fit, in_units, read_estimator, units_of
from ital.tools.checks import shown
from ital.tools.short import called


class Rowwise(NamedTuple):
    """The given rows, split: both views and labels for teaching, the learner's view and labels for
    testing.

    If both players have the same view, it is one object. The weights of the rows have mean 1.
    """

    teacher_x: np.ndarray
    learner_x: np.ndarray
    labels: np.ndarray
    test_x: np.ndarray
    test_labels: np.ndarray
    weights: np.ndarray | None = None


def from_arrays(
    x_teacher: Any,
    x_learner: Any = None,
    y: Any = None,
    *,
    name: str = "arrays",
    title: str | None = None,
    kind: str | None = None,
    loss: Loss | None = None,
    weights: Any = None,
    test_size: float = 0.25,
    split_seed: int = 0,
    x_test: Any = None,
    y_test: Any = None,
    standardise: bool | str = True,
    l2: float = 1.0,
    teacher_target: Any = None,
    learner_target: Any = None,
    model: Model | Callable[[Loss], Model] | None = None,
    beta: float | str = "auto",
    init: str | Init | None = None,
    eval_every: int = 10,
    label_noise: float = 0.0,
    data_version: str | None = None,
    quiet: bool = False,
) -> Task:
    """Make a task from your own data: rows that teacher and learner see through the same or
    different columns.

    Labels may be text, booleans, numbers or one-hot columns. Binary labels give two classes, as in
    scikit-learn. The task's settings record what was inferred, and one line on standard error
    reports it.

    Args:
        x_teacher: the teacher's view (N, d), any dense array-like.
        x_learner: the learner's view, row by row (N, d′); None if both see the same.
        y: the labels (N,), or targets (N, K).
        name: name of the task, and of its results folder.
        title: its name in figures; the name if None.
        kind: "classification" or "regression"; None infers it: text, booleans, one-hot columns, and
            whole numbers with few distinct values are classes. A loss decides it too.
        loss: the loss that the learner is taught with, and that the targets are fitted for: one of
            :mod:`ital.losses` or one of your own, see :func:`ital.losses.custom`; None for the
            cross-entropy or the square loss.
        weights: how much each row's loss counts (N,): scaled to mean 1 over the teaching rows, and
            used for the targets too; "balanced" makes all classes count equally; None for equal
            weights. Measurements do not use them.
        test_size: share or number of rows to split off for the test, stratified by class.
        split_seed: seed of that split; all seeds of a run share it.
        x_test: the learner's view of your own test set; then nothing is split off.
        y_test: its labels.
        standardise: shift and scale all columns of both views, and the targets of a regression, to
            mean 0 and variance 1 over the teaching rows. The default step sizes and starts suit
            such columns. "views" leaves the targets of a regression as they are, for a loss that
            depends on their units.
        l2: strength of the penalty ½·l2·‖w‖² when fitting targets: ``Ridge(alpha=l2)``,
            ``LogisticRegression(C=1/l2)``, or L-BFGS for other losses.
        teacher_target: a fitted linear scikit-learn estimator as the teacher's target, on the
            columns as given.
        learner_target: the same for the learner; with one view, one estimator serves both.
        model: ``model(loss)`` makes the learner's model, such as a network; a model that is made
            already needs its ``loss`` here too; None for a linear one. Other models have no single
            known optimum, so no ``distance`` is recorded for them.
        beta: β of the task; "auto" finds one per seed.
        init: the start of the learners.
        eval_every: steps between measurements.
        label_noise: probability that a label of the pool is replaced, once per seed.
        data_version: identifies this data; None for a checksum of the arrays.
        quiet: print nothing.

    Returns:
        The task.

    Raises:
        InputError: if an argument is not valid; the message names it and says what is expected.

    Example:
        >>> x, y = sklearn.datasets.load_digits(return_X_y=True)
        >>> result = ital.teach(ital.tasks.from_arrays(x, y=y), learner=["imt", "ital"])
    """
    if not (isinstance(l2, int | float | np.number) and l2 > 0):
        raise InputError(f"l2 (the strength of the penalty) must be a positive number, not {l2!r}")
    if not (isinstance(split_seed, int | np.integer) and 0 <= split_seed < 2**32):
        raise InputError(f"split_seed must be a whole number of at least 0, not {split_seed!r}")
    if model is not None and learner_target is not None:
        raise InputError(
            "learner_target is the optimum of a linear learner: leave it out if model is given"
        )
    if standardise not in (True, False, "views"):
        raise InputError(f"standardise must be True, False or 'views', not {shown(standardise)}")
    labels = encode(y, _kind_of(loss, kind))
    taught_loss = loss or (losses.cross_entropy if labels.classes else losses.squared)
    teacher_x, learner_x = _views(x_teacher, x_learner, len(labels.values))
    _check_indices({"x_teacher": x_teacher, "x_learner": x_learner, "y": y, "weights": weights})
    _check_indices({"x_test": x_test, "y_test": y_test})
    row_weights = _row_weights(weights, labels)
    if x_test is None and y_test is None:
        rows = _split(teacher_x, learner_x, labels, row_weights, test_size, split_seed)
    elif x_test is None or y_test is None:
        raise InputError(
            "x_test and y_test belong together: give both, or neither to split off a test set"
        )
    else:
        rows = _with_test(
            teacher_x, learner_x, labels, row_weights, as_view(x_test, "x_test"), y_test
        )
    _check_classes(labels, rows.labels)
    targets = _given_targets(rows, labels, teacher_target, learner_target)
    made = (
        models.linear(taught_loss)
        if model is None
        else _made(model, taught_loss, loss_is_given=loss is not None)
    )
    pool, encoding = _encoded(rows, labels, targets, taught_loss, made, standardise, l2)
    settings: dict[str, Any] = {
        "kind": labels.kind,
        "rows": len(pool.labels),
        "test_rows": len(pool.test_labels),
    }
    settings |= {"classes": list(labels.classes)} if labels.classes else {}
    settings |= {"standardised": standardise, "l2": l2}
    settings |= {"given": given} if (given := _given(*targets)) else {}
    settings |= (
        {} if taught_loss in (losses.cross_entropy, losses.squared) else {"loss": taught_loss.name}
    )
    settings |= (
        {} if weights is None else {"weights": "balanced" if isinstance(weights, str) else "given"}
    )
    settings |= {} if model is None else {"model": made.name}
    task = from_pool(
        name,
        pool,
        taught_loss,
        model=None if model is None else made,
        by_class=bool(labels.classes),
        beta=beta,
        title=title,
        init=init,
        eval_every=eval_every,
        label_noise=label_noise,
        data_version=data_version or _checksum(pool),
        settings=settings,
    )._replace(encoding=encoding)
    if not quiet:
        print(describe_data(task), file=sys.stderr)
    return task


def describe_data(task: Task) -> str:
    """One line about what was inferred from the data of a task.

    Args:
        task: a task of :func:`from_arrays` or :func:`from_table`.

    Returns:
        The line: kind, rows, units of the columns, and origin of the targets.
    """
    settings = task.settings
    classes = settings.get("classes")
    kind = (
        "regression"
        if classes is None
        else f"classification, {len(classes)} classes ({_few(classes)})"
    )
    loss = settings.get("loss")
    if loss is not None:
        estimator = f"L-BFGS for loss {loss} (l2={settings['l2']:g})"
    elif classes is None:
        estimator = f"Ridge(alpha={settings['l2']:g})"
    else:
        estimator = f"LogisticRegression(C={1 / settings['l2']:g})"
    units = "standardised" if settings["standardised"] else "as they are"
    weights = {None: "", "balanced": "; classes weighted equally", "given": "; rows weighted"}[
        settings.get("weights")
    ]
    given = settings.get("given", "")
    origins = {"": f"targets fitted by {estimator}", "both": "targets given"}
    origin = origins.get(given, f"the {given}'s target given, the other fitted by {estimator}")
    rows = f"{settings['rows']} rows for teaching, {settings['test_rows']} for testing"
    learner = f"; the learner is {settings['model']}" if "model" in settings else ""
    return f"{task.name}: {kind}; {rows}; columns {units}{weights}; {origin}{learner}"


def _views(x_teacher: Any, x_learner: Any, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The teacher's and the learner's view; one object if only one is given."""
    given = {"x_teacher": x_teacher, "x_learner": x_learner}
    views = {name: as_view(x, name) for name, x in given.items() if x is not None}
    if not views:
        raise InputError("x_teacher is missing: give the rows that teacher and learner see, (N, d)")
    for name, view in views.items():
        if len(view) != rows:
            raise InputError(
                f"{name} has {len(view)} rows, but y has {rows} labels: views are paired row by row"
            )
    teacher_x, learner_x = (views.get(name, next(iter(views.values()))) for name in given)
    return teacher_x, learner_x


def _kind_of(loss: Any, kind: str | None) -> str | None:
    """The kind of labels that a loss is for; ``kind`` without a loss."""
    if loss is None:
        return kind
    if not isinstance(loss, Loss):
        hint = f": make one with ital.losses.custom({called(loss)!r}, …)" if callable(loss) else ""
        raise InputError(
            f"loss must be one of ital.losses, or your own by ital.losses.custom, not {shown(loss)}{hint}"
        )
    fitting = KINDS[0] if loss.classes else KINDS[1]
    if kind in KINDS and kind != fitting:
        raise InputError(
            f"loss {loss.name!r} is for a {fitting}, but kind is {kind!r}: leave kind out"
        )
    return fitting


def _check_indices(given: dict[str, Any]) -> None:
    """Raise InputError if pandas objects that belong together row by row have different indices."""
    import pandas as pd

    indices = {
        name: each.index
        for name, each in given.items()
        if isinstance(each, pd.DataFrame | pd.Series)
    }
    if len(indices) < 2:
        return
    (first, index), *others = indices.items()
    for name, other in others:
        if not index.equals(other):
            raise InputError(
                f"{first} and {name} have different pandas indices, but rows are paired by position: use "
                f"{name}.loc[{first}.index], or {first}.to_numpy() and {name}.to_numpy() if the order is right"
            )


def _row_weights(weights: Any, labels: Labels) -> np.ndarray | None:
    """The weight of each row; None if all are equal."""
    if weights is None:
        return None
    rows = len(labels.values)
    if isinstance(weights, str):
        if weights != "balanced" or not labels.classes:
            raise InputError(
                f"weights must be one number per row, or 'balanced' for classes, not {weights!r}"
            )
        counts = np.bincount(labels.values)
        return rows / (len(counts) * counts[labels.values])
    try:
        values = np.asarray(dense(weights, "weights", "have one number per row, (N,)"), float)
    except (TypeError, ValueError):
        raise InputError(f"weights must be one number per row, not {shown(weights)}") from None
    if (
        values.shape != (rows,)
        or not np.isfinite(values).all()
        or values.min() < 0
        or not values.any()
    ):
        raise InputError(
            f"weights must be {rows} finite numbers of at least 0, one per row and not all 0"
        )
    return values


def _split(
    teacher_x: np.ndarray,
    learner_x: np.ndarray,
    labels: Labels,
    weights: np.ndarray | None,
    test_size: float,
    split_seed: int,
) -> Rowwise:
    """Split off some rows at random, stratified by class."""
    from sklearn.model_selection import train_test_split

    if labels.classes:
        counts = np.bincount(labels.values, minlength=len(labels.classes))
        if counts.min() == 1:
            rare = labels.classes[int(counts.argmin())]
            raise InputError(
                f"y: class {rare!r} has one row, but a split needs two: drop it, or give x_test and y_test"
            )
    try:
        train, test = train_test_split(
            np.arange(len(labels.values)),
            test_size=test_size,
            random_state=split_seed,
            stratify=labels.values if labels.classes else None,
        )
    except ValueError as error:
        raise InputError(f"test_size = {test_size!r} cannot be split off: {error}") from None
    taught = learner_x[train]
    other = taught if teacher_x is learner_x else teacher_x[train]
    kept = None if weights is None else weights[train]
    return Rowwise(other, taught, labels.values[train], learner_x[test], labels.values[test], kept)


def _with_test(
    teacher_x: np.ndarray,
    learner_x: np.ndarray,
    labels: Labels,
    weights: np.ndarray | None,
    test_x: np.ndarray,
    y_test: Any,
) -> Rowwise:
    """All rows for teaching, and the given test set."""
    test_labels = encode_like(labels, y_test, "y_test")
    expected = (len(test_labels), learner_x.shape[1])
    if test_x.shape != expected:
        raise InputError(
            f"x_test has shape {test_x.shape}, expected {expected} to fit y_test and the learner's view"
        )
    return Rowwise(teacher_x, learner_x, labels.values, test_x, test_labels, weights)


def _check_classes(labels: Labels, taught: np.ndarray) -> None:
    absent = set(range(len(labels.classes))) - set(taught.tolist() if labels.classes else ())
    if absent:
        raise InputError(
            f"y: no row of class {labels.classes[min(absent)]!r} is left for teaching: choose fewer test rows"
        )


def _given_targets(
    rows: Rowwise,
    labels: Labels,
    teacher_target: Any,
    learner_target: Any,
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Weights of the given estimators; with one view, one estimator serves both players."""
    views = (
        ("teacher_target", teacher_target, rows.teacher_x),
        ("learner_target", learner_target, rows.learner_x),
    )
    teacher, learner = (
        None if estimator is None else read_estimator(estimator, x.shape[1], labels, name)
        for name, estimator, x in views
    )
    if rows.teacher_x is rows.learner_x:
        return learner if teacher is None else teacher, teacher if learner is None else learner
    return teacher, learner


def _encoded(
    rows: Rowwise,
    labels: Labels,
    targets: tuple[np.ndarray | None, np.ndarray | None],
    loss: Loss,
    model: Model,
    standardise: bool | str,
    l2: float,
) -> tuple[Pool, Encoding]:
    """The rows and both targets in the same units, and the way back; targets are fitted if not
    given.
    """
    outputs = len(labels.classes) or rows.labels.shape[1]
    y_units = Units(np.zeros(outputs), np.ones(outputs))
    if not labels.classes:
        y_units = units_of(rows.labels, standardise is True)
    y, test_y = (
        each if labels.classes else y_units.apply(each) for each in (rows.labels, rows.test_labels)
    )
    weights = rows.weights
    if weights is not None:
        if not weights.any():
            raise InputError(
                "weights are 0 on all teaching rows: choose fewer test rows, or give x_test and y_test"
            )
        weights = weights / weights.mean()

    def placed(x: np.ndarray, given: np.ndarray | None) -> tuple[Units, np.ndarray, np.ndarray]:
        units = units_of(x, bool(standardise))
        scaled = units.apply(x)
        target = (
            fit(scaled, y, loss, outputs, l2, weights)
            if given is None
            else in_units(given, units, y_units)
        )
        return units, scaled, target

    teacher_weights, learner_weights = targets
    learner_units, learner_x, learner_target = placed(rows.learner_x, learner_weights)
    teacher_units, teacher_x, teacher_target = learner_units, learner_x, learner_target
    if rows.teacher_x is not rows.learner_x:
        teacher_units, teacher_x, teacher_target = placed(rows.teacher_x, teacher_weights)
    elif teacher_weights is not None:
        teacher_target = in_units(teacher_weights, learner_units, y_units)
    known = learner_target if model is models.linear(loss) else None
    test_x = learner_units.apply(rows.test_x)
    pool = Pool(learner_x, teacher_x, y, teacher_target, known, test_x, test_y, weights)
    return pool, Encoding(
        labels, teacher_units, learner_units, y_units, teacher_target, known, model
    )


def _given(teacher: np.ndarray | None, learner: np.ndarray | None) -> str:
    """Whose target was given."""
    names = [
        name
        for name, weights in (("teacher", teacher), ("learner", learner))
        if weights is not None
    ]
    return "both" if len(names) == 2 else "".join(names)


def _made(model: Any, loss: Loss, loss_is_given: bool) -> Model:
    """The learner's model; raises InputError if ``model`` neither is one nor makes one."""
    if isinstance(model, Model):
        if not loss_is_given:
            raise InputError(
                f"model {model.name!r} was made for a loss that is not known here: give the same loss=, "
                "or a function from a loss to a model"
            )
        return model
    if not callable(model):
        raise InputError(
            f"model must be a function from a loss to an ital.models.Model, not {shown(model)}"
        )
    try:
        made = model(loss)
    except TypeError as error:
        raise InputError(
            f"model must be a function of one argument, the loss; {called(model)} fails: {error}"
        ) from None
    if not isinstance(made, Model):
        raise InputError(
            f"model must be a function from a loss to an ital.models.Model, but returns {shown(made)}"
        )
    return made


def _few(classes: list[Any]) -> str:
    return (
        ", ".join(map(str, classes))
        if len(classes) <= 4
        else f"{classes[0]}, {classes[1]} … {classes[-1]}"
    )


def _checksum(pool: Pool) -> str:
    """A checksum of the pool, 16 digits."""
    digest = hashlib.sha256()
    for field, array in pool._asdict().items():
        if array is None:
            continue
        digest.update(f"{field} {array.shape} {array.dtype}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


__all__ = ["describe_data", "from_arrays"]
