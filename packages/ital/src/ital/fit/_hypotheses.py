"""Models of people who teach a hypothesis: by chance, by pedagogy, by SCBI, or unsure about the
learner.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ital import beliefs
from ital.errors import InputError
from ital.fit._choices import Choices
from ital.fit._models import TeacherModel

Belief = Any  # (m,), a mapping from values of a column to (m,), or a function of the choices

ALPHAS = (0.0, 20.0)  # where an α is sought that is not the ρ of a model


class Hypotheses(NamedTuple):
    """A world of finitely many hypotheses, in which people choose data to show.

    Attributes:
        likelihoods: M(d,h) = P(d|h) (n, m), a row per datum and a column per hypothesis.
        target: The hypothesis that is taught: its column of M, or a column of the choices that
            holds it.
        belief: What the learner believes before the datum: (m,); or a dictionary of such beliefs by
            the values of the column ``by``; or a function of the choices that returns (N, m). None
            for equal beliefs. For :meth:`unsure` (K, m) or (N, K, m): the beliefs that it may have.
        by: The column whose value selects the belief.
        base: A base measure over data (n,), positive; None for 1.
        cost: The cost of each datum (n,), for models that weigh it.
        datum: The column of the choices that holds each candidate's row of M.

    Example:
        >>> prior = {"old": old, "new": new}
        >>> world = ital.fit.Hypotheses(matrix, target=2, belief=prior, by="condition")
        >>> models = [world.literal(), world.pedagogical(), world.scbi(), ital.fit.uniform()]
    """

    likelihoods: Any
    target: int | str
    belief: Belief = None
    by: str | None = None
    base: Any = None
    cost: Any = None
    datum: str = "candidate"

    def literal(self, name: str = "literal") -> TeacherModel:
        """Return the model of people who draw data from the hypothesis, d ~ M(·,h*).

        Args:
            name: Its name in tables.

        Returns:
            The model; only ε is fitted.
        """

        def scores(choices: Choices) -> np.ndarray:
            likelihoods = self._matrix[self._data(choices), self._targets(choices)[:, None]]
            with np.errstate(divide="ignore"):  # impossible data
                return np.log(likelihoods)

        return TeacherModel(name, scores, rho=1.0, unit=1.0)

    def pedagogical(
        self,
        name: str = "pedagogical",
        *,
        belief: Belief = None,
        rounds: int = 1,
        alpha: float | None = None,
        cost: float | tuple[float, float] | None = None,
    ) -> TeacherModel:
        """Return the model of people who help the learner: P_T(d|h*) ∝ b(d)·exp(α·(log P_L(h*|d) −
        w·c(d))).

        Args:
            name: Its name in tables.
            belief: What these people think that the learner believes; None for the world's belief.
            rounds: How often teacher and learner reason about each other.
            alpha: α; None to fit it. With one round it is the model's ρ, else its own number.
            cost: The weight w of the world's costs, or the range in which it is fitted; None for 0.

        Returns:
            The model.

        Raises:
            InputError: There is a weight, but the world has no costs.
        """
        if cost is not None and self.cost is None:
            raise InputError(f"model {name!r} weighs costs, but the world has none: give it cost")
        numbers: dict[str, tuple[float, float]] = {}
        weight = cost or 0.0
        if isinstance(cost, tuple):
            numbers["cost"] = cost
        if rounds > 1 and alpha is None:
            numbers["alpha"] = ALPHAS

        def utility(choices: Choices, cost: Any = weight) -> np.ndarray:
            learned = self._by_case(choices, belief, beliefs.learned)
            return learned - cost * self._of_data("cost", self.cost)[self._data(choices)]

        def scores(choices: Choices, alpha: Any = alpha, cost: Any = weight) -> np.ndarray:
            taught = functools.partial(self._taught, rounds=rounds)
            return self._by_case(choices, belief, taught, alpha, cost)

        if rounds > 1:
            return TeacherModel(name, scores, numbers, rho=1.0, unit=1.0)
        base = None if self.base is None else self._log_base
        return TeacherModel(name, utility, numbers, rho=alpha, unit=1.0, base=base)

    def unsure(
        self, name: str = "unsure", *, belief: Belief = None, alpha: float | None = None
    ) -> TeacherModel:
        """Return the model of people who mix over what the learner may believe.

        P_T(d|h*) ∝ b(d)·exp(α·mean_k log P_L^k(h*|d)), with K equally likely beliefs.

        Args:
            name: Its name in tables.
            belief: The K beliefs; None for the world's.
            alpha: α; None to fit it.

        Returns:
            The model.
        """
        # With several beliefs, what the learner concludes is a mean over them.
        return self.pedagogical(name, belief=belief, alpha=alpha)

    def scbi(self, name: str = "scbi", *, belief: Belief = None) -> TeacherModel:
        """Return the model of people who teach by sequential cooperative Bayesian inference.

        Args:
            name: Its name in tables.
            belief: What these people think that the learner believes; None for the world's belief.

        Returns:
            The model; only ε is fitted.
        """
        taught = functools.partial(self._taught, rounds=None)
        return TeacherModel(
            name,
            lambda choices: self._by_case(choices, belief, taught, 1.0, 0.0),
            rho=1.0,
            unit=1.0,
        )

    @property
    def _matrix(self) -> np.ndarray:
        matrix = np.asarray(self.likelihoods, float)
        if matrix.ndim != 2 or not np.isfinite(matrix).all() or (matrix < 0).any():
            raise InputError(
                "likelihoods must be a matrix of numbers of at least 0, data × hypotheses"
            )
        return matrix

    def _of_data(self, what: str, values: Any) -> np.ndarray:
        """Return one number per datum (n,), 0 for None; raises InputError for another shape."""
        data = len(self._matrix)
        given = np.zeros(data) if values is None else np.asarray(values, float)
        if given.shape != (data,):
            raise InputError(f"the {what} must hold {data} numbers, one per datum")
        return given

    def _log_base(self, choices: Choices) -> np.ndarray:
        return np.log(self._of_data("base measure", self.base))[self._data(choices)]

    def _data(self, choices: Choices) -> np.ndarray:
        """Return the row of M of each candidate (N, B); 0 where a trial has no such candidate."""
        given = np.where(choices.available, choices[self.datum].astype(float), 0.0)
        last = len(self._matrix) - 1
        if not np.isin(given, np.arange(last + 1)).all():
            raise InputError(
                f"column {self.datum!r} must hold rows of the likelihoods, 0 to {last}"
            )
        return given.astype(int)

    def _targets(self, choices: Choices) -> np.ndarray:
        """Return the column of M that is taught in each trial (N,)."""
        given: Any = self.target
        if isinstance(given, str):
            given = choices.of_trials(given).astype(float)
        last = self._matrix.shape[1] - 1
        if not np.isin(given, np.arange(last + 1)).all():
            raise InputError(f"target must be a hypothesis from 0 to {last}, not {self.target!r}")
        return np.broadcast_to(given, len(choices)).astype(int)

    def _beliefs(self, choices: Choices, belief: Belief) -> np.ndarray:
        """Return θ of each trial (N, K, m), one of K possible beliefs per row."""
        given = self.belief if belief is None else belief
        hypotheses = self._matrix.shape[1]
        if given is None:
            given = np.ones(hypotheses)
        if callable(given):
            values = np.asarray(given(choices), float)
            if values.ndim == 2:
                values = values[:, None]
        elif isinstance(given, Mapping):
            values = _by_value(given, self.by, choices)
        else:
            values = np.atleast_2d(np.asarray(given, float))[None]
        if (
            values.ndim != 3
            or values.shape[2] != hypotheses
            or len(values) not in (1, len(choices))
        ):
            raise InputError(f"a belief must hold {hypotheses} numbers, one per hypothesis")
        total = values.sum(axis=2, keepdims=True)
        if not np.isfinite(values).all() or (values < 0).any() or (total == 0).any():
            raise InputError("a belief must hold numbers of at least 0, not all of them 0")
        return np.broadcast_to(values / total, (len(choices), *values.shape[1:]))

    def _by_case(
        self, choices: Choices, belief: Belief, compute: Callable[..., np.ndarray], *numbers: Any
    ) -> np.ndarray:
        """Compute something of each candidate (N, B) from matrix, beliefs, targets and numbers,
        once for all trials that agree in them.
        """
        values = self._beliefs(choices, belief)
        targets = self._targets(choices)
        of_trials = [np.broadcast_to(each, (len(choices), 1)) for each in numbers]
        keys = np.concatenate(
            [targets[:, None], *of_trials, values.reshape(len(values), -1)], axis=1
        )
        _, first, case = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        of_cases = [each[first, 0] for each in of_trials]
        of_data = compute(self._matrix, values[first], targets[first], *of_cases)
        return of_data[case.ravel()[:, None], self._data(choices)]

    def _taught(
        self,
        matrix: np.ndarray,
        belief: np.ndarray,
        targets: np.ndarray,
        alpha: np.ndarray,
        weight: np.ndarray,
        rounds: int | None,
    ) -> np.ndarray:
        """Return ``beliefs.taught`` with the base measure and the costs of this world."""
        base = None if self.base is None else self._of_data("base measure", self.base)
        costs = weight[:, None] * self._of_data("cost", self.cost)
        return beliefs.taught(
            matrix, belief[:, 0], targets, alpha=alpha, rounds=rounds, base=base, costs=costs
        )


def _by_value(given: Mapping[Any, Any], by: str | None, choices: Choices) -> np.ndarray:
    """Return the belief of each trial by the value of a column; raises InputError for a value
    without one.
    """
    if by is None:
        raise InputError("beliefs are given by value: name the column that selects them with by")
    values = choices.of_trials(by)
    for value in dict.fromkeys(values.tolist()):
        if value not in given:
            raise InputError(
                f"column {by!r} holds {value!r}, for which there is no belief: "
                f"{', '.join(map(str, given))}"
            )
    return np.array([np.atleast_2d(np.asarray(given[value], float)) for value in values])
