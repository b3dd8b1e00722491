"""What the researcher sees and does."""

import copy
import io
import itertools
import json

import numpy as np
import pandas as pd
import pytest

from ital_study import StudyRules
from ital_study.data import table as _table
from ital_study.store import operations
from ital_study.store.tables import steps
from tests.server.conftest import serve
from tests.server.people import Person, Refusal, tiny
from tests.server.test_flow import rows


def a_crowd(url):
    with serve(url) as client:
        people = [Person(client, tiny()).join() for _ in range(5)]
        people[0].begin().finish()
        people[1].begin().teach(5)
        people[2].begin().teach(3).do("/api/leave", {"keep": True})
        people[3].do("/api/consent", {"accepted": False, "version": "1"})
        people[4].consent().read().answer(right=False).answer(right=False)
        return [*people, Person(client, tiny()).simulate().begin().finish()]


@pytest.fixture
def crowd(filled, request):
    """One participant who finished, one active, one who left, one who declined, one who failed, one
    simulated.
    """
    people = [copy.copy(one) for one in filled(a_crowd)]
    client = request.getfixturevalue("client")
    for one in people:
        one.client, one.cookies = client, dict(one.cookies)
    return people


def test_the_overview(crowd, researcher):
    told = researcher.overview("live")
    assert told["counts"] == {
        "finished": 1,
        "teach": 1,
        "left": 1,
        "declined": 1,
        "failed_check": 1,
    }
    assert told["modes"] == {"live": 5, "pilot": 0, "preview": 0, "trial": 0, "simulated": 1}
    assert told["intake"] == {"max": None, "joined": 4, "usable": 1}  # one declined
    assert [row["number"] for row in told["participants"]] == [1, 2, 3, 4, 5]
    first, second = told["participants"][:2]
    assert (first["done"], first["total"], first["usable"], first["stage"]) == (
        14,
        14,
        True,
        "finished",
    )
    assert (second["done"], second["open"], second["usable"]) == (5, True, False)
    by_order = {row["order"]: (row["usable"], row["open"]) for row in told["orders"]}
    assert by_order == {first["order"]: (1, 0), second["order"]: (0, 1)}
    assert told["firsts"]["A"] == {"naive": 1, "aware": 1}
    assert {row["stage"]: row["n"] for row in told["dropouts"]} == {
        "left": 1,
        "declined": 1,
        "failed_check": 1,
    }
    assert told["paused"] is False
    assert told["warnings"] == []


def test_the_pace_is_the_mean_time_between_the_steps_of_a_round(
    url, person, researcher, monkeypatch
):
    """The time between rounds does not count."""
    ticks = itertools.accumulate(itertools.cycle((400, 900, 2300)), initial=operations.now())
    monkeypatch.setattr(operations, "now", lambda: next(ticks))
    person().join().begin().finish()
    rounds = {}
    for row in rows(url, steps):
        rounds.setdefault((row["map"], row["learner"]), []).append(row["stored_at"])
    gaps = np.concatenate([np.diff(times) for times in rounds.values()])
    assert len(rounds) > 1
    assert len(set(gaps.tolist())) > 1
    told = researcher.overview("live")["participants"]
    assert told[0]["seconds_per_step"] == pytest.approx(gaps.mean() / 1000, abs=0.005)


def test_curves_are_those_of_the_rules(crowd, researcher):
    curves = researcher.overview("simulated")["curves"]
    config = tiny()
    rules = StudyRules(config)
    assert set(curves) == {one.name for one in config.maps}
    for name, by_learner in curves.items():
        for learner, curve in by_learner.items():
            choices = [
                (3 * t + [one.name for one in config.maps].index(name) + 1) % 10 for t in range(3)
            ]
            replayed = rules.replay(6, name, learner, choices)[1:]
            expected = [rules.measures(name, mind.belief)["distance"] for mind in replayed]
            assert (curve["step"], curve["n"]) == ([1, 2, 3], 1)
            np.testing.assert_allclose(curve["distance_mean"], expected, rtol=1e-4)


def test_pausing_keeps_newcomers_out_and_nobody_else(crowd, person, researcher):
    assert researcher.post("/api/admin/pause", {"paused": True}).json() == {"paused": True}
    assert researcher.overview()["paused"]
    newcomer = person().join(ids={"id": "late"})
    assert (newcomer.state["stage"], newcomer.cookies) == ("closed", {})
    assert crowd[1].step()["stage"] == "teach"
    assert person().simulate().state["stage"] == "consent"
    researcher.post("/api/admin/pause", {"paused": False})
    assert person().join(ids={"id": "late"}).state["stage"] == "consent"
    assert [entry["action"] for entry in researcher.get("audit").json()["entries"]] == [
        "resumed",
        "paused",
    ]


def test_releasing_a_slot(crowd, researcher):
    assert researcher.post("/api/admin/release", {"number": 2}).json() == {"number": 2}
    told = researcher.overview("live")
    assert told["participants"][1]["open"] is False
    assert sum(row["open"] for row in told["orders"]) == 0
    # A participant who comes back may continue, and counts.
    assert crowd[1].teach().state["stage"] == "comments"
    assert researcher.overview("live")["intake"]["usable"] == 2
    assert researcher.post("/api/admin/release", {"number": 99}).status_code == 404


def test_deleting_a_participant(crowd, researcher):
    assert researcher.post("/api/admin/delete", {"number": 2, "confirm": 3}).status_code == 422
    assert researcher.post("/api/admin/delete", {"number": 99, "confirm": 99}).status_code == 404
    assert len(researcher.overview("live")["participants"]) == 5
    assert researcher.post("/api/admin/delete", {"number": 2, "confirm": 2}).json() == {"number": 2}
    assert [row["number"] for row in researcher.overview("live")["participants"]] == [1, 3, 4, 5]
    entry = researcher.get("audit").json()["entries"][0]
    assert (entry["action"], entry["number"], entry["detail"]) == ("deleted", 2, "")
    with pytest.raises(Refusal):
        crowd[1].step()


def test_downloads(crowd, researcher):
    csv = researcher.get("export/steps.csv?mode=live")
    assert csv.headers["content-disposition"].startswith("attachment")
    table = _table.read_csv(io.StringIO(csv.text))
    assert (table.groupby("participant").size().to_dict()) == {1: 12, 2: 3, 3: 1}
    assert table[table["usable"]]["participant"].unique().tolist() == [1]
    parquet = pd.read_parquet(io.BytesIO(researcher.get("export/steps.parquet?mode=live").content))
    pd.testing.assert_frame_equal(_table.frame(parquet), table)
    records = [
        json.loads(line)
        for line in researcher.get("export/events.jsonl?mode=live").text.splitlines()
    ]
    assert {record["record"] for record in records} == {
        "configuration",
        "participant",
        "step",
        "event",
    }
    assert "Simulated data" in researcher.get("export/codebook.md?mode=simulated").text
    assert "Simulated data" not in researcher.get("export/codebook.md?mode=live").text
    simulated = _table.read_csv(io.StringIO(researcher.get("export/steps.csv?mode=simulated").text))
    assert set(simulated["mode"]) == {"simulated"}
    assert set(simulated["teacher"]) == {"random"}
    assert researcher.get("export/passwords.txt").status_code == 422
    assert researcher.get("export/steps.csv?mode=everything").status_code == 422


def test_an_empty_study_can_be_looked_at_and_exported(researcher):
    assert researcher.overview("live")["participants"] == []
    assert len(_table.read_csv(io.StringIO(researcher.get("export/steps.csv").text))) == 0
    assert len(pd.read_parquet(io.BytesIO(researcher.get("export/steps.parquet").content))) == 0
    assert researcher.get("export/events.jsonl").text == ""


def test_participants_of_another_version_are_left_out_of_balance_and_said_so(url, served):
    from tests.server.people import Researcher

    with served(url, tiny(title="Before")) as client:
        Person(client, tiny(title="Before")).join().begin().teach(4)
    with served(url) as client:
        told = Researcher(client, tiny()).log_in().overview("live")
    assert told["orders"] == []
    assert [row["current_version"] for row in told["participants"]] == [False]
    assert "another version" in told["warnings"][0]
