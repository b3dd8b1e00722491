"""Times: milliseconds since 1970 in the store, ISO 8601 in UTC outside."""

from datetime import UTC, datetime, timedelta

_START = datetime(1970, 1, 1, tzinfo=UTC)


def iso(milliseconds: float | None) -> str:
    """Return a time as text; empty if there is none."""
    if milliseconds is None:
        return ""
    return (_START + timedelta(milliseconds=round(milliseconds))).isoformat(timespec="milliseconds")


def from_iso(text: str) -> int | None:
    """Return the time of a text that :func:`iso` wrote."""
    if not text:
        return None
    return round((datetime.fromisoformat(text) - _START) / timedelta(milliseconds=1))
