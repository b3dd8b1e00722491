"""A task from your own arrays: encodes labels, splits off a test set, and fits both optima."""

import hashlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ital import losses
from ital._checks import shown
from ital.errors import InputError
from ital.losses import Loss
from ital.models import Init, Model
from ital.tasks._base import Task
from ital.tasks._labels import Labels, dense, encode, encode_like
from ital.tasks._pool import Pool, from_pool
from ital.tasks._targets import Units, fit, in_units, read_estimator, units_of


class Rowwise(NamedTuple):
    """The given rows, split: both views and labels for teaching, the learner's view and labels for testing.

    If both players have the same view, it is one object.
    """

    teacher_x: np.ndarray
    learner_x: np.ndarray
    labels: np.ndarray
    test_x: np.ndarray
    test_labels: np.ndarray


def from_arrays(
    x_teacher: Any,
    x_learner: Any = None,
    y: Any = None,
    *,
    name: str = "arrays",
    title: str | None = None,
    kind: str | None = None,
    test_size: float = 0.25,
    split_seed: int = 0,
    x_test: Any = None,
    y_test: Any = None,
    standardise: bool = True,
    l2: float = 1.0,
    teacher_target: Any = None,
    learner_target: Any = None,
    model: Callable[[Loss], Model] | None = None,
    beta: float | str = "auto",
    init: str | Init | None = None,
    eval_every: int = 10,
    label_noise: float = 0.0,
    data_version: str | None = None,
    quiet: bool = False,
) -> Task:
    """Make a task from your own data: rows that teacher and learner see through the same or different columns.

    Labels may be text, booleans, numbers or one-hot columns. Binary labels give two classes, as in scikit-learn. The
    task's settings record what was inferred, and one line on standard error reports it.

    Args:
        x_teacher: the teacher's view (N, d), any dense array-like.
        x_learner: the learner's view, row by row (N, d′); None if both see the same.
        y: the labels (N,), or targets (N, K).
        name: name of the task, and of its results folder.
        title: its name in figures; the name if None.
        kind: "classification" or "regression"; None infers it: text, booleans, one-hot columns, and whole numbers with
            few distinct values are classes.
        test_size: share or number of rows to split off for the test, stratified by class.
        split_seed: seed of that split; all seeds of a run share it.
        x_test: the learner's view of your own test set; then nothing is split off.
        y_test: its labels.
        standardise: shift and scale all columns of both views, and the targets of a regression, to mean 0 and variance
            1 over the teaching rows. The default step sizes and starts suit such columns.
        l2: strength of the penalty ½·l2·‖w‖² when fitting targets: ``Ridge(alpha=l2)`` or
            ``LogisticRegression(C=1/l2)``.
        teacher_target: a fitted linear scikit-learn estimator as the teacher's target, on the columns as given.
        learner_target: the same for the learner; with one view, one estimator serves both.
        model: ``model(loss)`` makes the learner's model, such as a network; None for a linear one. Other models have no
            single known optimum, so no ``distance`` is recorded for them.
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
        raise InputError("learner_target is the optimum of a linear learner: leave it out if model is given")
    labels = encode(y, kind)
    teacher_x, learner_x = _views(x_teacher, x_learner, len(labels.values))
    if x_test is None and y_test is None:
        rows = _split(teacher_x, learner_x, labels, test_size, split_seed)
    elif x_test is None or y_test is None:
        raise InputError("x_test and y_test belong together: give both, or neither to split off a test set")
    else:
        rows = _with_test(teacher_x, learner_x, labels, as_view(x_test, "x_test"), y_test)
    _check_classes(labels, rows.labels)
    weights = _weights(rows, labels, teacher_target, learner_target)
    pool = _pool(rows, labels, weights, standardise, l2)
    settings: dict[str, Any] = {"kind": labels.kind, "rows": len(pool.labels), "test_rows": len(pool.test_labels)}
    settings |= {"classes": list(labels.classes)} if labels.classes else {}
    settings |= {"standardised": standardise, "l2": l2}
    settings |= {"given": given} if (given := _given(*weights)) else {}
    loss = losses.cross_entropy if labels.classes else losses.squared
    made = None if model is None else _made(model, loss)
    if made is not None:
        pool, settings = pool._replace(learner_target=None), {**settings, "model": made.name}
    task = from_pool(
        name,
        pool,
        loss,
        model=made,
        beta=beta,
        title=title,
        init=init,
        eval_every=eval_every,
        label_noise=label_noise,
        data_version=data_version or _checksum(pool),
        settings=settings,
    )
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
    kind = "regression" if classes is None else f"classification, {len(classes)} classes ({_few(classes)})"
    estimator = (
        f"Ridge(alpha={settings['l2']:g})" if classes is None else f"LogisticRegression(C={1 / settings['l2']:g})"
    )
    units = "standardised" if settings["standardised"] else "as they are"
    given = settings.get("given", "")
    origins = {"": f"targets fitted by {estimator}", "both": "targets given"}
    origin = origins.get(given, f"the {given}'s target given, the other fitted by {estimator}")
    rows = f"{settings['rows']} rows for teaching, {settings['test_rows']} for testing"
    learner = f"; the learner is {settings['model']}" if "model" in settings else ""
    return f"{task.name}: {kind}; {rows}; columns {units}; {origin}{learner}"


def as_view(x: Any, name: str) -> np.ndarray:
    """A view as finite numbers (N, d); raises InputError with the names of the argument and the column."""
    values = dense(x, name, "be a table of rows and columns (N, d)")
    if values.ndim != 2 or 0 in values.shape:
        hint = f": use {name}.reshape(len({name}), -1)" if values.ndim > 2 and values.size else ""
        raise InputError(f"{name} must be a table of rows and columns (N, d), not shape {values.shape}{hint}")
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
        raise InputError(f"{name}: column {column!r} has missing or infinite values: fill them, or drop the rows")
    return values


def _views(x_teacher: Any, x_learner: Any, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The teacher's and the learner's view; one object if only one is given."""
    given = {"x_teacher": x_teacher, "x_learner": x_learner}
    views = {name: as_view(x, name) for name, x in given.items() if x is not None}
    if not views:
        raise InputError("x_teacher is missing: give the rows that teacher and learner see, (N, d)")
    for name, view in views.items():
        if len(view) != rows:
            raise InputError(f"{name} has {len(view)} rows, but y has {rows} labels: views are paired row by row")
    teacher_x, learner_x = (views.get(name, next(iter(views.values()))) for name in given)
    return teacher_x, learner_x


def _split(teacher_x: np.ndarray, learner_x: np.ndarray, labels: Labels, test_size: float, split_seed: int) -> Rowwise:
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
    return Rowwise(other, taught, labels.values[train], learner_x[test], labels.values[test])


def _with_test(
    teacher_x: np.ndarray, learner_x: np.ndarray, labels: Labels, test_x: np.ndarray, y_test: Any
) -> Rowwise:
    """All rows for teaching, and the given test set."""
    test_labels = encode_like(labels, y_test, "y_test")
    expected = (len(test_labels), learner_x.shape[1])
    if test_x.shape != expected:
        raise InputError(f"x_test has shape {test_x.shape}, expected {expected} to fit y_test and the learner's view")
    return Rowwise(teacher_x, learner_x, labels.values, test_x, test_labels)


def _check_classes(labels: Labels, taught: np.ndarray) -> None:
    absent = set(range(len(labels.classes))) - set(taught.tolist() if labels.classes else ())
    if absent:
        raise InputError(
            f"y: no row of class {labels.classes[min(absent)]!r} is left for teaching: choose fewer test rows"
        )


def _weights(
    rows: Rowwise, labels: Labels, teacher_target: Any, learner_target: Any
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Weights of the given estimators; with one view, one estimator serves both players."""
    views = (("teacher_target", teacher_target, rows.teacher_x), ("learner_target", learner_target, rows.learner_x))
    teacher, learner = (
        None if estimator is None else read_estimator(estimator, x.shape[1], labels, name)
        for name, estimator, x in views
    )
    if rows.teacher_x is rows.learner_x:
        return learner if teacher is None else teacher, teacher if learner is None else learner
    return teacher, learner


def _pool(
    rows: Rowwise,
    labels: Labels,
    weights: tuple[np.ndarray | None, np.ndarray | None],
    standardise: bool,
    l2: float,
) -> Pool:
    """The rows and both targets in the same units; targets are fitted if not given."""
    y_units = units_of(rows.labels, standardise) if not labels.classes else Units(np.zeros(1), np.ones(1))
    y, test_y = (each if labels.classes else y_units.apply(each) for each in (rows.labels, rows.test_labels))

    def placed(x: np.ndarray, given: np.ndarray | None) -> tuple[Units, np.ndarray, np.ndarray]:
        units = units_of(x, standardise)
        scaled = units.apply(x)
        target = fit(scaled, y, bool(labels.classes), l2) if given is None else in_units(given, units, y_units)
        return units, scaled, target

    teacher_weights, learner_weights = weights
    learner_units, learner_x, learner_target = placed(rows.learner_x, learner_weights)
    teacher_x, teacher_target = learner_x, learner_target
    if rows.teacher_x is not rows.learner_x:
        _, teacher_x, teacher_target = placed(rows.teacher_x, teacher_weights)
    elif teacher_weights is not None:
        teacher_target = in_units(teacher_weights, learner_units, y_units)
    return Pool(learner_x, teacher_x, y, teacher_target, learner_target, learner_units.apply(rows.test_x), test_y)


def _given(teacher: np.ndarray | None, learner: np.ndarray | None) -> str:
    """Whose target was given."""
    names = [name for name, weights in (("teacher", teacher), ("learner", learner)) if weights is not None]
    return "both" if len(names) == 2 else "".join(names)


def _made(model: Any, loss: Loss) -> Model:
    """The learner's model; raises InputError if ``model`` does not return one."""
    made = model(loss) if callable(model) and not isinstance(model, Model) else None
    if not isinstance(made, Model):
        raise InputError(f"model must be a function from a loss to an ital.models.Model, not {shown(model)}")
    return made


def _few(classes: list[Any]) -> str:
    return ", ".join(map(str, classes)) if len(classes) <= 4 else f"{classes[0]}, {classes[1]} … {classes[-1]}"


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
