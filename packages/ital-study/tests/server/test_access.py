"""Who may do what: nobody reaches another person's data; a refused request changes nothing."""

import json
import re
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
from argon2 import Type, extract_parameters
from itsdangerous import URLSafeTimedSerializer

from ital_study import server
from ital_study.server import _keys, password_of
from ital_study.server._guard import RateLimit, is_own_origin
from ital_study.server._keys import Keys
from ital_study.store import open_store, operations
from ital_study.store.tables import ALL
from tests.server.people import (
    LARGEST_BODY,
    PARTICIPANT_COOKIE,
    PASSWORD,
    RESEARCHER_COOKIE,
    SECRET,
    SIMULATION_KEY,
    Person,
    Refusal,
    Researcher,
    tiny,
)

POSTS = {
    "language": {"language": "en"},
    "consent": {"accepted": True, "version": "1"},
    "instructions": {},
    "check": {"answers": [1, 0, 2, 1]},
    "answers": {"page": "you", "place": "start", "answers": {"age": 34}},
    "steps": {"round": "w", "step": 1, "choice": 0},
    "attention": {"round": "w", "step": 1, "choice": 0},
    "part": {},
    "events": {"events": [{"kind": "online"}]},
    "comments": {"text": "hello"},
    "leave": {"keep": False},
}
ADMIN_POSTS = {
    "logout": {},
    "pause": {"paused": True},
    "unblind": {},
    "release": {"number": 1},
    "delete": {"number": 1, "confirm": 1},
    "exclude": {"number": 1, "reason": "because"},
    "find": {"who": "1"},
}
ADMIN_GETS = (
    "overview",
    "audit",
    "payments.csv",
    *(f"export/{name}" for name in ("steps.csv", "steps.parquet", "events.jsonl", "codebook.md")),
    "export/participants.csv",
    "export/answers.csv",
)


def everything(url):
    with open_store(url) as store, store.reading() as connection:
        return {
            table.name: connection.execute(sa.select(table).order_by(*table.primary_key)).all()
            for table in ALL
        }


@pytest.fixture
def two(url, client, person):
    """Two participants in the warm-up."""
    return [person().join(ids={"id": name}).begin() for name in ("one", "two")]


def forged(uid="0" * 32, secret=b"another secret of 32 characters!", salt="participant"):
    return URLSafeTimedSerializer(secret, salt=salt).dumps(uid)


@pytest.fixture
def cookies(two):
    """Invalid cookies, each with its fault."""
    mine = two[0].cookies[PARTICIPANT_COOKIE]
    _, stamp, signature = mine.split(".")
    other_payload = two[1].cookies[PARTICIPANT_COOKIE].split(".")[0]
    return {
        "none": None,
        "empty": "",
        "rubbish": "x" * 500,
        "another's name under my signature": f"{other_payload}.{stamp}.{signature}",
        "cut": mine[:-2],
        "signed with another secret": forged(),
        "a researcher's": Keys(SECRET).researcher_cookie("0" * 32),
        "of nobody": forged(secret=SECRET),
        "not a name": URLSafeTimedSerializer(SECRET, salt="participant").dumps({"uid": 1}),
    }


def test_without_a_cookie_of_ones_own_nothing_is_shown_or_changed(url, client, two, cookies):
    before = everything(url)
    for what, cookie in cookies.items():
        somebody = Person(client, tiny())
        somebody.cookies = {} if cookie is None else {PARTICIPANT_COOKIE: cookie}
        somebody.state = {
            "csrf": Keys(SECRET).csrf("0" * 32) if what == "of nobody" else two[0].state["csrf"]
        }
        answers = [somebody.request("GET", "/api/state")]
        answers += [somebody.post(f"/api/{path}", body) for path, body in POSTS.items()]
        assert {answer.status_code for answer in answers} == {401}, what
        assert {answer.json()["code"] for answer in answers} == {"unknown"}
    assert everything(url) == before


def test_a_cookie_without_the_pages_token_changes_nothing(url, two):
    before = everything(url)
    one, other = two
    for token in (None, "", "wrong", other.state["csrf"], one.state["csrf"][:-1], "x" * 200):
        one.state = {"csrf": token} if token else {}
        for path, body in POSTS.items():
            answer = one.post(f"/api/{path}", body)
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), (token, path)
    assert everything(url) == before


def test_a_participant_sees_nothing_of_another(two):
    one, other = two
    one.step(choice=1)
    mine, theirs = one.look(), other.look()
    assert mine["scene"]["arrows"] != theirs["scene"]["arrows"]
    assert mine["resume_code"] != theirs["resume_code"]
    assert mine["csrf"] != theirs["csrf"]
    assert theirs["progress"]["done"] == 0


def test_the_dashboard_is_closed_without_the_password(url, client, two):
    before = everything(url)
    one = two[0]
    somebodies = []
    for cookie in (
        None,
        "rubbish",
        forged(salt="researcher"),
        Keys(SECRET).researcher_cookie("0" * 32),
    ):
        somebody = Person(client, tiny())
        somebody.cookies = {} if cookie is None else {RESEARCHER_COOKIE: cookie}
        somebody.state = {"csrf": Keys(SECRET).csrf("0" * 32)}
        somebodies.append(somebody)
    for somebody in [*somebodies, one]:
        answers = [somebody.request("GET", f"/api/admin/{path}") for path in ADMIN_GETS]
        answers += [somebody.post(f"/api/admin/{path}", body) for path, body in ADMIN_POSTS.items()]
        assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {
            (401, "log_in")
        }
        assert not any("participant" in answer.text for answer in answers)
    assert everything(url) == before


def test_a_researcher_without_the_pages_token_changes_nothing(url, two, researcher):
    before = everything(url)
    researcher.state = {"csrf": two[0].state["csrf"]}
    for path, body in ADMIN_POSTS.items():
        assert researcher.post(f"/api/admin/{path}", body).status_code == 403
    assert everything(url) == before


def test_a_wrong_password_opens_nothing(client):
    somebody = Researcher(client, tiny())
    for password in ("", "wrong", PASSWORD + " ", PASSWORD[:-1], "x" * 1000, "\x00"):
        answer = somebody.request("POST", "/api/admin/login", {"password": password})
        assert (answer.status_code, answer.json()["code"]) == (401, "log_in")
        assert "set-cookie" not in answer.headers
    assert somebody.get("overview").status_code == 401


def test_the_password_is_kept_as_an_argon2_hash_that_takes_work(sqlite_url, served):
    """The other tests log in with a cheaper hash."""
    hashed = password_of({"ITAL_STUDY_PASSWORD": PASSWORD})
    parameters = extract_parameters(hashed)
    assert (parameters.type, parameters.time_cost >= 3, parameters.memory_cost >= 65536) == (
        Type.ID,
        True,
        True,
    )
    with served(sqlite_url, password=hashed) as client:
        assert Researcher(client, tiny()).log_in().get("overview").status_code == 200
        assert client.post("/api/admin/login", json={"password": hashed}).status_code == 401


def test_after_logging_out_the_cookie_is_worth_nothing(researcher):
    cookies = dict(researcher.cookies)
    assert researcher.post("/api/admin/logout", {}).status_code == 200
    researcher.cookies = cookies
    assert researcher.get("overview").status_code == 401


def test_other_modes_are_for_the_researcher_and_simulations(url, person, researcher):
    for mode in ("pilot", "preview", "simulated"):
        for key in ({}, {"key": "wrong"}, {"key": ""}):
            with pytest.raises(Refusal) as refused:
                person().join(mode, **key)
            assert refused.value.status == 403
    assert everything(url)["participants"] == []
    for mode in ("pilot", "preview", "simulated"):
        assert person().join(mode, key=SIMULATION_KEY).state["mode"] == mode
        assert researcher.join(mode).state["mode"] == mode


def test_without_a_simulation_key_no_key_opens(url, served):
    with served(url, simulation_key=None) as client:
        for key in (None, ""):
            with pytest.raises(Refusal):
                Person(client, tiny()).join("simulated", key=key)


def test_only_simulated_participants_name_a_teacher(person):
    with pytest.raises(Refusal) as refused:
        person().join("live", teacher="machine")
    assert refused.value.status == 422


NOT_VALID = [
    {"round": "w", "step": -1, "choice": 0},
    {"round": "w", "step": 0, "choice": -1},
    {"round": "w", "step": 0, "choice": 10**30},
    {"round": "w", "step": 0.5, "choice": 0},
    {"round": "w", "step": "0", "choice": 0},
    {"round": "w", "step": True, "choice": 0},
    {"round": "w" * 100, "step": 0, "choice": 0},
    {"round": "w; DROP TABLE steps", "step": 0, "choice": 0},
    {"round": None, "step": 0, "choice": 0},
    {"round": "w", "step": 0},
    {"round": "w", "step": 0, "choice": 0, "state": [0.0] * 25},
    {"round": "w", "step": 0, "choice": 0, "timing": {"shown_at": -1}},
    {"round": "w", "step": 0, "choice": 0, "timing": {"shown_at": float("nan")}},
    {"round": "w", "step": 0, "choice": 0, "timing": {"shown_at": float("inf")}},
    {"round": "w", "step": 0, "choice": 0, "timing": {"address": "10.0.0.1"}},
    [],
    None,
    "steps",
    {},
]


STATIC = Path(server.__file__).parents[1] / "pages" / "static"
PAGE_EVENTS = [
    ("shown", {"round": "w", "step": 0}),
    ("chosen", {"round": "1-2", "step": 29, "choice": 9}),
    ("choice_changed", {"round": "5-3", "step": 0, "choice": 0}),
    ("largest_change_shown", {"round": "1-1", "step": 3}),
    ("focus_lost", {}),
    ("focus_lost", {"round": "w", "step": 1}),
    ("focus_regained", {}),
    ("offline", {}),
    ("online", {}),
    ("reloaded", {}),
    (
        "screen",
        {"width": 1280, "height": 720, "ratio": 1.25, "pointer": "fine", "small_accepted": False},
    ),
]
NO_EVENTS = {
    "unknown kind": {"kind": "joined"},
    "no kind": {"data": {}},
    "a kind of the server": {"kind": "attention", "data": {"check": 0, "passed": True}},
    "400 digits": {"kind": "screen", "data": {"width": int("9" * 400), "height": 1}},
    "no number": {"kind": "screen", "data": {"width": float("nan"), "height": 1}},
    "endless": {"kind": "screen", "data": {"width": float("inf"), "height": 1}},
    "below 0": {"kind": "screen", "data": {"width": -1, "height": 1}},
    "no width": {"kind": "screen", "data": {"height": 1}},
    "text": {"kind": "screen", "data": {"width": "wide", "height": 1}},
    "another pointer": {"kind": "screen", "data": {"width": 1, "height": 1, "pointer": "\ud800"}},
    "more": {"kind": "online", "data": {"x": 1}},
    "no data": {"kind": "shown"},
    "a list": {"kind": "online", "data": []},
    "a long round": {"kind": "shown", "data": {"round": "w" * 17, "step": 0}},
    "a large step": {"kind": "shown", "data": {"round": "w", "step": 100_001}},
    "a step that is no number": {"kind": "shown", "data": {"round": "w", "step": True}},
    "no choice": {"kind": "chosen", "data": {"round": "w", "step": 0}},
    "a time of 400 digits": {"kind": "online", "at": int("9" * 400)},
}


def raw(one, path, content):
    """A request of a participant with any content."""
    headers = {"Cookie": f"{PARTICIPANT_COOKIE}={one.cookies[PARTICIPANT_COOKIE]}"}
    headers |= {"X-CSRF-Token": one.state["csrf"], "Content-Type": "application/json"}
    return one.client.post(path, content=content, headers=headers)


def test_requests_that_are_not_valid_are_refused_and_change_nothing(url, two):
    before = everything(url)
    for body in NOT_VALID:
        answer = raw(two[0], "/api/steps", json.dumps(body))
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid"), body
    for content in (b"", b"{", b"\xff\xfe", b"9" * 5000, b"[" * 5000, b'{"a":1}' * 3):
        answer = raw(two[0], "/api/steps", content)
        assert answer.status_code in (400, 422), content
        assert set(answer.json()) == {"error", "code"}
    assert everything(url) == before


def test_oversized_requests_are_refused_unread_and_change_nothing(url, two):
    before = everything(url)
    large = b'{"text": "' + b"x" * (LARGEST_BODY + 1) + b'"}'
    for content in (large, (large[i : i + 5000] for i in range(0, len(large), 5000))):
        answer = raw(two[0], "/api/comments", content)
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert everything(url) == before


def test_too_many_events_are_refused(url, two):
    one = two[0]
    assert one.post("/api/events", {"events": [{"kind": "online"}] * 51}).status_code == 422
    assert one.post("/api/events", {"events": [{"kind": "online"}] * 50}).json() == {"stored": 50}


@pytest.mark.parametrize("what", NO_EVENTS)
def test_events_that_no_page_sends_are_refused_and_none_of_their_batch_is_stored(url, two, what):
    before = everything(url)
    content = json.dumps({"events": [{"kind": "online"}, NO_EVENTS[what]]}).encode()
    answer = raw(two[0], "/api/events", content)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert answer.json()["error"].startswith("The request is not valid: 'events.1")
    assert everything(url) == before


def test_a_refused_event_is_told_what_is_allowed(two):
    said = two[0].post("/api/events", {"events": [NO_EVENTS["unknown kind"]]}).json()["error"]
    assert said.startswith(
        "The request is not valid: 'events.0' must be one of 'shown', 'largest_change_shown', "
    )
    assert "joined" not in said  # never what was sent


def test_every_event_of_the_pages_is_taken(url, two):
    sent = [{"kind": kind, "at": 1.7e12, "data": data} for kind, data in PAGE_EVENTS]
    assert two[0].post("/api/events", {"events": sent}).json() == {"stored": len(PAGE_EVENTS)}
    stored = [
        (row.kind, json.loads(row.data))
        for row in everything(url)["events"]
        if row.source == "client"
    ]
    assert stored == PAGE_EVENTS
    source = "".join(file.read_text(encoding="utf-8") for file in STATIC.glob("*.js"))
    recorded = set(re.findall(r"""(?:\brecord|\brecorder\.add)\(\s*"(\w+)""", source)) | {
        "chosen",
        "choice_changed",
    }
    assert recorded == {kind for kind, _ in PAGE_EVENTS}


def test_requests_from_other_sites_are_refused(url, two):
    before = everything(url)
    one = two[0]
    for headers in (
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.test"},
        {"Origin": "null"},
    ):
        assert one.post("/api/steps", one.step_body(), **headers).status_code == 403
        assert one.request("POST", "/api/join", {"ids": {}}, **headers).status_code == 403
    assert everything(url) == before
    one.request("POST", "/api/join", {}, Origin=str(one.client.base_url).rstrip("/"))
    assert (
        one.post("/api/steps", one.step_body(), **{"Sec-Fetch-Site": "same-origin"}).status_code
        == 200
    )


def test_the_origin_may_be_told_where_a_proxy_changes_the_host():
    said = {"origin": "https://study.example.org", "host": "127.0.0.1:8000"}
    assert not is_own_origin(said)
    assert is_own_origin(said, "https://study.example.org/")
    assert not is_own_origin(
        {"origin": "https://evil.test", "host": "evil.test"}, "https://study.example.org"
    )


def test_joining_and_logging_in_are_limited(url, served):
    with served(url, joins_per_minute=3, log_ins_per_minute=2) as client:
        statuses = [
            Person(client, tiny()).request("POST", "/api/join", {}).status_code for _ in range(5)
        ]
        assert statuses == [200, 200, 200, 429, 429]
        refused = Person(client, tiny()).request("POST", "/api/join", {})
        assert (refused.json()["code"], int(refused.headers["Retry-After"]) > 0) == (
            "too_many",
            True,
        )
        tries = [
            client.post("/api/admin/login", json={"password": "wrong"}).status_code
            for _ in range(4)
        ]
        assert tries == [401, 401, 429, 429]
        assert client.post("/api/admin/login", json={"password": PASSWORD}).status_code == 429
        # Simulations wait for nobody.
        assert Person(client, tiny()).simulate().state["stage"] == "consent"


def test_strangers_cannot_lock_the_researcher_out(sqlite_url, served):
    def log_in(client, password, address=None, cookie=None):
        client.cookies.clear()
        headers = {
            "X-Forwarded-For": address,
            "Cookie": cookie and f"{RESEARCHER_COOKIE}={cookie}",
        }
        sent = {name: value for name, value in headers.items() if value is not None}
        return client.post("/api/admin/login", json={"password": password}, headers=sent)

    with served(sqlite_url, log_ins_per_minute=5) as client:
        mine = Researcher(client, tiny()).log_in()
        cookie = mine.cookies[RESEARCHER_COOKIE]
        guesses = [(f"10.0.0.{i}", f"guess {i} {k}") for k in range(5) for i in range(10)]
        assert {log_in(client, guess, address).status_code for address, guess in guesses} == {401}
        # All strangers share a limit, whatever they type.
        stranger = log_in(client, PASSWORD, "10.0.0.11")
        assert (stranger.status_code, int(stranger.headers["Retry-After"]) > 0) == (429, True)
        assert mine.get("overview").status_code == 200
        # From where a stranger is refused.
        assert log_in(client, PASSWORD, "10.0.0.11", cookie).status_code == 200
        assert log_in(client, PASSWORD).status_code == 200  # from the machine itself
        assert log_in(client, PASSWORD, "10.0.0.11", f"{cookie}x").status_code == 429
        tries = [log_in(client, "wrong", "10.0.0.11", cookie).status_code for _ in range(6)]
        assert tries[-1] == 429  # nor may a known browser guess without limit


def test_a_browser_that_logged_in_is_known_after_a_restart(sqlite_url, served):
    with served(sqlite_url) as client:
        cookie = Researcher(client, tiny()).log_in().cookies[RESEARCHER_COOKIE]
    with served(sqlite_url, log_ins_per_minute=1) as client:
        wrong = [
            client.post(
                "/api/admin/login",
                json={"password": "?"},
                headers={"X-Forwarded-For": f"10.0.0.{i}"},
            )
            for i in range(11)
        ]
        assert wrong[-1].status_code == 429
        mine = Researcher(client, tiny())
        mine.cookies = {RESEARCHER_COOKIE: cookie}
        assert mine.get("overview").status_code == 401  # sessions end with the server
        mine.log_in()
        assert mine.get("overview").status_code == 200


def test_a_clock_that_steps_back_refuses_no_cookie(sqlite_url, served, monkeypatch):
    now, now_ns = time.time, time.time_ns
    with served(sqlite_url) as client:
        one, researcher = Person(client, tiny()).join().begin(), Researcher(client, tiny()).log_in()
        one.step()
        for back in (10, 3600):
            monkeypatch.setattr(time, "time", lambda back=back: now() - back)
            monkeypatch.setattr(time, "time_ns", lambda back=back: now_ns() - back * 10**9)
            assert one.look()["progress"]["done"] == one.step()["progress"]["done"] - 1
            assert researcher.get("overview").status_code == 200
            again = Person(client, tiny())
            again.cookies = dict(one.cookies)
            assert again.join().state["progress"] == one.state["progress"]


def test_the_tolerance_for_clocks_has_a_limit(monkeypatch):
    keys, now = Keys(b"a secret"), time.time()
    cookies = {
        keys.participant_of: keys.participant_cookie("p"),
        keys.researcher_of: keys.researcher_cookie("r"),
    }
    ages = {
        keys.participant_of: _keys.PARTICIPANT_AGE,
        keys.researcher_of: _keys.RESEARCHER_AGE,
    }
    for read, cookie in cookies.items():
        for passed in (5 - _keys.CLOCK_SKEW, 0, ages[read] - 5):
            monkeypatch.setattr(time, "time", lambda passed=passed: now + passed)
            assert read(cookie) is not None
        for passed in (-5 - _keys.CLOCK_SKEW, ages[read] + 5):
            monkeypatch.setattr(time, "time", lambda passed=passed: now + passed)
            assert read(cookie) is None


def test_guessing_resume_codes_is_limited(client, person):
    statuses = [
        person().request("POST", "/api/join", {"resume": f"AAAA-{i:04}"}).status_code
        for i in range(14)
    ]
    assert statuses == [404] * 10 + [429] * 4


def test_a_limit_fills_up_again_and_knows_addresses_apart():
    time = [0.0]
    limit = RateLimit(2, clock=lambda: time[0])
    assert [limit.wait("a"), limit.wait("a")] == [0, 0]
    assert limit.wait("a") > 0
    assert limit.wait("b") == 0
    time[0] = 31.0
    assert limit.wait("a") == 0
    assert limit.wait("a") > 0


def test_cookies_are_out_of_reach_of_scripts_and_other_sites(client, person):
    set_cookie = person().request("POST", "/api/join", {}).headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(set_cookie.split("; "))
    behind_tls = person().request("POST", "/api/join", {}, **{"X-Forwarded-Proto": "https"})
    assert "Secure" in behind_tls.headers["set-cookie"]
    assert "max-age" in behind_tls.headers["strict-transport-security"]
    researchers = Researcher(client, tiny()).request(
        "POST", "/api/admin/login", {"password": PASSWORD}
    )
    assert {"HttpOnly", "SameSite=strict"} <= set(researchers.headers["set-cookie"].split("; "))


def test_every_answer_has_security_headers(client):
    paths = (
        "/",
        "/dashboard",
        "/api/state",
        "/nowhere",
        "/static/nothing.js",
        "/api/openapi.json",
        "/preview",
    )
    for answer in (client.get(path) for path in paths):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "server" not in answer.headers


def test_errors_are_plain(client):
    page = client.get("/nowhere<script>")
    assert page.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert "<script" not in page.text
    api = client.get("/api/nowhere")
    assert api.json() == {"error": "There is no such page.", "code": "not_found"}
    assert client.get("/api/steps").status_code == 405
    assert client.get("/static/../_app.py").status_code == 404
    assert client.get("/static/%2e%2e/%2e%2e/server/_app.py").status_code == 404
    assert client.get("/docs").status_code == 404


def test_an_error_of_ours_shows_nothing_of_the_inside(url, served, monkeypatch):
    from ital_study.server import _study

    with served(url) as client:
        one = Person(client, tiny()).join()

        def breaks(*_):
            raise RuntimeError("a secret of the inside")

        monkeypatch.setattr(_study.LiveStudy, "look", breaks)
        answer = one.request("GET", "/api/state")
    assert answer.status_code == 500
    assert set(answer.json()) == {"error", "code"}
    assert "secret" not in answer.text
    assert answer.headers["content-security-policy"]


def test_preview_is_for_researchers(client, researcher):
    assert client.get("/preview").headers["location"] == "dashboard"
    assert researcher.request("GET", "/preview").status_code == 200


def test_neither_addresses_nor_browsers_nor_ids_are_stored(url, client, person, tmp_path):
    one = person()
    agent = {"User-Agent": "Unmistakable/1.0", "X-Forwarded-For": "203.0.113.77"}
    one.request("POST", "/api/join", {"ids": {"PROLIFIC_PID": "unmistakable-id"}}, **agent)
    one.look()
    one.begin()
    one.post("/api/steps", one.step_body(), **agent)
    everywhere = json.dumps(everything(url), default=str)
    files = b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.is_file())
    for word in ("Unmistakable", "unmistakable-id", "203.0.113.77", "127.0.0.1"):
        assert word not in everywhere
        assert word.encode() not in files


def test_a_database_that_does_not_answer_is_said_plainly_and_waited_for(url, served, monkeypatch):
    from ital_study.store import Store

    with served(url) as client:
        one = Person(client, tiny()).join().begin()
        researcher = Researcher(client, tiny()).log_in()

        def gone(*_, **__):
            raise sa.exc.OperationalError("SELECT", {}, Exception("gone"))

        with monkeypatch.context() as patch:
            patch.setattr(Store, "reading", gone)
            answers = [
                researcher.get("overview"),
                Person(client, tiny()).request("POST", "/api/join", {"resume": "A"}),
            ]
            assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {
                (503, "try_again")
            }
        with monkeypatch.context() as patch:
            patch.setattr(operations, "add_step", gone)
            answer = one.post("/api/steps", one.step_body())
            assert (answer.status_code, answer.json()["code"]) == (503, "try_again")
        assert one.step()["progress"]["done"] == 1
