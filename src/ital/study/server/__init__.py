"""The study's server: pages for participants and researchers, and what is behind them. Needs the extra ``study``."""

from ital.study.server._app import create_app, create_play_app
from ital.study.server._settings import Settings, from_environment

__all__ = ["Settings", "create_app", "create_play_app", "from_environment"]
