"""The file of deletions beside the database, so that no older backup brings anybody back.

The database has the same tombstones. The file survives it: a lost database can be restored without
the people who were deleted after the backup. The file is always replaced as a whole. The next one
is written and synced before the database commits a deletion, and takes its place afterwards, which
needs no space: so a full disk refuses the deletion as a whole, and after a kill in between the
database completes the file.
"""

import contextlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from ital.errors import InputError
from ital.tools import files
from ital_study.store import operations
from ital_study.store.tables import intake, participants, tombstones

# A record is flat, so a brace begins a new one: also after half a record, to which older versions
# could glue the next.
_RECORD = re.compile(r"(?=\{)|\n")
_TIME = re.compile(r'"deleted_at": (\d+),')
RAW = "surrogateescape"  # keeps bytes that are no text


class KeptDeletions(NamedTuple):
    """What a file says.

    Attributes:
        tombstones: Records of deleted participants.
        unreadable: Pieces that are no record, such as one that a full disk cut short.
    """

    tombstones: list[dict[str, Any]]
    unreadable: list[str]


def read(file: Path) -> KeptDeletions:
    """Read a file of deletions, also one of an older version of ital.

    Args:
        file: A file that a store keeps beside its database.

    Returns:
        Its records and what cannot be read; nothing if there is no file.
    """
    kept = KeptDeletions([], [])
    if not file.exists():
        return kept
    # What cannot be read is kept, not dropped: a person may find out who it was.
    text = file.read_text(encoding="utf-8", errors=RAW)
    for piece in _RECORD.split(text):
        if not piece.strip():
            continue
        try:
            record = json.loads(piece)
            kept.tombstones.append(_tombstone(record))
        except (ValueError, TypeError, KeyError):
            kept.unreadable.append(piece)
    return kept


def _tombstone(record: Any) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise TypeError(record)
    # Older versions wrote none.
    external_hash = record.get("external_hash")
    if external_hash is not None:
        external_hash = str(external_hash)[:64]
    return {
        "uid": str(record["uid"]),
        "number": int(record["number"]),
        "deleted_at": int(record["deleted_at"]),
        "by": str(record["by"])[:16],
        "external_hash": external_hash,
    }


def read_tombstones(file: Path) -> list[dict[str, Any]]:
    """Read a file of deletions of which nothing may be missing.

    Args:
        file: A file that a store keeps beside its database.

    Returns:
        Records of deleted participants; empty if there is no file.

    Raises:
        InputError: A part of the file cannot be read, so that a deletion could be lost.
    """
    kept = read(file)
    if kept.unreadable:
        piece = kept.unreadable[0][:60]
        raise InputError(
            f"{file}: a deletion cannot be read ({piece!a}), so somebody who was "
            "deleted might come back: nothing was restored. Put a copy of the file in its place, "
            "or remove this part if nobody is missing"
        )
    return kept.tombstones


def prepare(file: Path, connection: sa.Connection) -> None:
    """Write the next file of deletions, which :func:`complete` puts in place after the commit.

    Args:
        file: The file beside the database.
        connection: The transaction that deletes.

    Raises:
        OSError: The disk did not take it; nothing has changed.
    """
    _keep_others_away(connection)
    files.write(_next(file), _completed(file, connection), private=True)


def complete(file: Path, connection: sa.Connection) -> None:
    """Make sure that the file has every deletion of the database.

    It is on the disk when this returns.

    Args:
        file: The file beside the database.
        connection: A transaction that sees the deletions.

    Raises:
        OSError: The disk did not take it; the file is as before.
    """
    _keep_others_away(connection)
    content = _completed(file, connection)
    if content != _bytes(file):
        _put_in_place(file, content)
    # Whoever else has committed a deletion finds it in the file by now, and needs no next one.
    tidy(file)


def _put_in_place(file: Path, content: bytes) -> None:
    # Renaming needs no space: a disk that is full by now cannot stop a deletion that is committed.
    if content == _bytes(_next(file)):
        # A deletion that was refused meanwhile may have removed it.
        with contextlib.suppress(FileNotFoundError):
            files.replace(file, _next(file))
            return
    # There is no such file after a kill, or somebody else was deleted meanwhile: write all of it.
    files.write(file, content, private=True)


def tidy(file: Path) -> None:
    """Remove what :func:`prepare` wrote, for a deletion that was not stored or is in the file.

    Args:
        file: The file beside the database.
    """
    with contextlib.suppress(OSError):
        _next(file).unlink(missing_ok=True)


def _next(file: Path) -> Path:
    return file.with_name(f".{file.name}.next")


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return b""


def _keep_others_away(connection: sa.Connection) -> None:
    """Let no other process change the file until the transaction ends.

    SQLite has one writer anyway, and ignores the lock.
    """
    connection.execute(sa.select(intake.c.id).with_for_update())


def _completed(file: Path, connection: sa.Connection) -> bytes:
    """Return the content of the file with every deletion of the database."""
    kept = read(file)
    columns = tombstones.c
    query = sa.select(tombstones).order_by(columns.deleted_at, columns.uid)
    stored = [dict(row._mapping) for row in connection.execute(query)]
    # By uid, so that nobody is named twice. The order is that of the file, which makes equal
    # contents equal bytes.
    by_uid = {}
    for row in [*kept.tombstones, *stored]:
        by_uid[row["uid"]] = row
    deleted = list(by_uid.values())
    lines = _still_unreadable(kept, deleted)
    lines += [json.dumps(row, sort_keys=True) for row in deleted]
    text = "".join(f"{line}\n" for line in lines)
    return text.encode("utf-8", RAW)


def _still_unreadable(kept: KeptDeletions, deleted: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the unreadable pieces that are not the beginning of a readable record.

    The time in milliseconds tells which record a piece began.
    """
    times = {str(row["deleted_at"]) for row in deleted}
    still_unreadable = []
    for piece in kept.unreadable:
        times_of_piece = _TIME.findall(piece)
        if times.isdisjoint(times_of_piece):
            still_unreadable.append(piece)
    return still_unreadable


def apply(connection: sa.Connection, kept_tombstones: Iterable[Mapping[str, Any]]) -> int:
    """Erase participants that have a tombstone.

    Args:
        connection: The transaction.
        kept_tombstones: Records of deleted participants.

    Returns:
        The number of participants that were still stored.
    """
    buried = set(connection.execute(sa.select(tombstones.c.uid)).scalars())
    present = set(connection.execute(sa.select(participants.c.uid)).scalars())
    # Somebody may have a tombstone and be stored all the same, so both are asked. The others are
    # left out because a long file would make every start slow.
    done = buried - present
    count = 0
    for row in kept_tombstones:
        if row["uid"] not in done:
            count += operations.erase(connection, row)
    return count
