"""What stands in front of the application.

The guard adds security headers and refuses large bodies and foreign origins. The prefix serves the
study under a path, such as ``/teach/`` on a host with other pages. Limits of requests per minute
are kept in memory.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any

from ital_study.server._errors import SENTENCES, error_content
from ital_study.server._health import PATH as HEALTH
from ital_study.server._health import Health

LOG = logging.getLogger("ital_study")
LARGEST_BODY = 64 * 1024
MOST_ADDRESSES = 10_000  # remembered before those who were silent for a minute are dropped

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # the address of a study link contains an ID
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Robots-Tag": "noindex, nofollow",
}

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class Guard:
    """Guards the application: adds security headers, refuses large bodies and foreign origins.

    Errors inside are logged and answered with one plain sentence.
    """

    def __init__(
        self,
        app: Application,
        health: Health,
        origin: str | None = None,
        shared_host: bool = False,
        allowed: Sequence[str] = (),
    ) -> None:
        self.app = app
        self.health = health
        self.origin = origin
        self.shared_host = shared_host
        self.allowed = allowed

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # Whoever watches the server must see that it is about to stop: this is never refused, and
        # never keeps it from stopping.
        if scope["path"] == HEALTH:
            await self._serve(scope, receive, send)
            return
        # Before it stops, the server finishes the requests that are open, and takes no others.
        # Both are read and written here without waiting in between, so no request slips through.
        draining = self.health.draining
        self.health.open_requests += 1
        try:
            await self._serve(scope, receive, send, draining)
        finally:
            self.health.open_requests -= 1

    async def _serve(
        self, scope: MutableMapping[str, Any], receive: Receive, send: Send, draining: bool = False
    ) -> None:
        # Other pages of a shared host may need plain HTTP.
        https_only = scope.get("scheme") == "https" and not self.shared_host
        answer = _GuardedAnswer(send, https_only)
        path = scope["path"]
        if draining:
            await refuse(answer.send, path, 503, "try_again", SENTENCES[503])
            return
        if scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            headers = _headers_of(scope)
            if not self._may_change(headers):
                sentence = "This request came from another site."
                await refuse(answer.send, path, 403, "forbidden", sentence)
                return
            body = await _body(receive, headers.get("content-length"))
            if body is None:
                await refuse(answer.send, path, 413, "too_large", SENTENCES[413])
                return
            receive = _again(body, receive)
        try:
            await self.app(scope, receive, answer.send)
        except Exception:
            # The log names the method only: path and query may identify a person.
            LOG.exception("an error while answering %s", scope["method"])
            # A second start would break the connection; the client sees that the answer is short.
            if not answer.begun:
                await refuse(answer.send, path, 500, "error", SENTENCES[500])

    def _may_change(self, headers: Mapping[str, str]) -> bool:
        """Return whether a request may change something: it is from an own or an allowed page."""
        return headers.get("origin") in self.allowed or is_own_origin(headers, self.origin)


class _GuardedAnswer:
    """An answer with the guard's headers; ``begun`` says whether a part of it was sent."""

    def __init__(self, send: Send, https_only: bool) -> None:
        self._send = send
        self._https_only = https_only
        self.begun = False

    async def send(self, message: Message) -> None:
        """Send a part of the answer."""
        self.begun = True
        if message["type"] == "http.response.start":
            message["headers"] = _with_defaults(message.get("headers", []), self._https_only)
        await self._send(message)


def _headers_of(scope: Mapping[str, Any]) -> dict[str, str]:
    return {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
    }


def is_own_origin(headers: Mapping[str, str], origin: str | None = None) -> bool:
    """Return whether a request came from the study's own pages, as far as the browser says."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    named = headers.get("origin")
    if named is None:
        return True  # not a browser: a foreign page cannot have sent this
    if origin is not None:
        return named == origin.rstrip("/")
    return named.partition("://")[2] == headers.get("host")


def _with_defaults(headers: Any, https_only: bool) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer, with the guard's where the application set none."""
    ours = {**HEADERS, "Cache-Control": "no-store"}
    if https_only:
        ours["Strict-Transport-Security"] = "max-age=31536000"
    present = {name.lower() for name, _ in headers}
    added = [
        (name.encode(), value.encode())
        for name, value in ours.items()
        if name.lower().encode() not in present
    ]
    return [*headers, *added]


async def _body(receive: Receive, announced: str | None) -> bytes | None:
    """Return the whole body; None if it is too large."""
    # Twelve digits are enough to be too large, and int() of thousands of them would be slow.
    if announced is not None and announced.isdigit() and int(announced[:12]) > LARGEST_BODY:
        return None
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return body  # the client has disconnected
        body += message.get("body", b"")
        # Counted as well, because a body that comes in chunks announces no length.
        if len(body) > LARGEST_BODY:
            return None
        if not message.get("more_body", False):
            return body


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a function that passes on a body that has been read already."""
    sent = False

    async def once() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return once


async def refuse(send: Send, path: str, status: int, code: str, error: str) -> None:
    """Answer a request with an error, before it reaches the application."""
    content, kind = error_content(path, status, code, error)
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(content)).encode())]
    if status in (413, 503):
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})


class Prefix:
    """Serves the application under a path. The proxy passes the path unchanged."""

    def __init__(self, app: Application, prefix: str, address: str) -> None:
        self.app = app
        self.prefix = prefix
        self.address = address

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request."""
        path = scope.get("path", "")
        # The machine itself asks for its health, without the proxy.
        if scope["type"] != "http" or path == HEALTH:
            await self.app(scope, receive, send)
            return
        if path == self.prefix:  # relative addresses need the slash
            await self._redirect(scope, send)
            return
        if not path.startswith(f"{self.prefix}/"):
            sentence = (
                f"The study is at {self.address}/. If you see this there, the proxy removes "
                f"{self.prefix} from the path: it must pass the path unchanged."
            )
            await refuse(send, path, 404, "not_found", sentence)
            return
        await self.app({**scope, "root_path": self.prefix}, receive, send)

    async def _redirect(self, scope: MutableMapping[str, Any], send: Send) -> None:
        """Lead to the path with its slash; keep the query, because it says who comes."""
        location = f"{self.prefix}/".encode()
        query = scope.get("query_string", b"")
        if query:
            location += b"?" + query
        headers = [(b"location", location)]
        await send({"type": "http.response.start", "status": 308, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


class RateLimit:
    """Limits requests per minute and address; bursts may use the whole limit.

    Addresses stay in memory, briefly.
    """

    def __init__(
        self,
        per_minute: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._most = per_minute
        self._clock = clock
        # By address: requests that are left, and when that was so.
        self._seen: dict[str, tuple[float, float]] = {}

    def wait(self, address: str, cost: float = 1.0) -> int:
        """Count a request; return 0 if it is allowed, else the number of seconds to wait."""
        now = self._clock()
        most = float(self._most)
        left, at = self._seen.get(address, (most, now))
        # A bucket of tokens: what was used comes back evenly, the whole limit in a minute.
        regained = (now - at) * self._most / 60
        left = min(most, left + regained)
        if left < cost:
            missing = cost - left
            return 1 + int(missing * 60 / self._most)
        self._seen[address] = (left - cost, now)
        if len(self._seen) > MOST_ADDRESSES:
            self._forget_silent(now)
        return 0

    def _forget_silent(self, now: float) -> None:
        # After a minute the limit is whole again, so a silent address is as good as a new one.
        self._seen = {
            address: (left, at) for address, (left, at) in self._seen.items() if now - at < 60
        }
