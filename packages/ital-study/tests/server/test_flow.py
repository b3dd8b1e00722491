"""The way through the study."""

import json

import numpy as np
import pytest
import sqlalchemy as sa

from ital_study import StudyRules
from ital_study.store import open_store
from ital_study.store.tables import events, participants, steps
from ital_study.store.verification import verify
from tests.server.people import (
    SIMULATION_KEY,
    Person,
    Refusal,
    tiny,
    words,
)


def rows(url, table):
    with open_store(url) as store, store.reading() as connection:
        return [
            row._mapping
            for row in connection.execute(sa.select(table).order_by(*table.primary_key))
        ]


def test_the_whole_way(url, person):
    one = person().join()
    assert one.state["stage"] == "consent"
    assert set(one.state) >= {"csrf", "resume_code", "mode", "study", "progress", "consent"}
    one.consent()
    assert one.state["stage"] == "instructions"
    one.read()
    assert one.state["check"]["tries_left"] == 2
    assert "answer" not in json.dumps(one.state["check"])
    one.answer()
    assert one.state["stage"] == "warm_up"
    seen, config = [], tiny()
    while one.state["stage"] in ("warm_up", "teach"):
        scene = one.state["scene"]
        seen.append(
            (one.state["stage"], scene["round"], scene["map"], scene["robot"], scene["step"])
        )
        assert len(scene["arrows"]) == config.candidates
        assert len(scene["truth"]) == len(scene["belief"]) == len(scene["policy"]) == 25
        assert scene["first_of_round"] == (scene["step"] == 0)
        passed = len(config.instructions) + 1 + len(seen) - 1
        by_steps = {"done": len(seen) - 1, "total": 14}
        assert one.state["progress"] == {**by_steps, "passed": passed, "parts": 23}
        one.step()
    expected = [("warm_up", "w", 0, 1, t) for t in range(2)] + [
        ("teach", f"{on}-{robot}", on, robot, t)
        for on in (1, 2)
        for robot in (1, 2)
        for t in range(3)
    ]
    assert seen == expected
    assert one.state["stage"] == "comments"
    assert one.state["progress"]["passed"] == 22  # not all: the end is still to come
    assert "completion" not in one.state
    one.do("/api/comments", {"text": "Nice.\x00 \U0001f916"})
    assert one.state["stage"] == "finished"
    code = config.completion.code
    assert one.state["completion"] == {
        "code": code,
        "redirect": None,
        "pass_through": [],
        "steps_stored": 14,
    }
    assert words(one.state["debriefing"]) == words(config.texts().debriefing)
    stored = rows(url, steps)
    assert len(stored) == 14
    assert rows(url, participants)[0]["usable"]


def test_no_state_tells_the_kind_of_robot(person):
    one = person().join()
    said = [one.request("GET", "/api/state").text]
    one.begin()
    while one.state["stage"] in ("warm_up", "teach"):
        one.step()
        said.append(json.dumps({key: value for key, value in one.state.items() if key != "study"}))
    assert not [text for text in said if "naive" in text or "aware" in text]


def test_both_robots_of_a_map_start_alike_and_get_the_same_arrows(person):
    one = person().join().begin()
    scenes = {}
    while one.state["stage"] in ("warm_up", "teach"):
        scene = one.state["scene"]
        scenes[scene["round"], scene["step"]] = scene
        one.step(choice=scene["step"])
    for on in (1, 2):
        assert scenes[f"{on}-1", 0]["belief"] == scenes[f"{on}-2", 0]["belief"]
        for t in range(3):
            assert scenes[f"{on}-1", t]["arrows"] == scenes[f"{on}-2", t]["arrows"]
        # They learn differently.
        assert scenes[f"{on}-1", 2]["belief"] != scenes[f"{on}-2", 2]["belief"]
    assert scenes["1-1", 0]["arrows"] != scenes["2-1", 0]["arrows"]


def test_beliefs_are_those_of_the_rules(url, person):
    one = person().join().begin().teach()
    assert one.state["stage"] == "comments"
    rules = StudyRules(tiny())
    with open_store(url) as store:
        report = verify(store)
        assert (report.participants, report.steps, report.problems) == (1, 14, [])
        table = store.steps_table("live")
    assert len(table) == 12
    for (name, learner), group in table.groupby(["map", "learner"]):
        replayed = rules.replay(1, name, learner, group.sort_values("step")["choice"].tolist())
        measured = [rules.measures(name, mind.belief)["distance"] for mind in replayed]
        np.testing.assert_allclose(group.sort_values("step")["distance"], measured[1:], rtol=1e-6)
        np.testing.assert_allclose(
            group.sort_values("step")["distance_before"], measured[:-1], rtol=1e-6
        )


def test_what_the_last_step_did_is_told_also_at_the_end_of_a_round(person):
    one = person().join().begin()
    one.step(choice=4)
    assert one.state["after"]["belief"] == one.state["scene"]["belief"]
    assert one.state["scene"]["last"] == {"choice": 4, "hint": None}
    one.step(choice=5)
    after, scene = one.state["after"], one.state["scene"]
    assert (after["round"], after["step"], after["choice"]) == ("w", 1, 5)
    assert (scene["round"], scene["step"], scene["last"]) == ("1-1", 0, None)
    assert after["belief"] != scene["belief"]
    assert one.look()["after"] == after  # a reload shows the same


def test_the_hint_is_the_machine_teachers_pick_and_off_by_default(url, served):
    config = tiny(hint=True)
    with served(url, config) as client:
        one = Person(client, config).join().begin()
        scene = one.state["scene"]
        rules = StudyRules(config)
        arrows = rules.candidates(1, config.warm_up_map.name)[0]
        expected = rules.best(
            config.warm_up_map.name, np.asarray(scene["belief"], np.float32), arrows
        )
        one.step(choice=(expected + 1) % 10)
        assert one.state["scene"]["last"]["hint"] == expected
        assert one.look()["scene"]["last"]["hint"] == expected


def test_a_step_again_changes_nothing(url, person):
    one = person().join().begin()
    body = one.step_body(choice=3)
    first = one.do("/api/steps", body)
    assert one.do("/api/steps", body) == first
    one.step()
    later = one.look()
    assert one.do("/api/steps", body) == later  # an old copy of the request, from another tab
    assert len(rows(url, steps)) == 2


def test_another_choice_or_a_step_out_of_order_is_refused_and_changes_nothing(url, person):
    one = person().join().begin()
    body = one.step_body(choice=3)
    one.do("/api/steps", body)
    before, stored = one.look(), rows(url, steps)
    for change in (
        {"choice": 4},
        {"step": 5},
        {"round": "1-1"},
        {"round": "9-9"},
        {"round": "1-1", "step": 2},
    ):
        with pytest.raises(Refusal) as refused:
            one.do("/api/steps", body | change)
        assert (refused.value.status, refused.value.code) == (409, "out_of_order")
        assert refused.value.body["state"] == before
    assert one.look() == before
    assert rows(url, steps) == stored


def test_an_arrow_that_is_not_there_is_refused(url, person):
    one = person().join().begin()
    with pytest.raises(Refusal) as refused:
        one.step(choice=10)
    assert refused.value.status == 422
    assert rows(url, steps) == []


def test_stages_cannot_be_skipped(url, person):
    one = person().join()
    for path, body in (
        ("instructions", {}),
        ("check", {"answers": [0, 0, 0, 0]}),
        ("steps", {"round": "w", "step": 0, "choice": 0}),
        ("comments", {"text": ""}),
    ):
        with pytest.raises(Refusal) as refused:
            one.do(f"/api/{path}", body)
        assert refused.value.code == "out_of_order"
    assert one.look()["stage"] == "consent"
    one.begin()
    with pytest.raises(Refusal):
        one.do("/api/comments", {"text": "done?"})
    assert one.look()["stage"] == "warm_up"


def test_stages_that_are_over_answer_where_one_is(person):
    one = person().join().begin()
    here = one.look()
    assert one.do("/api/consent", {"accepted": True, "version": "1"}) == here
    assert one.do("/api/instructions", {}) == here
    assert one.do("/api/check", {"answers": [0, 0, 0, 0], "tries_left": 2}) == here
    with pytest.raises(Refusal):
        one.do("/api/consent", {"accepted": False, "version": "1"})


def test_consent_to_another_version_is_refused(person):
    one = person().join()
    with pytest.raises(Refusal) as refused:
        one.do("/api/consent", {"accepted": True, "version": "another"})
    assert refused.value.code == "out_of_order"


def test_declining_keeps_nothing_but_the_fact(url, person):
    one = person().join(ids={"PROLIFIC_PID": "abc"})
    assert one.do("/api/consent", {"accepted": False, "version": "1"})["stage"] == "declined"
    [kept] = rows(url, participants)
    assert (kept["stage"], kept["external_hash"], kept["resume_hash"], kept["order"]) == (
        "declined",
        None,
        None,
        None,
    )
    assert rows(url, events) == []
    assert person().join(ids={"PROLIFIC_PID": "abc"}).state["stage"] == "consent"


def test_nothing_is_noted_before_consent(url, person):
    one = person().join()
    assert one.post("/api/events", {"events": [{"kind": "online"}]}).json() == {"stored": 0}
    assert rows(url, events) == []


def test_two_tries_at_the_check_then_a_polite_end(url, person):
    one = person().join().consent().read().answer(right=False)
    assert (one.state["stage"], one.state["check"]["tries_left"]) == ("check", 1)
    wrong = {"answers": [9, 9, 9, 9], "tries_left": 2}
    assert one.do("/api/check", wrong)["check"]["tries_left"] == 1  # a double click costs nothing
    one.answer(right=False)
    assert one.state["stage"] == "failed_check"
    [kept] = rows(url, participants)
    assert (kept["order"], kept["usable"], kept["tries"]) == (None, False, 2)
    two = person().join().consent().read().answer(right=False).answer()
    assert two.state["stage"] == "warm_up"


def test_every_question_must_be_answered(person):
    one = person().join().consent().read()
    with pytest.raises(Refusal) as refused:
        one.do("/api/check", {"answers": [0]})
    assert refused.value.status == 422
    assert one.look()["check"]["tries_left"] == 2


@pytest.mark.parametrize("ids", [{"PROLIFIC_PID": "an-external-id"}, {"id": "an-external-id"}])
def test_the_same_id_always_returns_to_the_same_place(url, person, ids):
    one = person().join(ids=ids).begin().teach(4)
    elsewhere = person().join(ids=ids)
    # Others may know the ID: see test_panel.py.
    assert elsewhere.state == one.state | {"resume_code": None}
    assert len(rows(url, participants)) == 1
    [kept] = rows(url, participants)
    assert "an-external-id" not in json.dumps(dict(kept))
    assert person().join(ids={"id": "another"}).state["stage"] == "consent"
    # Kept apart.
    assert person().join("simulated", ids=ids, key=SIMULATION_KEY).state["stage"] == "consent"


def test_a_resume_code_works_on_another_device_however_it_is_typed(person):
    one = person().join().begin().teach(3)
    code = one.state["resume_code"]
    assert person().join(resume=code).state == one.state
    assert person().join(resume=f" {code.lower().replace('-', ' ')}").state == one.state
    with pytest.raises(Refusal) as refused:
        person().join(resume="AAAA-AAAA-AAAA")
    assert (refused.value.status, refused.value.code) == (404, "unknown_code")


def test_joining_twice_makes_one_participant(url, person):
    one = person().join()
    one.join()
    assert len(rows(url, participants)) == 1


def test_a_new_server_resumes_where_the_old_one_was(url, served):
    with served(url) as client:
        one = Person(client, tiny()).join().begin().teach(6)
        before = one.look()
    with served(url) as client:
        one.client = client
        assert one.look() == before
        one.teach()
        assert one.state["stage"] == "comments"


def test_participants_finish_under_the_configuration_they_began_with(url, served):
    with served(url) as client:
        one = Person(client, tiny()).join().begin().teach(3)
    changed = tiny(steps=2, title="Another title")
    with served(url, changed) as client:
        one.client = client
        assert one.look()["study"]["steps"] == 3
        assert one.finish().state["completion"]["steps_stored"] == 14
        two = Person(client, changed).join().begin().finish()
        assert two.state["completion"]["steps_stored"] == 10
    kept = rows(url, participants)
    assert [row["config"] for row in kept] == [tiny().hash, changed.hash]


def test_leaving_keeps_what_is_stored(url, person):
    one = person().join().begin().teach(5)
    assert one.do("/api/leave", {"keep": True})["stage"] == "left"
    assert len(rows(url, steps)) == 5
    assert not rows(url, participants)[0]["usable"]
    with pytest.raises(Refusal):
        one.do("/api/steps", {"round": "1-2", "step": 0, "choice": 0})
    assert one.look()["stage"] == "left"


def test_leaving_after_all_steps_stays_usable(url, person):
    one = person().join().begin().teach()
    one.do("/api/leave", {"keep": True})
    assert rows(url, participants)[0]["usable"]


@pytest.mark.parametrize("until", ["consent", "middle", "finished"])
def test_leaving_with_everything_erased(url, person, until):
    other = person().join().begin().teach(3)
    one = person().join(ids={"id": "me"})
    if until != "consent":
        one.begin().teach(4)
    if until == "finished":
        one.finish()
    gone = one.do("/api/leave", {"keep": False})
    assert (gone["stage"], gone["deleted"]) == ("left", True)
    assert {row["number"] for row in rows(url, participants)} == {1}
    assert {row["participant"] for row in rows(url, steps)} == {1}
    assert {row["participant"] for row in rows(url, events)} == {1}
    assert other.look() == other.state
    with pytest.raises(Refusal) as refused:
        one.look()
    assert (refused.value.status, refused.value.code) == (401, "unknown")
    again = person().join(ids={"id": "me"})
    assert again.state["stage"] == ("consent" if until == "consent" else "deleted")
    person().join()
    newcomers = {3, 4} if until == "consent" else {3}
    # No number is given twice.
    assert {row["number"] for row in rows(url, participants)} == {1, *newcomers}


def test_events_of_the_page_are_stored_with_both_clocks(url, person):
    one = person().join().begin()
    told = [
        {"kind": "focus_lost", "at": 1700000000123.7, "data": {"round": "w"}},
        {"kind": "online"},
    ]
    assert one.post("/api/events", {"events": told}).json() == {"stored": 2}
    kept = [row for row in rows(url, events) if row["source"] == "client"]
    assert [(row["kind"], row["client_at"]) for row in kept] == [
        ("focus_lost", 1700000000124),
        ("online", None),
    ]
    assert json.loads(kept[0]["data"]) == {"round": "w"}
    one.step()  # events do not get in the way of steps


def test_times_of_a_step_are_in_the_table(url, person):
    one = person().join().begin().teach(2)
    one.step(
        shown_at=1700000000000,
        chosen_at=1700000002500.4,
        confirmed_at=1700000004000,
        choice_changes=2,
        focus_losses=1,
    )
    one.step(seconds_to_choice=1.25, seconds_to_confirm=2.5)
    with open_store(url) as store:
        table = store.steps_table("live")
    first, second = table.iloc[0], table.iloc[1]
    assert first["shown_at"] == "2023-11-14T22:13:20.000+00:00"
    assert (first["seconds_to_choice"], first["seconds_to_confirm"]) == pytest.approx((2.5004, 4.0))
    assert (first["choice_changes"], first["focus_losses"]) == (2, 1)
    assert (second["seconds_to_choice"], second["seconds_to_confirm"], second["shown_at"]) == (
        1.25,
        2.5,
        "",
    )
    assert first["stored_at"]


def test_language(url, client, person):
    """The link's wishes decide; before consent it can be changed, afterwards it is that of the text
    agreed to.
    """
    german = client.get("/api/words?wishes=de-CH,en").json()
    assert (german["language"], german["languages"]) == ("de", {"en": "English", "de": "Deutsch"})
    assert german["words"]["consent.title"] == "Möchten Sie teilnehmen?"
    one = person().join(ids={"id": "speaks"}, language="fr,de-AT,en")
    assert one.state["language"] == "de"
    assert one.state["study"]["title"] == tiny().texts("de").title
    english = one.do("/api/language", {"language": "en"})
    assert words(english["consent"]["text"]) == words(tiny().texts("en").consent.text)
    one.do("/api/language", {"language": "de"})
    with pytest.raises(Refusal) as refused:
        one.do("/api/language", {"language": "fr"})
    assert refused.value.status == 409
    one.begin()
    assert one.state["language"] == "de"
    with pytest.raises(Refusal):
        one.do("/api/language", {"language": "en"})
    assert rows(url, participants)[-1].language == "de"


def test_the_page_before_scripts_is_in_the_visitors_language(client):
    page = client.get("/", headers={"Accept-Language": "de-DE,de;q=0.9,en;q=0.8"}).text
    assert '<html lang="de" dir="ltr">' in page
    assert "braucht JavaScript" in page
    assert (
        '<html lang="en" dir="ltr">'
        in client.get("/?lang=en", headers={"Accept-Language": "de"}).text
    )
