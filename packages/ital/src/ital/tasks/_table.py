"""A task from a table in a file: CSV or Parquet."""

import difflib
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ital.errors import InputError
from ital.tasks._arrays import from_arrays
from ital.tasks._base import Task
from ital.tools.files import check_readable

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".parquet")


def from_table(
    file: str | Path,
    label: str | None,
    *,
    teacher_columns: Sequence[str] | None = None,
    learner_columns: Sequence[str] | None = None,
    name: str | None = None,
    **options: Any,
) -> Task:
    """Make a task from a table of numbers with a column of labels. Its data version is a checksum
    of the file.

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
        >>> task = ital.tasks.from_table("flowers.csv", "species", teacher_columns=["petal length", "petal width"])
    """
    path = Path(file)
    table = _read(path)
    columns = [column for column in table.columns if not column.startswith("Unnamed: ")]
    if label is None:
        raise InputError(
            f"label is missing: name the column of {path} that holds the labels; it has {_few(columns)}"
        )
    if label not in columns:
        raise _unknown(path, label, columns)
    views = {
        "teacher_columns": _chosen(path, columns, label, teacher_columns, "teacher_columns"),
        "learner_columns": _chosen(path, columns, label, learner_columns, "learner_columns"),
    }
    teacher, learner = views.values()
    task = from_arrays(
        table[teacher],
        None if teacher == learner else table[learner],
        table[label],
        name=path.stem if name is None else name,
        data_version=hashlib.sha256(path.read_bytes()).hexdigest()[:16],
        **options,
    )
    return task._replace(settings={**task.settings, "label": label, **views})


def _read(path: Path) -> "pd.DataFrame":
    """The table in a file, with column names as text."""
    import pandas as pd

    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: a table file must end in {' or '.join(SUFFIXES)}")
    check_readable(path, f"the table {path}")
    try:
        table = pd.read_csv(path) if path.suffix.lower() == ".csv" else pd.read_parquet(path)
    except ImportError:
        raise InputError(
            f"{path}: Parquet needs pyarrow: pip install pyarrow, or save the table as CSV"
        ) from None
    except (ValueError, pd.errors.ParserError) as error:
        raise InputError(
            f"{path} cannot be read as a table: {' '.join(str(error).split())}"
        ) from None
    table = table.rename(columns=str)
    if len(table.columns) == 1 and path.suffix.lower() == ".csv":
        for separator, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            if separator in table.columns[0]:
                raise InputError(
                    f"{path}: its columns are separated by {name}: save it with commas"
                )
    return table


def _chosen(
    path: Path,
    columns: list[str],
    label: str,
    chosen: Sequence[str] | None,
    argument: str,
) -> list[str]:
    """The columns of a view: the chosen ones, or all but the labels."""
    if chosen is None:
        return [column for column in columns if column != label]
    for column in chosen:
        if column == label:
            raise InputError(f"{argument}: {column!r} holds the labels: leave it out of the view")
        if column not in columns:
            raise _unknown(path, column, columns)
    return list(chosen)


def _unknown(path: Path, column: str, columns: list[str]) -> InputError:
    close = difflib.get_close_matches(column, columns, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return InputError(f"{path} has no column {column!r}: {hint}It has {_few(columns)}")


def _few(columns: list[str]) -> str:
    return (
        ", ".join(columns)
        if len(columns) <= 12
        else f"{', '.join(columns[:12])} … ({len(columns)} columns)"
    )


__all__ = ["from_table"]
