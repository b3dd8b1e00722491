"""The data as files: the tidy table of steps and the full log; and their import."""

import json
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from ital.errors import InputError
from ital.tools.files import open_private
from ital_study.config.configuration import Config
from ital_study.config.load import parse_config
from ital_study.data import table
from ital_study.store import freezes, operations
from ital_study.store.answers_table import answer_blocks
from ital_study.store.participants_table import participant_blocks
from ital_study.store.records import Participant
from ital_study.store.rows import read_event, read_timing
from ital_study.store.step_rows import step_blocks
from ital_study.store.tables import (
    audit,
    configurations,
    events,
    participants,
    steps,
    tombstones,
)
from ital_study.store.times import from_iso, iso

if TYPE_CHECKING:
    import pandas as pd

    from ital_study.store._store import Store

BLOCK = 1 << 16  # bytes that are read at once
# Hashes and secret names stay out of the log, and the reader counts events itself.
PRIVATE = ("uid", "external_hash", "resume_hash", "number", "events")

# The table of steps


def steps_table(store: "Store", mode: str = "live") -> "pd.DataFrame":
    """Return the tidy table of all steps of a mode.

    Args:
        store: The database.
        mode: ``live``, ``pilot``, ``preview`` or ``simulated``.

    Returns:
        One row per step.

    Raises:
        InputError: There is no such mode.
    """
    import pandas as pd

    _check_mode(mode)
    with store.reading() as connection:
        return pd.concat(list(step_blocks(connection, mode)), ignore_index=True)


def _check_mode(mode: str) -> None:
    if mode not in table.MODES:
        raise InputError(f"the mode must be one of {', '.join(table.MODES)}, not {mode!r}")


# The log


def log_records(connection: sa.Connection, mode: str, **who: Any) -> Iterator[dict[str, Any]]:
    """Iterate over all records of a mode.

    They are configurations, participants, their steps and events, and deletions. Hashes of external
    IDs and resume codes are left out. Of what cannot be read, the record has the stored text.

    Args:
        connection: The transaction.
        mode: Mode of the participants.
        **who: Values of columns by which they are selected; deletions of others are left out then.

    Yields:
        Dictionaries that can be written as JSON.
    """
    everyone = operations.everyone(connection, mode=mode, **who)
    yield from _configuration_records(connection, {each.config for each in everyone})
    for participant in everyone:
        yield _participant_record(participant)
        happened = [
            *_step_records(connection, participant.number),
            *_event_records(connection, participant.number),
        ]
        # Times are ISO 8601 in UTC, so the order of texts is that of times.
        yield from sorted(happened, key=lambda record: (record["at"], record["record"]))
    if not who:
        yield from _deletion_records(connection)


def _configuration_records(connection: sa.Connection, used: set[str]) -> Iterator[dict[str, Any]]:
    query = sa.select(configurations).order_by(configurations.c.added_at)
    for row in connection.execute(query):
        if row.hash in used:
            yield {
                "record": "configuration",
                "hash": row.hash,
                "name": row.name,
                "added_at": iso(row.added_at),
                "toml": row.text,
            }


def _participant_record(participant: Participant) -> dict[str, Any]:
    columns = _with_times(participant)
    public = {name: value for name, value in columns.items() if name not in PRIVATE}
    return {"record": "participant", "participant": participant.number, **public}


def _with_times(participant: Participant) -> dict[str, Any]:
    """Return the row of a participant with its times as text."""
    return participant._asdict() | {
        "joined_at": iso(participant.joined_at),
        "seen_at": iso(participant.seen_at),
        "opens_at": iso(participant.opens_at),
        "closes_at": iso(participant.closes_at),
    }


def _step_records(connection: sa.Connection, number: int) -> Iterator[dict[str, Any]]:
    for step in operations.steps_of(connection, number):
        timing: Any = step.timing
        if read_timing(step.timing) is not None:
            timing = json.loads(step.timing)
        yield {
            "record": "step",
            "participant": number,
            "at": iso(step.stored_at),
            **{name: getattr(step, name) for name in ("map", "learner", "robot", "step", "choice")},
            "state": operations.as_state(step.state).tolist(),
            "timing": timing,
        }


def _event_records(connection: sa.Connection, number: int) -> Iterator[dict[str, Any]]:
    e = events.c
    query = sa.select(events).where(e.participant == number).order_by(e.number)
    for row in connection.execute(query):
        event = read_event(row)
        yield {
            "record": "unreadable" if event is None else "event",
            "participant": number,
            "at": iso(row.at),
            "number": row.number,
            "kind": row.kind,
            "source": row.source,
            "client_at": iso(row.client_at),
            "data": row.data if event is None else event.data,
        }


def _deletion_records(connection: sa.Connection) -> Iterator[dict[str, Any]]:
    in_order = sa.select(tombstones).order_by(tombstones.c.deleted_at, tombstones.c.number)
    for row in connection.execute(in_order):
        yield {
            "record": "deleted",
            "participant": row.number,
            "at": iso(row.deleted_at),
            "by": row.by,
        }


# Files

TABLES = {
    "steps.csv": step_blocks,
    "participants.csv": participant_blocks,
    "answers.csv": answer_blocks,
}


def stream(
    store: "Store", file: str, mode: str, *, raw: bool = False, **who: Any
) -> Iterator[bytes]:
    """Iterate over the content of a file of the export; memory holds one participant at a time.

    Args:
        store: The database.
        file: One of :data:`TABLES`, ``steps.parquet``, ``events.jsonl`` or ``codebook.md``.
        mode: Mode of the participants.
        raw: Whether CSV files hold texts that a spreadsheet would take for a formula as they are.
        **who: Values of columns by which participants are selected.

    Yields:
        The content, piece by piece.

    Raises:
        InputError: There is no such file or mode.
    """
    _check_mode(mode)
    with store.reading() as connection:
        if file in TABLES:
            for i, block in enumerate(TABLES[file](connection, mode, **who)):
                yield table.csv_text(block, header=i == 0, raw=raw).encode()
        elif file == "events.jsonl":
            for record in log_records(connection, mode, **who):
                yield json.dumps(record, ensure_ascii=True).encode() + b"\n"
        elif file == "codebook.md":
            used = configs_of(connection, mode)
            yield table.codebook(used[0], [mode], used).encode()
        elif file == "steps.parquet":
            yield from _parquet(step_blocks(connection, mode, **who))
        else:
            raise InputError(f"there is no file {file!r} in an export")


def _parquet(blocks: "Iterator[pd.DataFrame]") -> Iterator[bytes]:
    # Its index comes last and its writer seeks, so it is made in a file first.
    with tempfile.TemporaryFile() as parquet:
        table.write_parquet(blocks, parquet)
        parquet.seek(0)
        while content := parquet.read(BLOCK):
            yield content


def configs_of(connection: sa.Connection, mode: str) -> list[Config]:
    """Return the configurations that participants of a mode saw, newest first.

    Without participants, it is the newest one.

    Args:
        connection: The transaction.
        mode: Mode of the participants.

    Returns:
        At least one configuration.

    Raises:
        InputError: The database holds no study yet.
    """
    newest_first = sa.select(configurations.c.text).order_by(configurations.c.added_at.desc())
    used = sa.select(participants.c.config).where(participants.c.mode == mode)
    of_mode = newest_first.where(configurations.c.hash.in_(used))
    texts = connection.execute(of_mode).scalars().all()
    if not texts:
        texts = connection.execute(newest_first.limit(1)).scalars().all()
    if not texts:
        raise InputError("the database holds no study yet")
    return [parse_config(text, "the stored configuration") for text in texts]


def export_study(
    store: "Store", folder: Path, mode: str = "live", *, raw: bool = False
) -> list[Path]:
    """Write a study folder: the tables, steps.parquet, events.jsonl, codebook.md and study.toml.

    Temporary files are written first and renamed when all are complete. Only their owner may read
    them, because people may have written who they are.

    Args:
        store: The database.
        folder: Folder for the files; created if there is none.
        mode: Mode of the participants.
        raw: Whether CSV files hold texts that a spreadsheet would take for a formula as they are.

    Returns:
        The files.

    Raises:
        InputError: There is no such mode, or no study.
    """
    _check_mode(mode)
    names = [*TABLES, "events.jsonl", "codebook.md"]
    if table.has_parquet():
        names.append("steps.parquet")
    contents = {name: stream(store, name, mode, raw=raw) for name in names}
    with store.reading() as connection:
        config = configs_of(connection, mode)[0]
        frozen = freezes.summary_text(connection)
    contents |= {"study.toml": iter([config.to_toml().encode()])}
    if frozen is not None:
        contents |= {table.FREEZE: iter([frozen.encode()])}
    return _write_files(folder, contents)


ABOUT_ONE = (
    "\n## participant.json\n\n"
    "All that is stored of this participant beside the tables. `participant`: the row of the "
    "database. `external_hash` is\n"
    "the keyed hash of the ID in the link, `resume_hash` that of the resume code, `uid` the name "
    "in the cookie of the\n"
    "participant's browser; none of them leads back to the ID or the code without the key of the "
    "study. `audit`: what\n"
    "researchers did. Times are ISO 8601, in UTC.\n"
)


def export_person(
    store: "Store", folder: Path, participant: Participant, *, raw: bool = False
) -> list[Path]:
    """Write everything that is stored of one participant, with a codebook.

    It is for somebody who asks for their data.

    Args:
        store: The database.
        folder: Folder for the files; created if there is none.
        participant: The participant.
        raw: Whether CSV files hold texts that a spreadsheet would take for a formula as they are.

    Returns:
        The files; only their owner may read them.
    """
    number = participant.number
    mode = participant.mode
    names = [*TABLES, "events.jsonl"]
    contents = {name: stream(store, name, mode, raw=raw, number=number) for name in names}
    with store.reading() as connection:
        config = parse_config(operations.config_text(connection, participant.config))
        actions = _actions_on(connection, number)
    everything = {"participant": _with_times(participant), "audit": actions}
    codebook = table.codebook(config, [mode], [config]) + ABOUT_ONE
    fixed = {
        "participant.json": json.dumps(everything, indent=2),
        "codebook.md": codebook,
        "study.toml": config.to_toml(),
    }
    contents |= {name: iter([text.encode()]) for name, text in fixed.items()}
    return _write_files(folder, contents)


def _actions_on(connection: sa.Connection, number: int) -> list[dict[str, Any]]:
    """Return what researchers did with a participant."""
    a = audit.c
    query = sa.select(audit).where(a.number == number).order_by(a.id)
    return [
        {"at": iso(row.at), "action": row.action, "detail": row.detail}
        for row in connection.execute(query)
    ]


def _write_files(folder: Path, contents: Mapping[str, Iterable[bytes]]) -> list[Path]:
    """Write files that only their owner may read: all of them, or none."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # In the same folder, so that moving is renaming. Nothing is moved before all is written: a full
    # disk or a kill leaves the files of an earlier export as they were.
    with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as part:
        for name, content in contents.items():
            with open(Path(part) / name, "wb", opener=open_private) as file:
                file.writelines(content)
        for name in contents:
            shutil.move(Path(part) / name, folder / name)
    return [folder / name for name in contents]


def import_study(store: "Store", folder: Path) -> int:
    """Load an exported folder into a database, all or nothing.

    Participants keep their numbers, which determine their arrows. Exports do not identify anybody,
    so participants cannot resume the study.

    Args:
        store: The database.
        folder: A folder that :func:`export_study` wrote.

    Returns:
        Number of participants.

    Raises:
        InputError: The folder is not an export, or a participant is in the database already.
    """
    file = folder / "events.jsonl"
    if not file.is_file():
        raise InputError(f"{folder} is not an export: it has no events.jsonl")

    def job(connection: sa.Connection) -> int:
        count = 0
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                count += _put_line(connection, line, f"{file}: line {number}")
        operations.note(connection, "imported", detail=f"{count} participants")
        return count

    try:
        return store.write(job)
    except sa.exc.IntegrityError:
        raise InputError(
            f"{file} is inconsistent: a step or event occurs twice, or has no participant"
        ) from None


def _put_line(connection: sa.Connection, line: str, where: str) -> bool:
    """Store one line of the log; return whether it is a participant."""
    try:
        record = json.loads(line)
        kind = record["record"]
        _PUT[kind](connection, record)
    except InputError:  # says already what is wrong
        raise
    except (KeyError, ValueError, TypeError, AttributeError):
        raise InputError(f"{where} was not written by ital study export") from None
    return kind == "participant"


def _put_configuration(connection: sa.Connection, record: Mapping[str, Any]) -> None:
    if parse_config(record["toml"], "the configuration in events.jsonl").hash != record["hash"]:
        raise InputError("the configuration in events.jsonl does not match its hash")
    query = sa.select(configurations).where(configurations.c.hash == record["hash"])
    if connection.execute(query).first() is not None:
        return
    row = {
        "hash": record["hash"],
        "name": record["name"],
        "text": record["toml"],
        "added_at": from_iso(record["added_at"]),
    }
    connection.execute(configurations.insert().values(row))


def _put_participant(connection: sa.Connection, record: Mapping[str, Any]) -> None:
    number = record["participant"]
    if operations.find(connection, number=number) is not None:
        raise InputError(
            f"participant {number} is in the database already: import into another database"
        )
    # Columns that older versions did not know are missing, and get their defaults.
    copied = {name: record[name] for name in Participant._fields if name in record}
    own = {
        "joined_at": from_iso(record["joined_at"]),
        "seen_at": from_iso(record["seen_at"]),
        "opens_at": from_iso(record.get("opens_at", "")),
        "closes_at": from_iso(record.get("closes_at", "")),
        "number": number,
        "uid": secrets.token_hex(16),
        "external_hash": None,
        "resume_hash": None,
        "events": 0,  # each event counts itself
    }
    connection.execute(participants.insert().values(copied | own))
    operations.reserve_number(connection, int(number))


def _put_step(connection: sa.Connection, record: Mapping[str, Any]) -> None:
    names = ("participant", "map", "learner", "robot", "step", "choice")
    row = {name: record[name] for name in names} | {
        "state": operations.as_bytes(np.asarray(record["state"], np.float32)),
        "timing": _stored_text(record["timing"]),
        "stored_at": from_iso(record["at"]),
    }
    connection.execute(steps.insert().values(row))


def _put_event(connection: sa.Connection, record: Mapping[str, Any]) -> None:
    row = {name: record[name] for name in ("participant", "number", "kind", "source")} | {
        "at": from_iso(record["at"]),
        "client_at": from_iso(record["client_at"]),
        "data": _stored_text(record["data"]),
    }
    connection.execute(events.insert().values(row))
    p = participants.c
    own = p.number == record["participant"]
    connection.execute(participants.update().where(own).values(events=p.events + 1))


def _put_deletion(connection: sa.Connection, record: Mapping[str, Any]) -> None:
    row = {
        "number": record["participant"],
        "by": record["by"],
        "deleted_at": from_iso(record["at"]),
        "uid": secrets.token_hex(16),
    }
    connection.execute(tombstones.insert().values(row))
    operations.reserve_number(connection, int(record["participant"]))


# How each kind of record is stored.
_PUT = {
    "configuration": _put_configuration,
    "participant": _put_participant,
    "step": _put_step,
    "event": _put_event,
    "unreadable": _put_event,
    "deleted": _put_deletion,
}


def _stored_text(data: Any) -> str:
    """Return data as they are stored; what could not be read is a text already."""
    if isinstance(data, str):
        return data
    return operations.as_json(data)
