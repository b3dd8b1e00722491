"""Tables that a user names: CSV or Parquet files."""

from pathlib import Path
from typing import TYPE_CHECKING

from ital.errors import InputError
from ital.tools.files import check_readable

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".csv", ".parquet")
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def read_table(path: Path) -> "pd.DataFrame":
    """Read the table in a file, with column names as text.

    Args:
        path: a CSV file with a header line, or a Parquet file.

    Returns:
        The table.

    Raises:
        InputError: if the file cannot be read as a table.
    """
    import pandas as pd

    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{path}: a table file must end in {' or '.join(SUFFIXES)}")
    check_readable(path, f"the table {path}")
    try:
        if suffix == ".csv":
            table = pd.read_csv(path)
        else:
            table = pd.read_parquet(path)
    except ImportError:
        raise InputError(
            f"{path}: Parquet needs pyarrow: pip install pyarrow, or save the table as CSV"
        ) from None
    except (ValueError, pd.errors.ParserError) as error:
        raise InputError(
            f"{path} cannot be read as a table: {' '.join(str(error).split())}"
        ) from None
    table = table.rename(columns=str)
    if suffix == ".csv" and len(table.columns) == 1:
        _check_separator(path, table.columns[0])
    return table


def _check_separator(path: Path, header: str) -> None:
    """Raise InputError if the only column's name is a header with another separator."""
    for separator, name in SEPARATORS.items():
        if separator in header:
            raise InputError(f"{path}: its columns are separated by {name}: save it with commas")
