"""The data as files: the tidy table of steps and the full log; and their import."""

import functools
import json
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa

from ital.errors import InputError
from ital.study import _quality, _table
from ital.study._config import Config, parse_config
from ital.study._rules import StudyRules
from ital.study.store import operations
from ital.study.store.answers_table import answer_blocks
from ital.study.store.participants_table import participant_blocks
from ital.study.store.records import Participant, StoredStep
from ital.study.store.tables import configurations, events, intake, participants, steps, tombstones
from ital.study.store.times import from_iso, iso

if TYPE_CHECKING:
    import pandas as pd

    from ital.study.store._store import Store

BLOCK = 1 << 16


# The table of steps


def rules_of(connection: sa.Connection) -> Callable[[str], StudyRules]:
    """The rules by the hash of their configuration, each made once."""
    return functools.cache(lambda config: StudyRules(parse_config(operations.config_text(connection, config))))


def blocks(connection: sa.Connection, mode: str) -> "Iterator[pd.DataFrame]":
    """Iterate over the table of steps, one participant at a time.

    Args:
        connection: The transaction.
        mode: Mode of the participants.

    Yields:
        One table per participant; a table without rows if there are none.
    """
    rules, has_rows = rules_of(connection), False
    for participant in operations.everyone(connection, mode=mode):
        stored = operations.steps_of(connection, participant.number)
        rows = rows_of(rules(participant.config), participant, stored)
        if rows:
            has_rows = True
            yield _quality.flag_steps(_table.frame(rows), rules(participant.config).config.quality)
    if not has_rows:
        yield _table.frame([])


def rows_of(rules: StudyRules, participant: Participant, stored: Iterable[StoredStep]) -> list[dict[str, Any]]:
    """Convert a participant's steps to rows of the table; the warm-up does not count.

    Args:
        rules: Rules of the participant's configuration.
        participant: The participant.
        stored: The stored steps.

    Returns:
        Rows by map and robot.
    """
    maps = [on.name for on in rules.config.maps]
    by_round: dict[tuple[int, int], list[StoredStep]] = {}
    for step in stored:
        if step.map in maps:
            by_round.setdefault((maps.index(step.map), step.robot), []).append(step)
    return [row for _, steps in sorted(by_round.items()) for row in _rows_of_round(rules, participant, steps)]


def _rows_of_round(rules: StudyRules, participant: Participant, stored: list[StoredStep]) -> Iterator[dict[str, Any]]:
    stored = sorted(stored, key=lambda step: step.step)
    name = stored[0].map
    beliefs = np.stack([rules.start(participant.number, name), *(operations.as_state(step.state) for step in stored)])
    measured = rules.measures_many(name, beliefs)
    candidates = rules.candidates(participant.number, name)
    for i, step in enumerate(stored):
        arrows = candidates[step.step - 1]
        yield {
            "participant": participant.number,
            **{column: getattr(participant, column) for column in ("mode", "teacher", "config", "code_version")},
            **{column: getattr(participant, column) for column in ("order", "usable")},
            **{column: getattr(step, column) for column in ("map", "learner", "robot", "step", "choice")},
            "cell": arrows[step.choice].cell,
            "action": arrows[step.choice].action,
            "machine_choice": rules.best(name, beliefs[i], arrows),
            "candidates": json.dumps([list(arrow) for arrow in arrows], separators=(",", ":")),
            **{metric: float(measured[metric][i + 1]) for metric in _table.MEASURES},
            **{f"{metric}_before": float(measured[metric][i]) for metric in _table.MEASURES},
            **_table.UNKNOWN,
            **_times(json.loads(step.timing)),
            "stored_at": iso(step.stored_at),
        }


def _times(timing: Mapping[str, Any]) -> dict[str, Any]:
    """Times of a step for the table; durations come from the page's monotonic clock if it sent them."""
    shown = timing.get("shown_at")

    def seconds(name: str, until: str) -> float:
        if name in timing:
            return float(timing[name])
        return (timing[until] - shown) / 1000 if shown is not None and until in timing else float("nan")

    return {
        **{name: iso(timing.get(name)) for name in ("shown_at", "chosen_at", "confirmed_at")},
        "seconds_to_choice": seconds("seconds_to_choice", "chosen_at"),
        "seconds_to_confirm": seconds("seconds_to_confirm", "confirmed_at"),
        "choice_changes": timing.get("choice_changes", 0),
        "focus_losses": timing.get("focus_losses", 0),
        "input": timing.get("input", ""),
    }


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
    if mode not in _table.MODES:
        raise InputError(f"the mode must be one of {', '.join(_table.MODES)}, not {mode!r}")


# The log


def log(connection: sa.Connection, mode: str) -> Iterator[dict[str, Any]]:
    """Iterate over all records of a mode: configurations, participants, their steps and events, and deletions.

    Hashes of external IDs and resume codes are left out.

    Args:
        connection: The transaction.
        mode: Mode of the participants.

    Yields:
        Dictionaries that can be written as JSON.
    """
    everyone = operations.everyone(connection, mode=mode)
    used = {participant.config for participant in everyone}
    for row in connection.execute(sa.select(configurations).order_by(configurations.c.added_at)):
        if row.hash in used:
            facts = {"hash": row.hash, "name": row.name, "added_at": iso(row.added_at), "toml": row.text}
            yield {"record": "configuration", **facts}
    for participant in everyone:
        times = {"joined_at": iso(participant.joined_at), "seen_at": iso(participant.seen_at)}
        columns, number = participant._asdict() | times, participant.number
        private = ("uid", "external_hash", "resume_hash", "number", "events")
        yield {"record": "participant", "participant": number} | {
            name: value for name, value in columns.items() if name not in private
        }
        yield from sorted(_happened(connection, number), key=lambda record: (record["at"], record["record"]))
    for row in connection.execute(sa.select(tombstones).order_by(tombstones.c.deleted_at, tombstones.c.number)):
        yield {"record": "deleted", "participant": row.number, "at": iso(row.deleted_at), "by": row.by}


def _happened(connection: sa.Connection, number: int) -> Iterator[dict[str, Any]]:
    for step in operations.steps_of(connection, number):
        yield {
            "record": "step",
            "participant": number,
            "at": iso(step.stored_at),
            **{name: getattr(step, name) for name in ("map", "learner", "robot", "step", "choice")},
            "state": operations.as_state(step.state).tolist(),
            "timing": json.loads(step.timing),
        }
    query = sa.select(events).where(events.c.participant == number).order_by(events.c.number)
    for row in connection.execute(query):
        yield {
            "record": "event",
            "participant": number,
            "at": iso(row.at),
            "number": row.number,
            "kind": row.kind,
            "source": row.source,
            "client_at": iso(row.client_at),
            "data": json.loads(row.data),
        }


# Files

TABLES = {"steps.csv": blocks, "participants.csv": participant_blocks, "answers.csv": answer_blocks}


def stream(store: "Store", file: str, mode: str) -> Iterator[bytes]:
    """Iterate over the content of a file of the export; memory holds one participant at a time.

    Args:
        store: The database.
        file: One of :data:`TABLES`, ``steps.parquet``, ``events.jsonl`` or ``codebook.md``.
        mode: Mode of the participants.

    Yields:
        The content, piece by piece.

    Raises:
        InputError: There is no such file or mode.
    """
    _check_mode(mode)
    with store.reading() as connection:
        if file in TABLES:
            for i, block in enumerate(TABLES[file](connection, mode)):
                yield _table.csv_text(block, header=i == 0).encode()
        elif file == "events.jsonl":
            for record in log(connection, mode):
                yield json.dumps(record, ensure_ascii=True).encode() + b"\n"
        elif file == "codebook.md":
            yield _table.codebook(newest_config(connection, mode), [mode]).encode()
        elif file == "steps.parquet":
            with tempfile.TemporaryFile() as parquet:
                _table.write_parquet(blocks(connection, mode), parquet)
                parquet.seek(0)
                while content := parquet.read(BLOCK):
                    yield content
        else:
            raise InputError(f"there is no file {file!r} in an export")


def newest_config(connection: sa.Connection, mode: str) -> Config:
    """Return the newest configuration that participants of a mode saw, or the newest of all.

    Args:
        connection: The transaction.
        mode: Mode of the participants.

    Returns:
        The configuration.

    Raises:
        InputError: The database holds no study yet.
    """
    query = sa.select(configurations.c.text).order_by(configurations.c.added_at.desc())
    used = sa.select(participants.c.config).where(participants.c.mode == mode)
    text = connection.execute(query.where(configurations.c.hash.in_(used))).scalars().first()
    text = text or connection.execute(query).scalars().first()
    if text is None:
        raise InputError("the database holds no study yet")
    return parse_config(text, "the stored configuration")


def export_study(store: "Store", folder: Path, mode: str = "live") -> list[Path]:
    """Write a study folder: the tables, steps.parquet, events.jsonl, codebook.md and study.toml.

    Temporary files are written first and renamed when all are complete.

    Args:
        store: The database.
        folder: Folder for the files; created if there is none.
        mode: Mode of the participants.

    Returns:
        The files.

    Raises:
        InputError: There is no such mode, or no study.
    """
    _check_mode(mode)
    folder.mkdir(parents=True, exist_ok=True)
    names = [*TABLES, "events.jsonl", "codebook.md", *(["steps.parquet"] if _table.has_parquet() else [])]
    with tempfile.TemporaryDirectory(dir=folder, prefix=".part-") as part:
        for name in names:
            with (Path(part) / name).open("wb") as file:
                for content in stream(store, name, mode):
                    file.write(content)
        with store.reading() as connection:
            (Path(part) / "study.toml").write_text(newest_config(connection, mode).to_toml(), encoding="utf-8")
        for name in (*names, "study.toml"):
            shutil.move(Path(part) / name, folder / name)
    return [folder / name for name in (*names, "study.toml")]


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
                    raise InputError(f"{file}: line {i + 1} was not written by ital study export") from None
        operations.note(connection, "imported", detail=f"{count} participants")
        return count

    try:
        return store.write(job)
    except sa.exc.IntegrityError:
        raise InputError(f"{file} is inconsistent: a step or event occurs twice, or has no participant") from None


def _put(connection: sa.Connection, record: dict[str, Any]) -> int:
    """Store one record of the log; return 1 for a participant."""
    kind, number = record["record"], record.get("participant")
    if kind == "configuration":
        _put_configuration(connection, record)
    elif kind == "participant":
        if operations.find(connection, number=number) is not None:
            raise InputError(f"participant {number} is in the database already: import into another database")
        copied = {name: record[name] for name in Participant._fields if name in record}
        times = {name: from_iso(record[name]) for name in ("joined_at", "seen_at")}
        new = {"number": number, "uid": secrets.token_hex(16), "external_hash": None, "resume_hash": None, "events": 0}
        connection.execute(participants.insert().values(copied | times | new))
        _count_on(connection, int(record["participant"]))
        return 1
    elif kind == "step":
        state = operations.as_bytes(np.asarray(record["state"], np.float32))
        copied = {name: record[name] for name in ("participant", "map", "learner", "robot", "step", "choice")}
        stored = {"state": state, "timing": operations.as_json(record["timing"]), "stored_at": from_iso(record["at"])}
        connection.execute(steps.insert().values(copied | stored))
    elif kind == "event":
        copied = {name: record[name] for name in ("participant", "number", "kind", "source")}
        at = {"at": from_iso(record["at"]), "client_at": from_iso(record["client_at"])}
        connection.execute(events.insert().values(copied | at | {"data": operations.as_json(record["data"])}))
        p = participants.c
        connection.execute(participants.update().where(p.number == number).values(events=p.events + 1))
    elif kind == "deleted":
        copied = {"number": number, "by": record["by"], "deleted_at": from_iso(record["at"])}
        connection.execute(tombstones.insert().values(uid=secrets.token_hex(16), **copied))
        _count_on(connection, int(record["participant"]))
    else:
        raise ValueError(kind)
    return 0


def _put_configuration(connection: sa.Connection, record: Mapping[str, Any]) -> None:
    if parse_config(record["toml"], "the configuration in events.jsonl").hash != record["hash"]:
        raise InputError("the configuration in events.jsonl does not match its hash")
    stored = connection.execute(sa.select(configurations).where(configurations.c.hash == record["hash"])).first()
    if stored is None:
        row = {"hash": record["hash"], "name": record["name"], "text": record["toml"]}
        connection.execute(configurations.insert().values(row | {"added_at": from_iso(record["added_at"])}))


def _count_on(connection: sa.Connection, number: int) -> None:
    """Make sure that imported numbers are not given again."""
    free = intake.c.next_number
    connection.execute(intake.update().where(free <= number).values(next_number=number + 1))
