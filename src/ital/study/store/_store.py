"""A study's database: opened, brought up to date, read and written."""

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa

from ital.errors import InputError
from ital.study._config import Config, parse_config
from ital.study.store import _engine, operations
from ital.study.store._writer import Job, Writer
from ital.study.store.tables import configurations, participants, tombstones

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
ADVISORY_LOCK = 17_3141_5926  # the same for every server of a study on a PostgreSQL database


class Store:
    """Reads at any time; writes through one writer. Made by :func:`open_store`."""

    def __init__(self, url: sa.URL, engine: sa.Engine) -> None:
        self.url, self.engine = url, engine
        self._writer = Writer(engine)
        folder, name = _engine.state_folder(url)
        self.tombstone_file = folder / f"{name}.tombstones"
        self.key_file = folder / f"{name}.key"
        self._lock_file = folder / f"{name}.lock"
        self._to_forget = False

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A connection that sees one state of the database as long as it is open."""
        level = {} if self.url.get_backend_name() == "sqlite" else {"isolation_level": "REPEATABLE READ"}
        with self.engine.connect().execution_options(**level) as connection:
            yield connection

    def submit(self, job: "Job[T]") -> "Future[T]":
        """Hands a job to the writer; the future is done when it is committed."""
        return self._writer.submit(job)

    def write(self, job: "Job[T]") -> T:
        """Runs a job and waits until it is committed."""
        return self.submit(job).result()

    def erase(self, participant: operations.Participant, by: str) -> None:
        """Deletes a participant. The tombstone is first put beside the database, where a restored backup meets it."""
        tombstone = operations.tombstone_of(participant, by)
        keep_tombstones(self.tombstone_file, [tombstone])
        self.write(lambda connection: operations.erase(connection, tombstone))
        self.forget()

    def forget(self) -> None:
        """Overwrites what SQLite's log still holds of rows that were deleted.

        Does not wait for readers, for writers would wait as well: if there are any, :meth:`tidy` does it later.
        """
        if self.url.get_backend_name() != "sqlite":
            return
        self._to_forget = True
        with self.engine.connect() as connection:
            connection.rollback()  # a checkpoint stands outside of transactions
            raw: Any = connection.connection.dbapi_connection
            raw.execute("PRAGMA busy_timeout = 100")
            try:
                self._to_forget = bool(raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
            finally:
                raw.execute("PRAGMA busy_timeout = 30000")

    def tidy(self) -> None:
        """Does what :meth:`forget` could not do."""
        if self._to_forget:
            self.forget()

    def configs(self) -> dict[str, Config]:
        """Every configuration that participants came under, oldest first, by its hash."""
        with self.reading() as connection:
            rows = connection.execute(sa.select(configurations).order_by(configurations.c.added_at)).all()
        return {row.hash: parse_config(row.text, f"configuration {row.name}") for row in rows}

    def config(self) -> Config:
        """The newest configuration."""
        configs = self.configs()
        if not configs:
            raise InputError(f"{self.name} holds no study yet")
        return list(configs.values())[-1]

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """Keeps other servers, and restoring, away from the database; lasts no longer than the process."""
        in_use = InputError(f"{self.name} is in use by a running server: stop it first")
        if self.url.get_backend_name() != "sqlite":
            with self.engine.connect() as connection:
                alone = connection.execute(sa.text(f"SELECT pg_try_advisory_lock({ADVISORY_LOCK})")).scalar_one()
                connection.commit()
                if not alone:
                    raise in_use
                try:
                    yield
                finally:
                    with contextlib.suppress(sa.exc.DBAPIError):  # gone with the connection
                        connection.execute(sa.text(f"SELECT pg_advisory_unlock({ADVISORY_LOCK})"))
            return
        try:
            import fcntl
        except ImportError:  # not on this system: servers are trusted not to share a database
            yield
            return
        with self._lock_file.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise in_use from None
            yield

    @property
    def name(self) -> str:
        """The database as it may be shown: without a password."""
        return shown(self.url)

    def steps_table(self, mode: str = "live") -> "pd.DataFrame":
        """The tidy table of all steps of a mode: one row per step."""
        from ital.study.store.export import steps_table

        return steps_table(self, mode)

    def steps_configs(self, mode: str) -> int:
        """Under how many versions of the configuration the participants of a mode came."""
        p = participants.c
        with self.reading() as connection:
            return connection.execute(sa.select(sa.func.count(p.config.distinct())).where(p.mode == mode)).scalar_one()

    def close(self) -> None:
        """Waits for the writer, then closes every connection."""
        self._writer.close()
        self.engine.dispose()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def shown(url: sa.URL) -> str:
    """A database for people: the file of SQLite, or the address without a password."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return url.set(drivername="postgresql").render_as_string(hide_password=True)


def open_store(url: str, *, create: bool = False) -> Store:
    """Opens a database and brings its schema up to date; with ``create`` an empty one is made where there is none.

    Whoever was deleted stays deleted: tombstones kept beside the database are applied again.
    """
    parsed = _engine.parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        file = Path(str(parsed.database))
        if not create and not file.exists():
            raise InputError(f"there is no database {file}")
        if not file.parent.is_dir():
            raise InputError(f"cannot make {file}: there is no folder {file.parent}")
        _make_private(file)
    engine = _engine.connect(parsed)
    try:
        with engine.execution_options(write=True).begin() as connection:
            revision = _engine.current_revision(connection)
            if revision is None and not create:
                raise InputError(f"{shown(parsed)} holds no study")
            if revision is not None and revision not in _engine.known_revisions():
                raise InputError(f"{shown(parsed)} was written by a newer version of ital: update ital")
            _engine.migrate(connection)
    except sa.exc.DBAPIError as error:
        engine.dispose()
        reason = str(error.orig).strip().splitlines() or [type(error.orig).__name__]
        raise InputError(f"cannot open {shown(parsed)}: {reason[0]}") from None
    except BaseException:
        engine.dispose()
        raise
    store = Store(parsed, engine)
    try:
        apply_tombstones(store, read_tombstones(store.tombstone_file))
    except BaseException:
        store.close()
        raise
    return store


def _make_private(file: Path) -> None:
    """An SQLite file that nobody but its owner may read; SQLite gives its log the same permissions."""
    if not file.exists():
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))


def keep_tombstones(file: Path, new: Iterable[dict[str, Any]]) -> None:
    """Adds tombstones to the file beside the database, on the disk before this returns."""
    lines = "".join(json.dumps(tombstone, sort_keys=True) + "\n" for tombstone in new)
    handle = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    try:
        os.write(handle, lines.encode())
        os.fsync(handle)
    finally:
        os.close(handle)


def read_tombstones(file: Path) -> list[dict[str, Any]]:
    """The tombstones of a file, none where there is no file; a last line cut short by a power cut does not count."""
    if not file.exists():
        return []
    read = []
    for line in file.read_text(encoding="utf-8").splitlines():
        with contextlib.suppress(ValueError, TypeError, KeyError):
            row = json.loads(line)
            read.append(
                {"uid": str(row["uid"]), "number": int(row["number"])}
                | {"deleted_at": int(row["deleted_at"]), "by": str(row["by"])[:16]}
            )
    return read


def apply_tombstones(store: Store, kept: Iterable[dict[str, Any]]) -> int:
    """Erases whoever has a tombstone; returns how many were still there."""

    def job(connection: sa.Connection) -> int:
        applied = set(connection.execute(sa.select(tombstones.c.uid)).scalars())
        present = set(connection.execute(sa.select(participants.c.uid)).scalars())
        return sum(operations.erase(connection, row) for row in kept if row["uid"] not in applied - present)

    erased = store.write(job)
    if erased:
        store.forget()
    return erased
