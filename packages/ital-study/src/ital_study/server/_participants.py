"""The requests of participants' pages: check who asks, act on the study, answer with its state."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Cookie, Depends, Header, Query, Request, Response

from ital_study.config import languages
from ital_study.config.panel import LINK
from ital_study.server import _links
from ital_study.server import _messages as messages
from ital_study.server._app_state import AppState, address_of, app_state
from ital_study.server._arrival import Visit, arrive
from ital_study.server._errors import Refused
from ital_study.server._keys import (
    PARTICIPANT_AGE,
    PARTICIPANT_COOKIE,
    RESEARCHER_COOKIE,
    same_secret,
)
from ital_study.server._study import UNKNOWN_PARTICIPANT, LiveStudy
from ital_study.store.operations import Closed
from ital_study.store.records import Event
from ital_study.store.rows import Noticed

router = APIRouter(prefix="/api", tags=["participant"])

ParticipantCookie = Annotated[str | None, Cookie(alias=PARTICIPANT_COOKIE)]
ResearcherCookie = Annotated[str | None, Cookie(alias=RESEARCHER_COOKIE)]
CsrfToken = Annotated[str | None, Header(alias="X-CSRF-Token", max_length=200)]
Wishes = Annotated[str, Query(pattern=r"^[A-Za-z0-9,-]{0,100}$")]
State = dict[str, Any]

UNKNOWN = messages.problems(401)
ERRORS = messages.problems(400, 401, 403, 409, 413, 422, 429, 503)


@dataclass
class Page:
    """A request from a participant's page, with its cookie and token."""

    request: Request
    cookie: ParticipantCookie = None
    token: CsrfToken = None

    @property
    def study(self) -> LiveStudy:
        """The study that the page belongs to."""
        return app_state(self.request).study

    @property
    def uid(self) -> str:
        """The participant of the cookie; raises if the page did not send the right token."""
        uid = uid_of(app_state(self.request), self.cookie)
        check_token(self.token, self.study.keys.csrf(uid))
        return uid

    @property
    def proven(self) -> bool:
        """Whether this browser gave the consent or the resume code.

        Others may know an identity, so that alone does not count.
        """
        return self.study.keys.is_proven(self.cookie)

    async def answer(self, action: Awaitable[State]) -> State:
        """Return the state after an action, with the resume code if this browser may see it."""
        try:
            return show_code(self.study, await action, self.cookie)
        except Refused as refused:
            if refused.state is not None:
                refused.state = show_code(self.study, refused.state, self.cookie)
            raise


def show_code(study: LiveStudy, state: State, cookie: str | None) -> State:
    """Return a state with the resume code, if the cookie is of a browser that may see it."""
    uid = study.keys.participant_of(cookie)
    # States of people who do not take part have no token, and nothing to resume.
    if uid is None or not state.get("csrf"):
        return state
    if not study.keys.is_proven(cookie):
        return state
    return state | {"resume_code": study.keys.resume_code(uid)}


async def own_page(page: Annotated[Page, Depends()]) -> Page:
    """Return the page of a request; raise if a signed link does not let its browser continue."""
    await refuse_strangers(app_state(page.request), page.cookie)
    return page


ByPage = Annotated[Page, Depends(own_page)]


@router.post("/join", responses=ERRORS | messages.problems(404))
async def join(
    request: Request,
    response: Response,
    body: messages.Join,
    cookie: ParticipantCookie = None,
    researcher: ResearcherCookie = None,
) -> State:
    """Begin the study, or resume it with an ID, a resume code or a cookie."""
    app = app_state(request)
    is_simulation = same_secret(body.key, app.settings.simulation_key)
    if body.mode != "live" and not is_simulation:
        visitor = await app.researcher(researcher)
        if visitor is None or not visitor.may("run"):
            raise Refused(403, "forbidden", "Only the researcher may do this.")
    if body.teacher is not None and body.mode != "simulated":
        raise Refused(422, "invalid", "Only simulated participants may send a teacher's name.")
    if not is_simulation:
        app.limit(app.joins, address_of(request))
    try:
        arrival = await arrive(app.study, _visit_of(body, app.settings.trial, cookie))
    except Refused as refused:
        # An unknown resume code has a limit of its own, so that nobody can try many.
        if refused.code == "unknown_code":
            app.limit(app.codes, address_of(request))
        raise
    if arrival.uid is None:
        return arrival.state
    signed = app.study.keys.participant_cookie(arrival.uid, arrival.proven)
    set_cookie(request, response, PARTICIPANT_COOKIE, signed, PARTICIPANT_AGE)
    return show_code(app.study, arrival.state, signed)


def _visit_of(body: messages.Join, is_trial: bool, cookie: str | None) -> Visit:
    mode: str = body.mode
    if is_trial and mode == "live":
        mode = "trial"
    teacher = "human"
    if mode == "simulated":
        teacher = body.teacher or "machine"
    return Visit(mode, teacher, body.ids, body.resume, cookie, body.language or "")


@router.get("/panel")
async def panel(request: Request) -> State:
    """Return which parameters of its link a page sends when it joins, and if one is needed."""
    config = app_state(request).study.config
    identity = list(config.panel.identity)
    if config.links == "signed":
        return {"identity": [LINK, *identity], "required": True}
    return {"identity": identity, "required": config.panel.required}


@router.get("/state", responses=UNKNOWN)
async def state(request: Request, cookie: ParticipantCookie = None) -> State:
    """Return the participant's current state."""
    app = app_state(request)
    await refuse_strangers(app, cookie)
    current = await app.study.look(uid_of(app, cookie))
    return show_code(app.study, current, cookie)


@router.get("/words")
async def words(request: Request, wishes: Wishes = "") -> State:
    """Return the words of the pages, in the study's language that fits the wishes best."""
    config = app_state(request).study.config
    language = languages.best(wishes, config.languages)
    return {
        "language": language,
        "languages": config.language_names(),
        "smallest_screen": config.smallest_screen,
        "words": config.words_in(language),
    }


@router.post("/language", responses=ERRORS)
async def language(page: ByPage, body: messages.ChosenLanguage) -> State:
    """Choose another of the study's languages, before consent."""
    action = page.study.language(page.uid, body.language)
    return await page.answer(action)


@router.post("/consent", responses=ERRORS)
async def consent(
    page: ByPage,
    response: Response,
    body: messages.Consent,
) -> State:
    """Accept or decline the consent.

    Places are taken here: a full study answers with the stage ``closed``.
    """
    uid = page.uid
    study = page.study
    action = study.consent(uid, body.accepted, body.version, page.cookie)
    try:
        state = await page.answer(action)
    except Closed:
        return await study.closed(uid)
    if state["stage"] == "declined":
        drop_cookie(page.request, response, PARTICIPANT_COOKIE)
        return state
    if not study.gave_consent(uid, page.cookie):
        return state
    # Others may know the identity, but only one browser gave the consent: from now on it is
    # proven to be the participant's.
    signed = study.keys.participant_cookie(uid)
    set_cookie(page.request, response, PARTICIPANT_COOKIE, signed, PARTICIPANT_AGE)
    return show_code(study, state, signed)


@router.post("/instructions", responses=ERRORS)
async def instructions(page: ByPage, body: messages.Nothing) -> State:
    """Record that the instructions were read."""
    action = page.study.instructions(page.uid)
    return await page.answer(action)


@router.post("/check", responses=ERRORS)
async def check(page: ByPage, body: messages.CheckAnswers) -> State:
    """Check the answers to the questions."""
    action = page.study.check(page.uid, body.answers, body.tries_left)
    return await page.answer(action)


@router.post("/answers", responses=ERRORS)
async def answers(page: ByPage, body: messages.PageAnswers) -> State:
    """Take the answers to a page of questions. Repeating the request changes nothing."""
    action = page.study.answers(
        page.uid,
        body.page,
        body.place,
        body.answers,
        body.seconds,
    )
    return await page.answer(action)


@router.post("/steps", responses=ERRORS)
async def steps(page: ByPage, body: messages.TakeStep) -> State:
    """Take one choice and answer once it is stored. Repeating the request changes nothing."""
    action = page.study.step(
        page.uid,
        body.round,
        body.step,
        body.choice,
        body.timing.model_dump(exclude_none=True),
    )
    return await page.answer(action)


@router.post("/part", responses=ERRORS)
async def part(page: ByPage, body: messages.Nothing) -> State:
    """Begin the next part of a study in several sessions, if it is open."""
    action = page.study.next_part(page.uid)
    return await page.answer(action)


@router.post("/attention", responses=ERRORS)
async def attention(page: ByPage, body: messages.TakeStep) -> State:
    """Take the answer to an attention check before a step.

    Repeating the request changes nothing.
    """
    action = page.study.attention(
        page.uid,
        body.round,
        body.step,
        body.choice,
        body.timing.model_dump(exclude_none=True),
    )
    return await page.answer(action)


@router.post("/events", responses=ERRORS)
async def events(page: ByPage, body: messages.Events) -> dict[str, int]:
    """Store events of the page: focus lost and regained, changes of choice."""
    happened = [_event_of(noticed) for noticed in body.events]
    uid = page.uid
    app = app_state(page.request)
    app.limit(app.events, uid, len(happened))
    return await page.study.events(uid, happened)


def _event_of(noticed: Noticed) -> Event:
    client_at = None
    if noticed.at is not None:
        client_at = round(noticed.at)
    # Only what was sent: defaults would be stored as if the page had seen them.
    return Event(noticed.kind, noticed.data.model_dump(exclude_unset=True), "client", client_at)


@router.post("/comments", responses=ERRORS)
async def comments(page: ByPage, body: messages.Comments) -> State:
    """Store comments, if any, and finish the study."""
    action = page.study.comments(page.uid, body.text)
    return await page.answer(action)


@router.post("/leave", responses=ERRORS)
async def leave(
    page: ByPage,
    response: Response,
    body: messages.Leave,
) -> State:
    """Leave the study; keep or delete the data."""
    app = app_state(page.request)
    action = page.study.leave(page.uid, body.keep, body.code, page.proven)
    try:
        state = await page.answer(action)
    except Refused as refused:
        # A wrong code counts, so that nobody can try many to delete another person's data.
        if refused.code == "code_needed" and body.code is not None:
            app.limit(app.codes, address_of(page.request))
        raise
    if not body.keep or state["stage"] == "declined":
        drop_cookie(page.request, response, PARTICIPANT_COOKIE)
    return state


def uid_of(app: AppState, cookie: str | None) -> str:
    """Return the participant of a cookie."""
    uid = app.study.keys.participant_of(cookie)
    if uid is None:
        raise Refused(401, "unknown", UNKNOWN_PARTICIPANT)
    return uid


async def refuse_strangers(app: AppState, cookie: str | None) -> None:
    """Raise if a browser showed nothing but a signed link, and another one consented by it.

    Whoever opens a link before the consent gets a cookie. After the consent, only the browser that
    gave it, and those that have the resume code, are the participant's.
    """
    study = app.study
    uid = study.keys.participant_of(cookie)
    if study.config.links != "signed" or uid is None or study.keys.is_proven(cookie):
        return
    if study.gave_consent(uid, cookie):
        return
    participant = await asyncio.to_thread(study.find, uid=uid)
    if participant is None or participant.stage == "consent":
        return
    if _links.are_needed(study.rules(participant.config).config, participant.mode):
        raise Refused(401, "unknown", UNKNOWN_PARTICIPANT)


def check_token(token: str | None, expected: str) -> None:
    """Raise if the page did not send the right token."""
    if not same_secret(token, expected):
        raise Refused(403, "forbidden", "This page is out of date. Please reload it.")


def set_cookie(
    request: Request,
    response: Response,
    name: str,
    value: str,
    age: int,
) -> None:
    """Set a cookie that scripts cannot read and other sites cannot send."""
    response.set_cookie(name, value, max_age=age, **_kind_of_cookie(request))


def drop_cookie(request: Request, response: Response, name: str) -> None:
    """Delete a cookie in the browser."""
    response.delete_cookie(name, **_kind_of_cookie(request))


def _kind_of_cookie(request: Request) -> Any:
    return {
        # Other pages of a shared host never get the cookie.
        "path": f"{app_state(request).settings.prefix}/",
        "httponly": True,
        "samesite": "strict",
        "secure": request.url.scheme == "https",
    }
