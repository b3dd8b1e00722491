"""The store: append-only, all or nothing, erased when asked."""

import asyncio
import itertools
import json
import threading
import uuid
from collections import Counter
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from ital.errors import InputError
from ital_study.server import create_app
from ital_study.store import NotStored, database, export, open_store, operations, read_tombstones
from ital_study.store.operations import Closed, Moved
from ital_study.store.records import Event, NewParticipant, StoredStep
from ital_study.store.tables import (
    ALL,
    audit,
    configurations,
    metadata,
    participants,
    steps,
    tombstones,
)
from tests.server.people import settings, tiny


def add(store, config=None, **changes):
    config = config or tiny()
    told = {"mode": "live", "teacher": "human", "code_version": "0", **changes}

    def job(connection):
        operations.add_configuration(connection, config)
        uid = uuid.uuid4().hex
        newcomer = NewParticipant(uid=uid, resume_hash=uid, **told)
        return operations.add_participant(connection, config, newcomer)

    return store.write(job)


def step(t=1, choice=0, on="A"):
    return StoredStep(on, "naive", t, 1, choice, bytes(100), "{}", operations.now())


def move(store, known, **changes):
    return store.write(
        lambda connection: operations.move(connection, known, [Event("moved")], **changes)
    )


def count(store, table):
    with store.reading() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


def test_migrations_give_the_tables_that_the_code_knows(store):
    with store.reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        assert database.current_revision(connection) == database.known_revisions()[0]


def test_a_database_of_before_opens_and_goes_on(url):
    """The tables of revision 0004: no parts, no names in the audit, nothing frozen."""
    address = database.parse_url(url)
    if url.startswith("sqlite"):
        open_store(url, create=True).close()
        Path(str(address.database)).unlink()
    engine = database.connect(address)
    config = tiny()
    now = operations.now()
    with engine.execution_options(write=True).begin() as connection:
        database.migrate(connection, "0004")
        schema = sa.MetaData()
        schema.reflect(connection)
        version = {"hash": config.hash, "name": "old", "text": config.to_toml(), "added_at": now}
        connection.execute(schema.tables["configurations"].insert(), version)
        person = operations.Participant(
            number=1,
            uid="0" * 32,
            mode="live",
            teacher="human",
            external_hash=None,
            resume_hash="1" * 64,
            config=config.hash,
            code_version="0",
            stage="teach",
            order="naive-aware",
            done=2,
            tries=1,
            usable=False,
            released=False,
            events=0,
            joined_at=now,
            seen_at=now,
        )
        known = schema.tables["participants"].columns.keys()
        row = {name: value for name, value in person._asdict().items() if name in known}
        connection.execute(schema.tables["participants"].insert(), row)
        noted = {"at": now, "action": "paused", "number": None, "detail": ""}
        connection.execute(schema.tables["audit"].insert(), noted)
    engine.dispose()
    with open_store(url) as store:
        with store.reading() as connection:
            assert operations.everyone(connection) == [person]
            assert [row.who for row in connection.execute(sa.select(audit))] == [""]
        moved = store.write(lambda connection: operations.add_step(connection, person, step()))
        assert moved.done == 3


def test_configurations_are_those_that_people_saw_or_the_newest(store, monkeypatch):
    clock = itertools.count(1_000_000)
    monkeypatch.setattr(operations, "now", lambda: next(clock))
    first, second, third = (tiny(title=title) for title in ("First", "Second", "Third"))
    for config in (first, second):
        store.write(
            lambda connection, config=config: operations.add_configuration(connection, config)
        )
    with store.reading() as connection:
        assert export.configs_of(connection, "live") == [second]
    for config in (first, third):
        add(store, config)
    with store.reading() as connection:
        assert export.configs_of(connection, "live") == [third, first]
        assert export.configs_of(connection, "pilot") == [third]


async def started(app):
    async with app.router.lifespan_context(app):
        pass


def test_a_database_belongs_to_its_first_key(store, url):
    assert store.key_fingerprint() is None
    first, other = settings(), settings(secret=b"another secret for tests, 32 characters")
    for _ in range(2):
        store.bind_key(first.fingerprint)
    with pytest.raises(InputError, match="first served with another key"):
        asyncio.run(started(create_app(tiny(), url, other)))
    assert store.key_fingerprint() == first.fingerprint
    assert count(store, configurations) == 0  # refused before anything was written
    assert first.secret.decode() not in first.fingerprint


def test_an_older_database_gets_a_fingerprint(url, served):
    engine = database.connect(database.parse_url(url))
    with engine.execution_options(write=True).begin() as connection:
        database.migrate(connection, "0001")
        operations.add_configuration(connection, tiny())
        # The columns of then.
        columns = {
            "number": 1,
            "uid": "0" * 32,
            "mode": "live",
            "teacher": "human",
            "resume_hash": "1",
            "config": tiny().hash,
            "code_version": "0",
            "stage": "consent",
        }
        others = dict.fromkeys(("done", "tries", "events", "joined_at", "seen_at"), 0)
        flags = dict.fromkeys(("usable", "released"), False)
        schema = sa.MetaData()
        schema.reflect(connection)
        connection.execute(schema.tables["participants"].insert().values(columns | others | flags))
    engine.dispose()
    for _ in range(2):
        with served(url):
            pass
    with open_store(url) as store:
        assert store.key_fingerprint() == settings().fingerprint
        assert count(store, participants) == 1


def test_sqlite_survives_a_power_cut(sqlite_url, tmp_path):
    with open_store(sqlite_url, create=True) as store, store.reading() as connection:
        pragmas = ("journal_mode", "synchronous", "foreign_keys", "secure_delete")
        told = [connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in pragmas]
    assert told == ["wal", 2, 1, 1]
    assert (tmp_path / "study.db").stat().st_mode & 0o077 == 0  # only the owner may read it


def test_postgresql_commits_to_the_disk_whatever_its_default(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("ITAL_STUDY_FOLDER", str(tmp_path))
    with cluster.new() as url:
        name = url.partition("?")[0].rpartition("/")[2]
        with open_store(url, create=True) as store:
            off = sa.text(f"ALTER DATABASE {name} SET synchronous_commit = off")
            store.write(lambda connection: connection.execute(off))
        with open_store(url) as store, store.reading() as connection:
            assert connection.execute(sa.text("SHOW synchronous_commit")).scalar_one() == "on"


@pytest.mark.parametrize("table", ["steps", "events", "audit", "tombstones", "configurations"])
def test_logs_are_append_only(store, table):
    one = move(store, add(store), stage="teach")
    store.write(lambda connection: operations.add_step(connection, one, step()))
    store.write(lambda connection: operations.note(connection, "looked"))
    store.erase(add(store), "researcher")
    column = {
        "steps": "choice",
        "events": "kind",
        "audit": "action",
        "tombstones": "by",
        "configurations": "name",
    }
    before = count(store, metadata.tables[table])
    assert before > 0
    for statement in (f"UPDATE {table} SET \"{column[table]}\" = '7'", f"DELETE FROM {table}"):
        with pytest.raises(sa.exc.DBAPIError, match="append-only"):
            store.write(
                lambda connection, statement=statement: connection.execute(sa.text(statement))
            )
    assert count(store, metadata.tables[table]) == before


def test_a_step_is_stored_once(store):
    one = move(store, add(store), stage="teach")
    two = store.write(lambda connection: operations.add_step(connection, one, step(choice=3)))
    with pytest.raises(Moved):
        store.write(lambda connection: operations.add_step(connection, one, step(choice=4)))
    with pytest.raises(sa.exc.IntegrityError):
        store.write(lambda connection: operations.add_step(connection, two, step(choice=4)))
    with store.reading() as connection:
        assert [found.choice for found in operations.steps_of(connection, one.number)] == [3]
        assert operations.find(connection, number=one.number) == two


def test_a_job_that_fails_leaves_nothing_and_harms_nobody(store):
    one = move(store, add(store), stage="teach")
    gate = threading.Event()
    first = store.submit(lambda connection: gate.wait(5))  # the jobs below wait and share a commit

    def fails(connection):
        operations.note(connection, "never")
        raise KeyError("on purpose")

    failed = store.submit(fails)
    good = store.submit(lambda connection: operations.add_step(connection, one, step()))
    gate.set()
    assert first.result(10)
    assert good.result(10).done == 1
    with pytest.raises(KeyError, match="on purpose"):
        failed.result(10)
    assert count(store, steps) == 1
    assert count(store, audit) == 0


def test_after_closing_nothing_is_taken(url):
    store = open_store(url, create=True)
    store.close()
    with pytest.raises(NotStored):
        store.write(lambda connection: None)


def test_a_database_that_gives_up_says_so_to_everybody(store):
    def gives_up(connection):
        raise sa.exc.OperationalError("INSERT", {}, Exception("disk full"))

    with pytest.raises(NotStored):
        store.write(gives_up)
    assert add(store).number == 1  # and the next commit works again


def test_numbers_are_given_once_also_from_many_threads(store):
    numbers = []
    threads = [
        threading.Thread(target=lambda: numbers.append(add(store).number)) for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 21))


def test_two_stores_on_one_database_do_not_get_in_each_others_way(url, store):
    one = move(store, add(store), stage="teach")
    with open_store(url) as other:
        other.write(lambda connection: operations.add_step(connection, one, step(choice=1)))
        with pytest.raises(Moved):
            store.write(lambda connection: operations.add_step(connection, one, step(choice=2)))
        assert add(other).number == 2
        assert add(store).number == 3


def test_orders_are_balanced_over_usable_and_open_slots_released_ones_given_again(store):
    config = tiny()

    def begin():
        one = add(store)

        def job(connection):
            order = operations.assign_order(connection, one, config)
            return operations.move(connection, one, stage="warm_up", order=order)

        return store.write(job)

    people = [begin() for _ in range(8)]
    assert sorted(one.order for one in people) == sorted(
        2 * ["naive-naive", "naive-aware", "aware-naive", "aware-aware"]
    )
    gone, done = people[2], people[3]
    store.write(lambda connection: operations.move(connection, done, stage="comments", usable=True))
    store.write(lambda connection: operations.release(connection, gone.number))
    assert begin().order == gone.order
    late = people[4]  # not seen for longer than the set time
    an_age = (
        participants.update()
        .where(participants.c.number == late.number)
        .values(seen_at=late.seen_at - 10**10)
    )
    store.write(lambda connection: connection.execute(an_age))
    assert begin().order == late.order


def test_other_modes_and_versions_do_not_count(store):
    config = tiny()
    for changes in ({"mode": "pilot"}, {"mode": "simulated"}, {}):
        one = add(store, config if changes else tiny(title="An older title"), **changes)
        store.write(lambda c, one=one: operations.move(c, one, stage="teach", order="naive-aware"))
    fresh = add(store)
    with store.reading() as connection:
        assert operations.taken_orders(connection, "live", config.hash, 0) == {}
    assert store.write(lambda connection: operations.assign_order(connection, fresh, config)) in (
        "naive-aware",
        "aware-naive",
    )


def consent(store, known, config):
    return store.write(
        lambda connection: operations.admit(connection, known, config, [Event("consent")])
    )


def test_places_are_taken_at_consent_and_given_back(store):
    config = tiny(intake=2)
    visitors = [add(store, config) for _ in range(4)]  # a visit takes no place
    first, _ = (consent(store, one, config) for one in visitors[:2])
    with pytest.raises(Closed):
        add(store, config)
    with pytest.raises(Closed):
        consent(store, visitors[2], config)
    consent(store, add(store, config, mode="pilot"), config)
    store.write(lambda connection: operations.release(connection, first.number))
    consent(store, visitors[2], config)
    with pytest.raises(Closed):
        consent(store, visitors[3], config)
    store.write(lambda connection: operations.pause(connection, True))
    other = tiny()
    with pytest.raises(Closed):
        add(store, other)
    store.write(lambda connection: operations.pause(connection, False))
    consent(store, add(store, other), other)


def test_no_more_places_are_taken_than_there_are_also_from_many_threads(url, store):
    config = tiny(intake=5)
    visitors = [add(store, config) for _ in range(20)]
    outcomes = []

    def try_to_begin(into, one):
        try:
            began = consent(into, one, config)
        except Closed:
            outcomes.append(None)
            return

        def job(connection):
            order = operations.assign_order(connection, began, config)
            return operations.move(connection, began, stage="warm_up", order=order)

        outcomes.append(into.write(job).order)

    with open_store(url) as other:
        threads = [
            threading.Thread(target=try_to_begin, args=((store, other)[i % 2], one))
            for i, one in enumerate(visitors)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    orders = [order for order in outcomes if order is not None]
    assert (len(outcomes), len(orders)) == (20, 5)
    assert max(Counter(orders).values()) == 2  # four orders for five people
    assert len(set(orders)) == 4


def test_visitors_who_never_consent_are_erased(store):
    config = tiny(release_after_minutes=10)
    old, fresh, began = add(store, config), add(store, config), add(store, config)
    began = consent(store, began, config)
    long_ago = participants.update().where(participants.c.number != fresh.number).values(seen_at=0)
    store.write(lambda connection: connection.execute(long_ago))
    assert store.write(lambda connection: operations.erase_visitors(connection, config)) == 1
    with store.reading() as connection:
        assert [one.number for one in operations.everyone(connection)] == [
            fresh.number,
            began.number,
        ]
    assert count(store, tombstones) == count(store, audit) == 0
    with pytest.raises(Moved):
        consent(store, old, config)


def test_deleting_removes_every_row_and_leaves_a_tombstone_and_an_audit_record(store):
    kept, gone = (move(store, add(store), stage="teach") for _ in range(2))
    for one in (kept, gone):
        store.write(lambda connection, one=one: operations.add_step(connection, one, step()))
    store.erase(gone, "researcher")
    with store.reading() as connection:
        for table in ALL:
            name = {"participants": "number", "steps": "participant", "events": "participant"}.get(
                table.name
            )
            if name:
                numbers = set(connection.execute(sa.select(table.c[name])).scalars())
                assert numbers == {kept.number}, table.name
        [tombstone] = connection.execute(sa.select(tombstones)).all()
        [record] = connection.execute(sa.select(audit)).all()
    assert (tombstone.uid, tombstone.number, tombstone.by) == (gone.uid, gone.number, "researcher")
    assert (record.action, record.number, record.detail) == ("deleted", gone.number, "")
    assert [one["uid"] for one in read_tombstones(store.tombstone_file)] == [gone.uid]


def test_deleted_content_is_not_left_in_the_files_of_sqlite(sqlite_url, tmp_path):
    with open_store(sqlite_url, create=True) as store:
        one = move(store, add(store), stage="teach")
        word = Event("comments", {"text": "unmistakable words of one person"})
        one = store.write(lambda connection: operations.move(connection, one, [word]))
        assert b"unmistakable words" in b"".join(
            file.read_bytes() for file in tmp_path.glob("study.db*")
        )
        store.erase(one, "participant")
        assert b"unmistakable words" not in b"".join(
            file.read_bytes() for file in tmp_path.glob("study.db*")
        )


def test_a_long_reader_does_not_hold_up_a_deletion(sqlite_url, tmp_path):
    with open_store(sqlite_url, create=True) as store:
        one = move(store, add(store), stage="teach")
        word = Event("comments", {"text": "unmistakable words of one person"})
        one = store.write(lambda connection: operations.move(connection, one, [word]))
        with store.reading() as connection:
            operations.is_paused(connection)  # from here on it sees this moment
            store.erase(one, "participant")
            assert add(store).number == 2
            assert operations.find(connection, uid=one.uid) is not None
        store.tidy()
        assert b"unmistakable words" not in b"".join(
            file.read_bytes() for file in tmp_path.glob("study.db*")
        )


def test_a_deletion_that_was_cut_short_is_finished_at_the_next_start(url):
    """Older versions wrote the file first, line by line; then the power went."""
    with open_store(url, create=True) as store:
        one = move(store, add(store), stage="teach")
        line = json.dumps(operations.tombstone_of(one, "participant"))
        store.tombstone_file.write_text(f'{line}\n{{"uid": "cut sh')
    with open_store(url) as store:
        assert count(store, participants) == 0
        assert count(store, tombstones) == 1


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mysql://localhost/x", "must be SQLite or PostgreSQL"),
        ("sqlite://", "needs a file"),
        ("nowhere/at/all/study.db", "no folder"),
        ("://", "must be a file"),
        ("postgresql://127.0.0.1:1/none", "cannot open postgresql://127.0.0.1:1/none"),
    ],
)
def test_databases_that_cannot_be_are_refused_in_one_line(url, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=said) as refused:
        open_store(url, create=True)
    assert "\n" not in str(refused.value)


def test_a_database_that_is_not_there_or_holds_no_study_is_refused(tmp_path, sqlite_url):
    with pytest.raises(InputError, match="there is no database"):
        open_store(sqlite_url)
    (tmp_path / "study.db").write_bytes(b"")
    with pytest.raises(InputError, match="holds no study"):
        open_store(sqlite_url)
    (tmp_path / "study.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(InputError, match="cannot open"):
        open_store(sqlite_url)


def test_passwords_of_databases_are_not_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as refused:
        open_store("postgresql://me:secret-word@127.0.0.1:1/none", create=True)
    assert "secret-word" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_database_from_the_future_is_refused(store, url):
    store.write(
        lambda connection: connection.execute(
            sa.text("UPDATE alembic_version SET version_num = '9999'")
        )
    )
    with pytest.raises(InputError, match="newer version"):
        open_store(url)


def test_one_server_at_a_time(url, store):
    refused = pytest.raises(InputError, match="in use by a running server")
    with store.claimed(), open_store(url) as other, refused, other.claimed():
        pass
    with open_store(url) as other, other.claimed():
        pass
