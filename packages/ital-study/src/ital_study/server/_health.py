"""``/health``: whether the server is ready, cannot store, or is about to stop."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from ital_study.store.times import iso

PATH = "/health"
router = APIRouter(include_in_schema=False)


class Health:
    """What a server does now: its number of open requests, and whether it is about to stop."""

    def __init__(self) -> None:
        self.open_requests = 0
        self.draining = False


@router.get(PATH)
async def health(request: Request) -> Response:
    """Answer 200 if everything is well, else 503 with the reason; name no file, host or person."""
    status, answer = _health_report(request.app.state)
    return JSONResponse(answer, status)


def _health_report(state: Any) -> tuple[int, dict[str, Any]]:
    if state.health.draining:
        return 503, {"state": "draining"}
    # Only the server of a study has this address, so there is a store.
    trouble = state.ital.store.condition.trouble
    if trouble is None:
        return 200, {"state": "ready"}
    facts = {
        "since": iso(1000 * trouble.since),
        "cause": trouble.cause,
        "failures": trouble.failures,
    }
    return 503, {"state": "storage failing", **facts}
