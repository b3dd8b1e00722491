"""What is decided before the data come: frozen plans, and curves that nobody sees too early."""

import dataclasses
import json
import tomllib

import pytest
import sqlalchemy as sa

import ital_study as study
from ital.errors import InputError
from ital_study.analysis import measures
from ital_study.cli.analysis import read_source
from ital_study.config.differences import differences
from ital_study.server import StudyPlan, check_freezes, freeze, freeze_text
from ital_study.store import backups, blinding, exclusions, export, freezes, open_store, operations
from tests.server.people import SECRET, Person, Researcher, own_environment, ready, tiny
from tests.server.test_access import everything
from tests.server.test_panel import SHORT
from tests.typed import check_refused, ital

TEST = {"outcome": "distance_last", "robot": "aware", "against": "naive", "alpha": 0.05}
PLAN = StudyPlan(60, TEST)


# Curves by condition


def finish(client, config, count):
    for _ in range(count):
        Person(client, config).join().begin().finish()


def test_curves_are_hidden_until_all_places_are_taken(url, served):
    config = tiny(intake=2)
    with served(url, config) as client:
        researcher = Researcher(client, config).log_in()
        finish(client, config, 1)
        told = researcher.overview("live")
        assert (told["blind"], told["curves"], told["intake"]["usable"]) == (True, {}, 1)
        assert told["participants"][0]["seconds_per_step"] is not None
        researcher.post("/api/admin/pause", {"paused": True})  # a pause is no end
        assert researcher.overview("live")["curves"] == {}
        researcher.post("/api/admin/pause", {"paused": False})
        finish(client, config, 1)
        told = researcher.overview("live")
        assert (told["blind"], set(told["curves"])) == (False, {"A", "E"})
    assert [row.action for row in everything(url)["audit"]] == ["paused", "resumed"]


def test_other_modes_are_shown(sqlite_url, served):
    with served(sqlite_url) as client:
        Person(client, tiny()).simulate().begin().finish()
        told = Researcher(client, tiny()).log_in().overview("simulated")
    assert (told["blind"], set(told["curves"])) == (False, {"A", "E"})


def test_looking_earlier_is_on_record(url, served):
    with served(url) as client:
        researcher = Researcher(client, tiny()).log_in()
        finish(client, tiny(), 1)
        assert researcher.overview("live")["blind"]
        for _ in range(2):
            answer = researcher.post("/api/admin/unblind", {})
            assert (answer.status_code, answer.json()) == (200, {"blind": False})
        assert set(researcher.overview("live")["curves"]) == {"A", "E"}
    assert [row.action for row in everything(url)["audit"]] == ["unblinded"]
    with served(url) as client:
        assert not Researcher(client, tiny()).log_in().overview("live")["blind"]


# Frozen plans


def test_a_freeze_is_kept_signed_and_never_changed(url, tmp_path):
    with open_store(url, create=True) as store:
        first = freeze(store, SECRET, tiny(), PLAN)
        again = freeze(store, SECRET, tiny(steps=4), PLAN._replace(participants=80))
        assert [first.id, again.id] == [1, 2]
        told = tomllib.loads(first.content)
        assert (told["participants"], told["test"]) == (60, TEST)
        assert told["configuration"] == first.config.hash == tiny().hash
        assert told["exclusion"]["flags"] == ["attention"]
        assert told["exclusion"]["rules"][0].startswith("attention: failed attention checks")
        with store.reading() as connection:
            assert freezes.listed(connection) == [first, again]
        for change in (
            sa.text("UPDATE freezes SET content = 'x'"),
            sa.text("DELETE FROM freezes"),
        ):
            with pytest.raises(Exception, match="append-only"):
                store.write(lambda connection, change=change: connection.execute(change))
        backups.backup(store, tmp_path / "b.backup")
    backups.restore(tmp_path / "b.backup", url, replace=True)
    with open_store(url) as store, store.reading() as connection:
        assert freezes.listed(connection) == [first, again]
    assert [row.action for row in everything(url)["audit"]] == ["frozen", "frozen", "restored"]


def test_every_later_change_is_listed(url, served, monkeypatch, tmp_path):
    now = operations.now()
    clock = iter(range(now - 10**6, now, 1000))
    config = tiny()
    changed = tiny(steps=2, debriefing="Thank you, and something else that is longer than a line.")
    with open_store(url, create=True) as store:
        monkeypatch.setattr(operations, "now", lambda: next(clock))
        first = freeze(store, SECRET, config, PLAN)
        with store.reading() as connection:
            assert freezes.summary(connection)["changes"] == []
        for version in (config, changed):
            store.write(lambda c, version=version: operations.add_configuration(c, version))
    monkeypatch.undo()
    monkeypatch.setenv("ITAL_STUDY_FOLDER", str(tmp_path))
    with served(url, config) as client:
        finish(client, config, 2)
    with open_store(url) as store:
        store.write(lambda connection: exclusions.exclude(connection, 2, "came twice"))
        store.write(blinding.unblind)
        freeze(store, SECRET, changed, PLAN)
        with store.reading() as connection:
            told = [change.what for change in freezes.changes(connection, first)]
        version = f"configuration {changed.hash[:12]}: "
        assert set(told[:2]) == {
            f"{version}debriefing: another text → another text",
            f"{version}steps: 3 → 2",
        }
        assert told[2:4] == [
            "participant 2 was excluded: came twice",
            "the curves by condition were looked at before the end of the intake",
        ]
        assert told[4].startswith("the plan was frozen again (")
        export.export_study(store, tmp_path / "out")
    written = json.loads((tmp_path / "out" / "freeze.json").read_text())
    assert [change["what"] for change in written["changes"]] == told
    assert written["content"] == first.content
    for source in (url, str(tmp_path / "out")):
        notes = measures.analyze(read_source(source, None)[0]).notes
        assert any(note.startswith("The plan was frozen on ") for note in notes)
        assert sum("Changed after the plan was frozen" in note for note in notes) == 5
    (tmp_path / "out" / "freeze.json").write_text("{}")
    with pytest.raises(InputError, match=r"freeze\.json was not written by"):
        read_source(str(tmp_path / "out"), None)


def test_forged_plans_and_files_are_noticed(sqlite_url, tmp_path):
    with open_store(sqlite_url, create=True) as store:
        frozen = freeze(store, SECRET, tiny(), PLAN)
        file = tmp_path / "freeze-1.toml"
        file.write_text(freeze_text(frozen))
        good = check_freezes(store, SECRET, tmp_path, tiny(lr=0.02))
        assert good.problems == []
        assert "60 participants: signature good" in good.lines[0]
        assert good.lines[1:] == ["  now: lr: 0.015 → 0.02"]
        [unchecked] = check_freezes(store, None, None, None).lines
        assert unchecked.endswith("signature not checked, because the key is not here")
        file.write_text(freeze_text(frozen).replace("participants = 60", "participants = 40"))
        assert check_freezes(store, SECRET, tmp_path, None).problems == [
            f"{file} is not what was frozen"
        ]
        forged = frozen.content.replace("participants = 60", "participants = 40")
        store.write(lambda c: freezes.add(c, frozen.at, forged, frozen.signature))
        assert "freeze 2 was changed after it was signed" in (
            check_freezes(store, SECRET, None, None).problems
        )


def test_differences_are_told_by_key():
    old = study.load_config("short")
    assert differences(old, old) == []
    new = dataclasses.replace(
        old,
        hint=True,
        intake=9,
        quality=dataclasses.replace(old.quality, exclude=()),
        maps=old.maps[:1],
    )
    lines = differences(old, new)
    assert "hint: False → True" in lines
    assert "intake: none → 9" in lines
    assert "quality.exclude: ['attention'] → []" in lines
    assert any(line.startswith("maps[2].name: 'E' → none") for line in lines)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A study in the current folder."""
    with own_environment(tmp_path, monkeypatch):
        monkeypatch.setattr("ital_study.cli.serve._set_up_jax", lambda: None)
        made = tmp_path / "lab"
        made.mkdir()
        (made / "study.toml").write_text(
            ready(study.parse_config(SHORT)).to_toml(), encoding="utf-8"
        )
        yield made


def test_freeze_and_verify_on_the_command_line(folder, capsys):
    status, out, err = ital(capsys, "study", "freeze", "lab", "--participants", 60)
    assert (status, err) == (0, "")
    [file] = folder.glob("freeze-*.toml")
    told, signature = out.splitlines()
    assert told.startswith(f"lab/{file.name}: 60 participants, configuration ")
    assert tomllib.loads(file.read_text())["signature"] == signature.split()[1]
    status, out, err = ital(capsys, "study", "verify", "lab")
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "0 participants, 0 steps replayed, 0 problems"
    assert out.splitlines()[1].endswith("60 participants: signature good")
    text = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(text.replace("steps = 8", "steps = 9", 1))
    assert "  now: steps: 8 → 9" in ital(capsys, "study", "verify", "lab")[1]
    file.write_text(file.read_text().replace("= 60", "= 61"))
    status, out, err = ital(capsys, "study", "verify", "lab")
    assert status == 1
    assert f"  lab/{file.name} is not what was frozen" in out.splitlines()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--outcome", "joy"], "outcome must be one of"),
        (["--robot", "clever"], "robot must be one of"),
        (["--against", "aware"], "against must be one of"),
        (["--alpha", "0.7"], "alpha must lie between"),
        (["--out", "there.toml"], "there.toml exists"),
        (["--out", "there.toml/x"], "not a folder"),
    ],
)
def test_plans_that_cannot_be_frozen(folder, capsys, words, said):
    (folder.parent / "there.toml").write_text("")
    command = ["study", "freeze", "lab", "--participants", 60, *words]
    check_refused(capsys, folder.parent, command, said)
    assert not (folder / "study.db").exists()


def test_serving_can_unblind(folder, capsys, monkeypatch):
    monkeypatch.setattr("ital_study.cli.serve.run", lambda app, listening, *_: listening.close())
    monkeypatch.setenv("ITAL_STUDY_PASSWORD", "a password for tests")
    status, _, err = ital(capsys, "study", "serve", "lab", "--trial", "--port", 0, "--unblind")
    assert status == 0, err
    audit = everything(f"sqlite:///{folder / 'study.db'}")["audit"]
    assert [row.action for row in audit] == ["unblinded"]
