"""The application: its routes, errors, start and shutdown.

Each module serves the addresses of its name:

- ``/``, ``/preview``, ``/dashboard``, ``/static/…``: :mod:`ital_study.server._pages`
- ``/api/join``, ``/api/consent``, ``/api/steps``, …: :mod:`ital_study.server._participants`
- ``/api/admin/…``: :mod:`ital_study.server._admin`
- ``/health``: :mod:`ital_study.server._health`
- ``/play``, ``/api/play/…``: ``_pages`` and :mod:`ital_study.server._play`, for ``ital play`` only
- ``/api/learner/…``: :mod:`ital_study.server._learner`, for ``ital study learner`` only
"""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from ital import __version__
from ital_study.config.configuration import Config
from ital_study.robots.rules import StudyRules
from ital_study.server import _admin, _health, _learner, _pages, _participants, _play
from ital_study.server._app_state import AppState
from ital_study.server._errors import SENTENCES, TRY_AGAIN, Refused, error_content, is_api
from ital_study.server._guard import Guard, Prefix, RateLimit
from ital_study.server._health import Health
from ital_study.server._settings import ServerSettings
from ital_study.server._study import LiveStudy
from ital_study.store import NotStored, Store, open_store, operations

PROBE_EVERY = 5.0  # seconds until a failing database is tried again
PROBES_PER_TIDYING = 12  # a minute between two times that the store is tidied
CODES = {404: "not_found", 405: "not_allowed", 413: "too_large"}


def create_app(config: Config, store_url: str, settings: ServerSettings) -> FastAPI:
    """Make the server of a study.

    Args:
        config: The study that new participants join.
        store_url: A file for SQLite, or the address of a PostgreSQL database.
        settings: Secrets and limits.

    Returns:
        An ASGI application; it opens the database when it starts.
    """

    @contextlib.asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        store = await asyncio.to_thread(open_store, store_url, create=True)
        try:
            # Claimed before anything is written: two servers would hold two truths in memory.
            with store.claimed():
                study = LiveStudy(config, store, settings)
                await asyncio.to_thread(study.start)
                app.state.ital = AppState(study, store, settings)
                tidying = asyncio.create_task(_tidy_regularly(store, config))
                yield
                tidying.cancel()
        finally:
            # Waits for the writer: what was submitted is committed before the process ends.
            await asyncio.to_thread(store.close)

    # Not /play: it names the two kinds of robot, which participants must not know.
    routers = (_participants.router, _admin.router, _pages.router, _health.router)
    app = _application("ital study", life, routers)
    if settings.prefix:
        address = f"{settings.site}{settings.prefix}"
        app.add_middleware(Prefix, prefix=settings.prefix, address=address)
    # Added last, so it is the outermost: also the prefix's own answers get the guard's headers.
    app.add_middleware(
        Guard,
        health=app.state.health,
        origin=settings.site,
        shared_host=bool(settings.prefix),
    )
    return app


async def _tidy_regularly(store: Store, config: Config) -> None:
    """Do maintenance that nobody has to wait for."""
    for turn in itertools.count(1):
        await asyncio.sleep(PROBE_EVERY)
        await asyncio.to_thread(store.probe)
        if turn % PROBES_PER_TIDYING:
            continue
        await asyncio.to_thread(store.tidy)
        with contextlib.suppress(NotStored):  # the next minute will do
            await asyncio.to_thread(
                store.write, lambda connection: operations.erase_visitors(connection, config)
            )


def create_play_app(config: Config) -> FastAPI:
    """Make the server of ``ital play``: two robots side by side, nothing stored.

    Args:
        config: The study whose maps are played.

    Returns:
        An ASGI application.
    """

    @contextlib.asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        rules = StudyRules(config)
        await asyncio.to_thread(rules.warm_up)
        app.state.rules = rules
        yield

    app = _application("ital play", life, (_play.router, _pages.play_router))
    app.add_middleware(Guard, health=app.state.health)
    return app


def create_learner_app(
    config: Config, origins: Sequence[str] = (), requests_per_minute: int = 1200
) -> FastAPI:
    """Make the server of ``ital study learner``: the robots for other front ends, nothing stored.

    Args:
        config: The study whose maps and robots are offered.
        origins: Sites whose pages may use it, such as ``https://lab.example.org``.
        requests_per_minute: Limit of one address.

    Returns:
        An ASGI application.
    """

    @contextlib.asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        rules = StudyRules(config)
        await asyncio.to_thread(_learner.warm_up, rules)
        app.state.rules = rules
        app.state.limit = RateLimit(requests_per_minute)
        yield

    app = _application("ital study learner", life, (_learner.router,))
    app.add_middleware(Guard, health=app.state.health, allowed=origins)
    # Outside the guard: without these headers a page could not even read why it was refused.
    app.add_middleware(
        CORSMiddleware,
        allow_origins=list(origins),
        allow_methods=["GET", "POST"],
        allow_headers=["Content-Type"],
    )
    return app


def _application(
    title: str, life: Callable[[FastAPI], Any], routers: Sequence[APIRouter]
) -> FastAPI:
    app = FastAPI(
        title=title,
        version=__version__,
        lifespan=life,
        docs_url=None,  # the default page loads its script from another host
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    app.state.health = Health()
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _not_valid)
    for error in (NotStored, sa.exc.OperationalError, sa.exc.InterfaceError):
        app.add_exception_handler(error, _database_gone)
    for router in routers:
        app.include_router(router)
    _pages.mount_static(app)
    return app


def _problem_answer(
    request: Request, status: int, code: str, error: str, **details: Any
) -> Response:
    if not is_api(request.url.path):
        return _pages.problem(request, status, code, error)
    content, kind = error_content(request.url.path, status, code, error, **details)
    return Response(content, status, media_type=kind)


async def _refused(request: Request, error: Any) -> Response:
    facts = error.state or {}
    # A state of the study has a stage; other facts, such as the seconds to wait, are not for pages.
    details = {"state": facts} if "stage" in facts else {}
    response = _problem_answer(request, error.status, error.code, error.error, **details)
    if "wait" in facts:
        response.headers["Retry-After"] = str(facts["wait"])
    return response


async def _http_error(request: Request, error: Any) -> Response:
    code = CODES.get(error.status_code, "refused")
    sentence = SENTENCES.get(error.status_code, "This is not possible.")
    response = _problem_answer(request, error.status_code, code, sentence)
    response.headers.update(error.headers or {})
    return response


async def _not_valid(request: Request, error: Any) -> Response:
    # Say which part is not valid, but never repeat what was sent.
    first: dict[str, Any] = next(iter(error.errors()), {"loc": ()})
    field = _field_of(first)
    if not field:
        return _problem_answer(request, 422, "invalid", SENTENCES[422])
    rule = _rule_of(first)
    return _problem_answer(request, 422, "invalid", f"The request is not valid: {field!a}{rule}.")


def _field_of(first: Mapping[str, Any]) -> str:
    """Return the name of the field that is not valid, such as ``timing.shown_at``.

    Keys of dictionaries are sent by the browser, so each part is cut short.
    """
    parts = [str(part)[:40] for part in first["loc"] if part != "body"]
    return ".".join(parts)[:100]


def _rule_of(first: Mapping[str, Any]) -> str:
    """Return what the schema allows; it never comes from the request."""
    facts = first.get("ctx", {})
    allowed = facts.get("expected_tags") or facts.get("expected")
    if not allowed:
        return ""
    return f" must be one of {allowed}"


async def _database_gone(request: Request, error: Any) -> Response:
    if not isinstance(error, NotStored):  # the writer reports those
        request.app.state.ital.store.condition.failed(error)
    return _problem_answer(request, 503, "try_again", TRY_AGAIN)
