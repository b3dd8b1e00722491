"""Export and import, backup and restore."""

import gzip
import json
import os
import threading
import time

import pandas as pd
import pytest
import sqlalchemy as sa

from ital.errors import InputError
from ital_study.analysis import measures
from ital_study.cli.analysis import read_source
from ital_study.data import table as _table
from ital_study.store import backups, export, open_store, operations
from ital_study.store.tables import steps
from ital_study.store.verification import verify
from tests.server import postgres
from tests.server.conftest import serve
from tests.server.people import Person, Researcher, tiny
from tests.server.test_access import everything


def small_study(url):
    with serve(url) as client:
        people = [
            Person(client, tiny()).join(ids={"id": f"external-{i}"}).begin() for i in range(4)
        ]
        people[0].finish()
        people[1].finish()
        people[2].teach(7)
        people[2].post("/api/events", {"events": [{"kind": "focus_lost", "at": 1.5}]})
        people[3].teach(2).do("/api/leave", {"keep": False})
        Person(client, tiny()).simulate().begin().finish()


@pytest.fixture
def studied(url, filled):
    """A database after a small study: two finished, one half-way, one deleted, one simulated."""
    filled(small_study)
    return url


@pytest.fixture
def another(url, request, tmp_path):
    """Another empty database, of the other kind."""
    if url.startswith("postgresql") or postgres.binaries() is None:
        (tmp_path / "another").mkdir()
        yield str(tmp_path / "another" / "study.db")
    else:
        with request.getfixturevalue("cluster").new() as address:
            yield address


def test_only_the_owner_may_read_an_export(studied, tmp_path):
    before = os.umask(0o022)
    try:
        with open_store(studied) as store:
            files = export.export_study(store, tmp_path / "out", "live")
    finally:
        os.umask(before)
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o700


def test_export_import_and_export_again_is_the_same_bit_for_bit(studied, another, tmp_path):
    with open_store(studied) as store:
        files = export.export_study(store, tmp_path / "first", "live")
        table = store.steps_table("live")
    tables = {"steps.csv", "steps.parquet", "participants.csv", "answers.csv"}
    assert {file.name for file in files} == tables | {"events.jsonl", "codebook.md", "study.toml"}
    with open_store(another, create=True) as store:
        assert export.import_study(store, tmp_path / "first") == 3
        again = store.steps_table("live")
        for file in export.export_study(store, tmp_path / "second", "live"):
            if file.name != "steps.parquet":
                assert file.read_bytes() == (tmp_path / "first" / file.name).read_bytes(), file.name
        assert verify(store).problems == []
    pd.testing.assert_frame_equal(again, table)
    read = _table.read_study(tmp_path / "first")
    pd.testing.assert_frame_equal(read.steps, table)
    assert read.config.hash == tiny().hash
    pd.testing.assert_frame_equal(
        _table.frame(pd.read_parquet(tmp_path / "second" / "steps.parquet")), table
    )


def test_the_analysis_of_an_export_an_import_and_the_database_gives_the_same_numbers(
    sqlite_url, served, tmp_path
):
    with served(sqlite_url) as client:
        for _ in range(2):
            Person(client, tiny()).join().begin().finish()
    with open_store(sqlite_url) as store:
        export.export_study(store, tmp_path / "out", "live")
    with open_store(str(tmp_path / "copy.db"), create=True) as store:
        export.import_study(store, tmp_path / "out")
    sources = (sqlite_url, str(tmp_path / "copy.db"), str(tmp_path / "out"))
    first, *others = [
        measures.analyze(read_source(source, "live")[0], "live") for source in sources
    ]
    assert "human" in set(first.outcomes["teacher"])
    for other in others:
        for name in ("outcomes", "summary", "tests", "curves"):
            pd.testing.assert_frame_equal(
                getattr(first, name), getattr(other, name), check_exact=True
            )


def test_exports_hold_no_external_ids_no_codes_and_nobody_who_was_deleted(studied, tmp_path):
    with open_store(studied) as store:
        export.export_study(store, tmp_path / "out", "live")
    with open_store(studied) as store, store.reading() as connection:
        everyone = operations.everyone(connection, mode="live")
    text = "".join(
        file.read_text() for file in (tmp_path / "out").iterdir() if file.suffix != ".parquet"
    )
    for one in everyone:
        for private in (one.uid, one.external_hash, one.resume_hash):
            assert private not in text
    records = [
        json.loads(line) for line in (tmp_path / "out" / "events.jsonl").read_text().splitlines()
    ]
    assert [r["participant"] for r in records if r["record"] == "deleted"] == [4]
    assert {
        r["participant"] for r in records if r["record"] in ("participant", "step", "event")
    } == {1, 2, 3}


def test_importing_twice_or_rubbish_is_refused_and_changes_nothing(studied, another, tmp_path):
    with open_store(studied) as store:
        export.export_study(store, tmp_path / "out", "live")
    with open_store(another, create=True) as store:
        export.import_study(store, tmp_path / "out")
    before = everything(another)
    lines = (tmp_path / "out" / "events.jsonl").read_text().splitlines()
    taken = [line for line in lines if '"record": "step"' in line]
    for name, text, said in (
        ("same", "\n".join(lines), "already"),
        ("rubbish", "rubbish", "line 1 was not written by"),
        ("other", '{"record": "who knows"}', "line 1 was not written by"),
        ("orphan", taken[0].replace('"participant": 1,', '"participant": 77,'), "is inconsistent"),
        ("config", lines[0].replace("Teach the robot", "Teach the reader"), "its hash"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "events.jsonl").write_text(text + "\n")
        with open_store(another) as store, pytest.raises(InputError, match=said):
            export.import_study(store, tmp_path / name)
    with open_store(another) as store, pytest.raises(InputError, match=r"no events\.jsonl"):
        export.import_study(store, tmp_path / "nowhere")
    assert everything(another) == before


def test_a_backup_restores_into_the_other_database(studied, another, tmp_path):
    with open_store(studied) as store:
        counts = backups.backup(store, tmp_path / "b.backup")
    assert (tmp_path / "b.backup").stat().st_mode & 0o077 == 0
    assert backups.restore(tmp_path / "b.backup", another) == {**counts, "erased": 0}
    was, restored = everything(studied), everything(another)
    assert restored.pop("audit")[:-1] == was.pop("audit")
    assert restored == was
    with open_store(another) as store:
        assert verify(store).problems == []


def test_a_restored_study_resumes(studied, another, tmp_path, served):
    with open_store(studied) as store:
        backups.backup(store, tmp_path / "b.backup")
    backups.restore(tmp_path / "b.backup", another)
    with served(another) as client:
        one = Person(client, tiny()).join(ids={"id": "external-2"})
        assert one.state["progress"]["done"] == 7
        one.finish()
        newcomer = Person(client, tiny()).join()
        newcomer.begin()
    assert max(row.number for row in everything(another)["participants"]) == 6


def test_whoever_was_deleted_after_the_backup_stays_deleted(studied, tmp_path, served):
    with open_store(studied) as store:
        backups.backup(store, tmp_path / "b.backup")
    with served(studied) as client:
        Researcher(client, tiny()).log_in().post("/api/admin/delete", {"number": 1, "confirm": 1})
        late = Person(client, tiny()).join().begin()
        late.do("/api/leave", {"keep": False})  # came and went after the backup: number 6
    with pytest.raises(InputError, match="--replace"):
        backups.restore(tmp_path / "b.backup", studied)
    assert backups.restore(tmp_path / "b.backup", studied, replace=True)["erased"] == 1
    rows = everything(studied)
    assert [row.number for row in rows["participants"]] == [2, 3, 5]
    assert {row.participant for row in rows["steps"]} == {2, 3, 5}
    assert sorted(row.number for row in rows["tombstones"]) == [1, 4, 6]
    with served(studied) as client:
        Person(client, tiny()).join()
    assert max(row.number for row in everything(studied)["participants"]) == 7


def test_deletions_travel_to_another_machine_by_file(studied, another, tmp_path, served):
    with open_store(studied) as store:
        backups.backup(store, tmp_path / "b.backup")
        old_file = store.tombstone_file
    with served(studied) as client:
        Researcher(client, tiny()).log_in().post("/api/admin/delete", {"number": 1, "confirm": 1})
    from ital_study.store import read_tombstones

    counts = backups.restore(
        tmp_path / "b.backup", another, more_tombstones=read_tombstones(old_file)
    )
    assert counts["erased"] == 1
    assert [row.number for row in everything(another)["participants"]] == [2, 3, 5]


def test_damaged_backups_are_refused_and_change_nothing(studied, tmp_path):
    file = tmp_path / "b.backup"
    with open_store(studied) as store:
        backups.backup(store, file)
    before, good = everything(studied), file.read_bytes()
    text = gzip.decompress(good)
    lines = text.splitlines(keepends=True)
    bad = {
        "cut short": good[: len(good) // 2],
        "a bit flipped": good[:100] + bytes([good[100] ^ 1]) + good[101:],
        "a row lost": gzip.compress(b"".join(lines[:5] + lines[6:])),
        "no end": gzip.compress(b"".join(lines[:-1])),
        "not a backup": b"hello",
        "empty": b"",
        "other JSON": gzip.compress(b'{"a": 1}\n'),
        "a list": gzip.compress(b"[1]\n"),
    }
    for content in bad.values():
        file.write_bytes(content)
        with pytest.raises(InputError, match="damaged"):
            backups.restore(file, studied, replace=True)
    with pytest.raises(InputError, match=r"cannot read the backup .*none: No such file"):
        backups.restore(tmp_path / "none", studied, replace=True)
    assert everything(studied) == before


def test_a_backup_from_the_future_is_refused(studied, tmp_path, monkeypatch):
    with open_store(studied) as store:
        backups.backup(store, tmp_path / "b.backup")
    monkeypatch.setattr(backups.database, "known_revisions", lambda: ["0000"])
    with pytest.raises(InputError, match="newer version of ital"):
        backups.restore(tmp_path / "b.backup", studied, replace=True)


def test_a_backup_of_an_older_version_is_restored(studied, tmp_path, monkeypatch):
    with open_store(studied) as store, monkeypatch.context() as older:
        assert store.key_fingerprint() is not None
        older.setattr(
            backups, "ALL", tuple(table for table in backups.ALL if table.name != "server_key")
        )
        older.setattr(backups.database, "current_revision", lambda connection: "0001")
        backups.backup(store, tmp_path / "b.backup")
    backups.restore(tmp_path / "b.backup", studied, replace=True)
    with open_store(studied) as store:
        assert store.key_fingerprint() is None  # the next server's key becomes the database's


def test_a_running_study_is_not_restored_over(url, served, tmp_path):
    with served(url) as client:
        Person(client, tiny()).join()
        with open_store(url) as store:
            backups.backup(store, tmp_path / "b.backup")
        with pytest.raises(InputError, match="in use by a running server"):
            backups.restore(tmp_path / "b.backup", url, replace=True)


def wait_for_more(store):
    """Until more steps are stored than now."""

    def count():
        with store.reading() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(steps)).scalar_one()

    before, end = count(), time.monotonic() + 60
    while count() < before + 20:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_backup_under_load_is_one_moment(url, another, served, tmp_path):
    with served(url) as client:
        stop = threading.Event()

        def work():
            import httpx

            with httpx.Client(base_url=client.base_url, timeout=30) as own:
                while not stop.is_set():
                    Person(own, tiny()).simulate().begin().finish()

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            with open_store(url) as store:
                files = [tmp_path / f"{i}.backup" for i in range(4)]
                for file in files:
                    wait_for_more(store)
                    backups.backup(store, file)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
    sizes = []
    for file in files:
        sizes.append(backups.restore(file, another, replace=True)["steps"])
        with open_store(another) as store:
            report = verify(store)  # every participant's steps are whole, counted, and replay
        assert report.problems == []
        assert report.steps == sizes[-1]
    assert 0 < sizes[0] < sizes[-1]
