"""Panels: identities in links, what people get at the end, who is recognised, and how much one
visitor may store.
"""

import dataclasses
import json
from pathlib import Path

import pytest
import sqlalchemy as sa

import ital_study as study
from ital.errors import InputError
from ital_study.config.languages import shipped_words
from ital_study.config.panel import Panel, guessable
from ital_study.config.sections import Completion, EarlyEnd
from ital_study.config.texts import TranslatedQuestion, Translation
from ital_study.store import backups, open_store, operations, read_tombstones
from ital_study.store.records import NewParticipant
from ital_study.store.tables import participants
from tests.server.people import SIMULATION_KEY, Person, Refusal, Researcher, tiny
from tests.server.test_access import everything

TEMPLATES = (
    "",
    " ",
    "{{%PROLIFIC_PID%}}",
    "%SURVEY_CODE%",
    "${e://Field/ID}",
    "[ID]",
    "<id>",
    "two words",
)
SHORT = study.load_config("short").to_toml()
END = '[completion]\ncode = "CHANGE-ME"\n'


def with_panel(**changes):
    return tiny(panel=Panel(**changes))


def test_the_default_pattern_refuses_templates_that_nobody_filled_in():
    panel = Panel()
    assert not any(panel.accepts(template) for template in TEMPLATES)
    assert all(
        panel.accepts(fine)
        for fine in ("5f3a9c1b2d4e6f7a8b9c0d1e", "12345", "anna@example.org", "Zoë-1")
    )


@pytest.mark.parametrize(
    ("pattern", "guessed"),
    [
        (Panel().pattern, True),
        ("[0-9]{5}", True),
        ("[a-z]+", True),
        ("[0-9a-f]{24}", False),
        ("[A-Z2-7]{12}", False),
    ],
)
def test_identities_that_can_be_guessed_are_noticed(pattern, guessed):
    assert guessable(pattern) is guessed


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("[panel]\nidentity = []", "panel.identity must name at least one"),
        ('[panel]\nidentity = ["a b"]', "panel.identity must name parameters of the link"),
        ('[panel]\nidentity = ["code"]', "but not 'code'"),
        ('[panel]\nidentity = ["x", "x"]', "different names"),
        ('[panel]\npass_through = ["id"]', "panel.pass_through must not name id"),
        ('[panel]\npattern = "("', "panel.pattern must be a regular expression"),
        ('[panel]\npattern = ".*"', "panel.pattern must not accept a blank identity"),
        ('[panel]\nwho = "me"', "unknown key panel.who"),
        ('[completion.left]\nredirect = "ftp://x"', "completion.left.redirect must be an address"),
        (
            '[completion.left]\nredirect = "https://x/?a={SONA}"',
            "completion.left.redirect has the unknown field {SONA}",
        ),
        ('[completion.gone]\ncode = "X"', "unknown key completion.gone"),
    ],
)
def test_wrong_keys_are_refused_in_one_line(section, said):
    with pytest.raises(InputError) as refused:
        study.parse_config(f"{SHORT}\n{section}\n")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_panel_is_written_and_read_back_and_older_studies_keep_their_hash():
    plain = study.parse_config(SHORT)
    defaults = '[panel]\nidentity = ["PROLIFIC_PID", "id"]\nrequired = false\n'
    assert study.parse_config(SHORT + defaults).hash == plain.hash
    assert study.parse_config(SHORT.replace(END, END + "per_person = false\n")).hash == plain.hash
    text = SHORT.replace(
        END, END + 'redirect = "https://x.test/?s={survey_code}&c={code}"\nper_person = true\n'
    )
    text += '[completion.left]\ncode = "LEFT"\n[panel]\nname = "SONA"\n'
    text += 'identity = ["survey_code"]\npass_through = ["t"]\n'
    config = study.parse_config(text)
    assert study.parse_config(config.to_toml()) == config
    assert config.hash != plain.hash
    assert (config.completion.per_person, config.completion.left) == (True, EarlyEnd("LEFT"))


# Identities in links


@pytest.mark.parametrize("mode", ["live", "pilot"])
def test_a_template_in_the_link_gets_a_page_and_stores_nothing(url, served, mode):
    with served(url) as client:
        for template in TEMPLATES:
            one = Person(client, tiny()).join(
                mode, ids={"PROLIFIC_PID": template}, key=SIMULATION_KEY
            )
            told = {name: one.state[name] for name in ("stage", "problem", "parameter", "csrf")}
            assert told == {
                "stage": "identity",
                "problem": "invalid",
                "parameter": "PROLIFIC_PID",
                "csrf": "",
            }
            assert one.cookies == {}
    assert everything(url)["participants"] == []


def test_only_the_names_of_the_configuration_are_taken(url, served):
    with served(url, with_panel(identity=("survey_code",), pattern="[0-9]{5}")) as client:
        for name in ("id", "PROLIFIC_PID", "SESSION_ID"):
            with pytest.raises(Refusal) as refused:
                Person(client, tiny()).join(ids={name: "12345"})
            assert (refused.value.status, refused.value.code) == (422, "invalid")
        assert Person(client, tiny()).join(ids={"survey_code": "1234"}).state["stage"] == "identity"
        one = Person(client, tiny()).join(ids={"survey_code": "12345"}).begin()
        assert Person(client, tiny()).join(ids={"survey_code": "12345"}).state["stage"] == "warm_up"
        assert one.look()["stage"] == "warm_up"
        assert client.get("/api/panel").json() == {"identity": ["survey_code"], "required": False}
        robot = Person(client, tiny()).join(
            "simulated", ids={"id": "not a number"}, key=SIMULATION_KEY
        )
        assert robot.state["stage"] == "consent"  # simulated participants have names of their own


def test_where_an_identity_is_required_a_bare_link_gets_a_page(url, served):
    config = with_panel(required=True, identity=("who",))
    with served(url, config) as client:
        bare = Person(client, config).join()
        assert (bare.state["stage"], bare.state["problem"], bare.state["parameter"]) == (
            "identity",
            "missing",
            "who",
        )
        one = Person(client, config).join(ids={"who": "me"}).begin().finish()
        code = one.state["resume_code"]
        # A cookie of somebody who has finished opens no second study.
        assert one.join().state["stage"] == "identity"
        two = Person(client, config).join(resume=code)
        assert two.state["stage"] == "finished"
        researcher = Researcher(client, config).log_in()
        assert researcher.join("preview").state["stage"] == "consent"
    assert len(everything(url)["participants"]) == 2


def test_the_page_is_in_the_visitors_language(url, served):
    texts = tiny().texts()
    check = tuple(TranslatedQuestion(asked.question, asked.options) for asked in texts.check)
    german = Translation(
        "Lehren", texts.consent.text, texts.instructions, check, texts.debriefing, {}
    )
    with served(url, dataclasses.replace(tiny(), translations={"de": german})) as client:
        state = Person(client, tiny()).join(ids={"id": ""}, language="de,en").state
        words = client.get("/api/words?wishes=de,en").json()["words"]
    assert (state["language"], state["study"]["title"]) == ("de", "Lehren")
    for key in ("identity.title", "deleted.title", "excluded.title"):
        assert words[key] not in ("", shipped_words("en")[key])


# What people get at the end

ENDS = Completion(
    "DONE",
    "https://panel.test/?cc={code}&pid={PROLIFIC_PID}",
    declined=EarlyEnd("NO", "https://panel.test/?cc=NO"),
    failed_check=EarlyEnd("FAILED"),
    left=EarlyEnd(None, "https://panel.test/left"),
)


def ends(client, config):
    """Somebody for every way in which the study can end."""
    people = {}
    for name in ("finished", "declined", "failed_check", "left"):
        people[name] = Person(client, config).join(ids={"PROLIFIC_PID": name})
    people["finished"].begin().finish()
    people["declined"].do("/api/consent", {"accepted": False, "version": "1"})
    people["failed_check"].consent().read().answer(right=False).answer(right=False)
    people["left"].begin().teach(1).do("/api/leave", {"keep": True})
    return people


def test_every_way_to_end_has_its_own_code_and_address(url, served):
    config = tiny(completion=ENDS, panel=Panel(name="Prolific", pass_through=("SESSION_ID",)))
    with served(url, config) as client:
        people = ends(client, config)
        told = {name: (one.state["stage"], one.state["completion"]) for name, one in people.items()}
        reloaded = people["left"].look()["completion"]
        redone = (
            Person(client, config)
            .join(ids={"PROLIFIC_PID": "all"})
            .begin()
            .teach()
            .do("/api/leave", {"keep": True})
        )
    assert {name: stage for name, (stage, _) in told.items()} == {name: name for name in told}
    codes = {name: (what["code"], what["redirect"]) for name, (_, what) in told.items()}
    assert codes == {
        "finished": ("DONE", "https://panel.test/?cc={code}&pid={PROLIFIC_PID}"),
        "declined": ("NO", "https://panel.test/?cc=NO"),
        "failed_check": ("FAILED", None),
        "left": (None, "https://panel.test/left"),
    }
    assert {tuple(what["pass_through"]) for _, what in told.values()} == {("SESSION_ID",)}
    assert reloaded == told["left"][1]
    # Whoever taught all robots has finished.
    assert (redone["stage"], redone["completion"]["code"]) == ("left", "DONE")
    assert {one.state["study"]["panel"] for one in people.values()} == {"Prolific"}
    declined = next(row for row in everything(url)["participants"] if row.stage == "declined")
    assert (declined.external_hash, declined.resume_hash, declined.bytes, declined.events) == (
        None,
        None,
        0,
        0,
    )


def test_codes_of_ones_own_differ_by_person_and_by_outcome(url, served):
    config = tiny(completion=dataclasses.replace(ENDS, per_person=True))
    with served(url, config) as client:
        people = ends(client, config)
        again = people["finished"].look()["completion"]["code"]
        other = Person(client, config).join().begin().finish().state["completion"]["code"]
        deleted = people["finished"].do("/api/leave", {"keep": False})["completion"]["code"]
    codes = {name: one.state["completion"]["code"] for name, one in people.items()}
    # Nothing is stored that could verify the first.
    assert (codes["declined"], codes["left"]) == ("NO", None)
    assert len({again, other, codes["failed_check"]}) == 3
    assert all(
        len(code) == 11 and "DONE" not in code for code in (again, other, codes["failed_check"])
    )
    assert deleted == again  # who finished and then deletes the data keeps what they earned
    assert again not in json.dumps(everything(url), default=str)


# Who is recognised


def test_who_was_deleted_is_recognised_and_told_so(url, served, tmp_path):
    with served(url) as client:
        for name, by in (("one", "me"), ("two", "researcher")):
            person = Person(client, tiny()).join(ids={"id": name}).begin()
            if by == "me":
                person.do("/api/leave", {"keep": False})
            else:
                Researcher(client, tiny()).log_in().post(
                    "/api/admin/delete", {"number": 2, "confirm": 2}
                )
            again = Person(client, tiny()).join(ids={"id": name})
            assert (again.state["stage"], again.cookies, again.state["csrf"]) == ("deleted", {}, "")
        pilot = Person(client, tiny()).join("pilot", ids={"id": "one"}, key=SIMULATION_KEY)
        assert pilot.state["stage"] == "consent"  # other modes are kept apart
    with open_store(url) as store:
        backups.backup(store, tmp_path / "b.backup")
        hashes = {row.external_hash for row in everything(url)["tombstones"]}
        assert (len(hashes), None in hashes) == (2, False)
        assert {row["external_hash"] for row in read_tombstones(store.tombstone_file)} == hashes
    backups.restore(tmp_path / "b.backup", url, replace=True)
    with served(url) as client:
        assert Person(client, tiny()).join(ids={"id": "two"}).state["stage"] == "deleted"
        assert Person(client, tiny()).join(ids={"id": "three"}).state["stage"] == "consent"


def test_tombstones_beside_an_older_backup_carry_the_hash(url, served, tmp_path):
    with served(url) as client:
        one = Person(client, tiny()).join(ids={"id": "one"}).begin()
        with open_store(url) as store:
            backups.backup(store, tmp_path / "b.backup")
        one.do("/api/leave", {"keep": False})
    backups.restore(tmp_path / "b.backup", url, replace=True)
    with served(url) as client:
        assert Person(client, tiny()).join(ids={"id": "one"}).state["stage"] == "deleted"


@pytest.mark.parametrize("how", ["identity", "code", "cookie"])
def test_who_was_excluded_is_told_so_and_keeps_what_they_earned(url, served, how):
    with served(url, tiny(completion=ENDS)) as client:
        one = Person(client, tiny()).join(ids={"id": "one"}).begin().teach(2)
        done = Person(client, tiny()).join(ids={"id": "two"}).begin().finish()
        with open_store(url) as store:
            store.write(
                lambda connection: connection.execute(
                    participants.update().values(excluded="too fast")
                )
            )
        ways = {
            "identity": {"ids": {"id": "one"}},
            "code": {"resume": one.state["resume_code"]},
            "cookie": {},
        }
        person = one if how == "cookie" else Person(client, tiny())
        person.join(**ways[how])
        assert (person.state["stage"], "completion" in person.state) == ("excluded", False)
        assert "too fast" not in json.dumps(person.state)
        again = Person(client, tiny()).join(ids={"id": "two"})
        assert (again.state["stage"], again.state["completion"]["code"]) == (
            "excluded",
            done.state["completion"]["code"],
        )
    assert len(everything(url)["participants"]) == 2


def test_whoever_knows_only_the_identity_sees_no_code_and_deletes_nothing(url, served):
    with served(url) as client:
        # Came before the victim.
        stranger_before = Person(client, tiny()).join(ids={"id": "victim"})
        victim = Person(client, tiny()).join(ids={"id": "victim"})
        assert stranger_before.state["resume_code"] is victim.state["resume_code"] is None
        victim.consent()
        code = victim.state["resume_code"]
        assert code
        victim.read().answer()
        assert victim.look()["resume_code"] == victim.state["resume_code"] == code
        # The same browser, by the link again.
        assert victim.join(ids={"id": "victim"}).state["resume_code"] == code
        stranger = Person(client, tiny()).join(ids={"id": "victim"})
        for one in (stranger, stranger_before):
            one.look()
            states = [
                one.state,
                one.do("/api/consent", {"accepted": True, "version": "1"}),
                one.look(),
                one.step(),
            ]
            with pytest.raises(Refusal) as refused:
                one.do("/api/steps", {"round": "w", "step": 0, "choice": 999})
            states.append(refused.value.body.get("state", {}))
            with pytest.raises(Refusal) as refused:
                one.do("/api/comments", {"text": ""})
            states.append(refused.value.body["state"])
            assert not any(state.get("resume_code") for state in states)
            for wrong in ({}, {"code": "AAAA-AAAA-AAAA"}):
                with pytest.raises(Refusal) as refused:
                    one.do("/api/leave", {"keep": False, **wrong})
                assert (refused.value.status, refused.value.code) == (422, "code_needed")
        assert everything(url)["tombstones"] == []
        assert stranger.do("/api/leave", {"keep": False, "code": code.lower()})["deleted"]
        assert Person(client, tiny()).join(ids={"id": "victim"}).state["stage"] == "deleted"


def test_a_resume_code_proves_who_one_is(url, served):
    with served(url) as client:
        one = Person(client, tiny()).join(ids={"id": "me"}).begin()
        elsewhere = Person(client, tiny()).join(resume=one.state["resume_code"])
        assert elsewhere.state["resume_code"] == one.state["resume_code"]
        assert elsewhere.do("/api/leave", {"keep": False})["deleted"]


def test_guessing_the_code_for_a_deletion_is_limited(url, served):
    with served(url) as client:
        Person(client, tiny()).join(ids={"id": "me"}).begin()
        stranger = Person(client, tiny()).join(ids={"id": "me"})
        bodies = [{"keep": False, "code": f"AAAA-{i:04}"} for i in range(12)]
        assert [stranger.post("/api/leave", body).status_code for body in bodies] == [422] * 10 + [
            429
        ] * 2


def test_a_visit_before_consent_may_be_deleted_by_anybody_and_begun_again(url, served):
    with served(url) as client:
        Person(client, tiny()).join(ids={"id": "me"})
        assert (
            Person(client, tiny())
            .join(ids={"id": "me"})
            .do("/api/leave", {"keep": False})["deleted"]
        )
        assert Person(client, tiny()).join(ids={"id": "me"}).state["stage"] == "consent"
    assert [row.external_hash for row in everything(url)["tombstones"]] == [None]


# Places


def test_a_full_study_says_so_at_the_link_and_at_consent(url, served):
    config = tiny(intake=1)
    with served(url, config) as client:
        first, second = (
            Person(client, config).join(ids={"id": name}) for name in ("first", "second")
        )
        anonymous = Person(client, config).join()
        first.consent()
        for late in (second, anonymous):
            closed = late.do("/api/consent", {"accepted": True, "version": "1"})
            assert (closed["stage"], closed["csrf"]) == ("closed", "")
        assert second.join(ids={"id": "second"}).state["stage"] == "closed"
        assert anonymous.join().state["stage"] == "closed"
        assert Person(client, config).join(ids={"id": "third"}).state["stage"] == "closed"
        assert first.join(ids={"id": "first"}).state["stage"] == "instructions"
        researcher = Researcher(client, config).log_in()
        researcher.post("/api/admin/release", {"number": 1})
        assert second.join(ids={"id": "second"}).consent().state["stage"] == "instructions"
        # A participant whose place was given away may continue.
        assert first.read().answer().state["stage"] == "warm_up"
    assert [row.stage for row in everything(url)["participants"]] == [
        "warm_up",
        "instructions",
        "consent",
    ]


# Limits

WINDOW = {"width": 12345.678901234567, "height": 12345.678901234567, "ratio": 123.45678901234567}
LARGEST_EVENT = {
    "kind": "screen",
    "at": 1e14,
    "data": WINDOW | {"pointer": "coarse", "small_accepted": False},
}


def test_more_than_a_participant_may_store_is_refused_and_stops_no_step(url, served, monkeypatch):
    config = tiny()
    monkeypatch.setattr(operations, "EVENTS_PER_MINUTE", 10**9)
    monkeypatch.setattr(operations, "most_events", lambda config: 100)
    monkeypatch.setattr(operations, "most_bytes", lambda config: 2500)
    with served(url, config) as client:
        one = Person(client, config).join().begin()
        small = {"kind": "online"}
        assert one.post("/api/events", {"events": [LARGEST_EVENT] * 10}).json() == {"stored": 10}
        refused = one.post("/api/events", {"events": [LARGEST_EVENT] * 20})
        assert (refused.status_code, refused.json()["code"]) == (413, "too_large")
        assert one.post("/api/events", {"events": [small] * 50}).status_code == 200
        refused = one.post("/api/events", {"events": [small] * 50})
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many")
        one.finish()
    [row] = everything(url)["participants"]
    stored = everything(url)
    timings = sum(len(step.timing) for step in stored["steps"])
    assert row.bytes == sum(len(event.data) for event in stored["events"]) + timings
    assert row.usable


def test_events_are_limited_per_minute_and_person(url, served):
    with served(url) as client:
        one, other = (Person(client, tiny()).join().begin() for _ in range(2))
        many = {"events": [{"kind": "online"}] * 50}
        statuses = [one.post("/api/events", many).status_code for _ in range(13)]
        assert statuses == [200] * 12 + [429]
        assert int(one.post("/api/events", many).headers["Retry-After"]) > 0
        assert one.step()["progress"]["done"] == 1
        assert other.post("/api/events", many).status_code == 200


LARGEST_COMMENT = "\U0001f916" * 5000  # twelve bytes of JSON each
TIMING = {
    **dict.fromkeys(
        ("shown_at", "first_choice_at", "chosen_at", "confirmed_at"), 12345678901234.56
    ),
    **dict.fromkeys(("seconds_to_choice", "seconds_to_confirm"), 1234567.123456789),
    **dict.fromkeys(("choice_changes", "focus_losses"), 100_000),
    "input": "abcdefghijklmnop",
}


def size_of(store):
    """Bytes of the database on the disk."""
    if store.url.get_backend_name() == "sqlite":
        store.forget()
        files = [Path(f"{store.url.database}{end}") for end in ("", "-wal")]
        return sum(file.stat().st_size for file in files if file.exists())
    with store.reading() as connection:
        total = "sum(pg_total_relation_size(c.oid))"
        query = f"SELECT {total} FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        return int(
            connection.execute(
                sa.text(query + "WHERE n.nspname = 'public' AND c.relkind = 'r'")
            ).scalar_one()
        )


def hoard(store, config, fill):
    """Store as much as one participant may: every event as small, or as large, as allowed."""
    data = {"large": {"x": "y" * 992}, "even": {"x": "y" * 92}, "small": {}}[fill]
    each = len(operations.as_json(data))

    def add(connection):
        operations.add_configuration(connection, config)
        newcomer = NewParticipant(
            uid="0" * 32,
            resume_hash="0" * 64,
            mode="live",
            teacher="human",
            code_version="0",
            external_hash="1" * 64,
        )
        return operations.add_participant(connection, config, newcomer)

    one = store.write(add)
    one = store.write(
        lambda c: operations.admit(
            c, one, config, [operations.Event("consent", {"version": "v" * 40})]
        )
    )
    most = min(
        operations.most_events(config) - one.events,
        (operations.most_bytes(config) - one.bytes) // each,
    )

    def pour(connection):
        now = one
        for first in range(0, most, 50):
            happened = [operations.Event("k" * 32, data, "client", 10**14)] * min(50, most - first)
            now = operations.move(connection, now, happened)
        for i in range(config.total_steps):
            state, timing = bytes(4 * config.size**2), operations.as_json(TIMING)
            step = operations.StoredStep(
                f"map {i}", "adaptive", 1, 1, 0, state, timing, operations.now()
            )
            now = operations.add_step(connection, now, step)
        return operations.move(
            connection, now, [operations.Event("comments", {"text": LARGEST_COMMENT})]
        )

    return store.write(pour)


def bound(config):
    """Bytes by which one participant lets the database grow at most, as docs/study/deployment.md
    says.
    """
    return 100_000 + 300 * operations.most_events(config) + 1500 * config.total_steps


@pytest.mark.parametrize("fill", ["small", "even", "large"])
def test_who_stores_as_much_as_they_may_grows_the_database_by_less_than_documented(url, fill):
    config = study.load_config()
    with open_store(url, create=True) as store:
        before = size_of(store)
        one = hoard(store, config, fill)
        grown = size_of(store) - before
    print(
        f"{fill}: {one.events} events, {one.bytes} bytes, "
        f"{grown / 1e6:.2f} MB of {bound(config) / 1e6:.2f}"
    )
    assert one.events <= operations.most_events(config) + 1
    assert grown < bound(config)
    if fill == "even":
        assert grown > bound(config) / 2  # the bound is not an empty promise


def test_the_same_through_the_interface(url, served, monkeypatch):
    monkeypatch.setattr(operations, "EVENTS_PER_MINUTE", 10**9)
    config = tiny()
    with served(url, config) as client, open_store(url) as store:
        before = size_of(store)
        one = Person(client, config).join(ids={"id": "a" * 100}).begin()
        small = {"kind": "online"}
        for event, several in ((LARGEST_EVENT, 50), (LARGEST_EVENT, 1), (small, 1)):
            while one.post("/api/events", {"events": [event] * several}).status_code == 200:
                pass
        while one.state["stage"] in ("warm_up", "teach"):
            one.step(**TIMING)
        one.do("/api/comments", {"text": LARGEST_COMMENT})
        assert one.post("/api/events", {"events": [small]}).status_code in (413, 429)
        assert bound(config) / 2 < size_of(store) - before < bound(config)
    assert one.state["stage"] == "finished"
