"""The choices of people: who chose what, among which candidates, and what is known about each
candidate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ital.errors import InputError
from ital.fit._likelihood import Picks
from ital.tools.checks import shown
from ital.tools.files import check_readable
from ital.tools.registry import nearest

SUFFIXES = (".csv", ".parquet")


@dataclass(frozen=True, eq=False)
class Choices:
    """N trials of P people, each with at most B candidates; sorted by person.

    ``choices["column"]`` is a column as an array (N, B), NaN (or None) where a trial has no such
    candidate.

    Attributes:
        people: Who the people are, a row each (P).
        person: The row of each trial's person in ``people`` (N,), not decreasing.
        chosen: Index of the chosen candidate (N,).
        available: Which candidates a trial has (N, B).
        columns: What is known, by name: arrays (N, B), or (N, 1) if it is one value per trial.
    """

    people: pd.DataFrame
    person: np.ndarray
    chosen: np.ndarray
    available: np.ndarray
    columns: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.chosen)

    def __repr__(self) -> str:
        return (
            f"<choices: {len(self.people)} people, {len(self)} trials, {', '.join(self.columns)}>"
        )

    def __getitem__(self, name: str) -> np.ndarray:
        return np.broadcast_to(self._column(name), self.available.shape)

    def of_trials(self, name: str) -> np.ndarray:
        """Return a column that has one value per trial.

        Args:
            name: The column.

        Returns:
            The values (N,).

        Raises:
            InputError: There is no such column, or it differs between the candidates of a trial.
        """
        column = self._column(name)
        if column.shape[1] == 1:
            return column[:, 0]
        first = np.take_along_axis(column, self.available.argmax(axis=1)[:, None], axis=1)
        both_missing = pd.isna(column) & pd.isna(first)
        differs = (column != first) & ~both_missing & self.available
        if differs.any():
            trial = int(np.flatnonzero(differs.any(axis=1))[0])
            raise InputError(
                f"column {name!r} differs between the candidates of {self.trial_in_words(trial)}: "
                "name a column with one value per trial"
            )
        return first[:, 0]

    @property
    def picks(self) -> Picks:
        """What people picked, as the likelihood needs it."""
        first = np.flatnonzero(np.diff(self.person, prepend=-1))
        return Picks(self.chosen, first, self.available.sum(axis=1))

    def take(self, trials: Any) -> "Choices":
        """Return some of the trials; people without any are left out.

        Args:
            trials: Indices of trials, or whether to take each trial (N,).

        Returns:
            The choices in these trials.
        """
        rows = np.arange(len(self))[trials]
        kept, person = np.unique(self.person[rows], return_inverse=True)
        return Choices(
            self.people.iloc[kept].reset_index(drop=True),
            person,
            self.chosen[rows],
            self.available[rows],
            {name: column[rows] for name, column in self.columns.items()},
        )

    def where(self, **values: Any) -> "Choices":
        """Return the trials in which columns have these values.

        Args:
            **values: The value of each column.

        Returns:
            The choices in these trials.

        Raises:
            InputError: There is no such column, or no such trial.
        """
        kept = np.ones(len(self), bool)
        for name, value in values.items():
            kept &= self.of_trials(name) == value
        if not kept.any():
            wanted = ", ".join(f"{name} = {value!r}" for name, value in values.items())
            raise InputError(f"no trial has {wanted}")
        return self.take(kept)

    def like(self, people: int, trials: int, seed: int = 0) -> "Choices":
        """Return trials of the same design for other people, each drawn from all trials with
        replacement.

        Args:
            people: Number of people.
            trials: Number of trials of each.
            seed: Seed of the draw.

        Returns:
            The trials, with the choices that were made in them.
        """
        drawn = np.random.default_rng(seed).integers(len(self), size=people * trials)
        return Choices(
            pd.DataFrame({"person": np.arange(1, people + 1)}),
            np.repeat(np.arange(people), trials),
            self.chosen[drawn],
            self.available[drawn],
            {name: column[drawn] for name, column in self.columns.items()},
        )

    def as_one(self) -> "Choices":
        """Return the same trials as if one person had made all choices.

        Returns:
            The choices of that person.
        """
        everyone = pd.DataFrame({"person": ["everyone"]})
        return Choices(
            everyone, np.zeros(len(self), int), self.chosen, self.available, self.columns
        )

    def of_people(self, name: str) -> np.ndarray:
        """Return what is known of each person: a column of ``people``, or one that is constant for
        a person.

        Args:
            name: The column.

        Returns:
            The values (P,).

        Raises:
            InputError: There is no such column, or it changes within a person.
        """
        if name in self.people:
            return self.people[name].to_numpy()
        values = self.of_trials(name)
        first = values[self.picks.first]
        changes = values != first[self.person]
        if changes.any():
            trial = int(np.flatnonzero(changes)[0])
            raise InputError(
                f"column {name!r} changes within {self._person_in_words(trial)}: groups need a "
                "column with one "
                "value per person"
            )
        return first

    def _column(self, name: str) -> np.ndarray:
        if name not in self.columns:
            raise InputError(nearest("column", name, self.columns))
        return self.columns[name]

    def _person_in_words(self, trial: int) -> str:
        row = self.people.iloc[self.person[trial]]
        return ", ".join(f"{name} {value}" for name, value in row.items())

    def trial_in_words(self, trial: int) -> str:
        """Return what a message calls a trial.

        Args:
            trial: Index of the trial.

        Returns:
            The person, and which of the person's trials it is.
        """
        of_person = trial - int(np.flatnonzero(self.person == self.person[trial])[0])
        return f"{self._person_in_words(trial)}, trial {of_person + 1}"


def from_arrays(
    people: pd.DataFrame,
    chosen: Any,
    columns: Mapping[str, Any],
    *,
    available: Any = None,
) -> Choices:
    """Make choices from arrays.

    Args:
        people: The person of each trial, a row each (N); equal rows are one person.
        chosen: Index of the chosen candidate (N,).
        columns: What is known of the candidates, by name: arrays (N, B), or (N, 1) for one value
            per trial.
        available: Which candidates a trial has (N, B); None for all.

    Returns:
        The choices, sorted by person.

    Raises:
        InputError: The arrays do not fit together.
    """
    picked = np.asarray(chosen)
    given = {name: np.asarray(column) for name, column in columns.items()}
    candidates = max((column.shape[-1] for column in given.values()), default=1)
    present = (
        np.ones((len(picked), candidates), bool) if available is None else np.asarray(available)
    )
    for name, column in given.items():
        if column.shape not in ((len(picked), present.shape[1]), (len(picked), 1)):
            raise InputError(
                f"column {name!r} has the shape {column.shape}: it must be trials × candidates, "
                f"{present.shape}"
            )
    inside = (picked >= 0) & (picked < present.shape[1])
    if not inside.all() or not present[np.arange(len(picked)), picked].all():
        raise InputError("chosen holds the index of a candidate that its trial does not have")
    person = people.groupby(list(people.columns), sort=False).ngroup().to_numpy()
    order = np.argsort(person, kind="stable")
    return Choices(
        people.drop_duplicates().reset_index(drop=True),
        person[order],
        picked[order],
        present[order],
        {name: column[order] for name, column in given.items()},
    )


# ---- tables ----


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
    rows = open_table(table)
    _require_columns(rows, person, trial, chosen, *numbers)
    _require_values(rows, person, trial)
    rows = rows.assign(**{name: _numbers(rows, name) for name in numbers})
    picked = _zeros_and_ones(rows, chosen)
    # One number per trial, in the order in which people and their trials first occur.
    which = rows.groupby([person, trial], sort=False).ngroup().to_numpy()
    _check_trials(rows, which, picked, (person, trial, chosen))
    column_of = rows.groupby(which).cumcount().to_numpy()
    first_rows = np.unique(which, return_index=True)[1]
    shape = (len(first_rows), int(column_of.max()) + 1)
    available = np.zeros(shape, bool)
    available[which, column_of] = True
    columns = {}
    for name in rows.columns.difference([person, chosen], sort=False):
        columns[name] = _as_array(rows[name], which, column_of, shape)
    return from_arrays(
        pd.DataFrame({"person": rows[person].to_numpy()[first_rows]}),
        column_of[picked][np.argsort(which[picked])],
        columns,
        available=available,
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
    rows = open_table(trials)
    keys = [on] if isinstance(on, str) else list(on)
    _require_columns(rows, person, *keys)
    _require_values(rows, person, *keys)
    _require_columns(candidates, *keys, what="the table of candidates")
    if candidates.duplicated(keys).any():
        row = int(np.flatnonzero(candidates.duplicated(keys))[0])
        raise InputError(
            f"row {row + 1} of the candidates repeats {_values(candidates, row, keys)}: "
            "candidates must differ"
        )
    numbered = candidates[keys].assign(candidate=np.arange(len(candidates)))
    try:
        found = rows[keys].merge(numbered, on=keys, how="left")["candidate"].to_numpy(float)
    except ValueError:  # text in one table, numbers in the other
        raise InputError(
            f"column {', '.join(keys)}: the two tables hold different kinds of values"
        ) from None
    if np.isnan(found).any():
        row = int(np.flatnonzero(np.isnan(found))[0])
        raise InputError(f"row {row + 1}: no candidate has {_values(rows, row, keys)}")
    shape = (len(rows), len(candidates))
    of_trials = {
        name: rows[name].to_numpy()[:, None]
        for name in rows.columns.difference([person, *candidates.columns], sort=False)
    }
    of_candidates = {
        name: np.broadcast_to(candidates[name].to_numpy(), shape) for name in candidates.columns
    }
    of_candidates["candidate"] = np.broadcast_to(np.arange(len(candidates)), shape)
    return from_arrays(
        pd.DataFrame({"person": rows[person].to_numpy()}),
        found.astype(int),
        {**of_trials, **of_candidates},
    )


def open_table(table: Any) -> pd.DataFrame:
    """Return a table, read from a file if it is a name; raises InputError if that fails, or nothing
    is in it.
    """
    if isinstance(table, pd.DataFrame):
        rows = table
    else:
        rows = _read_file(Path(table))
    repeated = rows.columns[rows.columns.duplicated()]
    if len(repeated):
        raise InputError(f"the table has two columns {repeated[0]!r}: rename one of them")
    if rows.empty:
        raise InputError("the table has no rows: there is nothing to fit")
    return rows.rename(columns=str).reset_index(drop=True)


def _read_file(file: Path) -> pd.DataFrame:
    if file.suffix.lower() not in SUFFIXES:
        raise InputError(f"{file}: a table must end in {' or '.join(SUFFIXES)}")
    check_readable(file, f"the table {file}")
    try:
        return pd.read_csv(file) if file.suffix.lower() == ".csv" else pd.read_parquet(file)
    except ImportError:
        raise InputError(
            f"{file}: Parquet needs pyarrow: pip install pyarrow, or save the table as CSV"
        ) from None
    except (ValueError, pd.errors.ParserError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{file} cannot be read as a table: {reason}") from None


def _require_columns(rows: pd.DataFrame, *names: str, what: str = "the table") -> None:
    for name in names:
        if name not in rows.columns:
            raise InputError(f"{what} has no such column; {nearest('column', name, rows.columns)}")


def _require_values(rows: pd.DataFrame, *names: str) -> None:
    for name in names:
        empty = rows[name].isna().to_numpy()
        if empty.any():
            row = int(np.flatnonzero(empty)[0])
            raise InputError(f"row {row + 1}, column {name!r}: the value is missing")


def _numbers(rows: pd.DataFrame, name: str) -> np.ndarray:
    """Return a column of numbers; raises InputError if a value is none, or is NaN or +∞."""
    numbers = pd.to_numeric(rows[name], errors="coerce").to_numpy(float)
    wrong = np.isnan(numbers) | np.isposinf(numbers)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"row {row + 1}, column {name!r}: expected a number, not {shown(rows[name].iloc[row])}"
        )
    return numbers


def _zeros_and_ones(rows: pd.DataFrame, name: str) -> np.ndarray:
    """Return which rows hold a chosen candidate; raises InputError unless all values are 0 or 1."""
    values = rows[name]
    if values.dtype == bool:
        return values.to_numpy()
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(float)
    wrong = ~np.isin(numbers, (0.0, 1.0))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"row {row + 1}, column {name!r}: expected 1 for the chosen candidate and 0 for the "
            "others, "
            f"not {shown(values.iloc[row])}"
        )
    return numbers == 1.0


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
            row = int(np.flatnonzero(which == wrong.argmax())[0])
            who = _values(rows, row, [person, trial])
            raise InputError(f"row {row + 1}: the trial with {who} {fault}")


def _as_array(
    values: pd.Series, which: np.ndarray, column_of: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    """Return a column of a long table as trials × candidates, with NaN or None for candidates that
    are absent.
    """
    if pd.api.types.is_bool_dtype(values):
        values = values.astype(float)
    if pd.api.types.is_numeric_dtype(values):
        array = np.full(shape, np.nan)
    else:
        array = np.full(shape, None, object)
    array[which, column_of] = values.to_numpy()
    return array


def _values(rows: pd.DataFrame, row: int, names: Sequence[str]) -> str:
    """Say the values of some columns of a row: person 3, trial 7."""
    return ", ".join(f"{name} {rows[name].iloc[row]}" for name in names)
