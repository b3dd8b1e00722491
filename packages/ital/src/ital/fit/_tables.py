"""Choices read from tables; a bad table is refused in one line that names row and column."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ital.errors import InputError
from ital.fit._choices import Choices, from_arrays
from ital.tools.checks import shown
from ital.tools.registry import nearest
from ital.tools.tables import read_table


def read(
    table: Any,
    *,
    person: str = "person",
    trial: str = "trial",
    chosen: str = "chosen",
    numbers: Sequence[str] = (),
) -> Choices:
    """Read choices from a long table: a row per person, trial and candidate.

    All other columns are kept: scores of the candidates, features, conditions.

    Args:
        table: A pandas table, or a CSV or Parquet file.
        person: The column that says who chose.
        trial: The column that tells a person's trials apart.
        chosen: The column with 1 for the chosen candidate and 0 for the others.
        numbers: Columns that must hold a number in every row, such as scores; −inf marks what is
            impossible.

    Returns:
        The choices.

    Raises:
        InputError: The table is not valid; the message names row and column. Rows count from 1,
            without the header.

    Example:
        >>> choices = ital.fit.read("choices.csv", person="participant")
    """
    rows = _open_table(table)
    _require_columns(rows, person, trial, chosen, *numbers)
    _require_values(rows, person, trial)
    rows = rows.assign(**{name: _checked_numbers(rows, name) for name in numbers})
    picked = _checked_picks(rows, chosen)
    # One number per trial, in the order in which people and their trials first occur.
    which = rows.groupby([person, trial], sort=False).ngroup().to_numpy()
    _check_trials(rows, which, picked, (person, trial, chosen))

    position = rows.groupby(which).cumcount().to_numpy()
    known = rows.drop(columns=[person, chosen])
    numeric = [name for name in known if pd.api.types.is_numeric_dtype(known[name])]
    # A row per trial; the columns are pairs of a name and a position.
    wide = known.astype(dict.fromkeys(numeric, float)).set_index([which, position]).unstack()
    sizes = np.bincount(which)
    of_picked = pd.Series(position[picked], which[picked]).sort_index()
    return from_arrays(
        pd.DataFrame({"person": rows.groupby(which)[person].first()}),
        of_picked.to_numpy(),
        {name: wide[name].to_numpy() for name in map(str, known)},
        available=np.arange(sizes.max()) < sizes[:, None],
    )


def cross(
    trials: Any,
    candidates: pd.DataFrame,
    *,
    on: str | Sequence[str],
    person: str = "person",
) -> Choices:
    """Make choices from a table with one row per trial, if all trials have the same candidates.

    Args:
        trials: A pandas table, or a CSV or Parquet file: a row per trial. All columns are kept.
        candidates: A row per candidate; all columns are kept, and ``candidate`` numbers the rows
            from 0.
        on: The columns of both tables that say which candidate was chosen.
        person: The column of ``trials`` that says who chose.

    Returns:
        The choices.

    Raises:
        InputError: A table is not valid; the message names row and column.

    Example:
        >>> lessons = pd.DataFrame({"red": [0, 1, 2], "blue": [2, 1, 0]})
        >>> choices = ital.fit.cross("trials.csv", lessons, on=["red", "blue"])
    """
    rows = _open_table(trials)
    keys = [on] if isinstance(on, str) else list(on)
    _require_columns(rows, person, *keys)
    _require_values(rows, person, *keys)
    _require_columns(candidates, *keys, what="the table of candidates")
    repeated = candidates.duplicated(keys).to_numpy()
    if repeated.any():
        row = int(repeated.argmax())
        raise InputError(
            f"row {row + 1} of the candidates repeats {_in_words(candidates, row, keys)}: "
            "candidates must differ"
        )
    numbered = candidates.assign(candidate=np.arange(len(candidates)))
    try:
        found = rows[keys].merge(numbered, on=keys, how="left")["candidate"].to_numpy(float)
    except ValueError:  # text in one table, numbers in the other
        raise InputError(
            f"column {', '.join(keys)}: the two tables hold different kinds of values"
        ) from None
    if np.isnan(found).any():
        row = int(np.isnan(found).argmax())
        raise InputError(f"row {row + 1}: no candidate has {_in_words(rows, row, keys)}")
    columns = {}
    for name in rows.columns.difference([person, *numbered.columns], sort=False):
        columns[name] = rows[name].to_numpy()[:, None]
    for name in map(str, numbered):
        columns[name] = np.broadcast_to(numbered[name], (len(rows), len(numbered)))
    return from_arrays(rows[[person]].set_axis(["person"], axis=1), found.astype(int), columns)


def _open_table(table: Any) -> pd.DataFrame:
    """Return a table, read from a file if it is a name; raises InputError if nothing is in it."""
    rows = table if isinstance(table, pd.DataFrame) else read_table(Path(table))
    repeated = rows.columns[rows.columns.duplicated()]
    if len(repeated):
        raise InputError(f"the table has two columns {repeated[0]!r}: rename one of them")
    if rows.empty:
        raise InputError("the table has no rows: there is nothing to fit")
    return rows.rename(columns=str).reset_index(drop=True)


def _require_columns(rows: pd.DataFrame, *names: str, what: str = "the table") -> None:
    for name in names:
        if name not in rows.columns:
            raise InputError(f"{what} has no such column; {nearest('column', name, rows.columns)}")


def _require_values(rows: pd.DataFrame, *names: str) -> None:
    for name in names:
        _require(rows, name, rows[name].notna().to_numpy(), "the value is missing")


def _checked_numbers(rows: pd.DataFrame, name: str) -> np.ndarray:
    """Return a column of numbers; raises InputError if a value is none, or is NaN or +∞."""
    numbers = pd.to_numeric(rows[name], errors="coerce").to_numpy(float)
    _require(rows, name, numbers < np.inf, "expected a number, not {}")
    return numbers


def _checked_picks(rows: pd.DataFrame, name: str) -> np.ndarray:
    """Return which rows hold a chosen candidate; raises InputError unless all values are 0 or 1."""
    numbers = pd.to_numeric(rows[name], errors="coerce").to_numpy(float)
    expected = "expected 1 for the chosen candidate and 0 for the others, not {}"
    _require(rows, name, np.isin(numbers, (0.0, 1.0)), expected)
    return numbers == 1.0


def _require(rows: pd.DataFrame, name: str, right: np.ndarray, fault: str) -> None:
    """Raise InputError unless all values of a column are right; the fault may quote the first wrong
    one as {}.
    """
    if not right.all():
        row = int(right.argmin())
        fault = fault.format(shown(rows[name].iloc[row]))
        raise InputError(f"row {row + 1}, column {name!r}: {fault}")


def _check_trials(
    rows: pd.DataFrame, which: np.ndarray, picked: np.ndarray, names: tuple[str, str, str]
) -> None:
    """Raise InputError unless every trial has at least two candidates, and one of them is
    chosen.
    """
    person, trial, chosen = names
    sizes = np.bincount(which)
    counts = np.bincount(which, weights=picked)
    for wrong, fault in (
        (sizes < 2, "has 1 candidate: a choice needs at least 2"),
        (counts == 0, f"has no chosen candidate: column {chosen!r} needs one 1"),
        (counts > 1, f"has several chosen candidates: column {chosen!r} needs one 1"),
    ):
        if wrong.any():
            row = int((which == wrong.argmax()).argmax())
            who = _in_words(rows, row, [person, trial])
            raise InputError(f"row {row + 1}: the trial with {who} {fault}")


def _in_words(rows: pd.DataFrame, row: int, names: Sequence[str]) -> str:
    """Say the values of some columns of a row: person 3, trial 7."""
    return ", ".join(f"{name} {rows[name].iloc[row]}" for name in names)
