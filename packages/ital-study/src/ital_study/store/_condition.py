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
# Seconds between two lines about the same trouble, because each retry of each page fails.
LOG_EVERY = 60.0
# Parts of messages of SQLite, psycopg and the system, and what they mean. The messages themselves
# may name files and hosts, so strangers see the meaning only. The first part that fits counts.
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
        self._clock = clock
        self._logged = 0.0  # when a failure was last logged
        self._lock = threading.Lock()  # the writer and requests that read both report

    def failed(self, error: BaseException) -> str:
        """Count a failure, and log it with the driver's message.

        Args:
            error: What the database, its driver or the system reported.

        Returns:
            The cause in a few words.
        """
        error = _first(error)
        cause = cause_of(error)
        now = self._clock()
        with self._lock:
            before = self.trouble or Trouble(since=now, cause="", failures=0)
            failures = before.failures + 1
            self.trouble = Trouble(before.since, cause, failures)
            if before.cause == cause and now - self._logged < LOG_EVERY:
                return cause
            self._logged = now
        LOG.error("not stored: %s (%s); failures so far: %d", cause, message_of(error), failures)
        return cause

    def worked(self) -> None:
        """Record that the database takes writes again."""
        with self._lock:
            before = self.trouble
            self.trouble = None
        if before is None:
            return
        seconds = self._clock() - before.since
        LOG.warning("stored again, after %d failures in %.0f seconds", before.failures, seconds)


def _first(error: BaseException) -> BaseException:
    """Return what a driver reported first.

    A full disk also ends the savepoint, whose end then fails too: the last error hides the cause.
    """
    first = error
    earlier = error.__context__
    while earlier is not None:
        if hasattr(earlier, "orig"):  # SQLAlchemy's errors have the driver's
            first = earlier
        earlier = earlier.__context__
    return first


def message_of(error: BaseException) -> str:
    """Return the first line of what a driver or the system reported."""
    original = getattr(error, "orig", None) or error
    kind = type(original).__name__
    lines = str(original).strip().splitlines()
    if not lines:
        return kind
    return f"{kind}: {lines[0]}"


def cause_of(error: BaseException) -> str:
    """Return a failure in a few words that anybody may read."""
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
    """Return a function that raises if a file is no longer the one of now.

    SQLite would notice nothing: it would write to a file that has no name any more.
    """
    inode = file.stat().st_ino

    def check() -> None:
        if not file.exists() or file.stat().st_ino != inode:
            raise FileNotFoundError(f"{file} is gone: put it back, or restart the server")

    return check
