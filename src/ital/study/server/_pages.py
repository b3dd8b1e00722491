"""Pages and their files. All come from the package, none from another host."""

import html
import importlib.resources
import re
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from ital.study import _languages
from ital.study.server._app_state import app_state
from ital.study.server._participants import ResearcherCookie

FOLDER = Path(str(importlib.resources.files("ital.study") / "pages"))
# Set here, because the system's table of types may be wrong, and with nosniff a script of a wrong type does not run.
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

router = APIRouter(include_in_schema=False)
play_router = APIRouter(include_in_schema=False)


def page(name: str, banner: str = "") -> Response:
    """A page of the package; ``banner`` is shown at its top."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    if banner:
        # Pages that have loaded their words say it in their own language.
        shown = f'<div class="mode-banner" role="status" data-word="trial.banner">{html.escape(banner)}</div>'
        text = re.sub(r"(<body[^>]*>)", lambda body: f"{body[1]}\n    {shown}", text, count=1)
    return Response(text, media_type=TYPES[".html"], headers={"Cache-Control": "no-store"})


def trial_banner(request: Request) -> str:
    """What every page of a trial says, in the language that fits the visitor best; empty if it is no trial."""
    app = app_state(request)
    if not app.settings.trial:
        return ""
    accepted = re.sub(r";[^,]*", "", request.headers.get("accept-language", ""))
    wishes = f"{request.query_params.get('lang', '')},{accepted}"
    words = app.study.config.words_in(_languages.best(wishes, app.study.config.languages))
    return words["trial.banner"]


@router.get("/")
async def participant_page(request: Request) -> Response:
    """The page where participants begin and resume."""
    return page("participant.html", trial_banner(request))


@router.get("/preview")
async def preview_page(request: Request, cookie: ResearcherCookie = None) -> Response:
    """The participants' page as a preview for the researcher."""
    if app_state(request).researcher(cookie) is None:
        return RedirectResponse("dashboard", 303)
    return page("participant.html", trial_banner(request))


@router.get("/dashboard")
async def dashboard_page(request: Request) -> Response:
    """The dashboard's page. It is empty until the researcher logs in."""
    banner = _languages.shipped_words("en")["trial.banner"] if app_state(request).settings.trial else ""
    return page("dashboard.html", banner)


@play_router.get("/play")
async def play_page() -> Response:
    """Two robots side by side."""
    return page("play.html")


@router.get("/favicon.ico")
@play_router.get("/favicon.ico")
async def icon() -> Response:
    """The page's icon."""
    headers = {"Cache-Control": "max-age=3600"}
    return FileResponse(FOLDER / "static" / "favicon.svg", media_type=TYPES[".svg"], headers=headers)


@play_router.get("/")
async def to_play() -> Response:
    """Redirect to the only page of ``ital play``."""
    return RedirectResponse("play", 303)


class Static(StaticFiles):
    """Scripts, styles and pictures, with types set here; browsers always check for a new version."""

    def file_response(self, full_path: Any, *args: Any, **kwargs: Any) -> Response:
        """A file with its headers."""
        response = super().file_response(full_path, *args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        if Path(full_path).suffix in TYPES and "content-type" in response.headers:
            response.headers["Content-Type"] = TYPES[Path(full_path).suffix]
        return response


def mount_static(app: FastAPI) -> None:
    """Serve the files of ``pages/static``."""
    app.mount("/static", Static(directory=FOLDER / "static", check_dir=False))
