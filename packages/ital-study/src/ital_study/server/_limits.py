"""Limits of requests per minute, in memory."""

import time
from collections.abc import Callable

MOST_ADDRESSES = 10_000  # remembered before those who were silent for a minute are dropped


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
