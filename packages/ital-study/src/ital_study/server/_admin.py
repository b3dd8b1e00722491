"""The researcher's part of the interface."""

import asyncio
import functools
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import iterate_in_threadpool

from ital.errors import InputError
from ital_study.server import _messages as messages
from ital_study.server import _overview
from ital_study.server._app_state import AppState, app_state
from ital_study.server._errors import Refused, as_sentence
from ital_study.server._keys import KNOWN_BROWSER_AGE, RESEARCHER_COOKIE
from ital_study.server._lookup import look_up, nobody_found
from ital_study.server._participants import (
    ERRORS,
    CsrfToken,
    ResearcherCookie,
    check_token,
    drop_cookie,
    set_cookie,
)
from ital_study.server._payments import payment_list
from ital_study.store import blinding, exclusions, operations, records

router = APIRouter(prefix="/api/admin", tags=["researcher"])
Mode = Annotated[Literal["live", "pilot", "preview", "trial", "simulated"], Query()]
Answer = dict[str, Any]
ERRORS_AND_MISSING = ERRORS | messages.problems(404)


def logged_in(app: AppState, cookie: str | None) -> str:
    """Return the researcher's session; raise if there is none."""
    session = app.researcher(cookie)
    if session is None:
        raise Refused(401, "log_in", "Please log in first.")
    return session


@dataclass
class ResearcherPage:
    """A request from the dashboard's page, with its cookie and token."""

    request: Request
    cookie: ResearcherCookie = None
    token: CsrfToken = None

    def entitled(self) -> tuple[AppState, str]:
        """Return the application and the researcher's session.

        Raises Refused if the page did not send the right token.
        """
        app = app_state(self.request)
        session = logged_in(app, self.cookie)
        check_token(self.token, app.study.keys.csrf(session))
        return app, session


ByPage = Annotated[ResearcherPage, Depends()]


@router.post("/login", responses=ERRORS)
async def log_in(
    request: Request, response: Response, body: messages.LogIn, cookie: ResearcherCookie = None
) -> Answer:
    """Log in with the password."""
    app = app_state(request)
    # Counted before the password is checked: Argon2 is slow on purpose, and strangers could use it
    # to keep the server busy.
    app.limit_log_in(request, cookie)
    if not await asyncio.to_thread(is_password, app.settings.password, body.password):
        raise Refused(401, "log_in", "This password is not correct.")
    session = app.log_in()
    signed = app.study.keys.researcher_cookie(session)
    # The cookie outlives the session: it shows that this browser has logged in before.
    set_cookie(request, response, RESEARCHER_COOKIE, signed, KNOWN_BROWSER_AGE)
    return {"csrf": app.study.keys.csrf(session)}


def is_password(hashed: str, password: str) -> bool:
    """Return whether a password matches the hash."""
    from argon2 import PasswordHasher
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        return PasswordHasher().verify(hashed, password.encode("utf-8", "surrogatepass"))
    except (VerificationError, InvalidHashError):
        return False


@router.post("/logout", responses=ERRORS)
async def log_out(page: ByPage, response: Response, body: messages.Nothing) -> Answer:
    """Log out."""
    app, session = page.entitled()
    app.log_out(session)
    drop_cookie(page.request, response, RESEARCHER_COOKIE)
    return {}


@router.get("/overview", responses=ERRORS)
async def overview(
    request: Request, cookie: ResearcherCookie = None, mode: Mode = "live"
) -> Answer:
    """Return everything that the dashboard shows for one mode."""
    app = app_state(request)
    session = logged_in(app, cookie)
    content = await asyncio.to_thread(app.dashboard.overview, mode)
    return {"csrf": app.study.keys.csrf(session), **content}


@router.post("/pause", responses=ERRORS)
async def pause(page: ByPage, body: messages.Pause) -> Answer:
    """Pause or resume the intake of new participants; those who have begun can always continue."""
    app, _ = page.entitled()
    job = functools.partial(operations.pause, paused=body.paused)
    await asyncio.to_thread(app.store.write, job)
    return {"paused": body.paused}


@router.post("/unblind", responses=ERRORS)
async def unblind(page: ByPage, body: messages.Nothing) -> Answer:
    """Show curves by condition before the end of the intake; the audit keeps it."""
    app, _ = page.entitled()
    await asyncio.to_thread(app.store.write, blinding.unblind)
    return {"blind": False}


@router.post("/release", responses=ERRORS_AND_MISSING)
async def release(page: ByPage, body: messages.Release) -> Answer:
    """Free the slot of a participant who will not come back."""
    app, _ = page.entitled()
    participant = await _participant(app, body.number)
    job = functools.partial(operations.release, number=body.number)
    await asyncio.to_thread(app.store.write, job)
    # The participant in memory is out of date now; the next request loads them again.
    app.study.drop(participant.uid)
    return {"number": body.number}


@router.post("/delete", responses=ERRORS_AND_MISSING)
async def delete(page: ByPage, body: messages.Delete) -> Answer:
    """Erase a participant; a tombstone and an audit record remain."""
    app, _ = page.entitled()
    if body.number != body.confirm:
        sentence = "The two numbers differ. Please type the participant's number again."
        raise Refused(422, "invalid", sentence)
    participant = await _participant(app, body.number)
    await asyncio.to_thread(app.store.erase, participant, "researcher")
    app.study.drop(participant.uid)
    app.dashboard.forget()
    return {"number": body.number}


@router.post("/exclude", responses=ERRORS_AND_MISSING)
async def exclude(page: ByPage, body: messages.Exclude) -> Answer:
    """Exclude a participant for a reason, or include them again; the audit keeps both."""
    app, _ = page.entitled()
    participant = await _participant(app, body.number)
    job = functools.partial(exclusions.exclude, number=body.number, reason=body.reason)
    try:
        await asyncio.to_thread(app.store.write, job)
    except InputError as error:
        raise Refused(422, "invalid", f"Please check this: {error}.") from None
    app.study.drop(participant.uid)
    app.dashboard.forget()
    return {"number": body.number, "excluded": body.reason}


async def _participant(app: AppState, number: int) -> records.Participant:
    participant = await asyncio.to_thread(app.study.find, number=number)
    if participant is None:
        raise Refused(404, "not_found", "There is no such participant.")
    return participant


@router.post("/find", responses=ERRORS)
async def find(page: ByPage, body: messages.Find) -> Answer:
    """Look participants up by identity, resume code, completion code or number.

    What was sent is stored nowhere.
    """
    app, _ = page.entitled()
    found = await asyncio.to_thread(look_up, app.store, app.settings.secret, body.who)
    if found:
        return {"found": found}
    reason = await asyncio.to_thread(nobody_found, app.store, body.who)
    return {"found": [], "reason": as_sentence(reason)}


@router.get("/audit", responses=ERRORS)
async def audit(request: Request, cookie: ResearcherCookie = None) -> Answer:
    """Return actions of researchers, and withdrawals: the last thousand records."""
    app = app_state(request)
    logged_in(app, cookie)
    return {"entries": await asyncio.to_thread(_overview.audit_entries, app.store)}


@router.get("/payments.csv", response_class=Response, responses=ERRORS)
async def payments(
    request: Request, cookie: ResearcherCookie = None, mode: Mode = "live"
) -> Response:
    """Return the payment list of one mode: how every part ended, and what it is paid."""
    app = app_state(request)
    logged_in(app, cookie)
    listed = await asyncio.to_thread(payment_list, app.store, app.settings.secret, mode)
    name = f"{app.study.config.name}-{mode}-payments.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(listed.csv(), media_type="text/csv; charset=utf-8", headers=headers)


FILES = {
    "steps.csv": "text/csv; charset=utf-8",
    "participants.csv": "text/csv; charset=utf-8",
    "answers.csv": "text/csv; charset=utf-8",
    "steps.parquet": "application/vnd.apache.parquet",
    "events.jsonl": "application/jsonl",
    "codebook.md": "text/markdown; charset=utf-8",
}


@router.get("/export/{file}", response_class=StreamingResponse, responses=ERRORS)
async def export(
    request: Request,
    file: Literal[
        "steps.csv",
        "participants.csv",
        "answers.csv",
        "steps.parquet",
        "events.jsonl",
        "codebook.md",
    ],
    cookie: ResearcherCookie = None,
    mode: Mode = "live",
) -> StreamingResponse:
    """Stream the data of one mode."""
    from ital_study.store.export import stream

    app = app_state(request)
    logged_in(app, cookie)
    # In a thread, piece by piece: the export of a large study must not keep participants waiting.
    content = iterate_in_threadpool(stream(app.store, file, mode))
    name = f"{app.study.config.name}-{mode}-{file}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(content, media_type=FILES[file], headers=headers)
