"""Several researchers: names, roles, what the audit keeps of them, and tokens for programs."""

import pytest

from ital.errors import InputError
from ital_study.store import backups, open_store, researchers
from tests.server.people import PASSWORD, Person, Researcher, cheap_hash, tiny
from tests.server.test_access import ADMIN_GETS, ADMIN_POSTS, everything
from tests.typed import check_refused, ital

NAMES = {"sally": "see", "ray": "run", "olga": "own"}
# What each address of the dashboard needs at least.
NEEDED = {
    **dict.fromkeys(ADMIN_GETS, "see"),
    "payments.csv": "run",
    "logout": "see",
    "pause": "run",
    "release": "run",
    "exclude": "run",
    "find": "run",
    "delete": "own",
    "unblind": "own",
}


def add(url, *names):
    with open_store(url) as store:
        for name in names:
            hashed = cheap_hash(f"{name}'s password")
            store.write(lambda c, n=name, h=hashed: researchers.add(c, n, NAMES[n], h))


def log_in(client, name):
    return Researcher(client, tiny()).log_in(f"{name}'s password", name)


@pytest.mark.parametrize("name", NAMES)
def test_every_address_needs_its_role(url, served, name):
    assert set(NEEDED) == {*ADMIN_GETS, *ADMIN_POSTS}
    with served(url) as client:
        add(url, name)
        for number in range(2):
            Person(client, tiny()).join(ids={"id": str(number)}).begin()
        somebody = log_in(client, name)
        role = researchers.ROLES.index(NAMES[name])
        for path, needed in NEEDED.items():
            if path == "logout":
                continue
            may = role >= researchers.ROLES.index(needed)
            before = everything(url)
            if path in ADMIN_GETS:
                answer = somebody.get(path)
            else:
                answer = somebody.post(f"/api/admin/{path}", ADMIN_POSTS[path])
            assert answer.status_code == (200 if may else 403), path
            if not may:
                assert answer.json()["code"] == "role"
                assert everything(url) == before
        assert somebody.request("GET", "/preview").status_code == (200 if role else 303)
        told = somebody.overview("live")["researcher"]
        assert told == {"name": name, "role": NAMES[name]}


def test_the_audit_names_who_did_what(url, served):
    with served(url) as client:
        add(url, "ray", "olga")
        for number in range(2):
            Person(client, tiny()).join(ids={"id": str(number)}).begin()
        log_in(client, "ray").post("/api/admin/exclude", {"number": 1, "reason": "came twice"})
        log_in(client, "olga").post("/api/admin/delete", {"number": 2, "confirm": 2})
        owner = Researcher(client, tiny()).log_in()
        owner.post("/api/admin/pause", {"paused": True})
        entries = owner.get("audit").json()["entries"]
    assert [(entry["who"], entry["action"]) for entry in entries] == [
        ("owner", "paused"),
        ("olga", "deleted"),
        ("ray", "excluded"),
        ("", "researcher added"),
        ("", "researcher added"),
    ]


def test_only_the_right_password_of_the_name_opens(url, served):
    with served(url) as client:
        add(url, "ray")
        for name, password in (
            ("ray", PASSWORD),
            ("", "ray's password"),
            ("owner", "ray's password"),
            ("olga", "olga's password"),
            ("ray ", "wrong"),
        ):
            body = {"name": name, "password": password}
            answer = client.post("/api/admin/login", json=body)
            assert (answer.status_code, answer.json()["code"]) == (401, "log_in"), name
        for name in ("", "owner"):
            told = Researcher(client, tiny()).log_in(PASSWORD, name).overview("live")
            assert told["researcher"] == {"name": "owner", "role": "own"}


def test_removing_somebody_and_a_new_password_end_the_session(url, served):
    with served(url) as client:
        add(url, "ray", "sally")
        ray, sally = log_in(client, "ray"), log_in(client, "sally")
        assert ray.get("overview").status_code == sally.get("overview").status_code == 200
        with open_store(url) as store:
            store.write(lambda c: researchers.remove(c, "ray"))
            store.write(lambda c: researchers.renew(c, "sally", cheap_hash("another password")))
        assert ray.get("overview").status_code == sally.get("overview").status_code == 401
        assert ray.post("/api/admin/pause", {"paused": True}).status_code == 401
        again = Researcher(client, tiny()).log_in("another password", "sally")
        assert again.get("overview").status_code == 200


def test_who_may_only_look_takes_no_part_as_a_pilot(url, served):
    with served(url) as client:
        add(url, "sally", "ray")
        assert log_in(client, "ray").join("pilot").state["mode"] == "pilot"
        sally = log_in(client, "sally")
        assert sally.request("POST", "/api/join", {"mode": "pilot"}).status_code == 403


@pytest.mark.parametrize(
    ("name", "role", "said"),
    [
        ("", "see", "a name has 1 to 40 letters"),
        ("a b", "see", "a name has 1 to 40 letters"),
        ("Owner", "see", "choose another name"),
        ("ray", "boss", "the role must be one of see, run, own, not 'boss'"),
        ("olga", "see", "olga is a researcher already"),
    ],
)
def test_researchers_that_cannot_be_added(store, name, role, said):
    store.write(lambda c: researchers.add(c, "olga", "own", "x"))
    with pytest.raises(InputError, match=said):
        store.write(lambda c: researchers.add(c, name, role, "x"))


# Tokens


def download(client, token, file="steps.csv"):
    client.cookies.clear()
    headers = {"Authorization": f"Bearer {token}"}
    return client.get(f"/api/admin/export/{file}", headers=headers)


def test_a_token_downloads_and_does_nothing_else(url, served, tmp_path):
    with served(url) as client:
        Person(client, tiny()).join().begin().finish()
        with open_store(url) as store:
            store.write(lambda c: researchers.add_token(c, "nightly", "ital_token"))
        answer = download(client, "ital_token")
        assert answer.status_code == 200
        assert answer.text.startswith("participant,mode,")
        headers = {"Authorization": "Bearer ital_token"}
        assert client.get("/api/admin/overview", headers=headers).status_code == 401
        assert client.get("/api/admin/payments.csv", headers=headers).status_code == 401
        assert client.post("/api/admin/pause", json={"paused": True}, headers=headers).status_code
        for wrong in ("-", "ital_tokem", "x" * 190):
            answer = download(client, wrong)
            assert (answer.status_code, answer.json()["code"]) == (401, "log_in")
        stored = everything(url)
        assert "ital_token" not in str(stored)
        assert [(row.who, row.action, row.detail) for row in stored["audit"]] == [
            ("", "token created", "nightly"),
            ("token nightly", "exported", "steps.csv (live)"),
        ]
        with open_store(url) as store:
            backups.backup(store, tmp_path / "b.backup")
            store.write(lambda c: researchers.revoke_token(c, "nightly"))
        assert download(client, "ital_token").status_code == 401
    backups.restore(tmp_path / "b.backup", url, replace=True)
    with open_store(url) as store, store.reading() as connection:
        assert researchers.token_name(connection, "ital_token") == "nightly"


def test_guessing_tokens_is_limited(sqlite_url, served):
    with served(sqlite_url) as client:
        statuses = [download(client, f"ital_{number}").status_code for number in range(12)]
    assert statuses == [401] * 10 + [429] * 2


# On the command line


@pytest.fixture
def typed(capsys, monkeypatch, tmp_path, sqlite_url, served):
    """Commands typed beside a database."""
    with served(sqlite_url):
        pass
    monkeypatch.chdir(tmp_path)
    return lambda command, *words: ital(capsys, "study", command, tmp_path, *words)


def test_researchers_on_the_command_line(typed, sqlite_url, served):
    status, out, err = typed("researchers", "--add", "anna", "--role", "run")
    assert (status, err) == (0, "")
    assert out.startswith("anna (run) may log in with the password ")
    password = out.split()[-1]
    assert password not in str(everything(sqlite_url))
    with served(sqlite_url) as client:
        told = Researcher(client, tiny()).log_in(password, "anna").overview("live")
        assert told["researcher"]["role"] == "run"
    lines = typed("researchers")[1].splitlines()
    assert lines[0] == "owner  own  whoever knows the study's password"
    assert lines[1].startswith("anna  run  since 20")
    assert typed("researchers", "--renew", "anna")[1].split()[-1] != password
    assert typed("researchers", "--remove", "anna")[1] == "anna may no longer log in\n"
    for words, said in (
        (["--remove", "anna"], "there is no researcher anna: there is nobody yet"),
        (["--add", "anna", "--role", "boss"], "the role must be one of"),
        (["--add", "anna", "--remove", "anna"], "give one of --add and --remove at a time"),
    ):
        status, out, err = typed("researchers", *words)
        assert (status, out, said in err, err.count("\n")) == (2, "", True, 1), err


def test_tokens_on_the_command_line(typed):
    assert typed("tokens")[1] == "there are no tokens\n"
    status, out, err = typed("tokens", "--create", "nightly")
    assert (status, err, out.startswith("nightly: ital_")) == (0, "", True)
    assert "valid" in typed("tokens")[1]
    assert typed("tokens", "--revoke", "nightly")[1] == "nightly opens nothing any more\n"
    assert "revoked on 20" in typed("tokens")[1]
    for words, said in (
        (["--revoke", "nightly"], "there is no valid token nightly"),
        (["--create", "a b"], "a name has 1 to 40 letters"),
        (["--create", "a", "--revoke", "b"], "give one of --create and --revoke at a time"),
    ):
        status, out, err = typed("tokens", *words)
        assert (status, out, said in err, err.count("\n")) == (2, "", True, 1), err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["researchers", "--add", "a b"], "a name has 1 to 40 letters"),
        (["researchers", "--add", "anna", "--role", "boss"], "the role must be one of"),
        (["researchers"], "there is no database"),
        (["researchers", "--remove", "anna"], "there is no database"),
        (["tokens", "--create", "a b"], "a name has 1 to 40 letters"),
        (["tokens", "--revoke", "nightly"], "there is no database"),
    ],
)
def test_what_is_refused_makes_no_database(capsys, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    command, *options = words
    check_refused(capsys, tmp_path, ["study", command, tmp_path, *options], said)
