"""The study's server: pages for participants and researchers, and what is behind them.

It needs the extra ``server``. :mod:`ital_study.server._app` says which module serves which address.
"""

from ital_study.server._app import create_app, create_learner_app, create_play_app
from ital_study.server._freezing import FreezeCheck, StudyPlan, check_freezes, freeze, freeze_text
from ital_study.server._links import LinkRow, signed_links
from ital_study.server._lookup import look_up, nobody_found, person_lines
from ital_study.server._payments import PaymentList, payment_list
from ital_study.server._settings import (
    ServerSettings,
    fingerprint_of,
    from_environment,
    hash_password,
    origin_of,
    password_of,
    secret_of,
)

__all__ = [
    "FreezeCheck",
    "LinkRow",
    "PaymentList",
    "ServerSettings",
    "StudyPlan",
    "check_freezes",
    "create_app",
    "create_learner_app",
    "create_play_app",
    "fingerprint_of",
    "freeze",
    "freeze_text",
    "from_environment",
    "hash_password",
    "look_up",
    "nobody_found",
    "origin_of",
    "password_of",
    "payment_list",
    "person_lines",
    "secret_of",
    "signed_links",
]
