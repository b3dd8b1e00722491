"""Models of a teacher fitted to anyone's choices: which examples does a person show, and by what do
they choose?

A table of choices has people, trials and candidates. A model gives every candidate a score; the
numbers that make the choices most likely are found for each person and for all together. Models are
compared by BIC and by predictions of choices that they were not fitted to, and selected among over
people.
"""

from ital.fit._choices import Choices, from_arrays
from ital.fit._fit import Fit, cross_validate, fit, fit_people, select_models
from ital.fit._hypotheses import Hypotheses
from ital.fit._likelihood import (
    LARGEST,
    Maximum,
    Picks,
    log_likelihood,
    maximise,
    probabilities,
)
from ital.fit._models import TeacherModel, uniform
from ital.fit._recovery import Recovery, recover, simulate
from ital.fit._replay import replay
from ital.fit._selection import Selection, exceedance, free_energy, select
from ital.fit._shares import shares
from ital.fit._tables import cross, read

__all__ = [
    "LARGEST",
    "Choices",
    "Fit",
    "Hypotheses",
    "Maximum",
    "Picks",
    "Recovery",
    "Selection",
    "TeacherModel",
    "cross",
    "cross_validate",
    "exceedance",
    "fit",
    "fit_people",
    "free_energy",
    "from_arrays",
    "log_likelihood",
    "maximise",
    "probabilities",
    "read",
    "recover",
    "replay",
    "select",
    "select_models",
    "shares",
    "simulate",
    "uniform",
]
