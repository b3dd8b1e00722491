"""ital: machine teaching with learners that know they are being taught.

Submodules load on first use, so that ``import ital`` is quick.
"""

import importlib
from typing import TYPE_CHECKING, Any

from ital._version import __version__

if TYPE_CHECKING:
    from ital import (
        beliefs,
        control,
        errors,
        experiments,
        figures,
        fit,
        gradients,
        learners,
        lessons,
        likelihoods,
        losses,
        mdp,
        models,
        rationality,
        results,
        select,
        statistics,
        steps,
        tasks,
        teachers,
        teaching,
        theory,
        tools,
        torch,
        tuning,
        views,
        volume,
    )
    from ital.teaching import Live, Result, Run, Watched, load, load_session, session, teach, watch

_TEACHING = (
    "Live",
    "Result",
    "Run",
    "Watched",
    "load",
    "load_session",
    "session",
    "teach",
    "watch",
)
_FROM = dict.fromkeys(_TEACHING, "ital.teaching")

__all__ = [
    "Live",
    "Result",
    "Run",
    "Watched",
    "__version__",
    "beliefs",
    "control",
    "errors",
    "experiments",
    "figures",
    "fit",
    "gradients",
    "learners",
    "lessons",
    "likelihoods",
    "load",
    "load_session",
    "losses",
    "mdp",
    "models",
    "rationality",
    "results",
    "select",
    "session",
    "statistics",
    "steps",
    "tasks",
    "teach",
    "teachers",
    "teaching",
    "theory",
    "tools",
    "torch",
    "tuning",
    "views",
    "volume",
    "watch",
]


def __getattr__(name: str) -> Any:
    if name in _FROM:
        return getattr(importlib.import_module(_FROM[name]), name)
    if name in __all__:
        return importlib.import_module(f"ital.{name}")
    raise AttributeError(f"module 'ital' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
