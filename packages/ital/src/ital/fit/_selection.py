"""Random-effects model selection: how frequent each model is among people, from the evidence of
each person.

Stephan, Penny, Daunizeau, Moran and Friston (2009), "Bayesian model selection for group studies",
NeuroImage 46. Every person uses one of K models, drawn with frequencies r ~ Dirichlet(1, …, 1).
Rigoux, Stephan, Friston and Daunizeau (2014), "Bayesian model selection for group studies,
revisited", NeuroImage 84, protect the exceedance probabilities against the case that all models are
equally frequent.
"""

from typing import NamedTuple

import numpy as np

ROUNDS = 10_000
TOLERANCE = 1e-10


class Selection(NamedTuple):
    """How frequent the models are.

    Attributes:
        alpha: Parameters of the Dirichlet distribution of the frequencies (K,).
        frequency: Their means (K,).
        exceedance: The probability that a model is more frequent than every other (K,).
        protected: The same, unless all are equally frequent (K,).
        equal: The probability that all models are equally frequent (Bayesian omnibus risk).
        responsibility: The probability that a person uses a model (N, K).
    """

    alpha: np.ndarray
    frequency: np.ndarray
    exceedance: np.ndarray
    protected: np.ndarray
    equal: float
    responsibility: np.ndarray

    @property
    def sd(self) -> np.ndarray:
        """Standard deviations of the frequencies (K,)."""
        return np.sqrt(self.frequency * (1 - self.frequency) / (self.alpha.sum() + 1))


def select(log_evidence: np.ndarray) -> Selection:
    """Select among models by the evidence of many people.

    Args:
        log_evidence: The logarithm of the evidence of each person and model (N, K), such as −BIC/2.

    Returns:
        Frequencies and exceedance probabilities.
    """
    from scipy.special import digamma, logsumexp, softmax

    evidence = np.asarray(log_evidence, float)
    models = evidence.shape[1]
    alpha = np.ones(models)
    for _ in range(ROUNDS):
        responsibility = softmax(evidence + digamma(alpha), axis=1)
        before = alpha
        alpha = 1 + responsibility.sum(axis=0)
        if np.abs(alpha - before).max() < TOLERANCE:
            break
    equally = float(logsumexp(evidence - np.log(models), axis=1).sum())
    bound = free_energy(evidence, alpha, responsibility)
    equal = float(1 / (1 + np.exp(np.clip(bound - equally, -700, 700))))
    above = exceedance(alpha)
    protected = (1 - equal) * above + equal / models
    return Selection(alpha, alpha / alpha.sum(), above, protected, equal, responsibility)


def free_energy(evidence: np.ndarray, alpha: np.ndarray, responsibility: np.ndarray) -> float:
    """The variational bound on the logarithm of the evidence of all people.

    Args:
        evidence: The logarithm of the evidence (N, K).
        alpha: Parameters of the Dirichlet distribution (K,).
        responsibility: The probability that a person uses a model (N, K).

    Returns:
        The bound.
    """
    from scipy.special import digamma, entr, gammaln

    expected = digamma(alpha) - digamma(alpha.sum())  # E log r
    of_people = (responsibility * (evidence + expected)).sum() + entr(responsibility).sum()
    prior = gammaln(len(alpha))  # log of the constant of Dirichlet(1, …, 1)
    entropy = gammaln(alpha).sum() - gammaln(alpha.sum()) - ((alpha - 1) * expected).sum()
    return float(of_people + prior + entropy)


def exceedance(alpha: np.ndarray) -> np.ndarray:
    """P(r_k > r_j for all j ≠ k) for r ~ Dirichlet(α), by a one-dimensional integral.

    With independent x_k ~ Gamma(α_k), r is x over its sum, so that the probability is ∫ p(x_k) Π_j
    P(x_j < x_k) dx_k.

    Args:
        alpha: The parameters (K,).

    Returns:
        The probabilities (K,); they add up to 1.
    """
    from scipy import stats

    most = stats.gamma.ppf(1 - 1e-13, alpha.max())
    # Finer near 0, where small α have their mass.
    x = most * np.linspace(0, 1, 20_001)[1:] ** 2
    below = stats.gamma.cdf(x[:, None], alpha)  # (points, K)
    # The probability that x_k falls between two points, and that all others lie below.
    steps = np.diff(below, axis=0, prepend=0.0)
    others = [np.delete(below, k, axis=1).prod(axis=1) for k in range(len(alpha))]
    others_below = np.stack(others, axis=1)
    at_left = np.roll(others_below, 1, axis=0)
    at_left[0] = 0.0
    middle = (at_left + others_below) / 2
    above = (steps * middle).sum(axis=0)
    return above / above.sum()
