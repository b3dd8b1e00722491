"""A study's database: opened, brought up to date, read and written."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa

from ital.errors import InputError
from ital_study.config.configuration import Config
from ital_study.config.load import parse_config
from ital_study.store import database, deletions, operations, records
from ital_study.store.database import (
    Job,
    NotStored,
    StorageCondition,
    Writer,
    file_check,
    write_and_remove,
)
from ital_study.store.tables import configurations, participants, server_key

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
ADVISORY_LOCK = 17_3141_5926  # shared by all servers of a study on a PostgreSQL database


class Store:
    """A study's database, made by :func:`open_store`.

    Reads are possible at any time; one writer does all writes.

    Args:
        url: Address of the database.
        engine: Connections to it.

    Attributes:
        tombstone_file: File of deletions beside the database.
        key_file: File of the server's secret beside the database.
        condition: Whether the database takes writes.
    """

    def __init__(self, url: sa.URL, engine: sa.Engine) -> None:
        self.url = url
        self.engine = engine
        self.condition = StorageCondition()
        check = None
        if self._is_sqlite:
            check = file_check(Path(str(url.database)))
        self._writer = Writer(engine, self.condition, check)
        self.tombstone_file = database.beside(url, "tombstones")
        self.key_file = database.beside(url, "key")
        self._lock_file = database.beside(url, "lock")
        self._to_forget = False

    @property
    def _is_sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Open a connection that sees one state of the database.

        Yields:
            The connection.
        """
        # A transaction of SQLite sees one state anyway.
        level = {} if self._is_sqlite else {"isolation_level": "REPEATABLE READ"}
        with self.engine.connect().execution_options(**level) as connection:
            yield connection

    def submit(self, job: "Job[T]") -> "Future[T]":
        """Hand a job to the writer.

        Args:
            job: Function of a connection.

        Returns:
            A future that is done when the job is committed; it raises :class:`NotStored` if that
            failed.
        """
        return self._writer.submit(job)

    def write(self, job: "Job[T]") -> T:
        """Run a job and wait until it is committed.

        Args:
            job: Function of a connection.

        Returns:
            What the job returned.

        Raises:
            NotStored: The database did not take it.
        """
        return self.submit(job).result()

    def probe(self) -> None:
        """If writes have failed, try one that needs space, and record whether it is stored.

        Other writes would prove little: some change nothing, some fit into space that is left.
        """
        if self.condition.trouble is None:
            return
        with contextlib.suppress(NotStored, sa.exc.DBAPIError):
            self.write(write_and_remove)
            self.condition.worked()

    def erase(self, participant: records.Participant, by: str, who: str = "") -> None:
        """Delete a participant: all rows, with a tombstone in the database and the file beside it.

        Args:
            participant: The participant to delete.
            by: ``participant`` or ``researcher``.
            who: Name of the researcher, for the audit.

        Raises:
            NotStored: The tombstone or the deletion could not be stored.
        """
        tombstone = operations.tombstone_of(participant, by)

        # The next file is written and synced before the database commits. A full disk therefore
        # refuses the deletion as a whole, and a kill before the commit has changed nothing.
        def job(connection: sa.Connection) -> None:
            operations.erase(connection, tombstone)
            deletions.prepare(self.tombstone_file, connection)

        try:
            self.write(operations.by(who, job))
            # A kill before this lands: the database has the tombstone, and whoever opens it next
            # completes the file (see ``_apply_deletions``).
            self.write(lambda connection: deletions.complete(self.tombstone_file, connection))
        except NotStored:
            deletions.tidy(self.tombstone_file)
            raise
        except OSError as error:
            deletions.tidy(self.tombstone_file)
            raise NotStored(self.condition.failed(error)) from None
        self.forget()

    def forget(self) -> None:
        """Overwrite the deleted rows that SQLite's log still holds.

        This does not wait for readers, because writers would wait too; if there are readers,
        :meth:`tidy` does it later.
        """
        if not self._is_sqlite:
            return
        self._to_forget = True
        with self.engine.connect() as connection:
            connection.rollback()  # a checkpoint must be outside transactions
            raw: Any = connection.connection.dbapi_connection
            raw.execute("PRAGMA busy_timeout = 100")
            try:
                # Of its three numbers the first says whether somebody was in the way.
                is_blocked, _, _ = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                self._to_forget = bool(is_blocked)
            except sqlite3.Error:  # no space: the deletion is stored all the same
                pass
            finally:
                # The connection returns to the pool, where others expect the usual patience.
                raw.execute("PRAGMA busy_timeout = 30000")

    def tidy(self) -> None:
        """Do what :meth:`forget` could not do."""
        if self._to_forget:
            self.forget()

    def configs(self) -> dict[str, Config]:
        """List every configuration that participants saw.

        Returns:
            Configurations by their hash, oldest first.
        """
        query = sa.select(configurations).order_by(configurations.c.added_at)
        with self.reading() as connection:
            stored = connection.execute(query).all()
        return {row.hash: parse_config(row.text, f"configuration {row.name}") for row in stored}

    def config(self) -> Config:
        """Return the newest configuration.

        Returns:
            The configuration.

        Raises:
            InputError: The database holds no study yet.
        """
        configs = self.configs()
        if not configs:
            raise InputError(f"{self.name} holds no study yet")
        return list(configs.values())[-1]

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """Lock the database against other servers and restores.

        The lock ends with the process at the latest.

        Yields:
            Nothing.

        Raises:
            InputError: Another server uses the database.
        """
        lock = self._file_lock() if self._is_sqlite else self._advisory_lock()
        with lock as is_alone:
            if not is_alone:
                raise InputError(f"{self.name} is in use by a running server: stop it first")
            yield

    @contextlib.contextmanager
    def _advisory_lock(self) -> Iterator[bool]:
        """Yield whether PostgreSQL gave this process the lock of all servers."""
        take = sa.text(f"SELECT pg_try_advisory_lock({ADVISORY_LOCK})")
        # PostgreSQL frees the lock when the connection ends, so also after a kill.
        with self.engine.connect() as connection:
            is_alone = connection.execute(take).scalar_one()
            connection.commit()
            if not is_alone:
                yield False
                return
            try:
                yield True
            finally:
                with contextlib.suppress(sa.exc.DBAPIError):  # gone with the connection
                    connection.execute(sa.text(f"SELECT pg_advisory_unlock({ADVISORY_LOCK})"))

    @contextlib.contextmanager
    def _file_lock(self) -> Iterator[bool]:
        """Yield whether the system gave this process the lock of the file beside the database."""
        try:
            import fcntl
        except ImportError:  # no file locks on this system: servers must not share a database
            yield True
            return
        # The file stays: removing it would let two processes lock two files of one name. The system
        # frees the lock when the process ends, so also after a kill.
        with self._lock_file.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                is_alone = False
            else:
                is_alone = True
            yield is_alone

    def key_fingerprint(self) -> str | None:
        """Return the fingerprint of the key that the database was first served with.

        Returns:
            The fingerprint; None before the first start of a server.
        """
        with self.reading() as connection:
            return connection.execute(sa.select(server_key.c.fingerprint)).scalar_one_or_none()

    def bind_key(self, fingerprint: str) -> None:
        """Store the fingerprint of the server's key, or compare it with the stored one.

        With another key, participants could not return and would be taken for new ones.

        Args:
            fingerprint: Fingerprint of the key.

        Raises:
            InputError: The database was first served with another key.
        """
        stored = self.key_fingerprint()
        if stored is None:
            row = server_key.insert().values(id=1, fingerprint=fingerprint)
            self.write(lambda connection: connection.execute(row))
            return
        if stored != fingerprint:
            raise InputError(
                f"{self.name} was first served with another key: put that key back into "
                f"{self.key_file}, or set ITAL_STUDY_SECRET to it"
            )

    @property
    def name(self) -> str:
        """The name of the database, without a password."""
        return _readable(self.url)

    def steps_table(self, mode: str = "live") -> "pd.DataFrame":
        """Return the tidy table of all steps of a mode.

        Args:
            mode: ``live``, ``pilot``, ``preview`` or ``simulated``.

        Returns:
            One row per step.

        Raises:
            InputError: There is no such mode.
        """
        from ital_study.store.export import steps_table

        return steps_table(self, mode)

    def steps_configs(self, mode: str) -> int:
        """Count the versions of the configuration that the participants of a mode saw.

        Args:
            mode: ``live``, ``pilot``, ``preview`` or ``simulated``.

        Returns:
            The number.
        """
        p = participants.c
        versions = sa.func.count(p.config.distinct())
        query = sa.select(versions).where(p.mode == mode)
        with self.reading() as connection:
            return connection.execute(query).scalar_one()

    def participants_by_mode(self) -> dict[str, int]:
        """Count the participants of every mode: those who agreed to take part.

        Returns:
            The numbers by mode; modes without participants are left out.
        """
        mode = participants.c.mode
        agreed = participants.c.stage.not_in(("consent", "declined"))
        query = sa.select(mode, sa.func.count()).where(agreed).group_by(mode).order_by(mode)
        with self.reading() as connection:
            counted = connection.execute(query).all()
        return {row[0]: row[1] for row in counted}

    def close(self) -> None:
        """Wait for the writer, then close every connection."""
        self._writer.close()
        self.engine.dispose()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _readable(url: sa.URL) -> str:
    """Return a database for people: the file of SQLite, or the address without a password."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return url.set(drivername="postgresql").render_as_string(hide_password=True)


def name_of(url: str) -> str:
    """Return the name of a database for people.

    Args:
        url: The database, as for :func:`open_store`.

    Returns:
        The file of SQLite, or the address without a password.
    """
    return _readable(database.parse_url(url))


def open_store(url: str, *, create: bool = False) -> Store:
    """Open a database and bring its schema up to date.

    Deleted participants stay deleted: tombstones beside the database are applied again.

    Args:
        url: A file for SQLite, ``sqlite:///FILE`` or ``postgresql://USER@HOST/NAME``.
        create: Whether to create an empty database if there is none.

    Returns:
        The store; close it, or use it in a ``with`` block.

    Raises:
        InputError: There is no database, it cannot be opened, or a newer version of ital wrote it.
    """
    parsed = database.parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        _prepare_file(Path(str(parsed.database)), create)
    engine = database.connect(parsed)
    # Whatever ends this early, Ctrl-C included, no connection may stay open.
    try:
        _bring_up_to_date(engine, _readable(parsed), create)
    except BaseException:
        engine.dispose()
        raise
    store = Store(parsed, engine)
    try:
        _apply_deletions(store)
    except BaseException:
        store.close()
        raise
    return store


def _prepare_file(file: Path, create: bool) -> None:
    """Create a missing SQLite file that only its owner may read.

    SQLite gives its log the same permissions.
    """
    if not create and not file.exists():
        raise InputError(f"there is no database {file}")
    if not file.parent.is_dir():
        raise InputError(f"cannot create {file}: there is no folder {file.parent}")
    if not file.exists():
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))


def _bring_up_to_date(engine: sa.Engine, name: str, create: bool) -> None:
    """Migrate the schema, in one transaction: a kill leaves the old schema or the new one."""
    try:
        with engine.execution_options(write=True).begin() as connection:
            revision = database.current_revision(connection)
            if revision is None and not create:
                raise InputError(f"{name} holds no study")
            if revision is not None and revision not in database.known_revisions():
                raise InputError(f"{name} was written by a newer version of ital: update ital")
            database.migrate(connection)
    except sa.exc.DBAPIError as error:
        reason = str(error.orig).strip().splitlines() or [type(error.orig).__name__]
        raise InputError(f"cannot open {name}: {reason[0]}") from None


def _apply_deletions(store: Store) -> None:
    """Erase whom the file beside the database names, and complete the file from the database.

    The first matters after a restore of an older database, the second after a kill between the
    commit of a deletion and the replacement of the file.
    """
    kept = deletions.read(store.tombstone_file)

    def job(connection: sa.Connection) -> int:
        erased = deletions.apply(connection, kept.tombstones)
        with contextlib.suppress(OSError):  # on a full disk the study can still be read
            deletions.complete(store.tombstone_file, connection)
        return erased

    if store.write(job):
        store.forget()
