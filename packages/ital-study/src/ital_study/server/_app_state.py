"""The state of the application, which the parts of the interface share."""

import asyncio
import secrets
import time
from typing import Any, NamedTuple

from fastapi import Request

from ital_study.server._errors import Refused
from ital_study.server._guard import RateLimit
from ital_study.server._keys import RESEARCHER_AGE
from ital_study.server._overview import Dashboard
from ital_study.server._settings import ServerSettings
from ital_study.server._study import LiveStudy
from ital_study.store import Store, operations, researchers

CODES_PER_MINUTE = 10  # unknown resume codes from one address


class LoggedIn(NamedTuple):
    """A researcher's session: who they are, and what they may do."""

    session: str
    name: str
    role: str

    def may(self, needed: str) -> bool:
        """Return whether the role includes another one."""
        return researchers.ROLES.index(self.role) >= researchers.ROLES.index(needed)


class _Session(NamedTuple):
    """When a session ends, whose it is, and the password hash with which it began."""

    until: float
    name: str
    password: str


class AppState:
    """The study, its limits, and the researchers who are logged in."""

    def __init__(self, study: LiveStudy, store: Store, settings: ServerSettings) -> None:
        self.study = study
        self.store = store
        self.settings = settings
        self.dashboard = Dashboard(store, study.config, study.rules)
        self.joins = RateLimit(settings.joins_per_minute)
        self.codes = RateLimit(CODES_PER_MINUTE)
        self.events = RateLimit(operations.EVENTS_PER_MINUTE)
        self.log_ins = RateLimit(settings.log_ins_per_minute)
        self.all_log_ins = RateLimit(10 * settings.log_ins_per_minute)
        # In memory only, so a restart logs every researcher out.
        self._researchers: dict[str, _Session] = {}

    def limit(self, limit: RateLimit, address: str, cost: float = 1.0) -> None:
        """Count a request from an address; raise if there are too many."""
        seconds = limit.wait(address, cost)
        if seconds:
            sentence = f"Too many attempts. Please wait {seconds} seconds."
            raise Refused(429, "too_many", sentence, {"wait": seconds})

    def limit_log_in(self, request: Request, cookie: str | None) -> None:
        """Count an attempt to log in; raise if there are too many.

        All strangers share a limit, so that nobody can guess from many addresses. Browsers that
        logged in before and this machine have limits of their own, so that strangers cannot lock
        the researcher out.
        """
        browser = self.study.keys.known_browser(cookie)
        if browser is not None:
            self.limit(self.log_ins, f"browser {browser}")
            return
        self.limit(self.log_ins, address_of(request))
        if not is_this_machine(request):
            self.limit(self.all_log_ins, "everywhere")

    def log_in(self, name: str, password: str) -> str:
        """Start a researcher's session, which ends when the hash of the password changes."""
        now = time.monotonic()
        # Sessions that are over go here, because nothing else ever removes them.
        self._researchers = {
            session: each for session, each in self._researchers.items() if each.until > now
        }
        session = secrets.token_hex(16)
        self._researchers[session] = _Session(now + RESEARCHER_AGE, name, password)
        return session

    def log_out(self, session: str) -> None:
        """End a session; its cookie is no longer valid."""
        self._researchers.pop(session, None)

    def find_researcher(self, name: str) -> researchers.Researcher | None:
        """Return the researcher of a name; the owner has the study's own password."""
        if name == researchers.OWNER:
            return researchers.Researcher(name, "own", self.settings.password, 0)
        with self.store.reading() as connection:
            return researchers.find(connection, name)

    async def researcher(self, cookie: str | None) -> LoggedIn | None:
        """Return the session of a cookie; None if there is none or it has ended."""
        session = self.study.keys.researcher_of(cookie)
        if session is None:
            return None
        known = self._researchers.get(session)
        # Monotonic time as well as the cookie's own: a clock that is set back prolongs no session.
        if known is None or known.until < time.monotonic():
            return None
        # Commands change researchers beside the server.
        researcher = await asyncio.to_thread(self.find_researcher, known.name)
        if researcher is None or researcher.password != known.password:
            return None
        return LoggedIn(session, researcher.name, researcher.role)


def app_state(request: Request) -> AppState:
    """Return the state of the application that serves a request."""
    state: Any = request.app.state.ital
    return state


def is_this_machine(request: Request) -> bool:
    """Return whether a request comes from the server's own machine, and not through its proxy."""
    forwarded = "x-forwarded-for" in request.headers or "forwarded" in request.headers
    return not forwarded and address_of(request) in ("127.0.0.1", "::1")


def address_of(request: Request) -> str:
    """Return the address of a request, for limits in memory; it is never stored."""
    if not request.client:
        return "unknown"
    host = request.client.host
    if host.count(":") <= 1 or host.startswith("::"):
        return host
    # An IPv6 user has 2⁶⁴ addresses, so the first 64 bits count.
    return ":".join(host.split(":")[:4])
