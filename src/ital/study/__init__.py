"""The human study: people, or programs in their place, teach robots the rewards of a map.

The rules, the simulated participants and the analysis need neither web nor database code. Parts load when they are
first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ital.study._config import Config, Map, load_config, parse_config
    from ital.study._rules import Arrow, Mind, RobotPicture, StudyRules

_FROM = dict.fromkeys(("Arrow", "Mind", "RobotPicture", "StudyRules"), "_rules") | dict.fromkeys(
    ("Config", "Map", "load_config", "parse_config"), "_config"
)

__all__ = ["Arrow", "Config", "Map", "Mind", "RobotPicture", "StudyRules", "load_config", "parse_config"]


def __getattr__(name: str) -> Any:
    if name in _FROM:
        return getattr(importlib.import_module(f"ital.study.{_FROM[name]}"), name)
    raise AttributeError(f"module 'ital.study' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
