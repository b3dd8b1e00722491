"""Nothing that was acknowledged is undone: deletions, exclusions and restores on a full disk and
under kill −9.
"""

import contextlib
import json
import os
import resource
import shutil
import sqlite3
import threading
from collections import Counter
from pathlib import Path

import pytest
import sqlalchemy as sa

from ital.errors import InputError
from ital.tools import files
from ital_study.store import NotStored, backups, open_store, operations, read_tombstones
from ital_study.store.records import Event
from ital_study.store.tables import events, participants, tombstones
from tests.server import faults
from tests.server.test_store import add, move, step

EARLIER, VICTIM, OTHERS = 1, 2, {3, 4}


def people(url):
    """Four people with steps and events; the first is deleted, after the backup ``old.backup`` was
    made.
    """
    with open_store(url, create=True) as store:
        for number in (EARLIER, VICTIM, *sorted(OTHERS)):
            one = move(store, add(store, external_hash=f"identity {number}"), stage="teach")
            one = store.write(
                lambda connection, one=one: operations.add_step(connection, one, step())
            )
            store.write(
                lambda connection, one=one: operations.move(
                    connection, one, [Event("words", {"a": "b"})]
                )
            )
        backups.backup(store, store.tombstone_file.with_name("old.backup"))
        store.erase(person(store, EARLIER), "participant")


def person(store, number):
    with store.reading() as connection:
        return operations.find(connection, number=number)


def rows(url):
    """How many events of everybody are stored, who is excluded, and who has a tombstone."""
    with open_store(url) as store, store.reading() as connection:
        numbers = connection.execute(sa.select(participants.c.number)).scalars().all()
        counted = Counter(connection.execute(sa.select(events.c.participant)).scalars())
        excluded = {row.number for row in operations.everyone(connection) if row.excluded}
        deleted = set(connection.execute(sa.select(tombstones.c.number)).scalars())
    return {number: counted[number] for number in numbers}, excluded, deleted


def in_file(url):
    with open_store(url) as store:
        return {row["number"] for row in read_tombstones(store.tombstone_file)}


@contextlib.contextmanager
def files_of_at_most(size):
    """Keep files of this process from growing beyond a size: a write stores what fits, and the
    next one fails.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_is_full_at_every_byte_of_the_file_of_deletions(url):
    """With PostgreSQL only the file is too large, so that the database would take the deletion."""
    people(url)
    with open_store(url) as store:
        victim, file = person(store, VICTIM), store.tombstone_file
        before = file.read_bytes()
        line = json.dumps(operations.tombstone_of(victim, "researcher"), sort_keys=True) + "\n"
        for size in range(0, len(before) + len(line), 1 if url.startswith("sqlite") else 8):
            with (
                files_of_at_most(size),
                pytest.raises(NotStored, match=r"the disk is full|refuses to store"),
            ):
                store.erase(victim, "researcher")
            assert file.read_bytes() == before, size
            assert list(file.parent.glob(".*")) == []
        assert person(store, VICTIM) == victim
        store.erase(victim, "researcher")
    assert rows(url) == (dict.fromkeys(OTHERS, 2), set(), {EARLIER, VICTIM})
    assert in_file(url) == {EARLIER, VICTIM}
    assert [json.loads(line)["number"] for line in file.read_text().splitlines()] == [
        EARLIER,
        VICTIM,
    ]


def comes_back(url, folder):
    """Who is there after the old backup replaces the database, and after it is restored where only
    the file is left.
    """
    backup = folder / "old.backup"
    with open_store(url) as store:
        shutil.copy(store.tombstone_file, folder / "elsewhere.db.tombstones")
    backups.restore(backup, str(folder / "elsewhere.db"))
    backups.restore(backup, url, replace=True)
    return set(rows(url)[0]) | set(rows(str(folder / "elsewhere.db"))[0])


def check_deletion(url, folder, acknowledged):
    if acknowledged:  # before a store opens the database, which may be lost by then
        [file] = folder.glob("*.tombstones")
        assert VICTIM in {row["number"] for row in read_tombstones(file)}
    counted, excluded, deleted = rows(url)
    assert counted.keys() - {VICTIM} == OTHERS
    assert set(counted.values()) == {2}  # nobody is half deleted
    assert excluded == set()
    assert deleted == {EARLIER, VICTIM} - counted.keys()
    assert deleted <= in_file(url)
    if acknowledged:
        assert VICTIM in deleted
    assert comes_back(url, folder) == {VICTIM, *OTHERS} - deleted


def check_exclusion(url, folder, acknowledged):
    counted, excluded, deleted = rows(url)
    assert counted == dict.fromkeys({VICTIM, *OTHERS}, 2)
    assert deleted == in_file(url) == {EARLIER}
    assert excluded in ({VICTIM}, set())
    with open_store(url) as store, store.reading() as connection:
        audit = (
            connection.exec_driver_sql("SELECT number FROM audit WHERE action = 'excluded'")
            .scalars()
            .all()
        )
    assert set(audit) == excluded
    if acknowledged:
        assert excluded == {VICTIM}
    assert comes_back(url, folder) == {VICTIM, *OTHERS}


def check_restore(url, folder, acknowledged):
    """Before the restore there was one more person, who was not in the backup."""
    counted, _, deleted = rows(url)
    assert counted.keys() - {5} == {VICTIM, *OTHERS}
    assert set(counted.values()) == {2}
    assert deleted == in_file(url) == {EARLIER}
    with open_store(url) as store, store.reading() as connection:
        restored = connection.exec_driver_sql(
            "SELECT number FROM audit WHERE action = 'restored'"
        ).all()
    assert len(restored) == (0 if 5 in counted else 1)
    if acknowledged:
        assert len(restored) == 1
    assert comes_back(url, folder) == {VICTIM, *OTHERS}


COMMANDS = {
    "delete": (check_deletion, lambda folder: {"number": VICTIM}),
    "exclude": (check_exclusion, lambda folder: {"number": VICTIM, "reason": "took part twice"}),
    "restore": (check_restore, lambda folder: {"backup": str(folder / "old.backup")}),
}


def before(name, url):
    """A study before a command."""
    people(url)
    if name == "restore":
        with open_store(url) as store:
            late = move(store, add(store), stage="teach")
            store.write(lambda connection: operations.move(connection, late, [Event("words")]))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folders before each command; tests copy them."""
    folders = {}
    for name in COMMANDS:
        folder = folders[name] = tmp_path_factory.mktemp(name)
        before(name, str(folder / "study.db"))
    return folders


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_kill_leaves_at_every_step(command, made, tmp_path, monkeypatch):
    """Copies of the folder, taken at every statement, sync and rename, are what a kill would have
    left there.
    """
    check, given = COMMANDS[command]
    folder = tmp_path / "folder"
    shutil.copytree(made[command], folder)
    seen = {}

    def snapshot(*_, **__):
        files = {
            file.name: file.read_bytes()
            for file in sorted(folder.iterdir())
            if file.suffix != ".db-shm"
        }
        seen.setdefault(json.dumps({name: hash(content) for name, content in files.items()}), files)

    def observed(function):
        def call(*arguments, **more):
            snapshot()
            value = function(*arguments, **more)
            snapshot()
            return value

        return call

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, observed(getattr(os, name)))
    watched = ("before_cursor_execute", "after_cursor_execute", "commit", "rollback")
    for name in watched:
        sa.event.listen(sa.engine.Engine, name, snapshot)
    try:
        for _ in faults.COMMANDS[command](str(folder / "study.db"), **given(folder)):
            snapshot()
            # The copies before this one are those of an unfinished command.
            acknowledged = len(seen) - 1
    finally:
        for name in watched:
            sa.event.remove(sa.engine.Engine, name, snapshot)
        monkeypatch.undo()
    assert len(seen) > 1
    for i, contents in enumerate(seen.values()):
        copy = tmp_path / f"copy {i}"
        copy.mkdir()
        for name, content in contents.items():
            (copy / name).write_bytes(content)
        check(str(copy / "study.db"), copy, acknowledged=i >= acknowledged)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    if faults.COMPILER is None:
        pytest.skip("no C compiler for the failing file layer; another test takes copies instead")
    process = faults.FaultyProcess(tmp_path_factory.mktemp("layer"))
    yield process
    process.close()


def fail(faulty, command, kind, at, url, folder):
    """One command that fails at a step, if it is to."""
    outcome = faulty.run(command, url, kind, at, **COMMANDS[command][1](folder))
    assert outcome.killed == (kind == "kill")
    # Errors that the command line prints in one line.
    assert outcome.said.partition(":")[0] in ("", "NotStored", "InputError", "Unwritable"), outcome
    assert outcome.acknowledged or outcome.killed or outcome.said
    return outcome


def fail_at_every_step(run):
    """Every step of every command is killed once, and the disk is full from every step on."""
    acknowledged, failed = 0, Counter()
    for command in COMMANDS:
        for kind, count in (("kill", "count"), ("full", "count files")):
            counted = run(command, count, 0)
            assert counted.acknowledged
            for at in range(1, counted.steps + 1):
                acknowledged += run(command, kind, at).acknowledged
                failed[command, kind] += 1
            print(
                f"\n{failed.total()} runs, {acknowledged} acknowledged, "
                f"none undone: {dict(failed)}",
                flush=True,
            )
    assert failed.total() >= 200


@pytest.mark.slow
def test_two_hundred_runs_that_fail_at_every_step(faulty, made, tmp_path):
    def run(command, kind, at):
        folder = tmp_path / f"{command} {kind} {at}"
        shutil.copytree(made[command], folder)
        outcome = fail(faulty, command, kind, at, str(folder / "study.db"), folder)
        COMMANDS[command][0](str(folder / "study.db"), folder, outcome.acknowledged)
        shutil.rmtree(folder)
        return outcome

    fail_at_every_step(run)


@pytest.mark.slow
def test_two_hundred_runs_that_fail_at_every_step_with_postgresql(
    faulty, cluster, tmp_path, monkeypatch
):
    """What is sent to the database is a step as well; its server outlives every kill."""
    sources = {}
    for command in COMMANDS:
        (tmp_path / command).mkdir()
        monkeypatch.setenv("ITAL_STUDY_FOLDER", str(tmp_path / command))
        sources[command] = cluster.lasting()
        before(command, sources[command])
    url, folder = cluster.lasting(), tmp_path / "copy"

    def run(command, kind, at):
        source, copy = (sa.make_url(one).database for one in (sources[command], url))
        folder.mkdir()
        for file in (tmp_path / command).iterdir():
            shutil.copy2(file, folder / file.name.replace(source, copy))
        cluster.copy(source, copy)
        monkeypatch.setenv("ITAL_STUDY_FOLDER", str(folder))
        outcome = fail(faulty, command, kind, at, url, folder)
        cluster.wait_until_left(copy)
        COMMANDS[command][0](url, folder, outcome.acknowledged)
        cluster.wait_until_left(copy)
        shutil.rmtree(folder)
        return outcome

    fail_at_every_step(run)


HALF = '{"by": "researcher", "deleted_at": 1795039679774, "external_'
WHOLE = {
    "by": "researcher",
    "deleted_at": 1795039691710,
    "external_hash": "ab",
    "number": 12,
    "uid": "cd",
}


def test_files_of_older_versions_are_read(tmp_path):
    """They had no hash at first, and a record could be glued to half of another one."""
    file = tmp_path / "study.db.tombstones"
    oldest = {"by": "participant", "deleted_at": 1, "number": 11, "uid": "ef"}
    file.write_text(f"{json.dumps(oldest)}\n{json.dumps(WHOLE)}\n")
    assert read_tombstones(file) == [oldest | {"external_hash": None}, WHOLE]
    assert read_tombstones(tmp_path / "nowhere") == []
    file.write_text(f"{HALF}{json.dumps(WHOLE)}\n")
    with pytest.raises(InputError, match="a deletion cannot be read") as refused:
        read_tombstones(file)
    assert str(file) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "torn", [HALF, '{"by": "rese', "\0\0\0\0", "é�", '{"uid": "a", "number": "no number"}', "[1]"]
)
def test_a_deletion_that_cannot_be_read_stops_a_restore(sqlite_url, tmp_path, torn):
    people(sqlite_url)
    with open_store(sqlite_url) as store:
        file = store.tombstone_file
        whole = file.read_bytes()
        file.write_bytes(whole + torn.encode("utf-8", "replace"))
        store.erase(person(store, VICTIM), "researcher")
        piece, *lines = file.read_text().splitlines()  # it stays, and no record is glued to it
        assert (piece, [json.loads(line)["number"] for line in lines]) == (torn, [EARLIER, VICTIM])
        content = file.read_bytes()
    before = rows(sqlite_url)
    for database in (sqlite_url, str(tmp_path / "fresh.db")):
        Path(tmp_path / "fresh.db.tombstones").write_bytes(content)
        with pytest.raises(InputError, match="nothing was restored"):
            backups.restore(tmp_path / "old.backup", database, replace=True)
    assert not (tmp_path / "fresh.db").exists()
    assert rows(sqlite_url) == before
    file.write_bytes(b"".join(content.splitlines(keepends=True)[1:]))  # as the line says
    assert comes_back(sqlite_url, tmp_path) == OTHERS


def test_half_a_record_of_a_deletion_that_the_database_knows_is_completed(url, tmp_path):
    people(url)
    with open_store(url) as store:
        file = store.tombstone_file
    whole = file.read_bytes()
    file.write_bytes(whole[:70])
    assert in_file(url) == {EARLIER}
    assert file.read_bytes() == whole
    file.unlink()
    assert in_file(url) == {EARLIER}
    assert file.stat().st_mode & 0o077 == 0
    assert comes_back(url, tmp_path) == {VICTIM, *OTHERS}


def test_many_deletions_at_once_are_all_in_the_file(url):
    with open_store(url, create=True) as store, open_store(url) as other:
        several = [move(store, add(store), stage="teach") for _ in range(12)]
        threads = [
            threading.Thread(target=(store, other)[i % 2].erase, args=(one, "researcher"))
            for i, one in enumerate(several)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert in_file(url) == {one.number for one in several}


def test_a_prepared_file_that_vanishes_is_written_again(url, monkeypatch):
    """A deletion that is refused tidies up, perhaps in another process."""
    replace = files.replace

    def vanish_first(path, other):
        if other.name.endswith(".next"):
            other.unlink()
        replace(path, other)

    people(url)
    monkeypatch.setattr(files, "replace", vanish_first)
    with open_store(url) as store:
        store.erase(person(store, VICTIM), "researcher")
    assert in_file(url) == {EARLIER, VICTIM}


def test_what_cannot_be_overwritten_yet_does_not_deny_the_deletion(sqlite_url):
    """Only then does SQLite move its log into the database, which needs space."""

    def refuse(action, first, *_):
        is_checkpoint = action == sqlite3.SQLITE_PRAGMA and first == "wal_checkpoint"
        return sqlite3.SQLITE_DENY if is_checkpoint else sqlite3.SQLITE_OK

    people(sqlite_url)
    with open_store(sqlite_url) as store:
        victim = person(store, VICTIM)
        sa.event.listen(store.engine, "checkout", lambda raw, *_: raw.set_authorizer(refuse))
        store.erase(victim, "researcher")
        assert person(store, VICTIM) is None
        store.tidy()  # tries again, in vain
    assert in_file(sqlite_url) == {EARLIER, VICTIM}
