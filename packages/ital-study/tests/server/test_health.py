"""``/health``, a full disk, a database that is gone, and a server that is about to stop."""

import contextlib
import logging
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from datetime import datetime

import httpx
import pytest
import sqlalchemy as sa

from ital_study.server import _app, create_app
from ital_study.store import NotStored, open_store, operations
from ital_study.store.database import StorageCondition, cause_of
from tests.server import people
from tests.server.conftest import running
from tests.server.people import Person, tiny


@pytest.fixture(autouse=True)
def _quickly(monkeypatch):
    monkeypatch.setattr(_app, "PROBE_EVERY", 0.05)


def health(client):
    answer = client.get("/health")
    assert answer.status_code == (200 if answer.json()["state"] == "ready" else 503)
    return answer.json()


def until_ready(client):
    for _ in range(400):
        if health(client)["state"] == "ready":
            return
        time.sleep(0.02)
    raise AssertionError(health(client))


@contextlib.contextmanager
def full(engine):
    """The database may not grow: SQLite itself reports that it is full."""

    def limit(connection):
        connection.exec_driver_sql("PRAGMA max_page_count = 1")  # at least what it has now

    def lift(connection):
        connection.exec_driver_sql("PRAGMA max_page_count = 1073741823")

    sa.event.listen(engine, "begin", limit)
    yield
    sa.event.remove(engine, "begin", limit)
    sa.event.listen(engine, "begin", lift)


def test_a_full_database_is_reported_until_it_has_space_again(sqlite_url, caplog):
    app = create_app(tiny(), sqlite_url, people.settings())
    with running(app) as client:
        assert health(client) == {"state": "ready"}
        person, store = Person(client, tiny()).join(ids={"id": "one"}).begin(), app.state.ital.store
        with full(store.engine), caplog.at_level(logging.WARNING, "ital_study"):
            events, answers = {"events": [{"kind": "online"}] * 50}, []
            while answers.count(503) < 3:  # the last page has some space left
                answers.append(person.post("/api/events", events).status_code)
            assert person.post("/api/events", events).json()["code"] == "try_again"
            told = health(client)
            assert (told["state"], told["cause"]) == ("storage failing", "the disk is full")
            assert told["failures"] >= 3
            assert abs(time.time() - datetime.fromisoformat(told["since"]).timestamp()) < 60
            assert str(store.url.database) not in str(told)
            done = person.look()["progress"]["done"]
        until_ready(client)
        person.step()
        assert person.state["progress"]["done"] == done + 1  # nothing lost, nothing twice
    lines = [record.getMessage() for record in caplog.records if record.name == "ital_study"]
    assert len(lines) == 2  # not one line for every page that tries again
    assert lines[0].startswith(
        "not stored: the disk is full (OperationalError: database or disk is full)"
    )
    assert lines[1].startswith("stored again, after ")


def test_a_disk_that_is_really_full(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", folder]
    if os.getuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here; another test fills the database itself")
    try:
        app = create_app(tiny(), f"sqlite:///{folder / 'study.db'}", people.settings())
        with running(app) as client:
            person = Person(client, tiny()).join(ids={"id": "one"}).begin()
            ballast = folder / "ballast"
            with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
                while True:
                    file.write(bytes(4096))
            while (
                person.post("/api/events", {"events": [{"kind": "online"}] * 50}).status_code == 200
            ):
                pass
            assert health(client)["cause"] == "the disk is full"
            assert person.post("/api/leave", {"keep": False}).status_code == 503
            ballast.unlink()
            until_ready(client)
            assert person.do("/api/leave", {"keep": False})["deleted"]
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_database_file_that_is_gone_takes_no_writes(sqlite_url, tmp_path):
    """SQLite would go on writing to a file that nobody can find again."""
    app = create_app(tiny(), sqlite_url, people.settings())
    file = tmp_path / "study.db"
    with running(app) as client:
        person = Person(client, tiny()).join().consent()
        file.rename(tmp_path / "elsewhere")
        assert person.post("/api/instructions", {}).status_code == 503
        assert health(client)["cause"] == "the database file is gone"
        shutil.copy(tmp_path / "elsewhere", file)  # not the file that is open
        assert person.post("/api/instructions", {}).status_code == 503
        (tmp_path / "elsewhere").rename(file)
        until_ready(client)
        person.read()


def test_postgresql_that_is_away_is_reported(cluster, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("ITAL_STUDY_FOLDER", str(tmp_path))
    with cluster.new() as url, running(create_app(tiny(), url, people.settings())) as client:
        person = Person(client, tiny()).join()
        name = sa.make_url(url).database

        def connections(allowed):
            with cluster._connect("postgres") as admin:
                admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS {allowed}')
                if not allowed:
                    admin.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
                        [name],
                    )

        connections(False)
        assert person.post("/api/consent", {"accepted": True, "version": "1"}).status_code == 503
        assert health(client)["cause"] == "the database does not answer"
        connections(True)
        until_ready(client)
        person.consent()


def test_the_writer_reports_failures_and_only_a_probe_ends_them(sqlite_url):
    with open_store(sqlite_url, create=True) as store:
        with full(store.engine):
            with pytest.raises(NotStored):
                store.write(lambda connection: operations.add_configuration(connection, tiny()))
            store.write(lambda connection: None)  # changes nothing, so it proves nothing
            store.probe()
            assert store.condition.trouble.cause == "the disk is full"
        store.probe()
        assert store.condition.trouble is None
        with store.reading() as connection:
            assert "ital_probe" not in sa.inspect(connection).get_table_names()


def test_a_full_disk_is_named_also_if_several_jobs_share_a_commit(sqlite_url):
    """SQLite then ends the transaction, and the end of the savepoint fails too."""
    with open_store(sqlite_url, create=True) as store, full(store.engine):
        begun, slow = threading.Event(), threading.Event()

        def wait(connection):
            begun.set()
            slow.wait(20)

        jobs = [store.submit(wait)]
        begun.wait(20)
        jobs += [
            store.submit(lambda connection: operations.add_configuration(connection, tiny()))
            for _ in range(2)
        ]
        slow.set()
        assert [type(job.exception()) for job in jobs] == [type(None), NotStored, NotStored]
        assert store.condition.trouble.cause == "the disk is full"


def test_causes_name_no_file_no_host_and_no_secret():
    error = sa.exc.OperationalError(
        "", {}, Exception('connection to server at "10.0.0.1", user "ital" failed\nsecret')
    )
    assert cause_of(error) == "the database does not answer"
    assert cause_of(OSError(28, "No space left on device", "/data/x")) == "the disk is full"
    assert cause_of(Exception("something at /data/x")) == "the database refuses to store"


def test_a_lasting_trouble_is_logged_once_a_minute(caplog):
    time = [0.0]
    condition = StorageCondition(lambda: time[0])
    for _ in range(100):
        condition.failed(OSError(28, "No space left on device"))
        time[0] += 1.0
    condition.worked()
    lines = [record.getMessage() for record in caplog.records]
    assert [line.rpartition(": ")[2] for line in lines[:2]] == ["1", "61"]
    assert lines[2:] == ["stored again, after 100 failures in 100 seconds"]


def test_health_is_for_everybody_and_says_nothing_else(client):
    assert health(client) == {"state": "ready"}
    assert client.get("/health").headers["cache-control"] == "no-store"
    assert client.post("/health", json={}).status_code == 405


def test_a_server_that_stops_finishes_open_requests_and_takes_no_others(tmp_path):
    (tmp_path / "study.toml").write_text(tiny().to_toml(), encoding="utf-8")
    server = subprocess.Popen(
        [sys.executable, "-m", "ital", "study", "serve", "--config", "study.toml", "--port", "0"],
        env={**os.environ, "ITAL_STUDY_PASSWORD": "good enough"},
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    server.stderr.readline()
    address = httpx.URL(server.stderr.readline().split()[1])
    body = b'{"ids": {"id": "slow"}}'
    head = (
        "POST /api/join HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((address.host, address.port)) as slow:
        slow.sendall(head.encode() + body[:5])
        with httpx.Client(base_url=address) as client:
            assert health(client) == {"state": "ready"}
            server.terminate()
            for _ in range(100):
                if health(client) == {"state": "draining"}:
                    break
                time.sleep(0.02)
            assert health(client) == {"state": "draining"}
            refused = client.post("/api/join", json={})
            assert (refused.status_code, refused.json()["code"]) == (503, "try_again")
        slow.sendall(body[5:])
        assert slow.recv(65536).startswith(b"HTTP/1.1 200 OK")
    server.wait(20)
    assert server.stderr.read() == ""
    server.stderr.close()
    with open_store(str(tmp_path / "study.db")) as store, store.reading() as connection:
        assert connection.scalar(sa.text("SELECT mode FROM participants")) == "live"
