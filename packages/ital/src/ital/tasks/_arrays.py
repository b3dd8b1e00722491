"""Make a task from your own arrays: encode labels, split off a test set, fit both optima."""

import hashlib
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ital import losses, models
from ital.errors import InputError
from ital.losses import Loss
from ital.models import Init, Model
from ital.tasks._base import Task
from ital.tasks._encoding import Encoding
from ital.tasks._label_noise import label_noise_of
from ital.tasks._labels import KINDS, Labels, as_view, dense, encode, encode_like
from ital.tasks._pool import Pool, from_pool
from ital.tasks._targets import Units, fit, in_units, read_estimator, units_of
from ital.tools.checks import shown
from ital.tools.short import called


class GivenRows(NamedTuple):
    """The rows as given, with labels encoded.

    Attributes:
        teacher_x: the teacher's view (N, d′).
        learner_x: the learner's view (N, d); the same object if both have one view.
        labels: the labels.
        weights: the weight of each row (N,), None if all are equal.
    """

    teacher_x: np.ndarray
    learner_x: np.ndarray
    labels: Labels
    weights: np.ndarray | None


class SplitRows(NamedTuple):
    """The rows for teaching and those for testing.

    Attributes:
        teacher_x: the teacher's view of the teaching rows (N, d′).
        learner_x: the learner's view of them (N, d); the same object if both have one view.
        labels: class indices (N,), or targets (N, K).
        test_x: the learner's view of the test rows.
        test_labels: their labels.
        weights: the weight of each teaching row (N,), None if all are equal.
    """

    teacher_x: np.ndarray
    learner_x: np.ndarray
    labels: np.ndarray
    test_x: np.ndarray
    test_labels: np.ndarray
    weights: np.ndarray | None = None


class GivenTargets(NamedTuple):
    """Weights (K, d+1) of the estimators that were given as targets, None for targets to be fitted.

    Attributes:
        teacher: the teacher's.
        learner: the learner's.
    """

    teacher: np.ndarray | None
    learner: np.ndarray | None

    @property
    def whose(self) -> str:
        """Whose target was given: "teacher", "learner", "both", or an empty text."""
        given = [player for player, weights in self._asdict().items() if weights is not None]
        if len(given) == 2:
            return "both"
        return "".join(given)


class EncodedView(NamedTuple):
    """One player's view of the teaching rows.

    Attributes:
        units: the units of its columns.
        x: the rows in these units (N, d).
        target: the optimum in these units (K, d+1), bias last.
    """

    units: Units
    x: np.ndarray
    target: np.ndarray


def from_arrays(  # noqa: PLR0913
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
    label_noise: float | str = 0.0,
    noise: float = 0.0,
    data_version: str | None = None,
    quiet: bool = False,
) -> Task:
    """Make a task from your own data.

    Teacher and learner see its rows through the same or different columns.

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
        label_noise: probability that a label of the pool is replaced, once per seed; or
            "sd:NUMBER" for Gaussian noise of numeric labels.
        noise: standard deviation of Gaussian noise of numeric labels, as "sd:NUMBER".
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
    _check_numbers(l2, split_seed)
    if model is not None and learner_target is not None:
        raise InputError(
            "learner_target is the optimum of a linear learner: leave it out if model is given"
        )
    if standardise not in (True, False, "views"):
        raise InputError(f"standardise must be True, False or 'views', not {shown(standardise)}")
    # The loss decides the kind of labels, or else the labels the loss.
    labels = encode(y, _kind_of_loss(loss, kind))
    taught_loss = loss or _default_loss(labels)
    # Both players have one object if they have one view: its rows are then stored once.
    teacher_x, learner_x = _views(x_teacher, x_learner, len(labels.values))
    _check_indices({"x_teacher": x_teacher, "x_learner": x_learner, "y": y, "weights": weights})
    _check_indices({"x_test": x_test, "y_test": y_test})
    given = GivenRows(teacher_x, learner_x, labels, _row_weights(weights, labels))
    if x_test is None and y_test is None:
        rows = _split_off(given, test_size, split_seed)
    else:
        rows = _with_test_set(given, x_test, y_test)
    _check_classes(labels, rows.labels)
    targets = _read_targets(rows, labels, teacher_target, learner_target)
    learner_model = _model_of(model, taught_loss, loss_is_given=loss is not None)
    pool, encoding = _encoded_pool(
        rows, labels, targets, taught_loss, learner_model, standardise, l2
    )

    # Stored with each result: what was inferred from the data, and what was chosen.
    settings: dict[str, Any] = {
        "kind": labels.kind,
        "rows": len(pool.labels),
        "test_rows": len(pool.test_labels),
    }
    if labels.classes:
        settings["classes"] = list(labels.classes)
    settings["standardised"] = standardise
    settings["l2"] = l2
    settings |= _unusual_settings(targets, taught_loss, weights)
    if model is not None:
        settings["model"] = learner_model.name

    task = from_pool(
        name,
        pool,
        taught_loss,
        model=learner_model,
        by_class=bool(labels.classes),
        beta=beta,
        title=title,
        init=init,
        eval_every=eval_every,
        label_noise=label_noise_of(label_noise, noise),
        data_version=data_version or _checksum(pool),
        settings=settings,
    )._replace(encoding=encoding)
    if not quiet:
        print(describe_data(task), file=sys.stderr)
    return task


def _unusual_settings(targets: GivenTargets, loss: Loss, weights: Any) -> dict[str, str]:
    """Return the settings that are stored only where they are not the default."""
    settings = {}
    if targets.whose:
        settings["given"] = targets.whose
    if loss not in (losses.cross_entropy, losses.squared):
        settings["loss"] = loss.name
    if isinstance(weights, str):
        settings["weights"] = "balanced"
    elif weights is not None:
        settings["weights"] = "given"
    return settings


def describe_data(task: Task) -> str:
    """Say in one line what was inferred from the data of a task.

    Args:
        task: a task of :func:`from_arrays` or :func:`from_table`.

    Returns:
        The line: kind, rows, units of the columns, and origin of the targets.
    """
    settings = task.settings
    rows = f"{settings['rows']} rows for teaching, {settings['test_rows']} for testing"
    kind = "regression"
    if "classes" in settings:
        classes = settings["classes"]
        kind = f"classification, {len(classes)} classes ({_few_classes(classes)})"
    columns = "columns as they are"
    if settings["standardised"]:
        columns = "columns standardised"
    if "weights" in settings:
        columns += {
            "balanced": "; classes weighted equally",
            "given": "; rows weighted",
        }[settings["weights"]]
    line = f"{task.name}: {kind}; {rows}; {columns}; {_origin_of_targets(settings)}"
    if "model" in settings:
        line += f"; the learner is {settings['model']}"
    return line


def _origin_of_targets(settings: Mapping[str, Any]) -> str:
    """Say which targets were given, and what the others were fitted by."""
    given = settings.get("given")
    if given == "both":
        return "targets given"
    l2 = settings["l2"]
    if "loss" in settings:
        estimator = f"L-BFGS for loss {settings['loss']} (l2={l2:g})"
    elif "classes" in settings:
        estimator = f"LogisticRegression(C={1 / l2:g})"
    else:
        estimator = f"Ridge(alpha={l2:g})"
    if given is None:
        return f"targets fitted by {estimator}"
    return f"the {given}'s target given, the other fitted by {estimator}"


def _few_classes(classes: list[Any]) -> str:
    """Name the classes: all of them, or the first two and the last."""
    if len(classes) <= 4:
        return ", ".join(map(str, classes))
    return f"{classes[0]}, {classes[1]} … {classes[-1]}"


def _check_numbers(l2: Any, split_seed: Any) -> None:
    """Raise InputError for a penalty that is not positive, or a seed that the split cannot use."""
    if not (isinstance(l2, int | float | np.number) and l2 > 0):
        raise InputError(f"l2 (the strength of the penalty) must be a positive number, not {l2!r}")
    if not (isinstance(split_seed, int | np.integer) and 0 <= split_seed < 2**32):
        raise InputError(f"split_seed must be a whole number of at least 0, not {split_seed!r}")


def _default_loss(labels: Labels) -> Loss:
    """Return the loss for labels of this kind."""
    if labels.classes:
        return losses.cross_entropy
    return losses.squared


def _kind_of_loss(loss: Any, kind: str | None) -> str | None:
    """Return the kind of labels that a loss is for; ``kind`` without a loss."""
    if loss is None:
        return kind
    if not isinstance(loss, Loss):
        hint = ""
        if callable(loss):
            hint = f": make one with ital.losses.custom({called(loss)!r}, …)"
        raise InputError(
            "loss must be one of ital.losses, or your own by ital.losses.custom, "
            f"not {shown(loss)}{hint}"
        )
    of_classes, of_numbers = KINDS
    fitting = of_classes if loss.classes else of_numbers
    if kind in KINDS and kind != fitting:
        raise InputError(
            f"loss {loss.name!r} is for a {fitting}, but kind is {kind!r}: leave kind out"
        )
    return fitting


def _views(x_teacher: Any, x_learner: Any, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the teacher's and the learner's view; one object if only one is given."""
    given = {"x_teacher": x_teacher, "x_learner": x_learner}
    views = {name: as_view(x, name) for name, x in given.items() if x is not None}
    if not views:
        raise InputError("x_teacher is missing: give the rows that teacher and learner see, (N, d)")
    for name, view in views.items():
        if len(view) != rows:
            raise InputError(
                f"{name} has {len(view)} rows, but y has {rows} labels: views are paired row by row"
            )
    one_view = next(iter(views.values()))
    return views.get("x_teacher", one_view), views.get("x_learner", one_view)


def _check_indices(given: dict[str, Any]) -> None:
    """Raise InputError if pandas objects that belong together row by row have different indices."""
    import pandas as pd

    indices = {
        name: table.index
        for name, table in given.items()
        if isinstance(table, pd.DataFrame | pd.Series)
    }
    if len(indices) < 2:
        return
    (first, index), *others = indices.items()
    for name, other in others:
        if not index.equals(other):
            raise InputError(
                f"{first} and {name} have different pandas indices, but rows are paired by "
                f"position: use {name}.loc[{first}.index], or {first}.to_numpy() and "
                f"{name}.to_numpy() if the order is right"
            )


def _row_weights(weights: Any, labels: Labels) -> np.ndarray | None:
    """Return the weight of each row (N,); None if all are equal."""
    if weights is None:
        return None
    if isinstance(weights, str):
        return _balanced_weights(weights, labels)
    rows = len(labels.values)
    try:
        values = np.asarray(dense(weights, "weights", "have one number per row, (N,)"), float)
    except (TypeError, ValueError):
        raise InputError(f"weights must be one number per row, not {shown(weights)}") from None
    are_weights = (
        values.shape == (rows,) and np.isfinite(values).all() and values.min() >= 0 and values.any()
    )
    if not are_weights:
        raise InputError(
            f"weights must be {rows} finite numbers of at least 0, one per row and not all 0"
        )
    return values


def _balanced_weights(weights: str, labels: Labels) -> np.ndarray:
    """Return weights (N,) with which all classes count equally."""
    if weights != "balanced" or not labels.classes:
        raise InputError(
            f"weights must be one number per row, or 'balanced' for classes, not {weights!r}"
        )
    rows_of_class = np.bincount(labels.values)
    rows_of_own_class = rows_of_class[labels.values]
    return len(labels.values) / (len(rows_of_class) * rows_of_own_class)


def _split_off(given: GivenRows, test_size: float, split_seed: int) -> SplitRows:
    """Split off some rows at random, stratified by class."""
    from sklearn.model_selection import train_test_split

    labels = given.labels
    strata = None
    if labels.classes:
        strata = labels.values
        rows_of_class = np.bincount(labels.values, minlength=len(labels.classes))
        if rows_of_class.min() == 1:
            rare = labels.classes[int(rows_of_class.argmin())]
            raise InputError(
                f"y: class {rare!r} has one row, but a split needs two: "
                "drop it, or give x_test and y_test"
            )
    try:
        taught, tested = train_test_split(
            np.arange(len(labels.values)),
            test_size=test_size,
            random_state=split_seed,
            stratify=strata,
        )
    except ValueError as error:
        raise InputError(f"test_size = {test_size!r} cannot be split off: {error}") from None
    learner_x = given.learner_x[taught]
    teacher_x = learner_x
    if given.teacher_x is not given.learner_x:
        teacher_x = given.teacher_x[taught]
    weights = given.weights
    if weights is not None:
        weights = weights[taught]
    return SplitRows(
        teacher_x,
        learner_x,
        labels.values[taught],
        test_x=given.learner_x[tested],
        test_labels=labels.values[tested],
        weights=weights,
    )


def _with_test_set(given: GivenRows, x_test: Any, y_test: Any) -> SplitRows:
    """Take all rows for teaching, and the given test set."""
    if x_test is None or y_test is None:
        raise InputError(
            "x_test and y_test belong together: give both, or neither to split off a test set"
        )
    test_x = as_view(x_test, "x_test")
    test_labels = encode_like(given.labels, y_test, "y_test")
    expected = (len(test_labels), given.learner_x.shape[1])
    if test_x.shape != expected:
        raise InputError(
            f"x_test has shape {test_x.shape}, expected {expected} "
            "to fit y_test and the learner's view"
        )
    return SplitRows(
        given.teacher_x,
        given.learner_x,
        given.labels.values,
        test_x,
        test_labels,
        given.weights,
    )


def _check_classes(labels: Labels, taught: np.ndarray) -> None:
    """Raise InputError for a class without a row for teaching."""
    if not labels.classes:
        return
    absent = np.setdiff1d(np.arange(len(labels.classes)), taught)
    if len(absent):
        raise InputError(
            f"y: no row of class {labels.classes[absent[0]]!r} is left for teaching: "
            "choose fewer test rows"
        )


def _read_targets(
    rows: SplitRows,
    labels: Labels,
    teacher_target: Any,
    learner_target: Any,
) -> GivenTargets:
    """Read the weights of the given estimators; with one view, one serves both players."""
    teacher = None
    if teacher_target is not None:
        columns = rows.teacher_x.shape[1]
        teacher = read_estimator(teacher_target, columns, labels, "teacher_target")
    learner = None
    if learner_target is not None:
        columns = rows.learner_x.shape[1]
        learner = read_estimator(learner_target, columns, labels, "learner_target")
    if rows.teacher_x is rows.learner_x:
        if teacher is None:
            teacher = learner
        elif learner is None:
            learner = teacher
    return GivenTargets(teacher, learner)


def _encoded_pool(
    rows: SplitRows,
    labels: Labels,
    targets: GivenTargets,
    loss: Loss,
    model: Model,
    standardise: bool | str,
    l2: float,
) -> tuple[Pool, Encoding]:
    """Return the rows and both targets in the same units, and the way back.

    Targets that were not given are fitted.
    """
    y_units, y, test_y = _encoded_labels(rows, labels, standardise)
    weights = _with_mean_1(rows.weights)
    outputs = len(y_units.width)

    def encoded_view(x: np.ndarray, given: np.ndarray | None) -> EncodedView:
        units = units_of(x, bool(standardise))
        scaled = units.apply(x)
        if given is None:
            target = fit(scaled, y, loss, outputs, l2, weights)
        else:
            target = in_units(given, units, y_units)
        return EncodedView(units, scaled, target)

    learner = encoded_view(rows.learner_x, targets.learner)
    teacher = learner
    if rows.teacher_x is not rows.learner_x:
        teacher = encoded_view(rows.teacher_x, targets.teacher)
    elif targets.teacher is not None:
        # Two estimators of one view: they may differ.
        teacher = learner._replace(target=in_units(targets.teacher, learner.units, y_units))

    # Other models than the linear one have no single known optimum.
    learner_target = None
    if model is models.linear(loss):
        learner_target = learner.target
    pool = Pool(
        learner_x=learner.x,
        teacher_x=teacher.x,
        labels=y,
        teacher_target=teacher.target,
        learner_target=learner_target,
        test_x=learner.units.apply(rows.test_x),
        test_labels=test_y,
        weights=weights,
    )
    encoding = Encoding(
        labels=labels,
        teacher_units=teacher.units,
        learner_units=learner.units,
        y_units=y_units,
        teacher_target=teacher.target,
        learner_target=learner_target,
        model=model,
    )
    return pool, encoding


def _encoded_labels(
    rows: SplitRows,
    labels: Labels,
    standardise: bool | str,
) -> tuple[Units, np.ndarray, np.ndarray]:
    """Return the units of the outputs (K,), and the labels for teaching and testing in them."""
    if labels.classes:
        outputs = len(labels.classes)
        unchanged = Units(np.zeros(outputs), np.ones(outputs))
        return unchanged, rows.labels, rows.test_labels
    # "views" standardises the columns of the views alone.
    units = units_of(rows.labels, standardise is True)
    return units, units.apply(rows.labels), units.apply(rows.test_labels)


def _with_mean_1(weights: np.ndarray | None) -> np.ndarray | None:
    """Scale the weights of the teaching rows to mean 1, as equal weights have it."""
    if weights is None:
        return None
    if not weights.any():
        raise InputError(
            "weights are 0 on all teaching rows: choose fewer test rows, or give x_test and y_test"
        )
    return weights / weights.mean()


def _model_of(model: Any, loss: Loss, loss_is_given: bool) -> Model:
    """Return the learner's model; raise InputError if ``model`` neither is one nor makes one."""
    if model is None:
        return models.linear(loss)
    if isinstance(model, Model):
        if not loss_is_given:
            raise InputError(
                f"model {model.name!r} was made for a loss that is not known here: "
                "give the same loss=, or a function from a loss to a model"
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
            "model must be a function from a loss to an ital.models.Model, "
            f"but returns {shown(made)}"
        )
    return made


def _checksum(pool: Pool) -> str:
    """Return a checksum of the pool, 16 digits."""
    digest = hashlib.sha256()
    for field, array in pool._asdict().items():
        if array is None:
            continue
        digest.update(f"{field} {array.shape} {array.dtype}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


__all__ = ["describe_data", "from_arrays"]
