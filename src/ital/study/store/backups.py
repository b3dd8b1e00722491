"""Backup and restore: one file for both databases, taken while the study runs."""

import base64
import contextlib
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ital._files import check_readable
from ital._version import __version__
from ital.errors import InputError
from ital.study.store import _engine, _store, operations
from ital.study.store.tables import ALL, participants, tombstones
from ital.study.store.times import iso

FORMAT = "ital study backup 1"


def backup(store: "_store.Store", file: Path) -> dict[str, int]:
    """Write all rows of one moment to a file, which appears only when it is complete.

    Args:
        store: The database.
        file: File to write.

    Returns:
        Number of rows by table.
    """
    temporary = file.with_name(f".{file.name}.part")
    counts = {table.name: 0 for table in ALL}
    digest = hashlib.sha256()
    with store.reading() as connection, _private(temporary) as raw, gzip.GzipFile(fileobj=raw, mode="wb") as out:

        def put(record: dict[str, Any]) -> None:
            line = json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
            digest.update(line)
            out.write(line)

        revision = _engine.current_revision(connection)
        put({"format": FORMAT, "ital": __version__, "revision": revision, "made_at": operations.now()})
        for table in ALL:
            for row in connection.execute(sa.select(table).order_by(*table.primary_key)):
                put({"table": table.name, "row": [_packed(value) for value in row]})
                counts[table.name] += 1
        columns = {table.name: [column.name for column in table.columns] for table in ALL}
        put({"end": counts, "columns": columns})
        out.write(json.dumps({"sha256": digest.hexdigest()}).encode() + b"\n")
    os.replace(temporary, file)
    _sync_folder(file.parent)
    return counts


@contextlib.contextmanager
def _private(file: Path) -> Iterator[Any]:
    """A new file that only its owner may read; it is on disk when the block ends."""
    with contextlib.suppress(FileNotFoundError):
        file.unlink()
    with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as raw:
        yield raw
        raw.flush()
        os.fsync(raw.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _packed(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _unpacked(value: Any) -> Any:
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else value


def check(file: Path) -> dict[str, Any]:
    """Read a whole backup and check it.

    Args:
        file: The backup.

    Returns:
        Its first and last records, merged.

    Raises:
        InputError: There is no such file, or it is damaged.
    """
    digest, first, last = hashlib.sha256(), None, None
    check_readable(file, f"the backup {file}", at_once=False)
    try:
        for line in _lines(file):
            record = json.loads(line)
            if "sha256" in record:
                if first is not None and last is not None and record["sha256"] == digest.hexdigest():
                    return first | last
                break
            digest.update(line)
            first = first or record
            last = record if "end" in record else None
            if first.get("format") != FORMAT:
                break
    except (OSError, EOFError, ValueError, AttributeError, zlib.error):
        pass  # damaged
    raise InputError(f"{file} is not a backup of a study, or it is damaged: nothing was restored")


def _lines(file: Path) -> Iterator[bytes]:
    with gzip.open(file, "rb") as content:
        yield from content


def restore(
    file: Path, url: str, *, replace: bool = False, more_tombstones: Iterable[dict[str, Any]] = ()
) -> dict[str, int]:
    """Load a backup into a database, all or nothing.

    Participants deleted since the backup stay deleted: tombstones of the database, of the file beside it, and
    ``more_tombstones`` are applied.

    Args:
        file: The backup.
        url: The database, as for ``open_store``; created if there is none.
        replace: Whether to replace participants that are in the database.
        more_tombstones: Further deletions to apply.

    Returns:
        Number of rows by table, and under ``erased`` the number of participants erased again.

    Raises:
        InputError: The backup is damaged or of a newer ital, or the database is in use or holds participants.
    """
    facts = check(file)
    if facts["revision"] not in _engine.known_revisions():
        raise InputError(f"{file} was made by a newer version of ital ({facts['ital']}): update ital")
    with _store.open_store(url, create=True) as store, store.claimed():
        deletions = [*_store.read_tombstones(store.tombstone_file), *more_tombstones]

        def job(connection: sa.Connection) -> int:
            someone = connection.execute(sa.select(participants.c.number)).first()
            if someone is not None and not replace:
                raise InputError(f"{store.name} holds participants already: give --replace to replace them")
            deletions.extend(dict(row._mapping) for row in connection.execute(sa.select(tombstones)))
            _empty(connection)
            _engine.migrate(connection, facts["revision"])
            _insert(connection, file, facts["columns"])
            _engine.migrate(connection)
            erased = sum(operations.erase(connection, row) for row in {row["uid"]: row for row in deletions}.values())
            operations.note(connection, "restored", detail=f"backup of {iso(facts['made_at'])}")
            return erased

        erased = store.write(job)
        _store.keep_tombstones(store.tombstone_file, _missing(store))
        store.forget()
    return {**facts["end"], "erased": erased}


def _missing(store: "_store.Store") -> list[dict[str, Any]]:
    """Tombstones of the database that are not yet in the file beside it."""
    in_file = {row["uid"] for row in _store.read_tombstones(store.tombstone_file)}
    with store.reading() as connection:
        rows = [dict(row._mapping) for row in connection.execute(sa.select(tombstones))]
    return [row for row in rows if row["uid"] not in in_file]


def _empty(connection: sa.Connection) -> None:
    """Drop every table, and with them the triggers that guard rows."""
    schema = sa.MetaData()
    schema.reflect(connection)
    schema.drop_all(connection)


def _insert(connection: sa.Connection, file: Path, columns: dict[str, list[str]]) -> None:
    """Load the rows of a backup into the tables of its own revision."""
    schema = sa.MetaData()
    schema.reflect(connection)
    connection.execute(schema.tables["intake"].delete())
    waiting: list[dict[str, Any]] = []
    name = ""

    def flush() -> None:
        if waiting:
            connection.execute(schema.tables[name].insert(), waiting)
            waiting.clear()

    for line in _lines(file):
        record = json.loads(line)
        if "table" not in record:
            continue
        if record["table"] != name or len(waiting) >= 500:
            flush()
            name = record["table"]
        values = [_unpacked(value) for value in record["row"]]
        waiting.append(dict(zip(columns[name], values, strict=True)))
    flush()
    if connection.dialect.name == "postgresql":
        next_id = "(SELECT COALESCE(MAX(id), 0) + 1 FROM audit)"
        connection.execute(sa.text(f"SELECT setval(pg_get_serial_sequence('audit', 'id'), {next_id}, false)"))
