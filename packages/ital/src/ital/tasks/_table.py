"""Make a task from a table in a file: CSV or Parquet."""

import difflib
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ital.errors import InputError
from ital.tasks._arrays import from_arrays
from ital.tasks._base import Task
from ital.tools.tables import read_table


def from_table(
    file: str | Path,
    label: str | None,
    *,
    teacher_columns: Sequence[str] | None = None,
    learner_columns: Sequence[str] | None = None,
    name: str | None = None,
    **options: Any,
) -> Task:
    """Make a task from a table of numbers with a column of labels.

    Its data version is a checksum of the file.

    Args:
        file: a CSV file with a header line, or a Parquet file.
        label: the column with the labels.
        teacher_columns: the columns that the teacher sees; None for all but the labels. Unnamed
            columns (pandas writes row numbers to one) are never included by default.
        learner_columns: the same for the learner.
        name: name of the task; None for the file name without its suffix.
        **options: passed to :func:`from_arrays`.

    Returns:
        The task.

    Raises:
        InputError: if the file cannot be read, has no such column, or its data are not valid.

    Example:
        >>> columns = ["petal length", "petal width"]
        >>> task = ital.tasks.from_table("flowers.csv", "species", teacher_columns=columns)
    """
    path = Path(file)
    table = read_table(path)
    # pandas names columns without a header like this; most often they are row numbers.
    columns = [column for column in table.columns if not column.startswith("Unnamed: ")]
    if label is None:
        raise InputError(
            f"label is missing: name the column of {path} that holds the labels; "
            f"it has {_few_columns(columns)}"
        )
    if label not in columns:
        raise _unknown_column(path, label, columns)
    teacher = _view_columns(path, columns, label, teacher_columns, "teacher_columns")
    learner = _view_columns(path, columns, label, learner_columns, "learner_columns")
    x_learner = None  # one view
    if learner != teacher:
        x_learner = table[learner]
    if name is None:
        name = path.stem
    # The checksum of the file, not of the arrays: results tell which file they came from.
    task = from_arrays(
        table[teacher],
        x_learner,
        table[label],
        name=name,
        data_version=hashlib.sha256(path.read_bytes()).hexdigest()[:16],
        **options,
    )
    of_table = {"label": label, "teacher_columns": teacher, "learner_columns": learner}
    return task._replace(settings={**task.settings, **of_table})


def _view_columns(
    path: Path,
    columns: list[str],
    label: str,
    chosen: Sequence[str] | None,
    argument: str,
) -> list[str]:
    """Return the columns of a view: the chosen ones, or all but the labels."""
    if chosen is None:
        return [column for column in columns if column != label]
    for column in chosen:
        if column == label:
            raise InputError(f"{argument}: {column!r} holds the labels: leave it out of the view")
        if column not in columns:
            raise _unknown_column(path, column, columns)
    return list(chosen)


def _unknown_column(path: Path, column: str, columns: list[str]) -> InputError:
    """Return the error for a column that is not in the table."""
    hint = ""
    close = difflib.get_close_matches(column, columns, n=1, cutoff=0.5)
    if close:
        hint = f"did you mean {close[0]!r}? "
    return InputError(f"{path} has no column {column!r}: {hint}It has {_few_columns(columns)}")


def _few_columns(columns: list[str]) -> str:
    """Name the columns: all of them, or the first twelve and how many there are."""
    if len(columns) <= 12:
        return ", ".join(columns)
    return f"{', '.join(columns[:12])} … ({len(columns)} columns)"


__all__ = ["from_table"]
