"""A model of a teacher: the score that people may go by, and the numbers that are fitted."""

import itertools
from collections.abc import Callable, Mapping
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


class Fitted(NamedTuple):
    """What fits each person best under one model.

    Attributes:
        rho: ρ (P,); NaN for a model without scores.
        epsilon: ε (P,); NaN where it does not matter.
        log_likelihood: The logarithm of the likelihood (P,).
        numbers: The model's own numbers, each (P,).
    """

    rho: np.ndarray
    epsilon: np.ndarray
    log_likelihood: np.ndarray
    numbers: Numbers


def uniform(name: str = "uniform") -> TeacherModel:
    """Return the model of people who pick any candidate.

    Args:
        name: Its name in tables.

    Returns:
        The model; it has no parameters.
    """
    return TeacherModel(name, None)


def score(model: TeacherModel, choices: Choices, numbers: Numbers) -> np.ndarray:
    """Return the scores of a model in its own units (N, B), −∞ for candidates that a trial does not
    have.

    Args:
        model: A model with scores.
        choices: The choices.
        numbers: The model's own numbers of each person.

    Returns:
        The scores.

    Raises:
        InputError: They are no array of trials × candidates, a candidate has none, or a trial has
            only impossible ones.
    """
    if isinstance(model.scores, str):
        given = choices[model.scores]
    elif model.scores is not None:
        of_trials = {name: values[choices.person][:, None] for name, values in numbers.items()}
        given = model.scores(choices, **of_trials)
    shape = choices.available.shape
    scores = _as_numbers(f"model {model.name!r}", given, choices)
    scores = np.where(choices.available, scores, -np.inf)
    if np.isneginf(scores).all(axis=1).any():
        trial = choices.trial_in_words(int(np.isneginf(scores).all(axis=1).argmax()))
        raise InputError(f"model {model.name!r}: every candidate of {trial} is impossible")
    return np.broadcast_to(scores, shape) / (model.unit or 1.0)


def base_of(model: TeacherModel, choices: Choices) -> np.ndarray | None:
    """Return the logarithm of a model's base measure (N, B), or None."""
    if model.base is None:
        return None
    given = choices[model.base] if isinstance(model.base, str) else model.base(choices)
    base = _as_numbers(f"the base measure of model {model.name!r}", given, choices)
    return np.where(choices.available, base, -np.inf)


def with_unit(model: TeacherModel, choices: Choices) -> TeacherModel:
    """Return the model with the typical spread of its scores as the unit, unless it has a unit.

    The spread is the root of the mean variance over the candidates of a trial, impossible ones left
    out, with every own number in the middle of its range.
    """
    if model.unit is not None or model.scores is None:
        return model
    middle = {
        name: np.full(len(choices.people), sum(ends) / 2) for name, ends in model.numbers.items()
    }
    scores = score(model, choices, middle)
    possible = np.where(np.isneginf(scores), np.nan, scores)
    spread = float(np.sqrt(np.nanvar(possible, axis=1).mean()))
    return model._replace(unit=spread if spread > 0 else 1.0)


def maximise(model: TeacherModel, choices: Choices) -> Fitted:
    """Fit a model to every person by maximum likelihood.

    Args:
        model: The model, with its unit.
        choices: The choices.

    Returns:
        What fits each person best.
    """
    picks = choices.picks
    people = len(choices.people)
    if model.scores is None:
        nothing = np.full(people, np.nan)
        return Fitted(nothing, nothing, picks.chance, {})
    base = base_of(model, choices)

    def best_for(numbers: Numbers) -> Maximum:
        """Return the best ρ and ε of each person for its own numbers."""
        scores = score(model, choices, numbers)
        return _likelihood.maximise(scores, picks, base=base, rho=model.rho, epsilon=model.epsilon)

    numbers = _start(model, people, lambda each: best_for(each).log_likelihood)
    numbers = _refine(model, numbers, lambda each: best_for(each).log_likelihood)
    found = best_for(numbers)
    return Fitted(found.rho, found.epsilon, found.log_likelihood, numbers)


def probabilities(model: TeacherModel, choices: Choices, fitted: Fitted) -> np.ndarray:
    """Return the probability of every candidate (N, B), with the numbers of each trial's person.

    Args:
        model: The model, with its unit.
        choices: The choices.
        fitted: The numbers of each person; an ε that does not matter counts as 0.

    Returns:
        The probabilities.
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


def _grid(ends: tuple[float, float]) -> np.ndarray:
    return np.linspace(*ends, START_POINTS)


def _start(model: TeacherModel, people: int, value: Callable[[Numbers], np.ndarray]) -> Numbers:
    """Return the best point of each person on a grid over all own numbers."""
    if not model.numbers:
        return {}
    points = np.array(list(itertools.product(*map(_grid, model.numbers.values()))))
    values = [
        value({name: np.full(people, at) for name, at in zip(model.numbers, point, strict=True)})
        for point in points
    ]
    best = points[np.argmax(values, axis=0)]
    return dict(zip(model.numbers, best.T, strict=True))


def _refine(
    model: TeacherModel, numbers: Numbers, value: Callable[[Numbers], np.ndarray]
) -> Numbers:
    """Return the own numbers after golden sections over one number after the other, until nothing
    is gained.
    """
    numbers = dict(numbers)
    highest = value(numbers) if numbers else np.zeros(0)
    # One number needs one cycle; several are repeated, because each maximum moves with the other
    # numbers.
    for _ in range(CYCLES if len(numbers) > 1 else len(numbers)):
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


def _as_numbers(whose: str, given: Any, choices: Choices) -> np.ndarray:
    """Return scores as an array of trials × candidates; raises InputError for anything else."""
    shape = choices.available.shape
    try:
        values = np.broadcast_to(np.asarray(given, float), shape)
    except (TypeError, ValueError):
        raise InputError(
            f"{whose}: expected numbers, trials × candidates {shape}, not {_kind(given)}"
        ) from None
    wrong = (np.isnan(values) | np.isposinf(values)) & choices.available
    if wrong.any():
        trial, candidate = (int(i) for i in np.argwhere(wrong)[0])
        raise InputError(
            f"{whose}: candidate {candidate + 1} of {choices.trial_in_words(trial)} has the score "
            f"{values[trial, candidate]}"
        )
    return values


def _kind(given: Any) -> str:
    if np.asarray(given).dtype == object:
        return "text or missing values"
    return f"an array of shape {np.shape(given)}"
