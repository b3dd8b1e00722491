"""Sequential cooperative Bayesian inference, the learner's part."""

from ital import beliefs
from ital.learners._base import Learner
from ital.learners._bayes import bayes_rule

RULE = bayes_rule(lambda log_m, belief, settings: beliefs.scbi(log_m, belief))


def scbi() -> Learner:
    """Infers a hypothesis by SCBI (Wang et al. 2020): θ ← T(d,·)/Σ.

    T is M, scaled to row sums 1/n and column sums θ.

    Returns:
        The learner.
    """
    return Learner("scbi", "SCBI", RULE, needs=("likelihoods",))
