"""The likelihood of choices under one teacher model, and its maximum, for many people at once.

A model gives every candidate of a trial a score s. The probability of a choice is

    p(c) = ε/B + (1−ε)·b_c·exp(ρ·s_c)/Σ,

with B candidates, lapses ε, rationality ρ and a base measure b (1 unless the model has one). A
score of −∞ is impossible without a lapse, whatever ρ is. For given ρ the log-likelihood is concave
in ε: Newton's method, kept between bounds, finds the best ε. Over ρ it may have several maxima: a
grid finds the highest, golden sections narrow it down. All numbers are float64.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

LARGEST = 100.0  # ρ: a twentieth of a typical spread then makes odds of 150 to 1
GRID = np.concatenate([[0.0], np.geomspace(0.01, LARGEST, 40)])
SECTIONS = 25  # they narrow the interval between three grid points by 1e-5
GOLDEN = (np.sqrt(5) - 1) / 2
NEWTON_STEPS = 50  # at most; a few suffice unless the best ε is tiny
CLOSE = 1e-9  # gains over chance that are no gain


class Picks(NamedTuple):
    """What people picked: N trials, sorted by person.

    Attributes:
        chosen: Index of the chosen candidate (N,).
        first: Index of the first trial of each person (P,).
        counts: Number of candidates of each trial (N,).
    """

    chosen: np.ndarray
    first: np.ndarray
    counts: np.ndarray

    @property
    def trials(self) -> np.ndarray:
        """Number of trials of each person (P,)."""
        return np.diff(np.append(self.first, len(self.chosen)))

    @property
    def chance(self) -> np.ndarray:
        """The log-likelihood of each person if every candidate is equally likely (P,)."""
        return -self.per_person(np.log(self.counts))

    def per_person(self, values: np.ndarray) -> np.ndarray:
        """Sum over each person's trials.

        Args:
            values: A value per trial (N,).

        Returns:
            A sum per person (P,).
        """
        return np.add.reduceat(values, self.first)

    def per_trial(self, values: np.ndarray) -> np.ndarray:
        """Repeat the value of each person for all of the person's trials.

        Args:
            values: A value per person (P,).

        Returns:
            A value per trial (N,).
        """
        return np.repeat(values, self.trials)


class Maximum(NamedTuple):
    """The maximum of the likelihood of each person (P,).

    Attributes:
        rho: The rationality ρ; NaN for a model without scores.
        epsilon: The share of lapses ε; NaN where every ε gives the same choices.
        log_likelihood: The logarithm of the likelihood.
        numbers: A model's own numbers, by name.
    """

    rho: np.ndarray
    epsilon: np.ndarray
    log_likelihood: np.ndarray
    numbers: Mapping[str, np.ndarray] = MappingProxyType({})


def probabilities(
    scores: np.ndarray,
    rho: np.ndarray | float,
    epsilon: np.ndarray | float,
    *,
    base: np.ndarray | None = None,
    available: np.ndarray | None = None,
) -> np.ndarray:
    """Return p(c) = ε/B + (1−ε)·b_c·exp(ρ·s_c)/Σ of every candidate.

    Args:
        scores: The scores; the last axis are the candidates.
        rho: ρ, one number for all or one per trial.
        epsilon: ε, likewise.
        base: log b, of the shape of the scores; None for a base measure of 1.
        available: Which candidates a trial has; None for all.

    Returns:
        The probabilities; candidates that a trial does not have get 0.
    """
    present = np.ones(np.shape(scores), bool) if available is None else available
    behind = _behind_the_best(np.where(present, scores, -np.inf))
    weights = _weights(behind, np.asarray(rho), base)
    softmax = weights / weights.sum(axis=-1, keepdims=True)
    uniform = present / present.sum(axis=-1, keepdims=True)
    lapse = np.asarray(epsilon)[..., None]
    return lapse * uniform + (1 - lapse) * softmax


def log_likelihood(
    scores: np.ndarray,
    picks: Picks,
    rho: np.ndarray,
    epsilon: np.ndarray,
    base: np.ndarray | None = None,
) -> np.ndarray:
    """Return Σ log p(c) of each person.

    Args:
        scores: Scores of the candidates (N, B), −∞ for candidates that a trial does not have.
        picks: What people picked.
        rho: ρ of each person (P,).
        epsilon: ε of each person (P,).
        base: log b (N, B), or None.

    Returns:
        One number per person (P,).
    """
    followed = _followed(_behind_the_best(scores), picks, rho, base)
    return _with_lapses(followed, picks, epsilon)


def maximise(
    scores: np.ndarray,
    picks: Picks,
    *,
    base: np.ndarray | None = None,
    rho: float | None = None,
    epsilon: float | None = None,
) -> Maximum:
    """Find ρ in [0, 100] and ε in [0, 1] of the highest likelihood, for every person.

    Args:
        scores: Scores of the candidates (N, B), in units in which a typical spread is 1.
        picks: What people picked.
        base: log b (N, B), or None.
        rho: A ρ that is given rather than fitted.
        epsilon: An ε that is given rather than fitted.

    Returns:
        Where the maxima are, and their values.
    """
    behind = _behind_the_best(scores)
    people = len(picks.first)

    def best_for(rho: np.ndarray) -> Maximum:
        """Return the highest log-likelihood of each person for its ρ."""
        followed = _followed(behind, picks, rho, base)
        if epsilon is None:
            return Maximum(rho, *_best_lapses(followed, picks))
        given = np.full(people, epsilon)
        return Maximum(rho, given, _with_lapses(followed, picks, given))

    if rho is not None:
        return best_for(np.full(people, rho))
    on_grid = [best_for(np.full(people, each)) for each in GRID]
    values = np.stack([each.log_likelihood for each in on_grid])  # (grid, P)
    best = values.argmax(axis=0)
    below = GRID[np.maximum(best - 1, 0)]
    above = GRID[np.minimum(best + 1, len(GRID) - 1)]
    refined = best_for(golden_sections(lambda each: best_for(each).log_likelihood, below, above))
    # The interval's middle may lie below an end of the grid, such as ρ = 0.
    is_lower = refined.log_likelihood < values.max(axis=0)
    lapses = np.stack([each.epsilon for each in on_grid])
    found = Maximum(
        np.where(is_lower, GRID[best], refined.rho),
        np.where(is_lower, lapses[best, np.arange(people)], refined.epsilon),
        np.maximum(values.max(axis=0), refined.log_likelihood),
    )
    if epsilon is not None:
        return found
    return _or_chance(found, picks, rules_out=base is not None or _excludes(behind, picks))


def _or_chance(found: Maximum, picks: Picks, *, rules_out: bool) -> Maximum:
    """Return the maxima, where a model that gains nothing is called chance.

    With ρ = 0 every ε then fits equally well, unless the model prefers some candidates, or rules
    them out, whatever ρ is: then only lapses make it chance.
    """
    by_chance = found.log_likelihood <= picks.chance + CLOSE
    return Maximum(
        np.where(by_chance, 0.0, found.rho),
        np.where(by_chance, 1.0 if rules_out else np.nan, found.epsilon),
        np.maximum(found.log_likelihood, picks.chance),
    )


def _excludes(behind: np.ndarray, picks: Picks) -> bool:
    """Say whether some candidates of a trial are impossible."""
    absent = behind.size - int(picks.counts.sum())
    return int(np.isneginf(behind).sum()) > absent


def golden_sections(
    value: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Find the maximum of a function with one peak between two bounds, for many people at once.

    Args:
        value: Returns the value at one point per person (P,).
        low: Lower bounds (P,).
        high: Upper bounds (P,).

    Returns:
        The middle of the last interval (P,).
    """
    left = high - GOLDEN * (high - low)
    right = low + GOLDEN * (high - low)
    at_left = value(left)
    at_right = value(right)
    for _ in range(SECTIONS):
        peak_is_left = at_left > at_right
        low = np.where(peak_is_left, low, left)
        high = np.where(peak_is_left, right, high)
        # The better of the two inner points is also an inner point of the new interval, so only the
        # other one is computed.
        kept = np.where(peak_is_left, left, right)
        at_kept = np.maximum(at_left, at_right)
        way = GOLDEN * (high - low)
        new = np.where(peak_is_left, high - way, low + way)
        at_new = value(new)
        left = np.where(peak_is_left, new, kept)
        right = np.where(peak_is_left, kept, new)
        at_left = np.where(peak_is_left, at_new, at_kept)
        at_right = np.where(peak_is_left, at_kept, at_new)
    return (low + high) / 2


def _behind_the_best(scores: np.ndarray) -> np.ndarray:
    """Return s − max s of each trial, so that no exponential overflows."""
    return scores - scores.max(axis=-1, keepdims=True)


def _weights(behind: np.ndarray, rho: np.ndarray, base: np.ndarray | None) -> np.ndarray:
    """Return b·exp(ρ·s), up to a factor of each trial that makes the largest 1."""
    with np.errstate(invalid="ignore"):  # 0·∞: what is impossible stays impossible at ρ = 0
        logits = rho[..., None] * behind
    logits[np.isnan(logits)] = -np.inf
    if base is not None:
        logits = logits + base
        logits = logits - logits.max(axis=-1, keepdims=True)
    return np.exp(logits)


def _followed(
    behind: np.ndarray, picks: Picks, rho: np.ndarray, base: np.ndarray | None
) -> np.ndarray:
    """Return the probability of the chosen candidate without lapses (N,)."""
    weights = _weights(behind, picks.per_trial(rho), base)
    of_chosen = weights[np.arange(len(weights)), picks.chosen]
    return of_chosen / weights.sum(axis=-1)


def _with_lapses(followed: np.ndarray, picks: Picks, epsilon: np.ndarray) -> np.ndarray:
    """Return Σ log p(c) of each person, given the probabilities without lapses."""
    lapse = picks.per_trial(epsilon)
    with np.errstate(divide="ignore"):
        return picks.per_person(np.log(lapse / picks.counts + (1 - lapse) * followed))


def _best_lapses(followed: np.ndarray, picks: Picks) -> tuple[np.ndarray, np.ndarray]:
    """Return the best ε of each person, where the slope changes its sign, and the log-likelihood
    there.
    """
    gain = 1 / picks.counts - followed  # of a trial's probability, per ε
    # A choice of probability 0 needs lapses: its slope at ε = 0 is infinite.
    with np.errstate(divide="ignore", over="ignore"):
        falls_from_0 = picks.per_person(gain / followed) <= 0
    rises_to_1 = picks.per_person(gain) >= 0
    at_end = falls_from_0 | rises_to_1
    low = np.zeros(len(picks.first))
    high = np.ones(len(picks.first))
    epsilon = np.full(len(picks.first), 0.1)
    for _ in range(NEWTON_STEPS):
        ratio = gain / (followed + picks.per_trial(epsilon) * gain)
        slope = picks.per_person(ratio)
        bend = picks.per_person(ratio**2)
        low = np.where(slope > 0, epsilon, low)
        high = np.where(slope > 0, high, epsilon)
        proposed = epsilon + slope / np.maximum(bend, 1e-300)
        is_inside = (proposed > low) & (proposed < high)
        before = epsilon
        epsilon = np.where(is_inside, proposed, (low + high) / 2)
        is_settled = np.abs(epsilon - before) < 1e-12
        if (at_end | is_settled).all():
            break
    end = np.where(falls_from_0, 0.0, 1.0)
    epsilon = np.where(at_end, end, epsilon)
    return epsilon, _with_lapses(followed, picks, epsilon)
