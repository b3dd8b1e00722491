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
from ital_study.store import _engine, _store, deletions, operations
from ital_study.store.deletions import read_tombstones
from ital_study.store.tables import ALL, participants, tombstones
from ital_study.store.times import iso

FORMAT = "ital study backup 1"


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

        revision = _engine.current_revision(connection)
        put(
            {
                "format": FORMAT,
                "ital": __version__,
                "revision": revision,
                "made_at": operations.now(),
            }
        )
        for table in ALL:
            for row in connection.execute(sa.select(table).order_by(*table.primary_key)):
                put({"table": table.name, "row": [_packed(value) for value in row]})
                counts[table.name] += 1
        columns = {table.name: [column.name for column in table.columns] for table in ALL}
        put({"end": counts, "columns": columns})
        out.write(json.dumps({"sha256": digest.hexdigest()}).encode() + b"\n")
    return counts


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
    files.check_readable(file, f"the backup {file}", at_once=False)
    try:
        for line in _lines(file):
            record = json.loads(line)
            if "sha256" in record:
                if (
                    first is not None
                    and last is not None
                    and record["sha256"] == digest.hexdigest()
                ):
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
        InputError: The backup is damaged or of a newer ital, a deletion cannot be read, or the database is in use or
            holds participants.
    """
    facts = check(file)
    if facts["revision"] not in _engine.known_revisions():
        raise InputError(
            f"{file} was made by a newer version of ital ({facts['ital']}): update ital"
        )
    with contextlib.suppress(InputError), _store.open_store(url):
        pass  # a database that is there completes the file of deletions
    kept = read_tombstones(_engine.beside(_engine.parse_url(url), "tombstones"))
    with _store.open_store(url, create=True) as store, store.claimed():

        def job(connection: sa.Connection) -> int:
            someone = connection.execute(sa.select(participants.c.number)).first()
            if someone is not None and not replace:
                raise InputError(
                    f"{store.name} holds participants already: give --replace to replace them"
                )
            stored = [dict(row._mapping) for row in connection.execute(sa.select(tombstones))]
            _empty(connection)
            _engine.migrate(connection, facts["revision"])
            _insert(connection, file, facts["columns"])
            _engine.migrate(connection)
            deleted = {row["uid"]: row for row in [*kept, *more_tombstones, *stored]}
            erased = sum(operations.erase(connection, row) for row in deleted.values())
            operations.note(connection, "restored", detail=f"backup of {iso(facts['made_at'])}")
            deletions.prepare(store.tombstone_file, connection)
            return erased

        erased = store.write(job)
        store.write(lambda connection: deletions.complete(store.tombstone_file, connection))
        store.forget()
    return {**facts["end"], "erased": erased}


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
        connection.execute(
            sa.text(f"SELECT setval(pg_get_serial_sequence('audit', 'id'), {next_id}, false)")
        )
