"""The database: connections, the one writer, and whether writes are stored.

Connections are to SQLite (safe against power cuts) or PostgreSQL. One writer does all writes: jobs
that arrive during a commit share the next commit. Failures are counted, and logged with their
cause.
"""

import contextlib
import errno
import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa

from ital.errors import InputError
from ital_study.store.tables import metadata

T = TypeVar("T")
Job = Callable[[sa.Connection], T]

LOG = logging.getLogger("ital_study")
MIGRATIONS = Path(__file__).with_name("migrations")
PRAGMAS = (
    "journal_mode = WAL",  # readers never wait for the writer
    "synchronous = FULL",  # a commit is on the disk before it is acknowledged
    "foreign_keys = ON",
    "busy_timeout = 30000",
    "secure_delete = ON",  # what is deleted is overwritten
)
MOST_JOBS = 256  # of one commit
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


# Connections


def parse_url(text: str) -> sa.URL:
    """Parse an address: ``study.db``, ``sqlite:///study.db`` or ``postgresql://…``."""
    if "://" not in text:
        text = f"sqlite:///{text}"
    try:
        url = sa.make_url(text)
    except sa.exc.ArgumentError:
        raise InputError(
            "the database must be a file, sqlite:///FILE or postgresql://USER@HOST/NAME"
        ) from None
    backend = url.get_backend_name()
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise InputError(f"the database must be SQLite or PostgreSQL, not {backend}")
    if not url.database or url.database == ":memory:":
        raise InputError(
            "the database needs a file, because data in memory are lost when the server stops"
        )
    return url.set(drivername="sqlite+pysqlite")


def connect(url: sa.URL) -> sa.Engine:
    """Return an engine with explicit transactions.

    The option ``write`` makes a transaction the only writer.
    """
    if url.get_backend_name() == "sqlite":
        engine = sa.create_engine(
            url, connect_args={"timeout": 30, "check_same_thread": False}, pool_size=8
        )
        sa.event.listen(engine, "connect", _set_up_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
        return engine
    engine = sa.create_engine(
        url, pool_pre_ping=True, pool_size=8, connect_args={"connect_timeout": 10}
    )
    sa.event.listen(engine, "connect", _set_up_postgresql)
    return engine


def _set_up_postgresql(connection: Any, record: Any) -> None:
    """Let a commit be on the disk before it is acknowledged, whatever the server's default."""
    # "off" acknowledges first and writes later: a crash would lose what participants were told is
    # stored. Every other value waits for the disk at least.
    if connection.execute("SHOW synchronous_commit").fetchone()[0] == "off":
        connection.execute("SET synchronous_commit = on")
    connection.commit()


def _set_up_sqlite(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # turn off Python's implicit transactions
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sa.Connection) -> None:
    # A transaction that will write locks at once: changing from reading to writing half-way may
    # fail, and what was read may be out of date.
    wants_to_write = connection.get_execution_options().get("write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if wants_to_write else "BEGIN")


def migrate(connection: sa.Connection, revision: str = "head") -> None:
    """Migrate the schema to a revision, with Alembic."""
    from alembic import command

    command.upgrade(_alembic(connection), revision)


def current_revision(connection: sa.Connection) -> str | None:
    """Return the revision of the schema; None if there is no schema yet."""
    from alembic.migration import MigrationContext

    return MigrationContext.configure(connection).get_current_revision()


def known_revisions() -> list[str]:
    """Return the revisions that this version of ital can migrate."""
    from alembic.script import ScriptDirectory

    return [script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()]


def _alembic(connection: sa.Connection) -> Any:
    from alembic.config import Config

    config = Config()
    # The option is interpolated, so a percent sign in the path must be doubled.
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes |= {"connection": connection, "metadata": metadata}
    return config


def beside(url: sa.URL, ending: str) -> Path:
    """Return a file that belongs to a database: its name, a dot and ``ending``.

    For SQLite, it is next to the database; for PostgreSQL, in ``ITAL_STUDY_FOLDER``, by default the
    current folder.
    """
    if url.get_backend_name() == "sqlite":
        file = Path(str(url.database))
        return file.with_name(f"{file.name}.{ending}")
    return Path(os.environ.get("ITAL_STUDY_FOLDER") or ".", f"{url.database or 'study'}.{ending}")


# Whether the database takes writes


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


# Writing


class NotStored(Exception):
    """The database did not accept a write. Try again.

    Nothing is stored, or it is unknown whether it is.
    """


class _Submitted(NamedTuple):
    """A job, and the future of whoever waits for it."""

    job: Job[Any]
    future: Future[Any]


class _Outcome(NamedTuple):
    """What a job returned or raised, kept until its commit has reached the disk."""

    future: Future[Any]
    value: Any = None
    failure: Exception | None = None

    def tell(self) -> None:
        """Wake whoever waits for the job."""
        if self.failure is not None:
            self.future.set_exception(self.failure)
            return
        self.future.set_result(self.value)


class Writer:
    """A thread that runs jobs in transactions: many jobs per commit, each job all or nothing.

    A job's future is done only after its commit has reached the disk. So a kill at any moment loses
    nothing that anybody was told: what is not committed was not acknowledged.

    Args:
        engine: The database.
        condition: Told of every commit that fails.
        check: Raises an error if the database is no longer there.
    """

    def __init__(
        self,
        engine: sa.Engine,
        condition: StorageCondition | None = None,
        check: Callable[[], None] | None = None,
    ) -> None:
        self._engine = engine.execution_options(write=True)
        self._condition = condition or StorageCondition()
        self._check = check
        # None asks the thread to stop.
        self._queue: queue.SimpleQueue[_Submitted | None] = queue.SimpleQueue()
        self._closed = False
        # Nothing is put behind the None: its future would never be done.
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="ital-study-writer", daemon=True)
        self._thread.start()

    def submit(self, job: "Job[T]") -> "Future[T]":
        """Hand over a job.

        Args:
            job: Function of a connection.

        Returns:
            A future with what the job returned, or raised; :class:`NotStored` if the database did
            not take it.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                future.set_exception(NotStored("the store is closed"))
            else:
                self._queue.put(_Submitted(job, future))
        return future

    def close(self) -> None:
        """Finish all submitted jobs, then stop."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            batch = [self._queue.get()]
            # What has arrived meanwhile joins: a commit waits for the disk, whatever its size.
            while len(batch) < MOST_JOBS and batch[-1] is not None and not self._queue.empty():
                batch.append(self._queue.get())
            self._commit([item for item in batch if item is not None])
            if batch[-1] is None:
                return

    def _commit(self, batch: list[_Submitted]) -> None:
        if not batch:
            return
        try:
            outcomes = self._in_one_transaction(batch)
        except Exception as error:
            # Nothing was committed, or the connection broke while it was: nobody may be told that
            # it is stored. Jobs that are repeated find what is there.
            cause = self._condition.failed(error)
            for item in batch:
                item.future.set_exception(NotStored(cause))
            return
        # Only now: the commit has returned, so it is on the disk (PRAGMAS).
        for outcome in outcomes:
            outcome.tell()

    def _in_one_transaction(self, batch: list[_Submitted]) -> list[_Outcome]:
        if self._check is not None:
            self._check()
        with self._engine.begin() as connection:
            return [_run_job(connection, item, is_alone=len(batch) == 1) for item in batch]


def _run_job(connection: sa.Connection, item: _Submitted, *, is_alone: bool) -> _Outcome:
    try:
        with _savepoint(connection, is_alone):
            value = item.job(connection)
    except sa.exc.OperationalError:
        raise  # the database is full, locked or gone: every job of this commit fails
    except Exception as error:
        if connection.invalidated:
            raise
        if is_alone:
            connection.rollback()
        return _Outcome(item.future, failure=error)
    return _Outcome(item.future, value)


def _savepoint(connection: sa.Connection, is_alone: bool) -> contextlib.AbstractContextManager[Any]:
    """Return a savepoint, so that a job that fails does not affect the others of its commit."""
    if is_alone:
        return contextlib.nullcontext()
    return connection.begin_nested()
