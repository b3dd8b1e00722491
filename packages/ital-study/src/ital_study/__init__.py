"""The human study: people, or programs in their place, teach robots the rewards of a map.

The rules, the simulated participants and the analysis need neither web nor database code. Parts
load when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ital_study.analysis.measures import CLAIMED, analyze, measures
    from ital_study.config.configuration import Config
    from ital_study.config.load import load_config, parse_config
    from ital_study.config.sections import Map
    from ital_study.data.table import StudyData
    from ital_study.fitting.people import fit
    from ital_study.fitting.recovery import recover
    from ital_study.report.figures import (
        MAPS_CAPTION,
        bar_panel,
        curve_panel,
        draw,
        figure_rows,
        map_panels,
    )
    from ital_study.report.interface import interface
    from ital_study.robots.rules import Arrow, Mind, RobotPicture, StudyRules
    from ital_study.simulation.arms import simulate, teacher

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
# The module of every public name.
_NAMES_BY_MODULE = {
    "analysis.measures": ("CLAIMED", "analyze", "measures"),
    "config.configuration": ("Config",),
    "config.load": ("load_config", "parse_config"),
    "config.sections": ("Map",),
    "data.table": ("StudyData",),
    "fitting.people": ("fit",),
    "fitting.recovery": ("recover",),
    "report.figures": (
        "MAPS_CAPTION",
        "bar_panel",
        "curve_panel",
        "draw",
        "figure_rows",
        "map_panels",
    ),
    "report.interface": ("interface",),
    "robots.rules": ("Arrow", "Mind", "RobotPicture", "StudyRules"),
    "simulation.arms": ("simulate", "teacher"),
}
# No folder may have the name of something public: importing from the folder would replace it.
_MODULE_OF: dict[str, str] = {}
for _module, _names in _NAMES_BY_MODULE.items():
    _MODULE_OF |= dict.fromkeys(_names, _module)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'ital_study' has no attribute {name!r}")
    module = importlib.import_module(f"ital_study.{_MODULE_OF[name]}")
    return getattr(module, name)


def __dir__() -> list[str]:
    return __all__
