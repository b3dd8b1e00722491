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
from ital_study.store import operations
from ital_study.store.answers_table import answer_blocks
from ital_study.store.participants_table import participant_blocks
from ital_study.store.records import Participant
from ital_study.store.rows import read_event, read_timing
from ital_study.store.step_rows import blocks
from ital_study.store.tables import (
    audit,
    configurations,
    events,
    intake,
    participants,
    steps,
    tombstones,
)
from ital_study.store.times import from_iso, iso

if TYPE_CHECKING:
    import pandas as pd

    from ital_study.store._store import Store

BLOCK = 1 << 16


# The table of steps


def steps_table(store: "Store", mode: str = "live") -> "pd.DataFrame":
    """The tidy table of all steps of a mode.

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
        return pd.concat(list(blocks(connection, mode)), ignore_index=True)


def _check_mode(mode: str) -> None:
    if mode not in table.MODES:
        raise InputError(f"the mode must be one of {', '.join(table.MODES)}, not {mode!r}")


# The log


def log(connection: sa.Connection, mode: str, **who: Any) -> Iterator[dict[str, Any]]:
    """Iterate over all records of a mode: configurations, participants, their steps and events, and deletions.

    Hashes of external IDs and resume codes are left out. Of what cannot be read, the record has the stored text.

    Args:
        connection: The transaction.
        mode: Mode of the participants.
        **who: Values of columns by which they are selected; deletions of others are left out then.

    Yields:
        Dictionaries that can be written as JSON.
    """
    everyone = operations.everyone(connection, mode=mode, **who)
    used = {participant.config for participant in everyone}
    for row in connection.execute(sa.select(configurations).order_by(configurations.c.added_at)):
        if row.hash in used:
            facts = {
                "hash": row.hash,
                "name": row.name,
                "added_at": iso(row.added_at),
                "toml": row.text,
            }
            yield {"record": "configuration", **facts}
    for participant in everyone:
        times = {"joined_at": iso(participant.joined_at), "seen_at": iso(participant.seen_at)}
        columns, number = participant._asdict() | times, participant.number
        private = ("uid", "external_hash", "resume_hash", "number", "events")
        yield {"record": "participant", "participant": number} | {
            name: value for name, value in columns.items() if name not in private
        }
        yield from sorted(
            _happened(connection, number), key=lambda record: (record["at"], record["record"])
        )
    if who:
        return
    for row in connection.execute(
        sa.select(tombstones).order_by(tombstones.c.deleted_at, tombstones.c.number)
    ):
        yield {
            "record": "deleted",
            "participant": row.number,
            "at": iso(row.deleted_at),
            "by": row.by,
        }


def _happened(connection: sa.Connection, number: int) -> Iterator[dict[str, Any]]:
    for step in operations.steps_of(connection, number):
        yield {
            "record": "step",
            "participant": number,
            "at": iso(step.stored_at),
            **{name: getattr(step, name) for name in ("map", "learner", "robot", "step", "choice")},
            "state": operations.as_state(step.state).tolist(),
            "timing": step.timing if read_timing(step.timing) is None else json.loads(step.timing),
        }
    query = sa.select(events).where(events.c.participant == number).order_by(events.c.number)
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


# Files

TABLES = {"steps.csv": blocks, "participants.csv": participant_blocks, "answers.csv": answer_blocks}


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
            for record in log(connection, mode, **who):
                yield json.dumps(record, ensure_ascii=True).encode() + b"\n"
        elif file == "codebook.md":
            used = configs_of(connection, mode)
            yield table.codebook(used[0], [mode], used).encode()
        elif file == "steps.parquet":
            with tempfile.TemporaryFile() as parquet:
                table.write_parquet(blocks(connection, mode, **who), parquet)
                parquet.seek(0)
                while content := parquet.read(BLOCK):
                    yield content
        else:
            raise InputError(f"there is no file {file!r} in an export")


def configs_of(connection: sa.Connection, mode: str) -> list[Config]:
    """Return the configurations that participants of a mode saw, newest first; without participants, the newest.

    Args:
        connection: The transaction.
        mode: Mode of the participants.

    Returns:
        At least one configuration.

    Raises:
        InputError: The database holds no study yet.
    """
    query = sa.select(configurations.c.text).order_by(configurations.c.added_at.desc())
    used = sa.select(participants.c.config).where(participants.c.mode == mode)
    texts = connection.execute(query.where(configurations.c.hash.in_(used))).scalars().all()
    texts = texts or connection.execute(query.limit(1)).scalars().all()
    if not texts:
        raise InputError("the database holds no study yet")
    return [parse_config(text, "the stored configuration") for text in texts]


def export_study(
    store: "Store", folder: Path, mode: str = "live", *, raw: bool = False
) -> list[Path]:
    """Write a study folder: the tables, steps.parquet, events.jsonl, codebook.md and study.toml.

    Temporary files are written first and renamed when all are complete. Only their owner may read them, because people
    may have written who they are.

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
    names = [
        *TABLES,
        "events.jsonl",
        "codebook.md",
        *(["steps.parquet"] if table.has_parquet() else []),
    ]
    contents = {name: stream(store, name, mode, raw=raw) for name in names}
    with store.reading() as connection:
        config = configs_of(connection, mode)[0]
    return _write(folder, contents | {"study.toml": [config.to_toml().encode()]})


ABOUT_ONE = """
## participant.json

All that is stored of this participant beside the tables. `participant`: the row of the database. `external_hash` is
the keyed hash of the ID in the link, `resume_hash` that of the resume code, `uid` the name in the cookie of the
participant's browser; none of them leads back to the ID or the code without the key of the study. `audit`: what
researchers did. Times are ISO 8601, in UTC.
"""


def export_person(
    store: "Store", folder: Path, participant: Participant, *, raw: bool = False
) -> list[Path]:
    """Write everything that is stored of one participant, with a codebook, for somebody who asks for their data.

    Args:
        store: The database.
        folder: Folder for the files; created if there is none.
        participant: The participant.
        raw: Whether CSV files hold texts that a spreadsheet would take for a formula as they are.

    Returns:
        The files; only their owner may read them.
    """
    number, mode = participant.number, participant.mode
    names = [*TABLES, "events.jsonl"]
    contents = {name: stream(store, name, mode, raw=raw, number=number) for name in names}
    with store.reading() as connection:
        config = parse_config(operations.config_text(connection, participant.config))
        records = connection.execute(
            sa.select(audit).where(audit.c.number == number).order_by(audit.c.id)
        ).all()
    row = participant._asdict() | {
        "joined_at": iso(participant.joined_at),
        "seen_at": iso(participant.seen_at),
    }
    actions = [
        {"at": iso(record.at), "action": record.action, "detail": record.detail}
        for record in records
    ]
    everything = json.dumps({"participant": row, "audit": actions}, indent=2).encode()
    codebook = table.codebook(config, [mode], [config]) + ABOUT_ONE
    fixed = {
        "participant.json": everything,
        "codebook.md": codebook.encode(),
        "study.toml": config.to_toml().encode(),
    }
    return _write(folder, contents | {name: [content] for name, content in fixed.items()})


def _write(folder: Path, contents: Mapping[str, Iterable[bytes]]) -> list[Path]:
    """Write files that only their owner may read: all of them, or none."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as part:
        for name, content in contents.items():
            with open(Path(part) / name, "wb", opener=open_private) as file:
                file.writelines(content)
        for name in contents:
            shutil.move(Path(part) / name, folder / name)
    return [folder / name for name in contents]


def import_study(store: "Store", folder: Path) -> int:
    """Load an exported folder into a database, all or nothing.

    Participants keep their numbers, which determine their arrows. Exports do not identify anybody, so participants
    cannot resume the study.

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
            for i, line in enumerate(lines):
                try:
                    count += _put(connection, json.loads(line))
                except (KeyError, ValueError, TypeError, AttributeError) as error:
                    if isinstance(error, InputError):
                        raise
                    raise InputError(
                        f"{file}: line {i + 1} was not written by ital study export"
                    ) from None
        operations.note(connection, "imported", detail=f"{count} participants")
        return count

    try:
        return store.write(job)
    except sa.exc.IntegrityError:
        raise InputError(
            f"{file} is inconsistent: a step or event occurs twice, or has no participant"
        ) from None


def _put(connection: sa.Connection, record: dict[str, Any]) -> int:
    """Store one record of the log; return 1 for a participant."""
    kind, number = record["record"], record.get("participant")
    if kind == "configuration":
        _put_configuration(connection, record)
    elif kind == "participant":
        if operations.find(connection, number=number) is not None:
            raise InputError(
                f"participant {number} is in the database already: import into another database"
            )
        copied = {name: record[name] for name in Participant._fields if name in record}
        times = {name: from_iso(record[name]) for name in ("joined_at", "seen_at")}
        new = {
            "number": number,
            "uid": secrets.token_hex(16),
            "external_hash": None,
            "resume_hash": None,
            "events": 0,
        }
        connection.execute(participants.insert().values(copied | times | new))
        _count_on(connection, int(record["participant"]))
        return 1
    elif kind == "step":
        state = operations.as_bytes(np.asarray(record["state"], np.float32))
        copied = {
            name: record[name]
            for name in ("participant", "map", "learner", "robot", "step", "choice")
        }
        stored = {
            "state": state,
            "timing": _text(record["timing"]),
            "stored_at": from_iso(record["at"]),
        }
        connection.execute(steps.insert().values(copied | stored))
    elif kind in ("event", "unreadable"):
        copied = {name: record[name] for name in ("participant", "number", "kind", "source")}
        at = {"at": from_iso(record["at"]), "client_at": from_iso(record["client_at"])}
        connection.execute(events.insert().values(copied | at | {"data": _text(record["data"])}))
        p = participants.c
        connection.execute(
            participants.update().where(p.number == number).values(events=p.events + 1)
        )
    elif kind == "deleted":
        copied = {"number": number, "by": record["by"], "deleted_at": from_iso(record["at"])}
        connection.execute(tombstones.insert().values(uid=secrets.token_hex(16), **copied))
        _count_on(connection, int(record["participant"]))
    else:
        raise ValueError(kind)
    return 0


def _text(data: Any) -> str:
    """Data as they are stored; what could not be read is a text already."""
    return data if isinstance(data, str) else operations.as_json(data)


def _put_configuration(connection: sa.Connection, record: Mapping[str, Any]) -> None:
    if parse_config(record["toml"], "the configuration in events.jsonl").hash != record["hash"]:
        raise InputError("the configuration in events.jsonl does not match its hash")
    stored = connection.execute(
        sa.select(configurations).where(configurations.c.hash == record["hash"])
    ).first()
    if stored is None:
        row = {"hash": record["hash"], "name": record["name"], "text": record["toml"]}
        connection.execute(
            configurations.insert().values(row | {"added_at": from_iso(record["added_at"])})
        )


def _count_on(connection: sa.Connection, number: int) -> None:
    """Make sure that imported numbers are not given again."""
    free = intake.c.next_number
    connection.execute(intake.update().where(free <= number).values(next_number=number + 1))
