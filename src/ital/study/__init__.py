"""The human study: people, or programs in their place, teach robots the rewards of a map.

The rules, the simulated participants and the analysis need neither web nor database code. Parts load when they are
first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ital.study._analysis import CLAIMED, analyze, measures
    from ital.study._arms import simulate, teacher
    from ital.study._config import Config
    from ital.study._figures import MAPS_CAPTION, bar_panel, curve_panel, draw, figure_rows, map_panels
    from ital.study._fit import fit
    from ital.study._interface import interface
    from ital.study._load import load_config, parse_config
    from ital.study._recovery import recover
    from ital.study._rules import Arrow, Mind, RobotPicture, StudyRules
    from ital.study._sections import Map
    from ital.study._table import StudyData

__all__ = [
    "CLAIMED",
    "MAPS_CAPTION",
    "Arrow",
    "Config",
    "Map",
    "Mind",
    "RobotPicture",
    "StudyData",
    "StudyRules",
    "analyze",
    "bar_panel",
    "curve_panel",
    "draw",
    "figure_rows",
    "fit",
    "interface",
    "load_config",
    "map_panels",
    "measures",
    "parse_config",
    "recover",
    "simulate",
    "teacher",
]
_FROM = dict.fromkeys(("load_config", "parse_config"), "_load") | {"Config": "_config", "Map": "_sections"}
_FROM |= dict.fromkeys(("CLAIMED", "analyze", "measures"), "_analysis") | dict.fromkeys(
    ("simulate", "teacher"), "_arms"
)
_FROM |= dict.fromkeys(("MAPS_CAPTION", "bar_panel", "curve_panel", "draw", "figure_rows", "map_panels"), "_figures")
_FROM |= {"fit": "_fit", "recover": "_recovery"}
_FROM |= {name: "_rules" for name in __all__ if name not in _FROM} | {"StudyData": "_table", "interface": "_interface"}


def __getattr__(name: str) -> Any:
    if name in _FROM:
        return getattr(importlib.import_module(f"ital.study.{_FROM[name]}"), name)
    raise AttributeError(f"module 'ital.study' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
