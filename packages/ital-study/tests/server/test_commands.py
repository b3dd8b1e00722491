"""``ital study …`` and ``ital play`` on the command line."""

import importlib.util
import os
import socket
import subprocess
import sys

import pytest
import sqlalchemy as sa
import typer
from argon2 import PasswordHasher

from ital.errors import InputError
from ital_study.cli import commands
from ital_study.cli import serve as _cli_server
from ital_study.server import password_of
from ital_study.store import open_store
from tests.server.conftest import running
from tests.server.people import SECRET, Person, cheap_hash, tiny
from tests.server.test_access import everything
from tests.server.test_deletions import files_of_at_most
from tests.typed import ital


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    for name in list(os.environ):
        if name.startswith("ITAL_STUDY"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(_cli_server, "_set_up_jax", lambda: None)  # this process has chosen already


@pytest.fixture
def database(served, tmp_path):
    """A database with one simulated participant and one half-way."""
    with served("study.db") as client:
        Person(client, tiny()).simulate().begin().finish()
        Person(client, tiny()).join().begin().teach(4)
    (tmp_path / "study.db.key").write_text(SECRET.decode())
    (tmp_path / "study.db.key").chmod(0o600)
    return tmp_path / "study.db"


@pytest.fixture
def started(monkeypatch):
    """What would be served."""
    calls = []

    def run(app, listening, announce, opened=None):
        calls.append((app, listening.getsockname(), announce, opened))
        listening.close()

    monkeypatch.setattr(_cli_server, "run", run)
    return calls


def test_one_door_for_all_commands():
    click = typer.main.get_command(commands.study)
    served = {"serve", "export", "import", "backup", "restore", "verify"}
    prepared = {"init", "doctor"}
    others = {"simulate", "analyze", "power", "learner", "fit", "exclude", "include", "find"}
    others |= {"links", "payments", "freeze", "researchers", "tokens"}
    assert set(click.commands) == prepared | served | others


@pytest.mark.parametrize(
    "command",
    [
        ["play"],
        *(
            ["study", name]
            for name in (
                "init",
                "doctor",
                "serve",
                "export",
                "import",
                "backup",
                "restore",
                "verify",
            )
        ),
        *(["study", name] for name in ("exclude", "include")),
        ["study", "find"],
        ["study", "links"],
        ["study", "researchers"],
        ["study", "tokens"],
        ["study", "freeze"],
        ["study", "payments"],
    ],
)
def test_help_shows_an_example(capsys, command):
    status, out, _ = ital(capsys, *command, "--help")
    assert status == 0
    assert "Example: " in out


def test_the_command_line_loads_no_web_and_no_database():
    code = (
        "import sys, ital.cli; heavy = ('fastapi', 'sqlalchemy', 'uvicorn', 'jax'); "
        "print([m for m in heavy if m in sys.modules])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


@pytest.mark.parametrize(
    "command", [["play"], ["study", "serve"], ["study", "export"], ["study", "restore", "x"]]
)
def test_without_the_extra_one_line_names_it(capsys, monkeypatch, command):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *more: None if name == "fastapi" else find(name, *more),
    )
    status, out, err = ital(capsys, *command)
    assert (status, out) == (2, "")
    assert "ital-study[server]'" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "needs a password"),
        ({"ITAL_STUDY_PASSWORD": ""}, "needs a password"),
        ({"ITAL_STUDY_PASSWORD": "short"}, "at least 8 characters"),
        ({"ITAL_STUDY_PASSWORD_FILE": "nowhere"}, "cannot read the secret in nowhere"),
        ({"ITAL_STUDY_PASSWORD_FILE": "loose"}, "chmod 600 loose"),
        ({"ITAL_STUDY_PASSWORD_FILE": "empty"}, "is empty"),
        (
            {"ITAL_STUDY_PASSWORD": "good enough", "ITAL_STUDY_SECRET": "short"},
            "at least 32 characters",
        ),
        (
            {"ITAL_STUDY_PASSWORD": "good enough", "ITAL_STUDY_JOINS_PER_MINUTE": "many"},
            "JOINS_PER_MINUTE must be",
        ),
    ],
)
def test_serve_refuses_in_one_line_without_a_good_password(
    capsys, monkeypatch, tmp_path, started, environment, said
):
    for name, mode in (("loose", 0o644), ("empty", 0o600)):
        (tmp_path / name).write_text("" if name == "empty" else "a password in a file\n")
        (tmp_path / name).chmod(mode)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    status, out, err = ital(capsys, "study", "serve", "--trial", "--config", "short")
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert started == []
    if "ITAL_STUDY_PASSWORD" not in environment:
        assert not (tmp_path / "study.db").exists()


def test_serve_takes_the_password_from_a_file_and_draws_a_secret_once(
    capsys, monkeypatch, tmp_path, started
):
    (tmp_path / "password").write_text("a password in a file\n")
    (tmp_path / "password").chmod(0o600)
    monkeypatch.setenv("ITAL_STUDY_PASSWORD_FILE", "password")
    for _ in range(2):
        status, _, err = ital(
            capsys, "study", "serve", "--trial", "--config", "short", "--port", "0"
        )
        assert status == 0, err
    key = tmp_path / "study.db.key"
    assert key.stat().st_mode & 0o077 == 0
    assert len(key.read_text().strip()) == 64
    assert key.read_text() not in err
    assert started[0][1][0] == "127.0.0.1"
    key.chmod(0o640)
    status, _, err = ital(capsys, "study", "serve", "--trial", "--config", "short", "--port", "0")
    assert (status, "chmod 600" in err) == (2, True)


def test_serve_refuses_a_restored_database_without_its_key(capsys, monkeypatch, tmp_path, started):
    def serve(database):
        started.clear()
        arguments = ("--trial", "--config", "short", "--port", "0", "--database", f"{database}.db")
        status, _, err = ital(capsys, "study", "serve", *arguments)
        assert (status, len(started)) in ((0, 1), (2, 0))
        return err if status else "served"

    monkeypatch.setenv("ITAL_STUDY_PASSWORD", cheap_hash("good enough"))
    assert [serve("study"), serve("study")] == ["served", "served"]
    ital(capsys, "study", "backup", "--out", "b.backup")
    ital(capsys, "study", "restore", "b.backup", "--database", "new.db")
    refused = serve("new")
    assert "there is no key new.db.key" in refused
    assert refused.count("\n") == 1
    assert not (tmp_path / "new.db.key").exists()
    with monkeypatch.context() as patch:
        patch.setenv("ITAL_STUDY_SECRET", "another secret, of 32 characters")
        refused = serve("new")
        assert "new.db was first served with another key" in refused
        assert refused.count("\n") == 1
        patch.setenv("ITAL_STUDY_SECRET", (tmp_path / "study.db.key").read_text().strip())
        assert serve("new") == "served"
    (tmp_path / "study.db.key").rename("new.db.key")
    assert serve("new") == "served"


def test_secrets_that_systemd_guards_are_taken(monkeypatch, tmp_path):
    environment = {"ITAL_STUDY_PASSWORD_FILE": str(tmp_path / "password")}
    (tmp_path / "password").write_text("a password in a file\n")
    (tmp_path / "password").chmod(0o440)
    with pytest.raises(InputError, match="chmod 600"):
        password_of(environment)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    PasswordHasher().verify(password_of(environment), "a password in a file")


def test_serve_refuses_what_cannot_be(capsys, monkeypatch, started):
    monkeypatch.setenv("ITAL_STUDY_PASSWORD", "good enough")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for arguments, said in (
            (["--config", "nowhere.toml"], "nowhere.toml"),
            (["--trial", "--database", "mysql://x/y"], "SQLite or PostgreSQL"),
            (["--trial", "--database", "no/such/folder.db"], "no folder"),
            (
                ["--trial", "--config", "short", "--port", taken.getsockname()[1]],
                "cannot listen on 127.0.0.1",
            ),
            (["--trial", "--config", "short", "--host", "256.1.1.1"], "cannot listen on 256.1.1.1"),
        ):
            status, _, err = ital(capsys, "study", "serve", *arguments)
            assert (status, said in err, err.count("\n")) == (2, True, 1), err
    with open_store("study.db", create=True) as store, store.claimed():
        status, _, err = ital(
            capsys, "study", "serve", "--trial", "--config", "short", "--port", "0"
        )
    assert (status, "in use by a running server" in err) == (2, True)
    assert started == []


def test_play_serves_two_robots_and_stores_nothing(capsys, monkeypatch, tmp_path, started):
    monkeypatch.setenv("DISPLAY", ":0")
    status, _, _ = ital(capsys, "play", "--config", "short")
    assert status == 0
    app, (host, port), announce, opened = started[0]
    assert host == "127.0.0.1"
    assert f"http://127.0.0.1:{port}/play" == opened
    assert opened in announce
    with running(app) as client:
        assert client.get("/").headers["location"] == "play"
        assert client.get("/play").status_code == 200
        new = client.post("/api/play/new", json={"map": "A", "seed": 5}).json()
        assert new["naive"]["belief"] == new["aware"]["belief"]
        assert new["step"] == 0
        first = client.post(
            "/api/play/step", json={"map": "A", "seed": 5, "choices": [new["best"]["aware"]]}
        ).json()
        assert first["step"] == 1
        assert first["naive"]["belief"] != first["aware"]["belief"]
        assert first["aware"]["measures"]["distance"] < new["aware"]["measures"]["distance"]
        assert (
            first
            == client.post(
                "/api/play/step", json={"map": "A", "seed": 5, "choices": [new["best"]["aware"]]}
            ).json()
        )
        over = client.post(
            "/api/play/step", json={"map": "A", "seed": 5, "choices": [0] * new["steps"]}
        ).json()
        assert (over["arrows"], over["best"]) == (None, None)
        for wrong in (
            {"map": "Z", "seed": 5, "choices": []},
            {"map": "A", "seed": 5, "choices": [0] * 99},
        ):
            assert client.post("/api/play/step", json=wrong).status_code == 422
        assert client.get("/dashboard").status_code == 404
        assert client.get("/api/state").status_code == 404
    assert list(tmp_path.iterdir()) == []


def test_export_import_backup_restore_and_verify(capsys, database, tmp_path):
    status, out, _ = ital(
        capsys, "study", "export", tmp_path, "--mode", "simulated", "--out", "first"
    )
    assert status == 0
    assert {line.split("/")[-1] for line in out.split()} == {
        "steps.csv",
        "steps.parquet",
        "participants.csv",
        "answers.csv",
        "events.jsonl",
        "codebook.md",
        "study.toml",
    }
    assert ital(capsys, "study", "import", "first", "--database", "copy.db")[:2] == (
        0,
        "1 participants\n",
    )
    ital(capsys, "study", "export", "copy.db", "--mode", "simulated", "--out", "second")
    for name in ("steps.csv", "events.jsonl"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    status, out, _ = ital(capsys, "study", "backup", "--out", "b.backup")
    assert (status, out) == (0, "b.backup: 2 participants, 18 steps, 12 events\n")
    assert ital(capsys, "study", "restore", "b.backup", "--database", "restored.db")[:2] == (
        0,
        "2 participants, 18 steps; 0 erased again\n",
    )
    status, _, err = ital(capsys, "study", "restore", "b.backup")
    assert (status, "--replace" in err) == (2, True)
    assert ital(capsys, "study", "verify", "--database", "restored.db")[:2] == (
        0,
        "2 participants, 18 steps replayed, 0 problems\n",
    )


def test_commands_take_a_folder_with_the_study(capsys, database, tmp_path):
    """With its settings, or just with study.db in it; a file is the database itself."""
    ital(capsys, "study", "init", "other", "--like", "short")
    (tmp_path / "bare").mkdir()
    ital(capsys, "study", "export", ".", "--mode", "simulated", "--out", "data")
    ital(capsys, "study", "backup", "--out", "b.backup")
    verified = (0, "2 participants, 18 steps replayed, 0 problems\n", "")
    assert (
        ital(capsys, "study", "verify", ".")
        == ital(capsys, "study", "verify", "study.db")
        == verified
    )
    for folder in ("other", "bare"):
        assert ital(capsys, "study", "restore", "b.backup", folder)[:2] == (
            0,
            "2 participants, 18 steps; 0 erased again\n",
        )
        assert ital(capsys, "study", "verify", folder) == verified
        (tmp_path / folder / "study.db").unlink()
        assert ital(capsys, "study", "import", "data", folder)[:2] == (0, "1 participants\n")
        assert (tmp_path / folder / "study.db").exists()
        (tmp_path / folder / "study.db").unlink()
    for command in (
        ["verify", "nowhere"],
        ["restore", "b.backup", "nowhere"],
        ["import", "data", "nowhere"],
    ):
        status, out, err = ital(capsys, "study", *command)
        assert (status, out, "nowhere" in err, err.count("\n")) == (2, "", True, 1)


def test_a_full_disk_is_one_line(capsys, database, tmp_path):
    before = everything("study.db")
    number = next(row.number for row in before["participants"] if row.mode == "live")
    for command, said in (
        (["exclude", number, "--reason", "took part twice"], "not stored, because the"),
        (["find", f"#{number}", "--delete", "--yes"], "not stored, because the"),
        (["backup", "--out", "b.backup"], "cannot write here"),
    ):
        # As beside a running server.
        with open_store("study.db") as held, held.reading() as connection:
            connection.execute(sa.text("SELECT 1"))
            with files_of_at_most(4096):
                status, _, err = ital(capsys, "study", *command)
        assert (status, said in err, err.count("\n")) == (1, True, 1), err
        assert everything("study.db") == before
        assert list(tmp_path.glob(".*")) == list(tmp_path.glob("*.backup")) == []


def test_an_export_without_participants_says_where_they_are(capsys, served):
    with served("study.db") as client:
        Person(client, tiny()).simulate().consent()
        Person(client, tiny()).join()  # a visitor who has not agreed to take part
    status, out, err = ital(capsys, "study", "export", "--out", "live")
    assert (status, "live/steps.csv" in out) == (0, True)
    assert err == "the tables are empty: 0 live participants; 1 simulated: use --mode simulated\n"
    assert ital(capsys, "study", "export", "--mode", "simulated", "--out", "simulated")[2] == ""


def test_verify_finds_what_was_tampered_with(capsys, database):
    import sqlite3

    connection = sqlite3.connect(database)
    connection.executescript(
        "DROP TRIGGER steps_kept; UPDATE steps SET choice = 9 - choice WHERE step = 1;"
    )
    connection.close()
    status, out, _ = ital(capsys, "study", "verify")
    assert status == 1
    assert "the replay differs from what is stored" in out


def test_commands_refuse_in_one_line_what_is_not_there(capsys, database, tmp_path):
    for arguments, said in (
        (["export", "nowhere.db"], "there is no database nowhere.db"),
        (["export", "study.db", "--mode", "all"], "mode must be one of"),
        (["backup", "--database", "nowhere.db"], "there is no database"),
        (
            ["restore", "nowhere.backup", "--database", "r.db"],
            "cannot read the backup nowhere.backup: No such file",
        ),
        (["restore", "nowhere.backup", "--tombstones", "none"], "there is no file none"),
        (["import", "nowhere", "--database", "i.db"], "not an export"),
        (["verify", "--database", "nowhere.db"], "there is no database"),
    ):
        status, _, err = ital(capsys, "study", *arguments)
        assert (status, said in err, err.count("\n")) == (2, True, 1), err


def test_a_real_server_stops_on_ctrl_c_and_on_sigterm(tmp_path):
    import signal

    for number, expected in ((signal.SIGINT, 0), (signal.SIGTERM, -signal.SIGTERM)):
        server = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "ital",
                "study",
                "serve",
                "--trial",
                "--config",
                "short",
                "--port",
                "0",
            ],
            env={**os.environ, "ITAL_STUDY_PASSWORD": "good enough"},
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        lines = [server.stderr.readline() for _ in range(3)]
        assert lines[1] == "trial: nobody who joins now counts\n"
        assert "dashboard http://127.0.0.1:" in lines[2]
        server.send_signal(number)
        assert server.stderr.read() == ""
        assert server.wait(30) == expected
        server.stderr.close()
