"""Connections to SQLite (safe against power cuts) and PostgreSQL, and migration of the schema."""

import os
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ital.errors import InputError
from ital_study.store.tables import metadata

PRAGMAS = (
    "journal_mode = WAL",  # readers never wait for the writer
    "synchronous = FULL",  # a commit is on the disk before it is acknowledged
    "foreign_keys = ON",
    "busy_timeout = 30000",
    "secure_delete = ON",  # what is deleted is overwritten
)
MIGRATIONS = Path(__file__).with_name("migrations")


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
