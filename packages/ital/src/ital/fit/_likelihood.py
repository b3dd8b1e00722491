"""The likelihood of choices under one teacher model, and its maximum, for many people at once.

A model gives every candidate of a trial a score s. The probability of a choice is

    p(c) = ε/B + (1−ε)·b_c·exp(ρ·s_c)/Σ,

with B candidates, lapses ε, rationality ρ and a base measure b (1 unless the model has one). A
score of −∞ is impossible without a lapse, whatever ρ is. For given ρ the log-likelihood is concave
in ε: Newton's method, kept between bounds, finds the best ε. Over ρ it may have several maxima: a
grid finds the highest, golden sections narrow it down. All numbers are float64.
"""

from collections.abc import Callable
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
        rho: The rationality ρ.
        epsilon: The share of lapses ε; NaN where every ε gives the same choices.
        log_likelihood: The logarithm of the likelihood.
    """

    rho: np.ndarray
    epsilon: np.ndarray
    log_likelihood: np.ndarray


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
    logits = _logits(_behind_the_best(np.where(present, scores, -np.inf)), np.asarray(rho), base)
    raised = np.exp(logits)
    softmax = raised / raised.sum(axis=-1, keepdims=True)
    lapse = np.asarray(epsilon)[..., None]
    uniform = present / present.sum(axis=-1, keepdims=True)
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

    def profile(rationality: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the highest log-likelihood of each person for its ρ, and where it is in ε."""
        followed = _followed(behind, picks, rationality, base)
        if epsilon is None:
            return _best_lapses(followed, picks)
        given = np.full(people, epsilon)
        return _with_lapses(followed, picks, given), given

    if rho is not None:
        given = np.full(people, rho)
        value, lapse = profile(given)
        return Maximum(given, lapse, value)

    on_grid = np.stack([profile(np.full(people, each))[0] for each in GRID])
    best = on_grid.argmax(axis=0)
    below = GRID[np.maximum(best - 1, 0)]
    above = GRID[np.minimum(best + 1, len(GRID) - 1)]
    refined = golden_sections(lambda each: profile(each)[0], below, above)
    # The interval's middle may lie below an end of the grid, such as ρ = 0.
    proposed = np.stack([refined, GRID[best]])
    found = [profile(each) for each in proposed]
    values = np.stack([value for value, _ in found])
    lapses = np.stack([lapse for _, lapse in found])
    top = values.argmax(axis=0)[None]
    value, lapse, at = (
        np.take_along_axis(each, top, axis=0)[0] for each in (values, lapses, proposed)
    )
    if epsilon is not None:
        return Maximum(at, lapse, value)

    # A model that gains nothing is called chance. With ρ = 0 every ε then fits equally well, unless
    # the model also
    # rules candidates out: then only lapses make it chance.
    by_chance = value <= picks.chance + CLOSE
    only_scores = base is None and np.isneginf(behind).sum() == _absent(behind, picks)
    undetermined = np.nan if only_scores else 1.0
    return Maximum(
        np.where(by_chance, 0.0, at),
        np.where(by_chance, undetermined, lapse),
        np.maximum(value, picks.chance),
    )


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
        # The better of the two inner points is an inner point of the new interval as well: one is
        # new.
        kept = np.where(peak_is_left, left, right)
        at_kept = np.where(peak_is_left, at_left, at_right)
        new = np.where(peak_is_left, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        at_new = value(new)
        left = np.where(peak_is_left, new, kept)
        right = np.where(peak_is_left, kept, new)
        at_left = np.where(peak_is_left, at_new, at_kept)
        at_right = np.where(peak_is_left, at_kept, at_new)
    return (low + high) / 2


def _absent(behind: np.ndarray, picks: Picks) -> int:
    """Count the places of the array that are no candidates of their trial."""
    return behind.size - int(picks.counts.sum())


def _behind_the_best(scores: np.ndarray) -> np.ndarray:
    """Return s − max s of each trial, so that no exponential overflows."""
    return scores - scores.max(axis=-1, keepdims=True)


def _logits(behind: np.ndarray, rho: np.ndarray, base: np.ndarray | None) -> np.ndarray:
    """Return ρ·s + log b, up to a constant of each trial that makes the largest 0."""
    with np.errstate(invalid="ignore"):  # 0·∞: what is impossible stays impossible at ρ = 0
        logits = rho[..., None] * behind
    logits[np.isnan(logits)] = -np.inf
    if base is None:
        return logits
    logits = logits + base
    return logits - logits.max(axis=-1, keepdims=True)


def _followed(
    behind: np.ndarray, picks: Picks, rho: np.ndarray, base: np.ndarray | None
) -> np.ndarray:
    """Return the probability of the chosen candidate without lapses (N,)."""
    logits = _logits(behind, picks.per_trial(rho), base)
    chosen = np.take_along_axis(logits, picks.chosen[:, None], axis=1)[:, 0]
    return np.exp(chosen) / np.exp(logits).sum(axis=-1)


def _with_lapses(followed: np.ndarray, picks: Picks, epsilon: np.ndarray) -> np.ndarray:
    """Return Σ log p(c) of each person, given the probabilities without lapses."""
    lapse = picks.per_trial(epsilon)
    with np.errstate(divide="ignore"):
        return picks.per_person(np.log(lapse / picks.counts + (1 - lapse) * followed))


def _best_lapses(followed: np.ndarray, picks: Picks) -> tuple[np.ndarray, np.ndarray]:
    """Return the highest log-likelihood of each person over ε, and its ε: where the slope changes
    its sign.
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
        inside = (proposed > low) & (proposed < high)
        before = epsilon
        epsilon = np.where(inside, proposed, (low + high) / 2)
        if (at_end | (np.abs(epsilon - before) < 1e-12)).all():
            break
    epsilon = np.where(at_end, np.where(falls_from_0, 0.0, 1.0), epsilon)
    return _with_lapses(followed, picks, epsilon), epsilon
