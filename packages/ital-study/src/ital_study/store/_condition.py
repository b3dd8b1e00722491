"""Whether the database takes writes: failures are counted, and logged with their cause."""

import errno
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

LOG = logging.getLogger("ital_study")
LOG_EVERY = (
    60.0  # seconds between two lines about the same trouble, because each retry of each page fails
)
# Parts of messages of SQLite, psycopg and the system, and what they mean. Messages themselves may name files and hosts.
CAUSES = {
    "disk is full": "the disk is full",
    "no space left": "the disk is full",
    "disk quota": "the disk is full",
    "is gone": "the database file is gone",
    "unable to open": "the database file cannot be opened",
    "readonly": "the database cannot be written",
    "read-only": "the database cannot be written",
    "permission": "the database cannot be written",
    "i/o error": "the disk reports an error",
    "malformed": "the database file is damaged",
    "locked": "another program locks the database",
    "connect": "the database does not answer",
    "terminat": "the database does not answer",
    "shut": "the database does not answer",
    "closed": "the database does not answer",
}
UNKNOWN = "the database refuses to store"


class Trouble(NamedTuple):
    """Why and since when nothing can be stored.

    Attributes:
        since: Time of the first failure, in seconds since 1970.
        cause: What is wrong, in a few words, without names of files or hosts.
        failures: Number of failures since then.
    """

    since: float
    cause: str
    failures: int


class StorageCondition:
    """Whether the database takes writes. It is in trouble from a failure until :meth:`worked`.

    Args:
        clock: Source of the time.

    Attributes:
        trouble: What is wrong; None if nothing is.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.trouble: Trouble | None = None
        self._clock, self._logged, self._lock = clock, 0.0, threading.Lock()

    def failed(self, error: BaseException) -> str:
        """Count a failure, and log it with the driver's message.

        Args:
            error: What the database, its driver or the system reported.

        Returns:
            The cause in a few words.
        """
        error = _first(error)
        message, cause, now = message_of(error), cause_of(error), self._clock()
        with self._lock:
            before = self.trouble
            self.trouble = Trouble(
                since=now if before is None else before.since,
                cause=cause,
                failures=1 if before is None else before.failures + 1,
            )
            again = before is not None and before.cause == self.trouble.cause
            if again and now - self._logged < LOG_EVERY:
                return cause
            self._logged = now
        LOG.error("not stored: %s (%s); failures so far: %d", cause, message, self.trouble.failures)
        return cause

    def worked(self) -> None:
        """Record that the database takes writes again."""
        with self._lock:
            before, self.trouble = self.trouble, None
        if before is not None:
            seconds = self._clock() - before.since
            LOG.warning("stored again, after %d failures in %.0f seconds", before.failures, seconds)


def _first(error: BaseException) -> BaseException:
    """What a driver reported first: a full disk also ends the savepoint, whose end then fails too."""
    first, before = error, error.__context__
    while before is not None:
        first, before = before if hasattr(before, "orig") else first, before.__context__
    return first


def message_of(error: BaseException) -> str:
    """The first line of what a driver or the system reported."""
    told = getattr(error, "orig", None) or error
    lines = str(told).strip().splitlines()
    return f"{type(told).__name__}: {lines[0]}" if lines else type(told).__name__


def cause_of(error: BaseException) -> str:
    """A failure in a few words that anybody may read."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full"
    message = message_of(error).lower()
    return next((cause for part, cause in CAUSES.items() if part in message), UNKNOWN)


def write_and_remove(connection: sa.Connection) -> None:
    """Write 64 KiB and remove them again, in one transaction: this fails if there is no space."""
    probe = sa.Table("ital_probe", sa.MetaData(), sa.Column("content", sa.LargeBinary))
    probe.create(connection)
    connection.execute(probe.insert().values(content=bytes(65536)))
    probe.drop(connection)


def file_check(file: Path) -> Callable[[], None]:
    """A function that raises if a file is no longer the one of now: SQLite would write to a file that nobody finds."""
    inode = file.stat().st_ino

    def check() -> None:
        if not file.exists() or file.stat().st_ino != inode:
            raise FileNotFoundError(f"{file} is gone: put it back, or restart the server")

    return check
