"""Pages and their files. All come from the package, none from another host."""

import html
import importlib.resources
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from ital_study.config import languages
from ital_study.server._app_state import app_state
from ital_study.server._participants import ResearcherCookie

FOLDER = Path(str(importlib.resources.files("ital_study") / "pages"))
# Set here, because the system's table of types may be wrong, and with nosniff a script of a wrong
# type does not run.
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# A word, so that pages that have loaded their words say it in their own language.
TRIAL_BANNER = (
    '<div class="mode-banner" role="status" data-word="trial.banner">{trial.banner}</div>'
)

router = APIRouter(include_in_schema=False)
play_router = APIRouter(include_in_schema=False)


def page(
    request: Request, name: str, words: Mapping[str, str] = languages.shipped_words("en")
) -> Response:
    """Return a page of the package with its ``{key}`` replaced by words.

    A trial has a banner at the top of every page.
    """
    text = (FOLDER / name).read_text(encoding="utf-8")
    state = getattr(request.app.state, "ital", None)  # ital play has none
    if state is not None and state.settings.trial:
        text = re.sub(r"(<body[^>]*>)", rf"\1\n    {TRIAL_BANNER}", text, count=1)
    text = re.sub(r"\{([a-z_.]+)\}", lambda key: html.escape(words[key[1]]), text)
    return Response(text, media_type=TYPES[".html"], headers={"Cache-Control": "no-store"})


def problem(request: Request, status: int, code: str, error: str) -> Response:
    """Return a page that says what is wrong, in the visitor's language.

    It leads to the study with what the link says.
    """
    title = "ital"
    words = {"language": "en", **languages.shipped_words("en")}
    state = getattr(request.app.state, "ital", None)  # ital play has none
    if state is not None:
        words = visitor_words(request)
        title = state.study.config.texts(words["language"]).title
        error = words.get(f"refused.{code}", error)
    root = f"{request.scope.get('root_path', '')}/"
    query = request.url.query
    of_problem = {
        "problem.title": title,
        "problem.status": str(status),
        "problem.text": error,
        "problem.root": root,
        "problem.link": f"{root}?{query}" if query else root,
    }
    answer = page(request, "problem.html", {**words, **of_problem})
    answer.status_code = status
    return answer


def visitor_words(request: Request) -> dict[str, str]:
    """Return the words of the study's language that fits the visitor best.

    They are for what is read before scripts run.
    """
    config = app_state(request).study.config
    # Browsers list languages by preference, so their weights (;q=0.8) say nothing new.
    accepted = re.sub(r";[^,]*", "", request.headers.get("accept-language", ""))
    wished = request.query_params.get("lang", "")
    language = languages.best(f"{wished},{accepted}", config.languages)
    return {"language": language, **config.words_in(language)}


@router.get("/")
async def participant_page(request: Request) -> Response:
    """Serve the page where participants begin and resume."""
    return page(request, "participant.html", visitor_words(request))


@router.get("/preview")
async def preview_page(request: Request, cookie: ResearcherCookie = None) -> Response:
    """Serve the participants' page as a preview for the researcher."""
    researcher = await app_state(request).researcher(cookie)
    if researcher is None or not researcher.may("run"):
        return RedirectResponse("dashboard", 303)
    return page(request, "participant.html", visitor_words(request))


@router.get("/dashboard")
async def dashboard_page(request: Request) -> Response:
    """Serve the dashboard's page. It is empty until the researcher logs in."""
    return page(request, "dashboard.html")


@play_router.get("/play")
async def play_page(request: Request) -> Response:
    """Serve the page with robots side by side."""
    return page(request, "play.html")


@router.get("/favicon.ico")
@play_router.get("/favicon.ico")
async def icon() -> Response:
    """Serve the page's icon."""
    headers = {"Cache-Control": "max-age=3600"}
    return FileResponse(
        FOLDER / "static" / "favicon.svg", media_type=TYPES[".svg"], headers=headers
    )


@play_router.get("/")
async def to_play() -> Response:
    """Redirect to the only page of ``ital play``."""
    return RedirectResponse("play", 303)


class Static(StaticFiles):
    """Scripts, styles and pictures, with types set here.

    Browsers always check for a new version.
    """

    def file_response(self, full_path: Any, *args: Any, **kwargs: Any) -> Response:
        """Return a file with its headers."""
        response = super().file_response(full_path, *args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        kind = TYPES.get(Path(full_path).suffix)
        # An answer without content ("not modified") has no type.
        if kind is not None and "content-type" in response.headers:
            response.headers["Content-Type"] = kind
        return response


def mount_static(app: FastAPI) -> None:
    """Serve the files of ``pages/static``."""
    app.mount("/static", Static(directory=FOLDER / "static", check_dir=False))
