"""Errors as answers: JSON for programs, a simple page for people."""

import html
import json
from typing import Any

SENTENCES = {
    400: "The request cannot be read.",
    401: "Please log in first.",
    403: "This is not allowed.",
    404: "There is no such page.",
    405: "This cannot be done here.",
    413: "This request is too large.",
    422: "The request is not valid.",
    500: "Something went wrong on our side. What you did before is stored; please try again.",
    503: "The study restarts. Please try again in a few seconds.",
}
TRY_AGAIN = "We could not store this just now. Please try again."


class Refused(Exception):
    """A request that is answered with an error; ``state`` lets a page catch up."""

    def __init__(
        self, status: int, code: str, error: str, state: dict[str, Any] | None = None
    ) -> None:
        super().__init__(error)
        self.status = status
        self.code = code
        self.error = error
        self.state = state


def is_api(path: str) -> bool:
    """Return whether programs read the answers of a path, also under a prefix."""
    return "/api/" in path


def error_content(
    path: str, status: int, code: str, error: str, **details: Any
) -> tuple[bytes, str]:
    """Return the content of an error and its media type."""
    if is_api(path):
        record = {"error": error, "code": code, **details}
        return json.dumps(record).encode(), "application/json"
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{status}</title></head>'
        f"<body><main><h1>{html.escape(error)}</h1></main></body></html>"
    )
    return page.encode(), "text/html; charset=utf-8"


def as_sentence(message: str) -> str:
    """Return the message of an error as a sentence: with a capital letter and a full stop."""
    return f"{message[:1].upper()}{message[1:]}."
