"""Models of people who teach a hypothesis: by chance, by pedagogy, by SCBI, or unsure about the
learner.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.special import logsumexp

from ital import beliefs
from ital.errors import InputError
from ital.fit._choices import Choices
from ital.fit._models import TeacherModel
from ital.tools.platform import double_precision

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
        log_m = _logs(self._matrix)

        def scores(choices: Choices) -> np.ndarray:
            return log_m[self._data(choices), self._targets(choices)[:, None]]

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
        if isinstance(cost, tuple):
            numbers["cost"] = cost
        weight = 0.0 if cost is None or isinstance(cost, tuple) else cost
        if rounds == 1:
            return TeacherModel(
                name,
                lambda choices, cost=weight: (
                    self._expected(choices, belief) - cost * self._costs(choices)
                ),
                numbers,
                rho=alpha,
                unit=1.0,
                base=None if self.base is None else self._log_base,
            )
        if alpha is None:
            numbers["alpha"] = ALPHAS

        def scores(choices: Choices, alpha: Any = alpha, cost: Any = weight) -> np.ndarray:
            return self._log_t(choices, belief, alpha, cost, rounds)

        return TeacherModel(name, scores, numbers, rho=1.0, unit=1.0)

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
        return TeacherModel(
            name,
            lambda choices: self._expected(choices, belief),
            rho=alpha,
            unit=1.0,
            base=None if self.base is None else self._log_base,
        )

    def scbi(self, name: str = "scbi", *, belief: Belief = None) -> TeacherModel:
        """Return the model of people who teach by sequential cooperative Bayesian inference.

        Args:
            name: Its name in tables.
            belief: What these people think that the learner believes; None for the world's belief.

        Returns:
            The model; only ε is fitted.
        """
        return TeacherModel(
            name, lambda choices: self._log_t(choices, belief, None, 0.0, 0), rho=1.0, unit=1.0
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
        """One number per datum (n,); raises InputError for another shape."""
        given = np.asarray(values, float)
        if given.shape != (len(self._matrix),):
            raise InputError(f"the {what} must hold {len(self._matrix)} numbers, one per datum")
        return given

    def _data(self, choices: Choices) -> np.ndarray:
        """The row of M of each candidate (N, B); 0 for candidates that a trial does not have."""
        given = np.where(choices.available, choices[self.datum].astype(float), 0.0)
        if not (np.isin(given, np.arange(len(self._matrix)))).all():
            raise InputError(
                f"column {self.datum!r} must hold rows of the likelihoods, 0 to "
                f"{len(self._matrix) - 1}"
            )
        return given.astype(int)

    def _targets(self, choices: Choices) -> np.ndarray:
        """The column of M that is taught in each trial (N,)."""
        given = np.full(len(choices), self.target)
        if isinstance(self.target, str):
            given = choices.of_trials(self.target).astype(float)
        if not np.isin(given, np.arange(self._matrix.shape[1])).all():
            raise InputError(
                f"target must be a hypothesis from 0 to {self._matrix.shape[1] - 1}, not "
                f"{self.target!r}"
            )
        return given.astype(int)

    def _costs(self, choices: Choices) -> Any:
        return 0.0 if self.cost is None else self._of_data("cost", self.cost)[self._data(choices)]

    def _log_base(self, choices: Choices) -> np.ndarray:
        return np.log(self._of_data("base measure", self.base))[self._data(choices)]

    def _beliefs(self, choices: Choices, belief: Belief) -> np.ndarray:
        """log θ of each trial (N, K, m), one of K possible beliefs per row."""
        given = self.belief if belief is None else belief
        hypotheses = self._matrix.shape[1]
        if given is None:
            given = np.full(hypotheses, 1 / hypotheses)
        if callable(given):
            values = np.asarray(given(choices), float)
            if values.ndim == 2:
                values = values[:, None]
        elif isinstance(given, Mapping):
            values = _by_value(given, self.by, choices)
        else:
            values = np.atleast_2d(np.asarray(given, float))[None]
        try:
            values = np.broadcast_to(values, (len(choices), *np.shape(values)[-2:]))
        except ValueError:
            values = np.zeros(())
        if values.ndim != 3 or values.shape[2] != hypotheses:
            raise InputError(f"a belief must hold {hypotheses} numbers, one per hypothesis")
        total = values.sum(axis=2, keepdims=True)
        if not np.isfinite(values).all() or (values < 0).any() or (total == 0).any():
            raise InputError("a belief must hold numbers of at least 0, not all of them 0")
        return _logs(values / total)

    def _situations(
        self, choices: Choices, belief: Belief
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Distinct beliefs (U, K, m) with their targets (U,), and the situation of each trial
        (N,).
        """
        values = self._beliefs(choices, belief)
        targets = self._targets(choices)
        keys = np.concatenate([targets[:, None], values.reshape(len(values), -1)], axis=1)
        _, first, which = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        return values[first], targets[first], which.ravel()

    def _expected(self, choices: Choices, belief: Belief) -> np.ndarray:
        """Σ_k log P_L^k(h*|d)/K of each candidate (N, B)."""
        log_m = _logs(self._matrix)
        values, targets, which = self._situations(choices, belief)
        learned = []
        for beliefs_of, target in zip(values, targets, strict=True):
            joint = log_m[None] + beliefs_of[:, None]
            with np.errstate(invalid="ignore"):  # impossible under all that is believed
                log_p = joint[:, :, target] - logsumexp(joint, axis=2)
            learned.append(np.where(np.isnan(log_p), -np.inf, log_p).mean(axis=0))
        return np.array(learned)[which[:, None], self._data(choices)]

    def _log_t(
        self, choices: Choices, belief: Belief, alpha: Any, cost: Any, rounds: int
    ) -> np.ndarray:
        """log P_T(d|h*) of each candidate (N, B): some rounds of pedagogy with α, or SCBI if α is
        None.
        """
        values, targets, which = self._situations(choices, belief)
        # People with the same numbers in the same situation share a computation.
        own = [
            np.broadcast_to(0.0 if each is None else each, (len(choices), 1))
            for each in (alpha, cost)
        ]
        keys = np.concatenate([which[:, None], *own], axis=1)
        distinct, lookup = np.unique(keys, axis=0, return_inverse=True)
        situation = distinct[:, 0].astype(int)
        columns = [values[situation][:, 0], targets[situation], distinct[:, 1], distinct[:, 2]]
        log_t = _distributions(self, alpha is None, rounds, columns)
        of_candidates = log_t[lookup.ravel()[:, None], self._data(choices)]
        impossible = self._matrix[self._data(choices), self._targets(choices)[:, None]] == 0
        return np.where(impossible, -np.inf, of_candidates)


def _distributions(
    world: Hypotheses, by_scaling: bool, rounds: int, columns: list[np.ndarray]
) -> np.ndarray:
    """log P_T(·|h*) (V, n) for belief, target, α and cost weight of V cases, in double
    precision.
    """
    matrix = world._matrix
    log_base = np.zeros(len(matrix))
    if world.base is not None:
        log_base = np.log(world._of_data("base measure", world.base))
    costs = np.zeros(len(matrix)) if world.cost is None else world._of_data("cost", world.cost)
    log_m = beliefs.log_likelihoods(matrix)

    def one(belief: Any, target: Any, alpha: Any, weight: Any) -> Any:
        offer = beliefs.Offer(log_m, log_base, weight * costs)
        if by_scaling:
            return beliefs.scbi(offer, belief)[:, target]
        return beliefs.pedagogical(offer, belief, alpha, rounds)[:, target]

    with double_precision():
        return np.asarray(jax.jit(jax.vmap(one))(*columns))


def _by_value(given: Mapping[Any, Any], by: str | None, choices: Choices) -> np.ndarray:
    """The belief of each trial by the value of a column; raises InputError for a value without
    one.
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


def _logs(values: np.ndarray) -> np.ndarray:
    return np.log(values, where=values > 0, out=np.full(np.shape(values), -np.inf))
