"""A model of a teacher: the score that people may go by, and the numbers that are fitted."""

import itertools
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ital.errors import InputError
from ital.fit import _likelihood
from ital.fit._choices import Choices
from ital.fit._likelihood import Maximum

Numbers = Mapping[str, np.ndarray]  # a value per person (P,)
Scores = Callable[..., Any]

START_POINTS = 9  # values of each own number to begin with
CYCLES = 20  # of refining one own number after the other
SETTLED = 1e-9  # gain of the log-likelihood in a cycle that ends it


class TeacherModel(NamedTuple):
    """A model of how people choose: p(c) = ε/B + (1−ε)·b_c·exp(ρ·s_c)/Σ.

    Attributes:
        name: Its name in tables.
        scores: The score s of every candidate: a column of the choices, or a function
            ``scores(choices, **numbers)`` that returns an array (N, B). Each own number arrives as
            an array (N, 1), with the value of each trial's person. None: every candidate is equally
            likely, and nothing is fitted.
        numbers: The function's own numbers, with the lowest and the highest value of each.
        rho: A rationality ρ that is given; None to fit it.
        epsilon: A share of lapses ε that is given; None to fit it.
        unit: The difference of scores that counts as 1 for ρ; None for their typical spread.
        base: The logarithm of a base measure b: a column, or a function of the choices; None for 1.

    Example:
        >>> def redness(choices, weight):
        ...     return choices["red"] - weight * choices["size"]
        >>> model = ital.fit.TeacherModel("red and small", redness, numbers={"weight": (0.0, 2.0)})
    """

    name: str
    scores: Scores | str | None
    numbers: Mapping[str, tuple[float, float]] = MappingProxyType({})
    rho: float | None = None
    epsilon: float | None = None
    unit: float | None = None
    base: Scores | str | None = None

    @property
    def parameters(self) -> int:
        """Number of parameters that are fitted."""
        if self.scores is None:
            return 0
        return (self.rho is None) + (self.epsilon is None) + len(self.numbers)

    def middle(self, people: int) -> dict[str, np.ndarray]:
        """Return own numbers in the middle of their ranges.

        Args:
            people: Number of people P.

        Returns:
            A value per person, by name.
        """
        return {name: np.full(people, sum(ends) / 2) for name, ends in self.numbers.items()}


def uniform(name: str = "uniform") -> TeacherModel:
    """Return the model of people who pick any candidate.

    Args:
        name: Its name in tables.

    Returns:
        The model; it has no parameters.
    """
    return TeacherModel(name, None)


def with_units(models: Iterable[TeacherModel], choices: Choices) -> tuple[TeacherModel, ...]:
    """Return models with the typical spread of their scores as the unit, unless they have a unit;
    raises InputError unless there are models, with different names.
    """
    given = tuple(models)
    if not given:
        raise InputError("there is no model to fit: give at least one")
    names = [model.name for model in given]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two models are called {name!r}: give each a name of its own")
    return tuple(model._replace(unit=_unit(model, choices)) for model in given)


def _unit(model: TeacherModel, choices: Choices) -> float | None:
    """Return a model's unit, or the root of the mean variance of its scores over the candidates of
    a trial, impossible ones left out, with every own number in the middle of its range.
    """
    if model.unit is not None or model.scores is None:
        return model.unit
    scores = score(model, choices, model.middle(len(choices.people)))
    possible = np.where(np.isneginf(scores), np.nan, scores)
    spread = float(np.sqrt(np.nanvar(possible, axis=1).mean()))
    return spread if spread > 0 else 1.0


def score(model: TeacherModel, choices: Choices, numbers: Numbers) -> np.ndarray:
    """Return the scores of a model in its own units (N, B), −∞ for candidates that a trial does not
    have; raises InputError if a candidate has none, or a trial has only impossible ones.
    """
    of_trials = {name: values[choices.person][:, None] for name, values in numbers.items()}
    scores = _values(f"model {model.name!r}", model.scores, choices, of_trials)
    impossible = np.isneginf(scores).all(axis=1)
    if impossible.any():
        trial = choices.trial_in_words(int(impossible.argmax()))
        raise InputError(f"model {model.name!r}: every candidate of {trial} is impossible")
    return scores / (model.unit or 1.0)


def base_of(model: TeacherModel, choices: Choices) -> np.ndarray | None:
    """Return the logarithm of a model's base measure (N, B), or None."""
    if model.base is None:
        return None
    return _values(f"the base measure of model {model.name!r}", model.base, choices, {})


def _values(
    whose: str, source: Scores | str | None, choices: Choices, numbers: Numbers
) -> np.ndarray:
    """Return a column, or what a function returns, as trials × candidates, −∞ for candidates that a
    trial does not have; raises InputError for anything but numbers.
    """
    assert source is not None
    given = choices[source] if isinstance(source, str) else source(choices, **numbers)
    shape = choices.available.shape
    try:
        values = np.broadcast_to(np.asarray(given, float), shape)
    except (TypeError, ValueError):
        kind = f"an array of shape {np.shape(given)}"
        if np.asarray(given).dtype == object:
            kind = "text or missing values"
        raise InputError(
            f"{whose}: expected numbers, trials × candidates {shape}, not {kind}"
        ) from None
    wrong = ~(values < np.inf) & choices.available
    if wrong.any():
        trial, candidate = (int(i) for i in np.argwhere(wrong)[0])
        raise InputError(
            f"{whose}: candidate {candidate + 1} of {choices.trial_in_words(trial)} has the score "
            f"{values[trial, candidate]}"
        )
    return np.where(choices.available, values, -np.inf)


def maximise(model: TeacherModel, choices: Choices) -> Maximum:
    """Fit a model, which has its unit, to every person by maximum likelihood."""
    picks = choices.picks
    people = len(choices.people)
    if model.scores is None:
        nothing = np.full(people, np.nan)
        return Maximum(nothing, nothing, picks.chance)
    base = base_of(model, choices)

    def best_for(numbers: Numbers) -> Maximum:
        """Return the best ρ and ε of each person for its own numbers."""
        scores = score(model, choices, numbers)
        best = _likelihood.maximise(scores, picks, base=base, rho=model.rho, epsilon=model.epsilon)
        return best._replace(numbers=numbers)

    if not model.numbers:
        return best_for({})
    return best_for(_best_numbers(model, people, lambda each: best_for(each).log_likelihood))


def probabilities(model: TeacherModel, choices: Choices, fitted: Maximum) -> np.ndarray:
    """Return the probability of every candidate (N, B), with the numbers of each trial's person; an
    ε that does not matter counts as 0.
    """
    if model.scores is None:
        return choices.available / choices.available.sum(axis=1, keepdims=True)
    return _likelihood.probabilities(
        score(model, choices, fitted.numbers),
        fitted.rho[choices.person],
        np.nan_to_num(fitted.epsilon)[choices.person],
        base=base_of(model, choices),
        available=choices.available,
    )


def _best_numbers(
    model: TeacherModel, people: int, value: Callable[[Numbers], np.ndarray]
) -> Numbers:
    """Return the own numbers of the highest value: the best point of a grid, refined in one number
    after the other until nothing is gained.
    """
    grids = [np.linspace(*ends, START_POINTS) for ends in model.numbers.values()]
    points = np.array(list(itertools.product(*grids)))
    values = []
    for point in points:
        of_all = [np.full(people, at) for at in point]
        values.append(value(dict(zip(model.numbers, of_all, strict=True))))
    best = points[np.argmax(values, axis=0)]
    highest = np.max(values, axis=0)
    numbers = dict(zip(model.numbers, best.T, strict=True))
    # One number needs one cycle; several are repeated, because each maximum moves with the others.
    for _ in range(CYCLES if len(numbers) > 1 else 1):
        before = highest
        for name, (lowest, largest) in model.numbers.items():
            reach = (largest - lowest) / (START_POINTS - 1)
            refined = _likelihood.golden_sections(
                lambda each, name=name: value({**numbers, name: each}),  # type: ignore[misc]
                np.maximum(numbers[name] - reach, lowest),
                np.minimum(numbers[name] + reach, largest),
            )
            found = value({**numbers, name: refined})
            # The old value stays where it is better: at an end of the range.
            numbers[name] = np.where(found > highest, refined, numbers[name])
            highest = np.maximum(found, highest)
        if (highest - before).max() < SETTLED:
            break
    return numbers
