"""Keys, and what is made with them: cookies, tokens, codes and hashes of identities."""

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Sequence

from itsdangerous import BadSignature, URLSafeTimedSerializer

DAY = 24 * 3600  # seconds
PARTICIPANT_COOKIE = "ital_participant"
PARTICIPANT_AGE = 180 * DAY
RESEARCHER_COOKIE = "ital_researcher"
RESEARCHER_AGE = DAY // 2
# A browser that logged in has a limit of attempts of its own for this long.
KNOWN_BROWSER_AGE = 30 * DAY
# The server's clock may step back this far without refusing the cookies that it signed.
CLOCK_SKEW = DAY
# Stands in the cookie of a browser that showed nothing but an identity, after a mark of the
# browser.
BY_IDENTITY = "~"
CODE_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # no characters that look alike


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
        """Return a keyed hash of a constant.

        It shows whether two secrets are equal, and nothing else.
        """
        return self._digest("fingerprint", "ital study").hex()

    def external_hash(self, kind: str, external: str) -> str:
        """Return a keyed hash of an external ID.

        It shows whether two IDs are equal, and nothing else.
        """
        # JSON, because a plain join could not tell ("a", "bc") from ("ab", "c").
        return self._digest("external", json.dumps([kind, external])).hex()

    def resume_code(self, uid: str) -> str:
        """Return the resume code that a participant may write down.

        It has 60 bits and is derived from the secret whenever it is shown.
        """
        return _code(self._digest("resume", uid), groups=3, letters=4)

    def resume_hash(self, code: str) -> str:
        """Return the stored hash of a resume code, whatever its case and hyphens."""
        return self._digest("resume code", normalized_code(code)).hex()

    def completion_code(self, uid: str, outcome: str) -> str:
        """Return a participant's own code for an outcome.

        It has 50 bits and is derived from the secret, so that it can be verified.
        """
        return _code(self._digest("completion", f"{outcome} {uid}"), groups=2, letters=5)

    def link_signature(self, number: int, expires_at: int, identity: Sequence[str]) -> str:
        """Return the signature of a participant's link.

        It has 120 bits, in letters and digits only: programs for mail cut links at other signs.
        """
        signed = json.dumps([number, expires_at, *identity])
        return base64.b32encode(self._digest("link", signed)[:15]).decode().lower()

    def freeze_signature(self, content: str) -> str:
        """Return the signature of a frozen plan."""
        return self._digest("freeze", content).hex()

    def csrf(self, session: str) -> str:
        """Return the token that a page sends with every request that changes something."""
        return base64.urlsafe_b64encode(self._digest("csrf", session)).decode().rstrip("=")

    def participant_cookie(self, uid: str, proven: bool = True) -> str:
        """Sign a cookie for a participant.

        It is ``proven`` unless the browser showed nothing but an identity.
        """
        if proven:
            return _text(self._participants.dumps(uid))
        # The mark tells browsers with the same identity apart: the one that gives the consent
        # becomes proven, the others do not (see ``LiveStudy.gave_consent``).
        mark = secrets.token_hex(8)
        return _text(self._participants.dumps(f"{mark}{BY_IDENTITY}{uid}"))

    def participant_of(self, cookie: str | None) -> str | None:
        """Return the participant of a cookie; None for one that is missing, forged or too old."""
        name = _unsigned(self._participants, cookie, PARTICIPANT_AGE)
        if name is None:
            return None
        return name.rpartition(BY_IDENTITY)[2]

    def is_proven(self, cookie: str | None) -> bool:
        """Return whether the browser gave the consent or the resume code.

        Such a browser may see the code and delete the data.
        """
        name = _unsigned(self._participants, cookie, PARTICIPANT_AGE)
        return name is not None and BY_IDENTITY not in name

    def researcher_cookie(self, session: str) -> str:
        """Sign a cookie for a researcher's session."""
        return _text(self._researchers.dumps(session))

    def researcher_of(self, cookie: str | None) -> str | None:
        """Return the session of a researcher's cookie.

        It is None for a cookie that is missing, forged or too old.
        """
        return _unsigned(self._researchers, cookie, RESEARCHER_AGE)

    def known_browser(self, cookie: str | None) -> str | None:
        """Return the last session of a browser that has logged in before, also if it is over."""
        return _unsigned(self._researchers, cookie, KNOWN_BROWSER_AGE)


def _code(digest: bytes, groups: int, letters: int) -> str:
    """Return a code for people: groups of letters with 5 bits each."""
    number = int.from_bytes(digest, "big")
    written = []
    for _ in range(groups):
        group = ""
        for _ in range(letters):
            number, letter = divmod(number, len(CODE_ALPHABET))
            group += CODE_ALPHABET[letter]
        written.append(group)
    return "-".join(written)


def normalized_code(code: str) -> str:
    """Return a code as it is compared, without case and hyphens."""
    return "".join(letter for letter in code.upper() if letter.isalnum())


def _text(signed: str | bytes) -> str:
    if isinstance(signed, bytes):
        return signed.decode()
    return signed


def _unsigned(serializer: URLSafeTimedSerializer, cookie: str | None, age: int) -> str | None:
    if not cookie:
        return None
    try:
        value, signed_at = serializer.loads(cookie, return_timestamp=True)
    except BadSignature:
        return None
    # Only this server's key signs: a cookie from the future is one from before its clock was set
    # back.
    passed = time.time() - signed_at.timestamp()
    if not isinstance(value, str) or not -CLOCK_SKEW <= passed <= age:
        return None
    return value


def same_secret(first: str | None, second: str | None) -> bool:
    """Return whether two secrets are equal, compared in constant time."""
    if not first or not second:
        return False
    return hmac.compare_digest(_fold(first), _fold(second))


def _fold(text: str) -> bytes:
    # Hashes have one length, so the comparison does not even tell the length of the secret.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def new_uid() -> str:
    """Draw 128 random bits."""
    return secrets.token_hex(16)
