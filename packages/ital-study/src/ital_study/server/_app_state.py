"""What the parts of the interface share."""

import secrets
import time
from typing import Any

from fastapi import Request

from ital_study.server import _security
from ital_study.server._overview import Dashboard
from ital_study.server._plain import Refused
from ital_study.server._settings import ServerSettings
from ital_study.server._study import LiveStudy
from ital_study.store import Store

EVENTS_PER_MINUTE = 600  # of one participant


class AppState:
    """The study, its limits, and the researchers who are logged in."""

    def __init__(self, study: LiveStudy, store: Store, settings: ServerSettings) -> None:
        self.study, self.store, self.settings = study, store, settings
        self.dashboard = Dashboard(store, study.config, study.rules)
        self.joins = _security.RateLimit(settings.joins_per_minute)
        self.codes = _security.RateLimit(10)
        self.events = _security.RateLimit(EVENTS_PER_MINUTE)
        self.log_ins = _security.RateLimit(settings.log_ins_per_minute)
        self.all_log_ins = _security.RateLimit(10 * settings.log_ins_per_minute)
        self._researchers: dict[str, float] = {}

    def limit(self, limit: _security.RateLimit, address: str, cost: float = 1.0) -> None:
        """Count a request from an address; raise if there are too many."""
        seconds = limit.wait(address, cost)
        if seconds:
            raise Refused(
                429,
                "too_many",
                f"Too many attempts. Please wait {seconds} seconds.",
                {"wait": seconds},
            )

    def limit_log_in(self, request: Request, cookie: str | None) -> None:
        """Count an attempt to log in; raise if there are too many.

        All strangers share a limit, so that nobody can guess from many addresses. Browsers that logged in before and
        this machine have limits of their own, so that strangers cannot lock the researcher out.
        """
        known = self.study.keys.known_browser(cookie)
        if known is not None:
            self.limit(self.log_ins, f"browser {known}")
            return
        self.limit(self.log_ins, address_of(request))
        if not is_this_machine(request):
            self.limit(self.all_log_ins, "everywhere")

    def log_in(self) -> str:
        """Start a researcher's session."""
        now = time.monotonic()
        self._researchers = {
            session: until for session, until in self._researchers.items() if until > now
        }
        session = secrets.token_hex(16)
        self._researchers[session] = now + _security.RESEARCHER_AGE
        return session

    def log_out(self, session: str) -> None:
        """End a session; its cookie is no longer valid."""
        self._researchers.pop(session, None)

    def researcher(self, cookie: str | None) -> str | None:
        """The session of a cookie; None if there is none or it has expired."""
        session = self.study.keys.researcher_of(cookie)
        if session is None or self._researchers.get(session, 0.0) < time.monotonic():
            return None
        return session


def app_state(request: Request) -> AppState:
    """The state of the application that serves a request."""
    state: Any = request.app.state.ital
    return state


def is_this_machine(request: Request) -> bool:
    """Whether a request comes from the server's own machine, and not through a proxy on it."""
    forwarded = "x-forwarded-for" in request.headers or "forwarded" in request.headers
    return not forwarded and address_of(request) in ("127.0.0.1", "::1")


def address_of(request: Request) -> str:
    """The address of a request, for limits in memory; never stored. An IPv6 user has 2⁶⁴ addresses, so /64 counts."""
    host = request.client.host if request.client else "unknown"
    return (
        ":".join(host.split(":")[:4]) if host.count(":") > 1 and not host.startswith("::") else host
    )
