"""The likelihood of choices under a model of a teacher, and its maximum, for many people at once.

The model is p(c) = ε/B + (1−ε)·softmax(ρs)_c: with probability ε a person picks any of the B arrows, else one by its
score s. For given ρ the logarithm of the likelihood is concave in ε: Newton's method, kept between bounds, finds the
best ε. Over ρ it may have several maxima: a grid finds the highest, golden sections narrow it down. All is float64.
"""

from typing import NamedTuple

import numpy as np

LARGEST = 100.0  # ρ: a twentieth of a typical spread then makes odds of 150 to 1
GRID = np.concatenate([[0.0], np.geomspace(0.01, LARGEST, 40)])
SECTIONS = 25  # golden sections: they narrow the interval between three grid points by 1e-5
GOLDEN = (np.sqrt(5) - 1) / 2
NEWTON = 50  # steps at most; a few suffice unless the best ε is tiny


class Choices(NamedTuple):
    """The choices of people: N steps, sorted by person.

    Attributes:
        chosen: Index of the chosen arrow (N,).
        first: Index of the first step of each person (P,).
        among: Number of arrows to choose from, B.
    """

    chosen: np.ndarray
    first: np.ndarray
    among: int

    @property
    def steps(self) -> np.ndarray:
        """Number of steps of each person (P,)."""
        return np.diff(np.append(self.first, len(self.chosen)))

    def per_person(self, values: np.ndarray) -> np.ndarray:
        """Sums over each person's steps (P,)."""
        return np.add.reduceat(values, self.first)

    def per_step(self, values: np.ndarray) -> np.ndarray:
        """The value of the person of each step (N,)."""
        return np.repeat(values, self.steps)


class Maximum(NamedTuple):
    """The maximum of the likelihood of each person (P,).

    Attributes:
        rho: The rationality ρ.
        epsilon: The share of lapses ε; NaN where ρ = 0, because every ε then gives the same choices.
        log_likelihood: The logarithm of the likelihood.
    """

    rho: np.ndarray
    epsilon: np.ndarray
    log_likelihood: np.ndarray


def probabilities(
    scores: np.ndarray, rho: np.ndarray | float, epsilon: np.ndarray | float
) -> np.ndarray:
    """p(c) = ε/B + (1−ε)·softmax(ρs)_c.

    Args:
        scores: The scores; the last axis are the arrows.
        rho: ρ, one number for all or one per step.
        epsilon: ε, likewise.

    Returns:
        The probability of every arrow.
    """
    raised = np.exp(np.asarray(rho)[..., None] * (scores - scores.max(axis=-1, keepdims=True)))
    softmax = raised / raised.sum(axis=-1, keepdims=True)
    lapse = np.asarray(epsilon)[..., None]
    return lapse / scores.shape[-1] + (1 - lapse) * softmax


def log_likelihood(
    scores: np.ndarray, choices: Choices, rho: np.ndarray, epsilon: np.ndarray
) -> np.ndarray:
    """Σ log p(c) of each person.

    Args:
        scores: Scores of the arrows (N, B).
        choices: The choices.
        rho: ρ of each person (P,).
        epsilon: ε of each person (P,).

    Returns:
        One number per person (P,).
    """
    followed = _followed(scores, choices, rho)
    return _with_lapses(followed, choices, epsilon)


def maximise(scores: np.ndarray, choices: Choices) -> Maximum:
    """Find ρ in [0, 100] and ε in [0, 1] of the highest likelihood, for every person.

    Args:
        scores: Scores of the arrows (N, B), in units in which a typical spread is 1.
        choices: The choices.

    Returns:
        Where the maxima are, and their values.
    """
    people = len(choices.first)
    profile = np.stack([_profile(scores, choices, np.full(people, rho))[0] for rho in GRID])
    best = profile.argmax(axis=0)
    low, high = GRID[np.maximum(best - 1, 0)], GRID[np.minimum(best + 1, len(GRID) - 1)]
    for _ in range(SECTIONS):
        inner = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        left_is_higher = (
            _profile(scores, choices, inner[0])[0] > _profile(scores, choices, inner[1])[0]
        )
        low, high = (
            np.where(left_is_higher, low, inner[0]),
            np.where(left_is_higher, inner[1], high),
        )
    rho = np.stack([(low + high) / 2, GRID[best]])
    found = [_profile(scores, choices, each) for each in rho]
    values, lapses = (
        np.stack([value for value, _ in found]),
        np.stack([lapse for _, lapse in found]),
    )
    top = values.argmax(axis=0)[None]
    value, lapse, rho = (np.take_along_axis(each, top, axis=0)[0] for each in (values, lapses, rho))
    chance = -choices.steps * np.log(choices.among)
    by_chance = value <= chance + 1e-9
    return Maximum(
        np.where(by_chance, 0.0, rho), np.where(by_chance, np.nan, lapse), np.maximum(value, chance)
    )


def _followed(scores: np.ndarray, choices: Choices, rho: np.ndarray) -> np.ndarray:
    """softmax(ρs) of the chosen arrow (N,)."""
    every = choices.per_step(rho)[:, None] * (scores - scores.max(axis=-1, keepdims=True))
    chosen = np.take_along_axis(every, choices.chosen[:, None], axis=1)[:, 0]
    return np.exp(chosen) / np.exp(every).sum(axis=-1)


def _with_lapses(followed: np.ndarray, choices: Choices, epsilon: np.ndarray) -> np.ndarray:
    lapse = choices.per_step(epsilon)
    with np.errstate(divide="ignore"):
        return choices.per_person(np.log(lapse / choices.among + (1 - lapse) * followed))


def _profile(
    scores: np.ndarray, choices: Choices, rho: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The highest log-likelihood for given ρ of each person, and its ε: where the derivative changes its sign."""
    followed = _followed(scores, choices, rho)
    gain = 1 / choices.among - followed  # of a step's probability, per ε
    with np.errstate(
        divide="ignore", over="ignore"
    ):  # an arrow of probability 0 needs lapses: an infinite slope
        falls_from_0 = choices.per_person(gain / followed) <= 0
    rises_to_1 = choices.per_person(gain) >= 0
    at_end, end = falls_from_0 | rises_to_1, np.where(falls_from_0, 0.0, 1.0)
    low, high, epsilon = np.zeros(len(rho)), np.ones(len(rho)), np.full(len(rho), 0.1)
    for _ in range(NEWTON):
        ratio = gain / (followed + choices.per_step(epsilon) * gain)
        slope, bend = choices.per_person(ratio), choices.per_person(ratio**2)
        low, high = np.where(slope > 0, epsilon, low), np.where(slope > 0, high, epsilon)
        proposed = epsilon + slope / np.maximum(bend, 1e-300)
        inside = (proposed > low) & (proposed < high)
        before, epsilon = epsilon, np.where(inside, proposed, (low + high) / 2)
        if (at_end | (np.abs(epsilon - before) < 1e-12)).all():
            break
    epsilon = np.where(at_end, end, epsilon)
    return _with_lapses(followed, choices, epsilon), epsilon
