"""Keys, cookies, tokens, limits and headers."""

import base64
import hashlib
import hmac
import json
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any

from itsdangerous import BadSignature, URLSafeTimedSerializer

from ital_study.server._health import Health
from ital_study.server._plain import SENTENCES, plain

LOG = logging.getLogger("ital_study")
PARTICIPANT_COOKIE, RESEARCHER_COOKIE = "ital_participant", "ital_researcher"
PARTICIPANT_AGE, RESEARCHER_AGE = 180 * 24 * 3600, 12 * 3600  # seconds
KNOWN_BROWSER_AGE = (
    30 * 24 * 3600
)  # seconds for which a browser that logged in has a limit of attempts of its own
CLOCK_SKEW = (
    24 * 3600
)  # seconds by which the server's clock may step back without refusing the cookies it signed
LARGEST_BODY = 64 * 1024
BY_IDENTITY = "~"  # in the cookie of a browser that showed nothing but an identity, after a mark of the browser
CODE_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # no characters that look alike

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
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


class Keys:
    """Everything that is derived from the server's secret. Each purpose has its own key."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._participants = URLSafeTimedSerializer(secret, salt="participant")
        self._researchers = URLSafeTimedSerializer(secret, salt="researcher")

    def _digest(self, purpose: str, text: str) -> bytes:
        key = hmac.digest(self._secret, purpose.encode(), "sha256")
        return hmac.digest(key, text.encode("utf-8", "surrogatepass"), "sha256")

    def fingerprint(self) -> str:
        """A keyed hash of a constant: it shows whether two secrets are equal, and nothing else."""
        return self._digest("fingerprint", "ital study").hex()

    def external_hash(self, kind: str, external: str) -> str:
        """A keyed hash of an external ID: it shows whether two IDs are equal, and nothing else."""
        return self._digest("external", json.dumps([kind, external])).hex()

    def resume_code(self, uid: str) -> str:
        """The resume code that a participant may write down: 60 bits, derived from the secret whenever it is shown."""
        return _code(self._digest("resume", uid), groups=3, letters=4)

    def resume_hash(self, code: str) -> str:
        """The stored hash of a resume code, whatever its case and hyphens."""
        return self._digest("resume code", plain_code(code)).hex()

    def completion_code(self, uid: str, outcome: str) -> str:
        """A participant's own code for an outcome: 50 bits, derived from the secret, so that it can be verified."""
        return _code(self._digest("completion", f"{outcome} {uid}"), groups=2, letters=5)

    def csrf(self, session: str) -> str:
        """The token that a page sends with every request that changes something."""
        return base64.urlsafe_b64encode(self._digest("csrf", session)).decode().rstrip("=")

    def participant_cookie(self, uid: str, proven: bool = True) -> str:
        """A signed cookie for a participant; ``proven`` unless the browser showed nothing but an identity."""
        return _text(
            self._participants.dumps(uid if proven else f"{secrets.token_hex(8)}{BY_IDENTITY}{uid}")
        )

    def participant_of(self, cookie: str | None) -> str | None:
        """The participant of a cookie; None for one that is missing, forged or too old."""
        name = _load(self._participants, cookie, PARTICIPANT_AGE)
        return None if name is None else name.rpartition(BY_IDENTITY)[2]

    def is_proven(self, cookie: str | None) -> bool:
        """Whether the browser gave the consent or the resume code, so that it may see the code and delete the data."""
        name = _load(self._participants, cookie, PARTICIPANT_AGE)
        return name is not None and BY_IDENTITY not in name

    def researcher_cookie(self, session: str) -> str:
        """A signed cookie for a researcher's session."""
        return _text(self._researchers.dumps(session))

    def researcher_of(self, cookie: str | None) -> str | None:
        """The session of a researcher's cookie; None for one that is missing, forged or too old."""
        return _load(self._researchers, cookie, RESEARCHER_AGE)

    def known_browser(self, cookie: str | None) -> str | None:
        """The last session of a browser that has logged in before, also if that session is over."""
        return _load(self._researchers, cookie, KNOWN_BROWSER_AGE)


def _code(digest: bytes, groups: int, letters: int) -> str:
    """A code for people: groups of letters with 5 bits each."""
    number = int.from_bytes(digest, "big")
    all_letters = [CODE_ALPHABET[(number >> (5 * i)) & 31] for i in range(groups * letters)]
    return "-".join("".join(all_letters[i * letters : (i + 1) * letters]) for i in range(groups))


def plain_code(code: str) -> str:
    """A code as people type it, without case and hyphens."""
    return "".join(letter for letter in code.upper() if letter.isalnum())


def _text(signed: str | bytes) -> str:
    return signed.decode() if isinstance(signed, bytes) else signed


def _load(serializer: URLSafeTimedSerializer, cookie: str | None, age: int) -> str | None:
    if not cookie:
        return None
    try:
        value, signed_at = serializer.loads(cookie, return_timestamp=True)
    except BadSignature:
        return None
    # Only this server's key signs: a cookie from the future is one from before its clock was set back.
    passed = time.time() - signed_at.timestamp()
    return value if isinstance(value, str) and -CLOCK_SKEW <= passed <= age else None


def same(first: str | None, second: str | None) -> bool:
    """Whether two secrets are equal, compared in constant time."""
    return (
        bool(first) and bool(second) and hmac.compare_digest(_fold(str(first)), _fold(str(second)))
    )


def _fold(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def new_uid() -> str:
    """128 random bits."""
    return secrets.token_hex(16)


class RateLimit:
    """Limits requests per minute and address; bursts may use the whole limit. Addresses stay in memory, briefly."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = per_minute, clock
        self._seen: dict[str, tuple[float, float]] = {}

    def wait(self, address: str, cost: float = 1.0) -> int:
        """Count a request; return 0 if it is allowed, else the number of seconds to wait."""
        now = self._clock()
        left, at = self._seen.get(address, (float(self._most), now))
        left = min(float(self._most), left + (now - at) * self._most / 60)
        if left < cost:
            return 1 + int((cost - left) * 60 / self._most)
        self._seen[address] = (left - cost, now)
        if len(self._seen) > 10_000:
            self._seen = {
                address: seen for address, seen in self._seen.items() if now - seen[1] < 60
            }
        return 0


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
        self.app, self.health, self.origin, self.shared_host = app, health, origin, shared_host
        self.allowed = allowed

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif scope["path"] == "/health":
            await self._serve(scope, receive, send)
        else:
            # Before it stops, the server finishes the requests that are open, and takes no others.
            draining = self.health.draining
            self.health.open_requests += 1
            try:
                await self._serve(scope, receive, send, draining)
            finally:
                self.health.open_requests -= 1

    async def _serve(
        self, scope: MutableMapping[str, Any], receive: Receive, send: Send, draining: bool = False
    ) -> None:
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }

        begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal begun
            begun = True
            if message["type"] == "http.response.start":
                # Other pages of the host may need plain HTTP.
                https_only = scope.get("scheme") == "https" and not self.shared_host
                message["headers"] = _with_defaults(message.get("headers", []), https_only)
            await send(message)

        if draining:
            await refuse(send_with_headers, scope["path"], 503, "try_again", SENTENCES[503])
            return
        if scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            if headers.get("origin") not in self.allowed and not is_own_origin(
                headers, self.origin
            ):
                await refuse(
                    send_with_headers,
                    scope["path"],
                    403,
                    "forbidden",
                    "This request came from another site.",
                )
                return
            body = await _body(receive, headers.get("content-length"))
            if body is None:
                await refuse(send_with_headers, scope["path"], 413, "too_large", SENTENCES[413])
                return
            receive = _again(body, receive)
        try:
            await self.app(scope, receive, send_with_headers)
        except Exception:
            LOG.exception("an error while answering %s", scope["method"])
            if not begun:
                await refuse(send_with_headers, scope["path"], 500, "error", SENTENCES[500])


def is_own_origin(headers: Mapping[str, str], origin: str | None = None) -> bool:
    """Whether a request came from the study's own pages, as far as the browser says."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    said = headers.get("origin")
    if said is None:
        return True  # not a browser: a foreign page cannot have sent this
    if origin is not None:
        return said == origin.rstrip("/")
    return said.partition("://")[2] == headers.get("host")


def _with_defaults(headers: Any, https_only: bool) -> list[tuple[bytes, bytes]]:
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
    """The whole body; None if it is too large."""
    if announced is not None and announced.isdigit() and int(announced[:12]) > LARGEST_BODY:
        return None
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return body  # the client has disconnected
        body += message.get("body", b"")
        if len(body) > LARGEST_BODY:
            return None
        if not message.get("more_body", False):
            return body


def _again(body: bytes, receive: Receive) -> Receive:
    """Pass on a body that has been read already."""
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
    content, kind = plain(path, status, code, error)
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(content)).encode())]
    if status in (413, 503):
        headers.append((b"connection", b"close"))  # the rest of the body is not read
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
