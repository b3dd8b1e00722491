"""Awareness as evidence: learners that keep a belief over their target.

``_learner`` has the constructors and their settings, ``_update`` what the learner does in a step,
``_evidence`` the belief as a function of the target, ``_maximum`` the search for its maximum.
"""

from ital.learners.posterior._learner import aware_posterior, posterior

__all__ = ["aware_posterior", "posterior"]
