"""Backup and restore: one file for both databases, taken while the study runs."""

import base64
import contextlib
import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ital import __version__
from ital.errors import InputError
from ital.tools import files
from ital_study.store import _store, database, deletions, operations
from ital_study.store.deletions import read_tombstones
from ital_study.store.tables import ALL, participants, tombstones
from ital_study.store.times import iso

FORMAT = "ital study backup 1"
BATCH = 500  # rows inserted at once


def backup(store: "_store.Store", file: Path) -> dict[str, int]:
    """Write all rows of one moment to a file, which appears only when it is complete.

    Args:
        store: The database.
        file: File to write.

    Returns:
        Number of rows by table.

    Raises:
        OSError: The disk did not take it; nothing is left behind.
    """
    counts = {table.name: 0 for table in ALL}
    digest = hashlib.sha256()
    with (
        files.whole(file, private=True) as raw,
        store.reading() as connection,
        gzip.GzipFile(fileobj=raw, mode="wb") as out,
    ):

        def put(record: dict[str, Any]) -> None:
            line = json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
            digest.update(line)
            out.write(line)

        head = {
            "format": FORMAT,
            "ital": __version__,
            "revision": database.current_revision(connection),
            "made_at": operations.now(),
        }
        put(head)
        for table in ALL:
            for row in connection.execute(sa.select(table).order_by(*table.primary_key)):
                put({"table": table.name, "row": [_packed(value) for value in row]})
                counts[table.name] += 1
        columns = {table.name: table.columns.keys() for table in ALL}
        put({"end": counts, "columns": columns})
        # Not hashed itself: the last line says what all lines before it must add up to.
        out.write(json.dumps({"sha256": digest.hexdigest()}).encode() + b"\n")
    return counts


def _packed(value: Any) -> Any:
    if not isinstance(value, bytes):
        return value
    return {"base64": base64.b64encode(value).decode()}


def _unpacked(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return base64.b64decode(value["base64"])


def check_backup(file: Path) -> dict[str, Any]:
    """Read a whole backup and check it.

    Args:
        file: The backup.

    Returns:
        Its first and last records, merged.

    Raises:
        InputError: There is no such file, or it is damaged.
    """
    files.check_readable(file, f"the backup {file}", at_once=False)
    facts = None
    # Whatever a damaged file makes the readers of its layers raise.
    with contextlib.suppress(OSError, EOFError, ValueError, AttributeError, zlib.error):
        facts = _verified_facts(file)
    if facts is None:
        raise InputError(
            f"{file} is not a backup of a study, or it is damaged: nothing was restored"
        )
    return facts


def _verified_facts(file: Path) -> dict[str, Any] | None:
    """Return the first and last records of a backup, merged; None if it is not whole."""
    digest = hashlib.sha256()
    first: dict[str, Any] | None = None
    last: dict[str, Any] | None = None
    for line in _lines_of(file):
        record = json.loads(line)
        if "sha256" in record:
            if first is None or last is None or record["sha256"] != digest.hexdigest():
                return None
            return first | last
        digest.update(line)
        if first is None:
            first = record
        # Only the record right before the hash may be the end.
        last = record if "end" in record else None
        if first.get("format") != FORMAT:
            return None
    return None


def _lines_of(file: Path) -> Iterator[bytes]:
    with gzip.open(file, "rb") as content:
        yield from content


def restore(
    file: Path, url: str, *, replace: bool = False, more_tombstones: Iterable[dict[str, Any]] = ()
) -> dict[str, int]:
    """Load a backup into a database, all or nothing.

    Participants deleted since the backup stay deleted: tombstones of the database, of the file
    beside it, and ``more_tombstones`` are applied.

    Args:
        file: The backup.
        url: The database, as for ``open_store``; created if there is none.
        replace: Whether to replace participants that are in the database.
        more_tombstones: Further deletions to apply.

    Returns:
        Number of rows by table, and under ``erased`` the number of participants erased again.

    Raises:
        InputError: The backup is damaged or of a newer ital, a deletion cannot be read, or the
            database is in use or holds participants.
    """
    # The whole file is checked before anything is changed.
    facts = check_backup(file)
    if facts["revision"] not in database.known_revisions():
        raise InputError(
            f"{file} was made by a newer version of ital ({facts['ital']}): update ital"
        )
    with contextlib.suppress(InputError), _store.open_store(url):
        pass  # a database that is there completes the file of deletions
    kept = read_tombstones(database.beside(database.parse_url(url), "tombstones"))
    deletions_so_far = [*kept, *more_tombstones]
    with _store.open_store(url, create=True) as store, store.claimed():

        def job(connection: sa.Connection) -> int:
            if not replace and _has_participants(connection):
                raise InputError(
                    f"{store.name} holds participants already: give --replace to replace them"
                )
            erased = _load_table(connection, file, facts, deletions_so_far)
            # As for a deletion: the next file is on the disk before the database commits.
            deletions.prepare(store.tombstone_file, connection)
            return erased

        erased = store.write(job)
        store.write(lambda connection: deletions.complete(store.tombstone_file, connection))
        store.forget()
    return {**facts["end"], "erased": erased}


def _has_participants(connection: sa.Connection) -> bool:
    return connection.execute(sa.select(participants.c.number)).first() is not None


def _load_table(
    connection: sa.Connection,
    file: Path,
    facts: dict[str, Any],
    deletions_so_far: Iterable[dict[str, Any]],
) -> int:
    """Replace all rows by those of a backup, without deleted people; return their number.

    All of it is one transaction, so a kill leaves the old rows or the new ones.
    """
    # Read before the tables are dropped: whoever was deleted since the backup is named only here.
    stored = [dict(row._mapping) for row in connection.execute(sa.select(tombstones))]
    _empty(connection)
    # The tables of the backup's own version take its rows; migrations then bring both up to date.
    database.migrate(connection, facts["revision"])
    _insert(connection, file, facts["columns"])
    database.migrate(connection)
    deleted = {row["uid"]: row for row in [*deletions_so_far, *stored]}
    erased = sum(operations.erase(connection, row) for row in deleted.values())
    operations.note(connection, "restored", detail=f"backup of {iso(facts['made_at'])}")
    return erased


def _empty(connection: sa.Connection) -> None:
    """Drop every table, and with them the triggers that guard rows."""
    schema = sa.MetaData()
    schema.reflect(connection)
    schema.drop_all(connection)


def _insert(connection: sa.Connection, file: Path, columns: dict[str, list[str]]) -> None:
    """Load the rows of a backup into the tables of its own revision."""
    schema = sa.MetaData()
    schema.reflect(connection)
    # The first migration puts a row there; the backup has its own.
    connection.execute(schema.tables["intake"].delete())
    waiting: list[dict[str, Any]] = []
    name = ""

    def flush() -> None:
        if waiting:
            connection.execute(schema.tables[name].insert(), waiting)
            waiting.clear()

    for line in _lines_of(file):
        record = json.loads(line)
        if "table" not in record:
            continue
        if record["table"] != name or len(waiting) >= BATCH:
            flush()
            name = record["table"]
        values = [_unpacked(value) for value in record["row"]]
        waiting.append(dict(zip(columns[name], values, strict=True)))
    flush()
    if connection.dialect.name == "postgresql":
        # Rows with given numbers do not move PostgreSQL's counter on.
        next_id = "(SELECT COALESCE(MAX(id), 0) + 1 FROM audit)"
        connection.execute(
            sa.text(f"SELECT setval(pg_get_serial_sequence('audit', 'id'), {next_id}, false)")
        )
