"""Trial mode: whoever joins is marked, every page says so, live participants stay apart."""

import dataclasses

import pytest

from ital_study.store import open_store
from tests.server.people import Person, Refusal, Researcher, tiny

BANNER = "Trial – the study is only being tried out."


def test_every_page_of_a_trial_says_so(sqlite_url, served):
    with served(sqlite_url, trial=True) as client:
        assert all(BANNER in client.get(path).text for path in ("/", "/dashboard"))
        assert (
            client.get("/", headers={"Accept-Language": "fr-FR,fr;q=0.9"}).text.count(BANNER) == 1
        )
        Researcher(client, tiny()).log_in()
    with served(sqlite_url) as client:
        assert not any("Trial" in client.get(path).text for path in ("/", "/dashboard"))


def test_the_banner_is_in_the_language_of_the_visitor(sqlite_url, served):
    with served(sqlite_url, trial=True) as client:
        for headers, query in (
            ({"Accept-Language": "fr;q=0.9, de-DE;q=0.8, en;q=0.1"}, ""),
            ({}, "?lang=de"),
        ):
            assert "Probelauf" in client.get(f"/{query}", headers=headers).text
        assert BANNER in client.get("/?lang=en", headers={"Accept-Language": "de"}).text
        # Which is in English.
        assert BANNER in client.get("/dashboard", headers={"Accept-Language": "de"}).text


def test_a_trial_marks_every_row_and_counts_for_nothing(sqlite_url, served):
    with served(sqlite_url, dataclasses.replace(tiny(), intake=1), trial=True) as client:
        people = [
            Person(client, tiny()).join(ids={"id": name}).begin().finish()
            for name in ("one", "two")
        ]
        assert {person.state["mode"] for person in people} == {"trial"}
        researcher = Researcher(client, tiny()).log_in()
        assert researcher.overview("live")["modes"] == {
            "live": 0,
            "pilot": 0,
            "preview": 0,
            "trial": 2,
            "simulated": 0,
        }
        rows = researcher.get("export/steps.csv?mode=trial").text.splitlines()
        assert len(rows) == 25
        assert all(",trial," in row for row in rows[1:])
        assert len(researcher.get("export/steps.csv").text.splitlines()) == 1
        assert '"trial"' in researcher.get("export/events.jsonl?mode=trial").text
        assert Person(client, tiny()).simulate().state["mode"] == "simulated"


def test_live_participants_and_a_trial_stay_apart(sqlite_url, served):
    live = Person(None, tiny())
    with served(sqlite_url) as client:
        live.client = client
        live.join(ids={"id": "one"}).begin()
    with served(sqlite_url, trial=True) as client:
        live.client = client
        for refused in (live.look, lambda: live.join(resume=live.state["resume_code"]), live.step):
            with pytest.raises(Refusal, match="unknown"):
                refused()
        tester = Person(client, tiny()).join(ids={"id": "one"})
        assert tester.state["mode"] == "trial"
        tester.begin().step()
    with served(sqlite_url) as client:
        live.client = tester.client = client
        assert live.look()["progress"]["done"] == 0
        assert Person(client, tiny()).join(ids={"id": "one"}).state["csrf"] == live.state["csrf"]
        assert tester.request("GET", "/api/state").status_code == 401
    with open_store(sqlite_url) as store:
        assert store.participants_by_mode() == {"live": 1, "trial": 1}


def test_pages_without_a_trial_have_no_banner(sqlite_url, served):
    with served(sqlite_url) as client:
        assert 'mode-banner" role="status" data-word' not in client.get("/").text
