"""Looking people up, and deleting them on request."""

import dataclasses
import itertools
import json
import os
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from ital_study.server import look_up
from ital_study.store import exclusions, open_store, operations
from ital_study.store.tables import events
from tests.server.conftest import serve
from tests.server.people import SECRET, Person, Researcher, settings, tiny
from tests.server.test_access import everything
from tests.server.test_flow import rows
from tests.server.test_panel import ENDS, ends
from tests.typed import ital

CONFIG = tiny(completion=dataclasses.replace(ENDS, per_person=True))


def everybody(url):
    """Somebody for every way to end, one on the way, one who has not consented, one deleted."""
    with serve(url, CONFIG) as client:
        people = ends(client, CONFIG)
        people["open"] = Person(client, CONFIG).join(ids={"PROLIFIC_PID": "open"}).begin().teach(3)
        people["visitor"] = Person(client, CONFIG).join(ids={"PROLIFIC_PID": "visitor"})
        people["gone"] = Person(client, CONFIG).join(ids={"PROLIFIC_PID": "gone"}).begin().finish()
        people["gone_code"] = people["gone"].state["completion"]["code"]
        people["gone"].do("/api/leave", {"keep": False})
        return {name: one if isinstance(one, str) else one.state for name, one in people.items()}


@pytest.fixture
def people(filled):
    return filled(everybody)


def test_who_is_found_and_what_they_are_told_to_be_paid(url, people):
    with open_store(url) as store:
        found = {name: look_up(store, SECRET, name) for name in (*people, "nobody")}
    assert found["nobody"] == found["declined"] == []  # who declined left no identity
    told = {
        name: (one[0]["number"], one[0]["outcome"])
        for name, one in found.items()
        if one and name != "gone"
    }
    assert told == {
        "finished": (1, "finished"),
        "failed_check": (3, "failed_check"),
        "left": (4, "left"),
        "open": (5, None),
        "visitor": (6, None),
    }
    code = people["finished"]["completion"]["code"]
    [finished] = found["finished"]
    assert (finished["code"], finished["pay"]) == (code, f"finished: entitled to the code {code}")
    assert (finished["done"], finished["total"], finished["language"], finished["matched"]) == (
        14,
        14,
        "en",
        "identity",
    )
    assert finished["joined"] <= finished["ended"] <= finished["last_seen"]
    assert found["open"][0]["pay"] == "nothing yet: not finished"
    assert found["visitor"][0]["pay"] == "nothing yet: has not agreed to take part"
    assert found["left"][0]["pay"] == "left early: the study has no code for this"
    [gone] = found["gone"]
    assert (gone["number"], gone["stage"], gone["deleted_by"]) == (7, "deleted", "participant")


def test_minutes_are_from_consent_to_the_end(url, monkeypatch):
    ticks = itertools.count(operations.now(), 7_000)
    monkeypatch.setattr(operations, "now", lambda: next(ticks))
    with serve(url, CONFIG) as client:
        Person(client, CONFIG).join(ids={"PROLIFIC_PID": "slow"}).begin().finish()
        with open_store(url) as store:
            [found] = look_up(store, SECRET, "slow")
    at = [(row["kind"], row["at"]) for row in rows(url, events) if row["source"] == "server"]
    assert found["minutes"] == round((at[-1][1] - dict(at)["consent"]) / 60_000, 1) > 1


def test_codes_and_numbers_find_people_too(url, people):
    with open_store(url) as store:
        resume = people["open"]["resume_code"]
        code = people["finished"]["completion"]["code"]
        for who, number, how in (
            (resume.lower().replace("-", " "), 5, "resume code"),
            (code, 1, "completion code"),
            (code.lower().replace("-", ""), 1, "completion code"),
            ("2", 2, "number"),
            ("#2", 2, "number"),
            (" 5 ", 5, "number"),
            (people["gone_code"], 7, "completion code"),
            ("#7", 7, "number"),
        ):
            [one] = look_up(store, SECRET, who)
            assert (one["number"], one["matched"]) == (number, how), who
        assert look_up(store, SECRET, people["gone_code"])[0]["code_proves"] == "finished"
        for nobody in ("", "#", "#open", "0", "99", "9" * 30, "AAAAA-AAAAA", "²"):
            assert look_up(store, SECRET, nobody) == [], nobody


def test_a_code_that_everybody_gets_explains_itself(sqlite_url, typed):
    config = dataclasses.replace(CONFIG, completion=ENDS)
    with serve(sqlite_url, config) as client:
        Person(client, config).join(ids={"PROLIFIC_PID": "me"}).begin().finish()
        researcher = Researcher(client, config).log_in()
        told = [
            researcher.post("/api/admin/find", {"who": who}).json()["reason"]
            for who in ("done", "NO", "nobody")
        ]
    assert told[0].startswith(
        "Everybody who finishes gets this code, so it finds nobody: look for an identity"
    )
    assert told[1].startswith("Everybody who declines gets this code")
    assert told[2].startswith("Nobody was found: those who declined")
    status, out, err = typed("DONE")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "everybody who finishes gets this code" in err


def test_a_number_may_be_an_identity_as_well(url):
    with serve(url) as client:
        Person(client, tiny()).join().begin()
        Person(client, tiny()).join(ids={"id": "1"}).begin()
    with open_store(url) as store:
        assert [(one["number"], one["matched"]) for one in look_up(store, SECRET, "1")] == [
            (1, "number"),
            (2, "identity"),
        ]
        assert [one["number"] for one in look_up(store, SECRET, "#1")] == [1]


def test_another_key_is_refused(url, people):
    from ital.errors import InputError

    with open_store(url) as store, pytest.raises(InputError, match="served with another key"):
        look_up(store, b"another secret of 32 characters!", "open")


def test_the_dashboard_looks_up_and_deletes(url, people, served):
    with served(url, CONFIG) as client:
        researcher = Researcher(client, CONFIG).log_in()
        before = everything(url)
        [one] = researcher.post("/api/admin/find", {"who": "open"}).json()["found"]
        assert (one["number"], one["stage"], one["done"]) == (5, "teach", 3)
        assert researcher.post("/api/admin/find", {"who": "nobody"}).json()["found"] == []
        assert everything(url) == before  # looking stores nothing
        assert "open" not in json.dumps(everything(url)["audit"], default=str)
        researcher.post("/api/admin/delete", {"number": 5, "confirm": 5})
        [one] = researcher.post("/api/admin/find", {"who": "open"}).json()["found"]
        assert (one["stage"], one["deleted_by"]) == ("deleted", "researcher")
        assert Person(client, CONFIG).join(ids={"PROLIFIC_PID": "open"}).state["stage"] == "deleted"


@pytest.fixture
def typed(capsys, monkeypatch, tmp_path):
    """``ital study find``, typed in an empty folder beside the server's key."""
    for name in list(os.environ):
        if name.startswith("ITAL_STUDY") and name != "ITAL_STUDY_FOLDER":
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    key = tmp_path / "study.db.key"
    key.write_text(SECRET.decode())
    key.chmod(0o600)
    return lambda *arguments: ital(capsys, "study", "find", *arguments)


def test_on_the_command_line(sqlite_url, typed, tmp_path):
    everybody(sqlite_url)
    status, out, err = typed("open")
    assert (status, err) == (0, "")
    assert out.startswith("participant 5: teach (found by identity)\n")
    assert "progress    3 of 14 steps" in out
    assert "pay         nothing yet: not finished" in out
    assert typed("open", tmp_path)[1] == typed("open", "--database", "study.db")[1] == out
    for arguments, said in (
        (["nobody"], "nobody was found"),
        (["open", "--database", "nowhere.db"], "there is no database"),
        (["gone", "--delete", "--yes"], "participant 7 is deleted already"),
    ):
        status, _, err = typed(*arguments)
        assert (status, said in err, err.count("\n")) == (2, True, 1), err
    (tmp_path / "study.db.key").unlink()
    status, out, err = typed("open")
    assert (status, out, "there is no key" in err) == (2, "", True)


def test_everything_that_is_stored_of_one_person(url, people, typed, tmp_path, monkeypatch):
    monkeypatch.setenv("ITAL_STUDY_SECRET", SECRET.decode())
    with open_store(url) as store:
        store.write(lambda connection: exclusions.exclude(connection, 5, "took part twice"))
    status, out, err = typed("open", "--database", url, "--export", tmp_path / "one")
    assert (status, err) == (0, "")
    named = {Path(line) for line in out.splitlines() if line.startswith("/")}
    assert named == set((tmp_path / "one").iterdir())
    assert {file.stat().st_mode & 0o777 for file in named} == {0o600}
    tables = {
        name: pd.read_csv(tmp_path / "one" / f"{name}.csv") for name in ("steps", "participants")
    }
    # After two of the warm-up.
    assert (len(tables["steps"]), set(tables["steps"]["participant"])) == (1, {5})
    assert tables["participants"]["participant"].tolist() == [5]
    stored = everything(url)
    told = json.loads((tmp_path / "one" / "participant.json").read_text())
    [row] = [row._asdict() for row in stored["participants"] if row.number == 5]
    for name in (
        "uid",
        "external_hash",
        "resume_hash",
        "stage",
        "done",
        "events",
        "bytes",
        "language",
        "excluded",
    ):
        assert told["participant"][name] == row[name]
    assert [(each["action"], each["detail"]) for each in told["audit"]] == [
        ("excluded", "took part twice")
    ]
    log = [
        json.loads(line) for line in (tmp_path / "one" / "events.jsonl").read_text().splitlines()
    ]
    kinds = Counter(record["record"] for record in log)
    events_of = [row for row in stored["events"] if row.participant == 5]
    assert kinds == {"configuration": 1, "participant": 1, "step": 3, "event": len(events_of)}
    codebook = (tmp_path / "one" / "codebook.md").read_text()
    for name in (*tables["steps"], *tables["participants"], "participant.json", "external_hash"):
        assert f"`{name}`" in codebook or f"## {name}" in codebook
    status, out, err = typed("gone", "--database", url, "--export", tmp_path / "two")
    assert (status, "participant 7 is deleted already" in err, (tmp_path / "two").exists()) == (
        2,
        True,
        False,
    )


def test_deleting_on_the_command_line_asks_first(sqlite_url, typed, monkeypatch):
    with serve(sqlite_url) as client:
        Person(client, tiny()).join(ids={"id": "me"}).begin().teach(2)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: (_ for _ in ()).throw(SystemExit(1)))
    assert typed("me", "--delete")[0] == 1
    assert len(everything(sqlite_url)["participants"]) == 1
    asked = []
    monkeypatch.setattr("typer.confirm", lambda text, **_: asked.append(text))
    status, _, err = typed("me", "--delete")
    assert (status, err) == (0, "participant 1 is deleted\n")
    assert "participant 1" in asked[0]
    rows = everything(sqlite_url)
    assert (rows["participants"], rows["steps"], rows["events"]) == ([], [], [])
    assert [(row.action, row.number) for row in rows["audit"]] == [("deleted", 1)]
    assert [row.by for row in rows["tombstones"]] == ["researcher"]
    assert "found by identity" in typed("me")[1]
    assert "deleted " in typed("me")[1]


def test_a_running_server_does_not_bring_back_whom_a_command_deleted(
    url, tmp_path, typed, monkeypatch, served
):
    monkeypatch.setenv("ITAL_STUDY_SECRET", SECRET.decode())
    with served(url) as client:
        one, other = (
            Person(client, tiny()).join(ids={"id": name}).begin().teach(2)
            for name in ("one", "other")
        )
        body = one.step_body()  # the server holds the session in memory
        assert typed("one", "--delete", "--yes", "--database", url)[0] == 0
        answers = [
            one.post("/api/steps", body),
            one.request("GET", "/api/state"),
            one.post("/api/events", {"events": [{"kind": "online"}]}),
            one.post("/api/leave", {"keep": True}),
        ]
        assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {
            (401, "unknown")
        }
        assert Person(client, tiny()).join(ids={"id": "one"}).state["stage"] == "deleted"
        assert other.step()["progress"]["done"] == 3
        assert typed("other", "--delete", "--yes", "--database", url)[0] == 0
        answer = other.request("GET", "/api/state")  # what is in memory is not shown either
        assert answer.status_code == 401
    rows = everything(url)
    assert (rows["participants"], rows["steps"], rows["events"]) == ([], [], [])
    assert settings().secret == SECRET
