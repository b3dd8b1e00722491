"""``ital study init``, ``ital study doctor``, and ``ital study serve DIR``."""

import dataclasses
import json
import os
import re
import shutil
import time
from pathlib import Path

import pytest

import ital_study as study
from ital_study.cli import doctor, serve
from ital_study.cli import folder as _folder
from ital_study.config.configuration import SHIPPED
from ital_study.config.template import configuration
from ital_study.config.texts import PLACEHOLDER
from tests.server.conftest import running
from tests.server.people import Person, cheap_hash, own_environment, ready, tiny
from tests.typed import ital

SHORT = ready(study.load_config("short"))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """An empty folder and an environment without the study's settings; both are as before
    afterwards.
    """
    with own_environment(tmp_path, monkeypatch):
        monkeypatch.setattr(serve, "_set_up_jax", lambda: None)
        yield


@pytest.fixture
def started(monkeypatch):
    """The applications that would be served."""
    apps = []

    def run(app, listening, announce, opened=None):
        apps.append(app)
        listening.close()

    monkeypatch.setattr(serve, "run", run)
    return apps


@pytest.fixture
def folder():
    """A study that is ready for participants."""
    made = Path("my study")
    _folder.create(made, "short", origin="https://lab.example.org/teach")
    (made / "study.toml").write_text(SHORT.to_toml(), encoding="utf-8")
    (made / "password").write_text(cheap_hash("good enough"))
    return made


def examined(folder, **changes):
    settings = _folder.settings_of(folder, changes)
    return doctor.examine(folder, str(folder / "study.toml"), str(folder / "study.db"), settings)


def states(folder, **changes):
    return {finding.check: finding.state for finding in examined(folder, **changes)}


def message(folder, check):
    return next(finding.message for finding in examined(folder) if finding.check == check)


@pytest.mark.parametrize("like", SHIPPED)
def test_init_writes_a_commented_configuration_and_a_folder_that_serves(capsys, started, like):
    status, out, err = ital(capsys, "study", "init", "My Study 1", "--like", like)
    assert (status, err) == (0, "")
    assert "ital study serve My Study 1 --trial" in out
    folder = Path("My Study 1")
    assert (folder / "study.toml").read_text(encoding="utf-8") == configuration("My-Study-1", like)
    assert (folder / "password").stat().st_mode & 0o777 == 0o600
    assert (folder / "backups").is_dir()
    status, _, err = ital(capsys, "study", "serve", folder, "--trial", "--port", 0)
    assert (status, len(started)) == (0, 1), err
    assert "trial: nobody who joins now counts" in err
    assert started[0].state.health.open_requests == 0
    assert (folder / "study.db").exists()


def test_init_refuses_what_cannot_be(capsys):
    Path("full").mkdir()
    Path("full", "x").touch()
    for arguments, said in (
        (["full"], "full is not empty"),
        (["full/x"], "full/x is not empty"),
        (["new", "--like", "long"], "choose paper, short or evidence"),
        (["new", "--origin", "lab.example.org"], "ITAL_STUDY_ORIGIN must be an address"),
        (["new", "--language", "en,tlh"], "--language tlh: paper comes in en"),
        (["new", "--language", "tlh"], "--language tlh: paper comes in en, de"),
    ):
        status, out, err = ital(capsys, "study", "init", *arguments)
        assert (status, out, said in err, err.count("\n")) == (2, "", True, 1), err
    assert [path.name for path in Path().iterdir()] == ["full"]


@pytest.mark.parametrize("like", SHIPPED)
def test_a_new_configuration_is_the_shipped_one_with_its_comments(like):
    text, shipped = configuration("mine", like), study.load_config(like)
    assert study.parse_config(text).hash == dataclasses.replace(shipped, name="mine").hash
    assert text.count("#") > 10
    assert "CHANGE-ME" in text


@pytest.mark.parametrize("like", SHIPPED)
def test_other_languages_can_be_left_out(like):
    shipped = study.load_config(like)
    alone = study.parse_config(configuration("mine", like, ("en",)))
    assert alone.languages == ("en",)
    assert alone.texts() == shipped.texts("en")
    assert (
        study.parse_config(configuration("mine", like, shipped.languages)).languages
        == shipped.languages
    )


@pytest.mark.parametrize("like", SHIPPED)
def test_a_study_in_one_other_language_is_all_in_that_language(like, capsys):
    shipped = study.load_config(like)
    assert ital(capsys, "study", "init", "nur-deutsch", "--like", like, "--language", "de")[0] == 0
    text = Path("nur-deutsch", "study.toml").read_text(encoding="utf-8")
    alone = study.parse_config(text)
    assert (alone.language, alone.languages, alone.name) == ("de", ("de",), "nur-deutsch")
    assert alone.texts() == shipped.texts("de")
    assert alone.words_in() == shipped.words_in("de")
    # Nothing else has changed, and the comments are there.
    of_texts = {"name", "language", "translations", *alone.texts()._fields, "fields"}
    others = {key: value for key, value in shipped.as_dict().items() if key not in of_texts}
    assert {key: value for key, value in alone.as_dict().items() if key not in of_texts} == others
    assert alone.as_dict()["fields"].keys() == shipped.as_dict()["fields"].keys()
    assert text.count("#") > 10
    assert "[square brackets]" in text
    assert "[translations." not in text


@pytest.mark.parametrize("like", SHIPPED)
def test_serve_refuses_placeholders_in_one_line(capsys, started, like):
    _folder.create(Path("new"), like)
    for arguments in (["new"], ["--config", "new/study.toml"], ["--config", like]):
        status, out, err = ital(capsys, "study", "serve", *arguments, "--port", 0)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert "is not ready for participants" in err
        assert "--trial" in err
    assert started == []
    assert not Path("new", "study.db").exists()


def test_serve_takes_everything_from_the_folder(capsys, started, folder):
    status, _, err = ital(capsys, "study", "serve", folder, "--port", 0)
    assert status == 0, err
    assert "participants come to https://lab.example.org/teach/" in err
    assert "trial" not in err
    assert {path.name for path in folder.iterdir()} >= {"study.db", "study.db.key"}
    assert not Path("study.db").exists()
    with running(started[0]) as client:
        client.base_url = f"{client.base_url}/teach"
        assert Person(client, tiny()).join(ids={"id": "one"}).state["mode"] == "live"
        assert client.post("/api/admin/login", json={"password": "good enough"}).status_code == 200
    assert ital(capsys, "study", "export", folder, "--out", "data")[0] == 0
    status, out, _ = ital(capsys, "study", "backup", folder)
    assert (status, out.startswith("my study/backups/study-")) == (0, True)


def test_serve_refuses_a_folder_without_a_study(capsys):
    Path("empty").mkdir()
    for command in ("serve", "doctor", "backup"):
        status, out, err = ital(capsys, "study", command, "empty")
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert "empty holds no study: it has no study.toml; ital study init makes one" in err


def test_settings_of_the_environment_have_precedence(folder):
    settings = _folder.settings_of(
        folder, {"ITAL_STUDY_ORIGIN": "https://other.example.org", "HOME": "/x"}
    )
    assert settings["ITAL_STUDY_ORIGIN"] == "https://other.example.org"
    assert settings["ITAL_STUDY_PASSWORD_FILE"] == "my study/password"
    assert "ITAL_STUDY_PASSWORD_FILE" not in _folder.settings_of(
        folder, {"ITAL_STUDY_PASSWORD": "another one"}
    )


def test_doctor_is_content_with_a_study_that_is_ready(capsys, folder):
    status, out, err = ital(capsys, "study", "doctor", folder)
    assert (status, err) == (0, "")
    assert [line[0] for line in out.splitlines()] == ["✓"] * len(doctor.CHECKS)
    status, out, _ = ital(capsys, "study", "doctor", folder, "--json")
    assert {finding["state"] for finding in json.loads(out)} == {"good"}


def test_doctor_names_what_is_left_and_fails(capsys):
    _folder.create(Path("new"), "short")
    status, out, _ = ital(capsys, "study", "doctor", "new")
    assert status == 1
    signs = {line.split()[1]: line[0] for line in out.splitlines()}
    assert signs["placeholders"] == "✗"
    assert signs["origin"] == "!"
    assert "completion.code 'CHANGE-ME'" in out


def test_four_lines_to_edit(capsys):
    """As in docs/study/index.md."""
    ital(capsys, "study", "init", "new", "--origin", "https://lab.example.org/teach")
    file = Path("new", "study.toml")
    lines = file.read_text(encoding="utf-8").splitlines()
    to_edit = [i for i, line in enumerate(lines) if re.match(r'\w+ = "(\[|CHANGE-ME)', line)]
    assert len(to_edit) == 4
    for i in to_edit:
        lines[i] = PLACEHOLDER.sub("FILLED-IN", lines[i])
    file.write_text("\n".join(lines), encoding="utf-8")
    assert set(states(Path("new")).values()) == {"good"}


def change(folder, **changes):
    (folder / "study.toml").write_text(
        dataclasses.replace(SHORT, **changes).to_toml(), encoding="utf-8"
    )


def test_doctor_reads_the_way_back(folder):
    for code, redirect, state in (
        ("ABC", "https://app.prolific.com/submissions/complete?cc=ABC", "good"),
        ("ABC", "https://app.prolific.com/submissions/complete?cc=ABD", "bad"),
        ("ABC", "http://panel.example.org/?code=ABC", "bad"),
        ("ABC", "https://panel.example.org/thanks", "good"),
    ):
        change(
            folder, completion=dataclasses.replace(SHORT.completion, code=code, redirect=redirect)
        )
        assert states(folder)["completion"] == state, redirect


def test_doctor_compares_numbers_in_texts_with_the_study(folder):
    for text, state in (
        ("You choose 35 arrows, among ten arrows each time, on two maps with two robots.", "good"),
        ("You teach {robots_in_all} robots with {steps} arrows each.", "good"),
        ("You choose 36 arrows.", "doubtful"),
        ("You teach seven robots.", "doubtful"),
        ("Sie sehen fünf Karten.", "doubtful"),
        ("There are 8 steps; it takes ten minutes and 99 clicks.", "good"),
    ):
        change(folder, debriefing=text)
        assert states(folder)["numbers"] == state, text
    assert "debriefing says 'fünf Karten', but the study has 2 or 3" in _wrong(
        "Sie sehen fünf Karten."
    )


def _wrong(text):
    return doctor.wrong_numbers(dataclasses.replace(SHORT, debriefing=text))[0]


@pytest.mark.parametrize("like", SHIPPED)
def test_numbers_in_the_shipped_texts_are_right(like):
    assert doctor.wrong_numbers(study.load_config(like)) == []
    assert doctor.placeholders(ready(study.load_config(like))) == []


def test_placeholders_are_found_in_every_text():
    config = dataclasses.replace(
        tiny(),
        title="[title]",
        fields={"contact": "[who]"},
        debriefing="[a link](https://x.org) [mine]",
    )
    assert doctor.placeholders(config) == [
        ("title", "[title]"),
        ("debriefing", "[mine]"),
        ("fields.contact", "[who]"),
    ]
    assert PLACEHOLDER.search("[a link](https://x.org)") is None


def test_doctor_checks_origin_password_and_disk(folder, monkeypatch):
    for origin, state in (
        ("https://x.org", "good"),
        ("http://x.org", "bad"),
        ("x.org", "bad"),
        ("", "doubtful"),
    ):
        assert states(folder, ITAL_STUDY_ORIGIN=origin)["origin"] == state
    (folder / "password").chmod(0o644)
    assert states(folder)["password"] == "bad"
    assert "chmod 600" in message(folder, "password")
    (folder / "password").unlink()
    assert states(folder)["password"] == "bad"
    usage = shutil.disk_usage(folder)
    for free, state in ((1e6, "bad"), (1e8, "doubtful"), (1e9, "good")):
        monkeypatch.setattr(
            shutil, "disk_usage", lambda _, free=free: usage._replace(free=int(free))
        )
        assert states(folder)["disk"] == state, message(folder, "disk")


def test_doctor_names_a_consent_that_promises_too_much(folder):
    assert states(folder)["consent"] == "good"
    untrue = "Its number is stored only in a scrambled form that nobody\ncan read back."
    change(folder, consent=dataclasses.replace(SHORT.consent, text=untrue))
    assert states(folder)["consent"] == "doubtful"
    assert "consent.text says that nobody can read an ID back" in message(folder, "consent")


def test_doctor_checks_who_may_read_what_is_private(capsys, started, folder):
    assert ital(capsys, "study", "serve", folder, "--port", 0)[0] == 0
    ital(capsys, "study", "backup", folder)
    assert states(folder)["permissions"] == "good"
    backup = next((folder / "backups").iterdir())
    # The files are not needed then.
    key = {"ITAL_STUDY_SECRET": (folder / "study.db.key").read_text().strip()}
    password = {"ITAL_STUDY_PASSWORD": "good enough"}
    for file in (folder / "study.db", folder / "study.db.key", folder / "password", backup):
        file.chmod(0o640)
        assert states(folder, **key, **password)["permissions"] == "bad", file
        told = next(
            one.message for one in examined(folder, **key, **password) if one.check == "permissions"
        )
        assert told == f"others on this machine may read {file}: run chmod 600 '{file}'"
        file.chmod(0o600)
    assert states(folder)["permissions"] == "good"


def test_doctor_names_a_deletion_that_cannot_be_read(capsys, started, folder):
    assert ital(capsys, "study", "serve", folder, "--port", 0)[0] == 0
    assert states(folder)["data"] == "good"
    (folder / "study.db.tombstones").write_text('{"by": "resear')
    (folder / "study.db.tombstones").chmod(0o600)
    assert states(folder)["data"] == "bad"
    assert "a deletion in my study/study.db.tombstones cannot be read" in message(folder, "data")


def test_doctor_checks_key_and_backups_of_a_study_with_participants(capsys, started, folder):
    assert ital(capsys, "study", "serve", folder, "--port", 0)[0] == 0
    with running(started[0]) as client:
        client.base_url = f"{client.base_url}/teach"
        Person(client, study.load_config(str(folder / "study.toml"))).join().begin()
    assert (states(folder)["key"], states(folder)["backups"]) == ("good", "bad")
    assert message(folder, "data") == "1 live"
    ital(capsys, "study", "backup", folder)
    assert states(folder)["backups"] == "good"
    newest = next((folder / "backups").iterdir())
    os.utime(newest, (time.time() - 90_000,) * 2)
    assert states(folder)["backups"] == "doubtful"
    key = folder / "study.db.key"
    key.rename("elsewhere")
    assert states(folder)["key"] == "bad"
    key.write_text("f" * 64)
    key.chmod(0o600)
    assert "is not the key of this database" in message(folder, "key")
    (folder / "backups").rename("elsewhere too")
    assert states(folder)["backups"] == "bad"


def test_doctor_says_why_a_configuration_cannot_be_read(capsys, folder):
    (folder / "study.toml").write_text("name = ")
    status, out, _ = ital(capsys, "study", "doctor", folder)
    assert (status, out.count("\n")) == (1, 1)
    assert "✗ configuration" in out
    change(folder)
    (folder / "server.env").write_text("origin https://x.org\n")
    status, _, err = ital(capsys, "study", "doctor", folder)
    assert (status, "line 1: write NAME=VALUE" in err) == (2, True)
