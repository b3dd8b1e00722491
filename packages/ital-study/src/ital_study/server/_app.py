"""The application: routes, pages, errors, start and shutdown."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
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
from ital_study.server import _admin, _health, _learner, _pages, _participants, _play, _security
from ital_study.server._app_state import AppState
from ital_study.server._health import Health
from ital_study.server._plain import SENTENCES, TRY_AGAIN, Refused, is_api, plain
from ital_study.server._prefix import Prefix
from ital_study.server._settings import ServerSettings
from ital_study.server._study import LiveStudy
from ital_study.store import NotStored, Store, admission, open_store

PROBE_EVERY = 5.0  # seconds until a failing database is tried again


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
            with store.claimed():
                study = LiveStudy(config, store, settings)
                await asyncio.to_thread(study.start)
                app.state.ital = AppState(study, store, settings)
                tidying = asyncio.create_task(_tidy(store, config))
                yield
                tidying.cancel()
        finally:
            await asyncio.to_thread(store.close)

    # Not /play: it names the two kinds of robot, which participants must not know.
    routers = (_participants.router, _admin.router, _pages.router, _health.router)
    app = _application("ital study", life, routers)
    if settings.prefix:
        app.add_middleware(
            Prefix, prefix=settings.prefix, address=f"{settings.site}{settings.prefix}"
        )
    app.add_middleware(
        _security.Guard,
        health=app.state.health,
        origin=settings.site,
        shared_host=bool(settings.prefix),
    )
    return app


async def _tidy(store: Store, config: Config) -> None:
    """Do maintenance that nobody has to wait for."""
    for turn in itertools.count(1):
        await asyncio.sleep(PROBE_EVERY)
        await asyncio.to_thread(store.probe)
        if turn % 12 == 0:
            await asyncio.to_thread(store.tidy)
            with contextlib.suppress(NotStored):  # the next minute will do
                await asyncio.to_thread(
                    store.write, lambda connection: admission.erase_visitors(connection, config)
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
    app.add_middleware(_security.Guard, health=app.state.health)
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
        app.state.rules, app.state.limit = rules, _security.RateLimit(requests_per_minute)
        yield

    app = _application("ital study learner", life, (_learner.router,))
    app.add_middleware(_security.Guard, health=app.state.health, allowed=origins)
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


def _problem(request: Request, status: int, code: str, error: str, **details: Any) -> Response:
    if not is_api(request.url.path):
        return _pages.problem(request, status, code, error)
    content, kind = plain(request.url.path, status, code, error, **details)
    return Response(content, status, media_type=kind)


async def _refused(request: Request, error: Any) -> Response:
    state = error.state or {}
    response = _problem(
        request,
        error.status,
        error.code,
        error.error,
        **({"state": state} if "stage" in state else {}),
    )
    if "wait" in state:
        response.headers["Retry-After"] = str(state["wait"])
    return response


async def _http_error(request: Request, error: Any) -> Response:
    code = {404: "not_found", 405: "not_allowed", 413: "too_large"}.get(
        error.status_code, "refused"
    )
    response = _problem(
        request, error.status_code, code, SENTENCES.get(error.status_code, "This is not possible.")
    )
    response.headers.update(error.headers or {})
    return response


async def _not_valid(request: Request, error: Any) -> Response:
    # Say which part is not valid, but never repeat what was sent.
    first: dict[str, Any] = next(iter(error.errors()), {"loc": ()})
    place = ".".join(str(part)[:40] for part in first["loc"] if part != "body")[:100]
    if not place:
        return _problem(request, 422, "invalid", SENTENCES[422])
    facts = first.get("ctx", {})
    allowed = facts.get("expected_tags") or facts.get(
        "expected"
    )  # from the schema, not from the request
    rule = f" must be one of {allowed}" if allowed else ""
    return _problem(request, 422, "invalid", f"The request is not valid: {place!a}{rule}.")


async def _database_gone(request: Request, error: Any) -> Response:
    if not isinstance(error, NotStored):  # the writer reports those
        request.app.state.ital.store.condition.failed(error)
    return _problem(request, 503, "try_again", TRY_AGAIN)
