"""Connections: SQLite that survives a power cut, PostgreSQL by its address; the schema brought up to date."""

import os
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ital.errors import InputError
from ital.study.store.tables import metadata

PRAGMAS = (
    "journal_mode = WAL",  # readers never wait for the writer
    "synchronous = FULL",  # a commit is on the disk before it is acknowledged
    "foreign_keys = ON",
    "busy_timeout = 30000",
    "secure_delete = ON",  # what is deleted is overwritten
)
MIGRATIONS = Path(__file__).with_name("migrations")


def parse_url(text: str) -> sa.URL:
    """An address as typed: ``study.db``, ``sqlite:///study.db`` or ``postgresql://…``."""
    if "://" not in text:
        text = f"sqlite:///{text}"
    try:
        url = sa.make_url(text)
    except sa.exc.ArgumentError:
        raise InputError("the database must be a file, sqlite:///FILE or postgresql://USER@HOST/NAME") from None
    backend = url.get_backend_name()
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise InputError(f"the database must be SQLite or PostgreSQL, not {backend}")
    if not url.database or url.database == ":memory:":
        raise InputError("the database needs a file: nothing may be lost when the server stops")
    return url.set(drivername="sqlite+pysqlite")


def connect(url: sa.URL) -> sa.Engine:
    """An engine whose transactions begin when they say so; with the option ``write`` as the only writer."""
    if url.get_backend_name() == "sqlite":
        engine = sa.create_engine(url, connect_args={"timeout": 30, "check_same_thread": False}, pool_size=8)
        sa.event.listen(engine, "connect", _set_up_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
        return engine
    engine = sa.create_engine(url, pool_pre_ping=True, pool_size=8, connect_args={"connect_timeout": 10})
    sa.event.listen(engine, "connect", _set_up_postgresql)
    return engine


def _set_up_postgresql(connection: Any, record: Any) -> None:
    """A commit is on the disk before it is acknowledged, whatever the server's default."""
    if connection.execute("SHOW synchronous_commit").fetchone()[0] == "off":
        connection.execute("SET synchronous_commit = on")
    connection.commit()


def _set_up_sqlite(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # Python's own idea of when a transaction begins is off
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sa.Connection) -> None:
    # A transaction that will write takes its turn at once: to change from reading to writing half-way may fail.
    wants_to_write = connection.get_execution_options().get("write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if wants_to_write else "BEGIN")


def migrate(connection: sa.Connection, revision: str = "head") -> None:
    """Brings the schema to a revision, by Alembic."""
    from alembic import command

    command.upgrade(_alembic(connection), revision)


def current_revision(connection: sa.Connection) -> str | None:
    """The revision of the schema, None where there is no schema yet."""
    from alembic.migration import MigrationContext

    return MigrationContext.configure(connection).get_current_revision()


def known_revisions() -> list[str]:
    """The revisions that this version of ital can bring up to date."""
    from alembic.script import ScriptDirectory

    return [script.revision for script in ScriptDirectory(str(MIGRATIONS)).walk_revisions()]


def _alembic(connection: sa.Connection) -> Any:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes |= {"connection": connection, "metadata": metadata}
    return config


def state_folder(url: sa.URL) -> tuple[Path, str]:
    """Where the files beside the database are, and how their names begin.

    Beside an SQLite file; for PostgreSQL in the folder ``ITAL_STUDY_FOLDER``, by default the current one.
    """
    if url.get_backend_name() == "sqlite":
        file = Path(str(url.database))
        return file.parent, file.name
    return Path(os.environ.get("ITAL_STUDY_FOLDER") or "."), url.database or "study"
