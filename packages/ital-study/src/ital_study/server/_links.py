"""Signed links, one person each: made by ``ital study links``, checked when somebody arrives.

A link carries a number, the time until which it can be used, a signature over both, and perhaps an
identity that is signed as well. Nothing of it is stored but the keyed hash that every identity has.
"""

import itertools
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

from ital_study.config.configuration import Config
from ital_study.config.panel import LINK
from ital_study.server._keys import Keys, same_secret
from ital_study.store import operations
from ital_study.store.times import iso

# What the hash of an identity contains where a link has no other identity than its number.
KIND = "signed link"
FORM = re.compile(r"([0-9]{1,9})\.([0-9]{1,11})\.([a-z2-7]{24})")


class SignedLink(NamedTuple):
    """What a link says whose signature is right; ``expires_at`` in seconds, 0 for never."""

    number: int
    expires_at: int

    @property
    def is_over(self) -> bool:
        """Whether nobody can begin by this link any more."""
        return 0 < self.expires_at < time.time()

    @property
    def last_day(self) -> str:
        """The last day on which the link can be used; empty if it is valid forever."""
        if not self.expires_at:
            return ""
        return day_of(self.expires_at)


class LinkRow(NamedTuple):
    """A link for one person, as a row of the table for the researcher.

    Attributes:
        number: Number of the person.
        id: Identity in the link; empty if it has none.
        link: The link.
        last_day: The last day on which it can be used; empty if it is valid forever.
    """

    number: int
    id: str
    link: str
    last_day: str


def are_needed(config: Config, mode: str) -> bool:
    """Return whether people of a mode need a link: researchers and their programs do not."""
    return config.links == "signed" and mode in operations.RECOGNISED


def signed_links(
    secret: bytes,
    config: Config,
    address: str,
    people: Iterable[tuple[int, str]],
    expires_at: int = 0,
) -> Iterator[LinkRow]:
    """Iterate over links, one for each person.

    Args:
        secret: Secret of the study's server.
        config: The study.
        address: The address that participants see.
        people: Number of each person, and their identity; empty if they have none.
        expires_at: Until when the links can be used, in seconds since 1970; 0: forever.

    Yields:
        Rows of the table for the researcher.
    """
    keys = Keys(secret)
    parameter = config.panel.identity[0]
    last_day = SignedLink(0, expires_at).last_day
    for number, identity in people:
        named = {}
        if identity:
            named[parameter] = identity
        token = sign(keys, number, expires_at, named)
        query = urlencode({**named, LINK: token})
        yield LinkRow(number, identity, f"{address.rstrip('/')}/?{query}", last_day)


def sign(keys: Keys, number: int, expires_at: int, named: Mapping[str, str]) -> str:
    """Return the parameter of a link: its number, when it expires, and the signature."""
    signature = keys.link_signature(number, expires_at, _signed_identities(named))
    return f"{number}.{expires_at}.{signature}"


def read(keys: Keys, token: str, named: Mapping[str, str]) -> SignedLink | None:
    """Return what a link says; None if this server did not sign it for this identity."""
    parts = FORM.fullmatch(token)
    if parts is None:
        return None
    number = int(parts[1])
    expires_at = int(parts[2])
    if not same_secret(
        parts[3], keys.link_signature(number, expires_at, _signed_identities(named))
    ):
        return None
    return SignedLink(number, expires_at)


def _signed_identities(named: Mapping[str, str]) -> list[str]:
    """Return the identities of a link as they are signed: names and values, in order of names."""
    return list(itertools.chain.from_iterable(sorted(named.items())))


def external_hash(keys: Keys, number: int) -> str:
    """Return the keyed hash of somebody whose link has a number and no identity."""
    return keys.external_hash(KIND, str(number))


def values_in(typed: str) -> list[str]:
    """Return what a researcher may have pasted: a text, or the parameters of a whole link."""
    if "://" not in typed:
        return [typed]
    parameters = parse_qs(urlsplit(typed).query)
    return [typed, *itertools.chain.from_iterable(parameters.values())]


def number_in(value: str) -> int | None:
    """Return the number of a link by its parameter; None for any other text."""
    parts = FORM.fullmatch(value)
    if parts is None:
        return None
    return int(parts[1])


def day_of(seconds: float) -> str:
    """Return the day of a time in seconds since 1970, in UTC."""
    return iso(seconds * 1000)[:10]
