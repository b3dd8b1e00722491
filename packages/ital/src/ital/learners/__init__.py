"""Learners: a rule (pure functions) and numbers. The paper's eight learners share one rule."""

import functools
import inspect
import re
from collections.abc import Callable

from ital.errors import InputError
from ital.learners._adaptive import adaptive
from ital.learners._assuming import helpful, hostile
from ital.learners._base import Beginning, Learner, Optimizer, Rule, Situation, Update
from ital.learners._batch_matched import batch_matched
from ital.learners._bayes import bayes
from ital.learners._forgetful import aware_forgetful, forgetful
from ital.learners._full import full
from ital.learners._imt_matched import imt_matched
from ital.learners._pedagogical import pedagogical
from ital.learners._safe import safe
from ital.learners._scbi import scbi
from ital.learners._two_step import (
    Literal,
    awareness_step,
    batch,
    imagine,
    imagined_choice,
    imagined_volumes,
    imt,
    in_view,
    literal_weights,
    optimizer,
    sgd,
    teacher_aware,
)
from ital.learners.posterior import aware_posterior, posterior
from ital.lessons import Lesson
from ital.tools import plugins, registry

REGISTRY: dict[str, Callable[..., Learner]] = {
    "batch": batch,
    "sgd": sgd,
    "imt": imt,
    "ital": teacher_aware,
    "ital-2": functools.partial(teacher_aware, view=2),
    "ital-5": functools.partial(teacher_aware, view=5),
    "ital-10": functools.partial(teacher_aware, view=10),
    "ital-15": functools.partial(teacher_aware, view=15),
    "imt-matched": imt_matched,
    "batch-matched": batch_matched,
    "ital-full": full,
    "ital-safe": safe,
    "ital-adaptive": adaptive,
    "ital-helpful": helpful,
    "ital-hostile": hostile,
    "bayes": bayes,
    "pedagogical": pedagogical,
    "scbi": scbi,
    "forgetful": forgetful,
    "ital-forgetful": aware_forgetful,
    "posterior": posterior,
    "ital-posterior": aware_posterior,
}
# Other installed packages add learners of their own through entry points.
REGISTRY |= plugins.parts("ital.learners", REGISTRY)

PAPER = ("batch", "sgd", "imt", "ital", "ital-2", "ital-5", "ital-10", "ital-15")
"""The eight methods of the paper, in the order of its legends."""

CONTROLS = ("imt-matched", "batch-matched")
"""Controls, not methods: they take steps as long as ITAL's, in another direction."""


def make(name: str) -> Learner:
    """Return the learner of that name, e.g. ``imt``, ``ital-5`` or ``forgetful:0.01``.

    Args:
        name: a registered name, with its argument after a colon, or ``ital-M`` for a learner that
            sees M examples of the mini-batch.

    Returns:
        The learner.

    Raises:
        InputError: if there is no such learner.

    Example:
        >>> ital.learners.make("ital-5")
    """
    base, colon, argument = name.partition(":")
    if colon and _takes_beta(base):
        raise InputError(
            f"method {base!r} takes no argument ({argument!r}): set beta for all methods of the run"
        )
    any_view = re.fullmatch(r"ital-([1-9][0-9]{0,8})", name)
    if any_view and name not in REGISTRY:
        return teacher_aware(view=int(any_view[1]))
    made = registry.make("method", REGISTRY, name)
    # With an argument, the learner writes its own name:
    # forgetful:0.010 and forgetful:0.01 are one method.
    if colon and made.name.startswith(f"{base}:"):
        return made
    return made._replace(name=name)


def _takes_beta(name: str) -> bool:
    """Return whether the first argument of a learner is β, which a run sets for all its methods."""
    if name not in REGISTRY:
        return re.fullmatch(r"ital-[1-9][0-9]*", name) is not None
    arguments = list(inspect.signature(REGISTRY[name]).parameters)
    return arguments[:1] == ["beta"]


__all__ = [
    "CONTROLS",
    "PAPER",
    "REGISTRY",
    "Beginning",
    "Learner",
    "Lesson",
    "Literal",
    "Optimizer",
    "Rule",
    "Situation",
    "Update",
    "adaptive",
    "aware_forgetful",
    "aware_posterior",
    "awareness_step",
    "batch",
    "batch_matched",
    "bayes",
    "forgetful",
    "full",
    "helpful",
    "hostile",
    "imagine",
    "imagined_choice",
    "imagined_volumes",
    "imt",
    "imt_matched",
    "in_view",
    "literal_weights",
    "make",
    "optimizer",
    "pedagogical",
    "posterior",
    "safe",
    "scbi",
    "sgd",
    "teacher_aware",
]
