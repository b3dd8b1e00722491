"""The researcher's part of the interface."""

import asyncio
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import sqlalchemy as sa
from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import iterate_in_threadpool

from ital.errors import InputError
from ital_study.server import _messages as messages
from ital_study.server import _overview
from ital_study.server._app_state import AppState, LoggedIn, address_of, app_state
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
from ital_study.store import blinding, exclusions, operations, records, researchers

router = APIRouter(prefix="/api/admin", tags=["researcher"])
Mode = Annotated[Literal["live", "pilot", "preview", "trial", "simulated"], Query()]
Authorization = Annotated[str | None, Header(max_length=200)]
Answer = dict[str, Any]
ERRORS_AND_MISSING = ERRORS | messages.problems(404)


async def logged_in(app: AppState, cookie: str | None, needed: str = "see") -> LoggedIn:
    """Return the researcher's session; raise if there is none, or the role does not suffice."""
    researcher = await app.researcher(cookie)
    if researcher is None:
        raise Refused(401, "log_in", "Please log in first.")
    if not researcher.may(needed):
        sentence = (
            f"Your role is {researcher.role!r}, and this needs {needed!r}. Please ask whoever owns "
            "the study."
        )
        raise Refused(403, "role", sentence)
    return researcher


@dataclass
class ResearcherPage:
    """A request from the dashboard's page, with its cookie and token."""

    request: Request
    cookie: ResearcherCookie = None
    token: CsrfToken = None

    async def entitled(self, needed: str) -> tuple[AppState, LoggedIn]:
        """Return the application and the researcher's session.

        Raises Refused if the page did not send the right token, or the role does not suffice.
        """
        app = app_state(self.request)
        researcher = await logged_in(app, self.cookie, needed)
        check_token(self.token, app.study.keys.csrf(researcher.session))
        return app, researcher

    async def write(self, needed: str, job: Callable[[sa.Connection], Any]) -> AppState:
        """Run a job of an entitled researcher, whom its audit record names."""
        app, researcher = await self.entitled(needed)
        await asyncio.to_thread(app.store.write, operations.by(researcher.name, job))
        return app


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
    name = body.name.strip() or researchers.OWNER
    researcher = await asyncio.to_thread(app.find_researcher, name)
    # Of nobody the owner's hash is checked, so that the time does not tell which names there are.
    hashed = app.settings.password
    if researcher is not None:
        hashed = researcher.password
    is_right = await asyncio.to_thread(is_password, hashed, body.password)
    if researcher is None or not is_right:
        raise Refused(401, "log_in", "This password is not correct.")
    session = app.log_in(researcher.name, researcher.password)
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
    app, researcher = await page.entitled("see")
    app.log_out(researcher.session)
    drop_cookie(page.request, response, RESEARCHER_COOKIE)
    return {}


@router.get("/overview", responses=ERRORS)
async def overview(
    request: Request, cookie: ResearcherCookie = None, mode: Mode = "live"
) -> Answer:
    """Return everything that the dashboard shows for one mode."""
    app = app_state(request)
    researcher = await logged_in(app, cookie)
    content = await asyncio.to_thread(app.dashboard.overview, mode)
    who = {"name": researcher.name, "role": researcher.role}
    return {"csrf": app.study.keys.csrf(researcher.session), "researcher": who, **content}


@router.post("/pause", responses=ERRORS)
async def pause(page: ByPage, body: messages.Pause) -> Answer:
    """Pause or resume the intake of new participants; those who have begun can always continue."""
    await page.write("run", functools.partial(operations.pause, paused=body.paused))
    return {"paused": body.paused}


@router.post("/unblind", responses=ERRORS)
async def unblind(page: ByPage, body: messages.Nothing) -> Answer:
    """Show curves by condition before the end of the intake; the audit keeps it."""
    await page.write("own", blinding.unblind)
    return {"blind": False}


@router.post("/release", responses=ERRORS_AND_MISSING)
async def release(page: ByPage, body: messages.Release) -> Answer:
    """Free the slot of a participant who will not come back."""
    app, _ = await page.entitled("run")
    participant = await _participant(app, body.number)
    await page.write("run", functools.partial(operations.release, number=body.number))
    # The participant in memory is out of date now; the next request loads them again.
    app.study.drop(participant.uid)
    return {"number": body.number}


@router.post("/delete", responses=ERRORS_AND_MISSING)
async def delete(page: ByPage, body: messages.Delete) -> Answer:
    """Erase a participant; a tombstone and an audit record remain."""
    app, researcher = await page.entitled("own")
    if body.number != body.confirm:
        sentence = "The two numbers differ. Please type the participant's number again."
        raise Refused(422, "invalid", sentence)
    participant = await _participant(app, body.number)
    await asyncio.to_thread(app.store.erase, participant, "researcher", researcher.name)
    app.study.drop(participant.uid)
    app.dashboard.forget()
    return {"number": body.number}


@router.post("/exclude", responses=ERRORS_AND_MISSING)
async def exclude(page: ByPage, body: messages.Exclude) -> Answer:
    """Exclude a participant for a reason, or include them again; the audit keeps both."""
    app, _ = await page.entitled("run")
    participant = await _participant(app, body.number)
    job = functools.partial(exclusions.exclude, number=body.number, reason=body.reason)
    try:
        await page.write("run", job)
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
    app, _ = await page.entitled("run")
    found = await asyncio.to_thread(look_up, app.store, app.settings.secret, body.who)
    if found:
        return {"found": found}
    reason = await asyncio.to_thread(nobody_found, app.store, body.who)
    return {"found": [], "reason": as_sentence(reason)}


@router.get("/audit", responses=ERRORS)
async def audit(request: Request, cookie: ResearcherCookie = None) -> Answer:
    """Return actions of researchers, and withdrawals: the last thousand records."""
    app = app_state(request)
    await logged_in(app, cookie)
    return {"entries": await asyncio.to_thread(_overview.audit_entries, app.store)}


@router.get("/payments.csv", response_class=Response, responses=ERRORS)
async def payments(
    request: Request, cookie: ResearcherCookie = None, mode: Mode = "live"
) -> Response:
    """Return the payment list of one mode: how every part ended, and what it is paid."""
    app = app_state(request)
    await logged_in(app, cookie, "run")
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
    authorization: Authorization = None,
) -> StreamingResponse:
    """Stream the data of one mode, to a researcher or to a program with a token."""
    from ital_study.store.export import stream

    app = app_state(request)
    if authorization is None:
        await logged_in(app, cookie)
    else:
        await _check_export_token(request, authorization, f"{file} ({mode})")
    # In a thread, piece by piece: the export of a large study must not keep participants waiting.
    content = iterate_in_threadpool(stream(app.store, file, mode))
    name = f"{app.study.config.name}-{mode}-{file}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(content, media_type=FILES[file], headers=headers)


async def _check_export_token(request: Request, authorization: str, what: str) -> None:
    """Raise for a token that opens nothing; the audit keeps what a valid one downloads."""
    app = app_state(request)
    token = authorization.removeprefix("Bearer ")
    name = await asyncio.to_thread(_name_of_token, app, token)
    if name is None:
        # Counted, so that nobody can try many.
        app.limit(app.codes, address_of(request))
        raise Refused(401, "log_in", "This token is not known, or it was revoked.")
    job = functools.partial(operations.note, action="exported", detail=what)
    await asyncio.to_thread(app.store.write, operations.by(f"token {name}", job))


def _name_of_token(app: AppState, token: str) -> str | None:
    with app.store.reading() as connection:
        return researchers.token_name(connection, token)
