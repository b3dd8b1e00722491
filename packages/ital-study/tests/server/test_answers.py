"""Questions: asked at their place, answered once, whatever happens to the page or the server."""

import asyncio
import json

import pytest

from ital_study.simulation import arms
from ital_study.simulation import participants as _participants
from ital_study.store import open_store, operations
from ital_study.store.tables import events, participants, steps
from ital_study.store.verification import verify
from tests.questions import ANSWERS, asking
from tests.server.people import SIMULATION_KEY, Person, Refusal, Researcher, forge, tiny
from tests.server.test_flow import rows


@pytest.fixture
def client(url, served):
    with served(url, asking()) as one:
        yield one


@pytest.fixture
def person(client):
    return lambda **body: Person(client, asking()).join(**body)


def answered(url):
    kept = [
        row for row in rows(url, events) if row["kind"] == "answers" and row["source"] == "server"
    ]
    return [json.loads(row["data"]) for row in kept]


def test_the_whole_way(url, person):
    one, way = person(), []
    assert one.state["progress"]["passed"] == 0
    assert one.state["progress"]["parts"] == 7 + 1 + 8 + 14 + 1
    one.begin()
    while one.state["stage"] in ("questions", "warm_up", "teach"):
        if one.state["stage"] == "questions":
            asked = one.state["questions"]
            way.append(
                (asked["page"], asked["place"], asked["title"], one.state["progress"]["done"])
            )
            assert "scene" not in one.state
            said = json.dumps(asked)
            assert "naive" not in said
            assert "aware" not in said
            one.reply(seconds=2.5)
        else:
            assert "questions" not in one.state
            one.step()
    assert way == [
        ("you", "start", "About you", 0),
        ("robot", "1-1", "Robot 1 on map 1", 5),
        ("robot", "1-2", "Robot 2 on map 1", 8),
        ("map", "1", "Map 1", 8),
        ("robot", "2-1", "Robot 1 on map 2", 11),
        ("robot", "2-2", "Robot 2 on map 2", 14),
        ("map", "2", "Map 2", 14),
        ("last", "end", "At last", 14),
    ]
    assert one.state["stage"] == "comments"
    assert one.state["progress"]["passed"] == 7 + 1 + 8 + 14
    one.do("/api/comments", {"text": ""})
    [kept] = rows(url, participants)
    assert (kept["usable"], kept["answered"], kept["done"]) == (True, 8, 14)
    stored = answered(url)
    assert [(data["page"], data["place"], data["answers"]) for data in stored] == [
        (name, place, ANSWERS[name]) for name, place, *_ in way
    ]
    assert {data["seconds"] for data in stored} == {2.5}
    learner = {(row["map"], row["robot"]): row["learner"] for row in rows(url, steps)}
    told = [data for data in stored if data["page"] == "robot"]
    assert [data["learner"] for data in told] == [
        learner[data["map"], data["robot"]] for data in told
    ]
    with open_store(url) as store:
        assert verify(store).problems == []


def test_usable_means_all_steps_stored_whatever_is_answered(url, person):
    one = person().begin().through(19)
    assert (one.state["stage"], one.state["questions"]["page"]) == ("questions", "robot")
    assert (one.state["progress"]["done"], one.state["progress"]["total"]) == (14, 14)
    [kept] = rows(url, participants)
    assert kept["usable"]
    one.do("/api/leave", {"keep": True})
    assert rows(url, participants)[0]["usable"]


def test_the_last_step_of_a_robot_is_shown_before_its_questions(person):
    one = person().begin().through(6)
    assert one.state["stage"] == "questions"
    after = one.state["after"]
    assert (after["round"], after["step"]) == ("1-1", 2)
    assert one.look()["after"] == after
    one.reply()
    assert (one.state["scene"]["round"], one.state["scene"]["first_of_round"]) == ("1-2", True)


def test_sending_twice_and_a_second_tab_change_nothing(url, person):
    one = person(ids={"id": "me"}).begin()
    tab = person(ids={"id": "me"})
    tab.cookies = one.cookies  # a tab of the same browser
    assert tab.join(ids={"id": "me"}).state == one.state
    body = one.page_body()
    first = one.do("/api/answers", body)
    assert one.do("/api/answers", body) == first
    assert tab.do("/api/answers", body | {"seconds": 99.0}) == first
    with pytest.raises(Refusal) as refused:
        tab.do("/api/answers", body | {"answers": {"age": 35, "gender": 2}})
    assert (refused.value.status, refused.value.code) == (409, "out_of_order")
    assert refused.value.body["state"] == first
    one.through(5)
    assert one.state["questions"]["place"] == "1-1"
    here = one.look()
    assert one.do("/api/answers", body) == here  # an old copy of the request
    for other in (
        {"place": "1-1"},
        {"page": "robot", "place": "1-2"},
        {"page": "nothing"},
        {"answers": {"age": 1}},
    ):
        with pytest.raises(Refusal) as refused:
            one.do("/api/answers", body | other)
        assert refused.value.body["state"] == here, other
    assert len(answered(url)) == 1
    assert one.look() == here


def test_steps_and_questions_wait_for_each_other(url, person):
    one = person().begin()
    with pytest.raises(Refusal) as refused:
        one.do("/api/steps", {"round": "w", "step": 0, "choice": 0})
    assert refused.value.body["state"]["stage"] == "questions"
    with pytest.raises(Refusal):
        one.do("/api/comments", {"text": "done?"})
    body = one.page_body()
    one.reply()
    with pytest.raises(Refusal):
        one.do(
            "/api/answers", body | {"page": "robot", "place": "1-1", "answers": ANSWERS["robot"]}
        )
    assert (len(answered(url)), rows(url, steps)) == (1, [])


def test_nobody_answers_before_the_check(url, person):
    one = person()
    for _ in range(2):
        with pytest.raises(Refusal) as refused:
            one.do("/api/answers", {"page": "you", "place": "start", "answers": ANSWERS["you"]})
        assert (refused.value.status, refused.value.body["state"]["stage"]) == (
            409,
            one.state["stage"],
        )
        one.consent().read()
    assert answered(url) == []


def test_wrong_answers_are_refused_by_the_question_and_change_nothing(url, person):
    one = person().begin()
    here = one.look()
    for answers, said in (
        ({}, "Please answer “How old are you?”."),
        ({"age": 7}, "Please answer “How old are you?” with a whole number from 18 to 120."),
        ({"age": 34, "gender": 9}, "“What is your gender?”"),
        ({"age": {"x": [1] * 1000}}, "whole number"),
        ({"age": 34, "x" * 5000: 1}, "no question"),
    ):
        with pytest.raises(Refusal) as refused:
            one.reply(answers)
        assert (refused.value.status, refused.value.code) == (422, "invalid")
        assert said in refused.value.body["error"]
    for change in ({"page": "../x"}, {"place": "X"}, {"answers": []}, {"seconds": -1}, {"more": 1}):
        answer = one.post("/api/answers", one.page_body() | change)
        assert answer.status_code == 422, change
    assert one.post("/api/answers", one.page_body({"age": float("nan")})).status_code == 422
    assert one.look() == here
    assert answered(url) == []


def test_in_another_language(url, client):
    one = Person(client, asking()).join(language="de").begin()
    assert one.state["questions"]["items"][1]["options"] == ["Frau", "Mann", "Anderes"]
    with pytest.raises(Refusal, match="Wie alt sind Sie"):
        one.reply({})
    one.through(6)
    assert one.state["questions"]["title"] == "Roboter 1"


def test_a_new_server_resumes_where_the_old_one_was(url, served):
    one = None
    for few in (0, 1, 5, 1, 4, 20):  # stops before and after pages of questions
        with served(url, asking()) as client:
            if one is None:
                one = Person(client, asking()).join().begin()
            one.client = client
            assert one.look() == one.state
            one.through(few)
    assert one.state["stage"] == "comments"
    assert [data["place"] for data in answered(url)] == [
        "start",
        "1-1",
        "1-2",
        "1",
        "2-1",
        "2-2",
        "2",
        "end",
    ]


def test_a_page_s_own_events_are_no_answers(url, person):
    """What a page reports about itself cannot pass for an answer."""
    one = person().begin()
    fake = {"page": "you", "place": "start", "answers": {"age": 20}}
    assert (
        one.post("/api/events", {"events": [{"kind": "answers", "data": fake}]}).status_code == 422
    )
    forge(url, (1, "answers", "client", json.dumps(fake)))  # as an older server took it
    assert one.state["stage"] == "questions"
    one.look()
    one.reply()
    assert (
        one.do("/api/answers", {"page": "you", "place": "start", "answers": ANSWERS["you"]})
        == one.look()
    )
    assert len(answered(url)) == 1


def test_participants_of_a_study_without_questions_are_never_asked(url, served):
    with served(url, tiny()) as client:
        one = Person(client, tiny()).join().begin().teach(4)
    with served(url, asking()) as client:  # the study gets questions while somebody is on the way
        one.client = client
        assert one.look()["stage"] == "teach"
        assert one.teach().state["stage"] == "comments"
        assert Person(client, asking()).join().begin().state["stage"] == "questions"


def test_who_answers_the_last_questions_is_counted_once(url, person, client):
    person().begin().through(20)
    told = Researcher(client, asking()).log_in().overview("live")
    assert [(row["usable"], row["open"]) for row in told["orders"]] == [(1, 0)]
    assert told["participants"][0]["open"] is False
    assert told["dropouts"] == []
    with open_store(url) as store, store.reading() as connection:
        [one] = operations.everyone(connection)
        taken = operations.taken_orders(connection, "live", one.config, 0)
    assert sum(taken.values()) == 1


def test_simulated_participants_answer_by_their_seed(sqlite_url, served):
    def crowd(url):
        return _participants.take_part(
            url,
            asking(),
            arms.teacher("random", default=1.0),
            2,
            key=SIMULATION_KEY,
            seed=3,
            at_once=1,
        )

    with served(sqlite_url, asking()) as client:
        runs = [asyncio.run(crowd(str(client.base_url))) for _ in range(2)]
    assert [outcome.finished for outcome in runs] == [2, 2]
    stored = answered(sqlite_url)
    assert len(stored) == 4 * 8
    given = [data["answers"] for data in stored]
    assert given[:16] == given[16:]
    assert given[:8] != given[8:16]
    assert {row["mode"] for row in rows(sqlite_url, participants)} == {"simulated"}


def test_a_page_that_is_counted_but_not_stored_is_found(url, person):
    one = person().begin().through(4)
    with open_store(url) as store:
        [row] = store.write(operations.everyone)
        store.write(lambda connection: operations.move(connection, row, answered=2))
        assert verify(store).problems == [
            "participant 1: 1 pages of answers are stored, but 2 were counted"
        ]
    assert one.state["stage"] == "teach"


def test_answers_are_erased_with_their_participant(url, person):
    one = person().begin().through(6)
    assert len(answered(url)) == 1
    one.do("/api/leave", {"keep": False})
    assert answered(url) == []
