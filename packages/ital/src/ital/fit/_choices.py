"""The choices of people: who chose what, among which candidates, and what is known about each
candidate.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ital.errors import InputError
from ital.fit._likelihood import Picks
from ital.tools.registry import nearest


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
        columns = ", ".join(self.columns)
        return f"<choices: {len(self.people)} people, {len(self)} trials, {columns}>"

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
        of_chosen = self.of_chosen(column)[:, None]
        both_missing = pd.isna(column) & pd.isna(of_chosen)
        differs = (column != of_chosen) & ~both_missing & self.available
        if differs.any():
            trial = self.trial_in_words(int(differs.any(axis=1).argmax()))
            raise InputError(
                f"column {name!r} differs between the candidates of {trial}: "
                "name a column with one value per trial"
            )
        return of_chosen[:, 0]

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
            person = self._person_in_words(int(changes.argmax()))
            raise InputError(
                f"column {name!r} changes within {person}: "
                "groups need a column with one value per person"
            )
        return first

    def of_chosen(self, values: np.ndarray) -> np.ndarray:
        """Return the values of the chosen candidates.

        Args:
            values: A value per candidate (N, B).

        Returns:
            A value per trial (N,).
        """
        return values[np.arange(len(self)), self.chosen]

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
        return self._of(self.people.iloc[kept], person, rows)

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
        others = pd.DataFrame({"person": np.arange(1, people + 1)})
        return self._of(others, np.repeat(np.arange(people), trials), drawn)

    def as_one(self) -> "Choices":
        """Return the same trials as if one person had made all choices.

        Returns:
            The choices of that person.
        """
        everyone = pd.DataFrame({"person": ["everyone"]})
        return self._of(everyone, np.zeros(len(self), int), slice(None))

    def trial_in_words(self, trial: int) -> str:
        """Return what a message calls a trial.

        Args:
            trial: Index of the trial.

        Returns:
            The person, and which of the person's trials it is.
        """
        first = int(np.searchsorted(self.person, self.person[trial]))
        return f"{self._person_in_words(trial)}, trial {trial - first + 1}"

    def _person_in_words(self, trial: int) -> str:
        row = self.people.iloc[self.person[trial]]
        return ", ".join(f"{name} {value}" for name, value in row.items())

    def _column(self, name: str) -> np.ndarray:
        if name not in self.columns:
            raise InputError(nearest("column", name, self.columns))
        return self.columns[name]

    def _of(self, people: pd.DataFrame, person: np.ndarray, rows: Any) -> "Choices":
        """Return the trials in these rows, made by these people."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        return Choices(
            people.reset_index(drop=True),
            person,
            self.chosen[rows],
            self.available[rows],
            columns,
        )


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
    trials = len(picked)
    given = {name: np.asarray(column) for name, column in columns.items()}
    if available is None:
        candidates = max((column.shape[-1] for column in given.values()), default=1)
        available = np.ones((trials, candidates), bool)
    present = np.asarray(available)
    candidates = present.shape[1]
    for name, column in given.items():
        if column.shape not in ((trials, candidates), (trials, 1)):
            raise InputError(
                f"column {name!r} has the shape {column.shape}: it must be trials × candidates, "
                f"{present.shape}"
            )
    exists = (picked >= 0) & (picked < candidates)
    if not exists.all() or not present[np.arange(trials), picked].all():
        raise InputError("chosen holds the index of a candidate that its trial does not have")
    person = people.groupby(list(people.columns), sort=False).ngroup().to_numpy()
    unsorted = Choices(people.drop_duplicates(), person, picked, present, given)
    order = np.argsort(person, kind="stable")
    return unsorted._of(unsorted.people, person[order], order)
