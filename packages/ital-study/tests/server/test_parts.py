"""A study in several sessions: each part has its maps, and its days."""

import csv
import time

import pytest

import ital_study as study
from ital.errors import InputError
from ital_study.config import map_orders
from ital_study.config.parts import StudyPart
from ital_study.config.payment import Payment
from ital_study.server import payment_list
from ital_study.store import backups, export, open_store, verification
from tests.questions import asking
from tests.server.people import SECRET, SIMULATION_KEY, Person, Researcher, tiny
from tests.server.test_access import everything
from tests.server.test_links import ids
from tests.server.test_panel import SHORT

DAY = 24 * 3600
PARTS = (StudyPart(("A",)), StudyPart(("E",), after_days=7, within_days=2))
CONFIG = tiny(parts=PARTS, payment=Payment("EUR", finished=10.0, late=4.0))


@pytest.fixture
def later(monkeypatch):
    """``later(days)`` lets time pass."""
    now, now_ns = time.time, time.time_ns

    def pass_by(days):
        monkeypatch.setattr(time, "time", lambda: now() + days * DAY)
        monkeypatch.setattr(time, "time_ns", lambda: now_ns() + round(days * DAY * 10**9))

    return pass_by


def test_person_and_robot_resume_in_the_next_part(url, served, later):
    with served(url, CONFIG) as client:
        one = Person(client, CONFIG).join(ids={"id": "one"}).begin().teach()
        assert one.state["stage"] == "waiting"
        told = one.state["part"]
        assert (told["next"], told["parts"], told["state"]) == (2, 2, "early")
        assert told["opens_at"] < told["closes_at"]
        assert one.state["resume_code"]
        assert one.do("/api/part", {})["part"] == told  # too early: the page says when
        later(6.9)
        assert one.look()["part"]["state"] == "early"
        later(7.1)
        assert one.look()["part"]["state"] == "open"
        with pytest.raises(Exception, match="out_of_order"):
            one.do("/api/steps", {"round": "2-1", "step": 0, "choice": 0})
        begun = one.do("/api/part", {})
        assert (begun["stage"], begun["scene"]["round"], begun["scene"]["step"]) == (
            "teach",
            "2-1",
            0,
        )
        assert one.do("/api/part", {}) == begun  # repeated
        one.step()
        elsewhere = Person(client, CONFIG).join(resume=one.state["resume_code"])
        assert elsewhere.state["scene"] == one.state["scene"]
        one.finish()
        assert one.state["stage"] == "finished"
    with open_store(url) as store:
        assert verification.verify(store).problems == []
        table = store.steps_table()
        assert set(table["map"]) == {"A", "E"}
        assert payment_list(store, SECRET).rows[0].amount == "10.00"
    kinds = [row.kind for row in everything(url)["events"] if row.source == "server"]
    assert kinds[-4:] == ["part_ended", "part_begun", "all_steps_stored", "comments"]


def test_who_comes_too_late_is_told_so_and_paid_for_that(url, served, later):
    with served(url, CONFIG) as client:
        one = Person(client, CONFIG).join(ids={"id": "one"}).begin().teach()
        later(9.1)
        assert one.look()["part"]["state"] == "late"
        assert one.state["debriefing"]
        before = everything(url)
        assert one.do("/api/part", {})["part"]["state"] == "late"
        assert everything(url) == before
        researcher = Researcher(client, CONFIG).log_in()
        [found] = researcher.post("/api/admin/find", {"who": "one"}).json()["found"]
        assert found["pay"] == "did not come to part 2 in time"
        assert one.do("/api/leave", {"keep": False})["deleted"]
    with served(url, CONFIG) as client:
        other = Person(client, CONFIG).join(ids={"id": "other"}).begin().teach()
        assert other.state["stage"] == "waiting"
        with open_store(url) as store:
            assert payment_list(store, SECRET).unfinished == 1
            later(30)
            [deleted, late] = payment_list(store, SECRET, identities=["other"]).rows
        assert (late.identity, late.ending, late.amount) == ("other", "late", "4.00")
        assert deleted.ending == "deleted"


def test_who_waits_keeps_the_place_until_it_is_too_late(url, served, later):
    config = tiny(parts=PARTS, intake=1)
    with served(url, config) as client:
        Person(client, config).join(ids={"id": "one"}).begin().teach()
        researcher = Researcher(client, config).log_in()
        later(5)
        assert Person(client, config).join(ids={"id": "two"}).state["stage"] == "closed"
        assert researcher.log_in().overview("live")["participants"][0]["open"]
        later(9.5)
        assert Person(client, config).join(ids={"id": "two"}).state["stage"] == "consent"
        assert not researcher.log_in().overview("live")["participants"][0]["open"]


def test_questions_at_the_end_of_a_part_come_before_the_pause(sqlite_url, served):
    config = asking(parts=PARTS, steps=2, warm_up_steps=1)
    with served(sqlite_url, config) as client:
        one = Person(client, config).join().begin().through()
        assert one.state["stage"] == "waiting"
        places = [row.data for row in everything(sqlite_url)["events"] if row.kind == "answers"]
    assert '"place":"1"' in places[-1].replace(" ", "")


def test_only_live_people_wait(url, served):
    with served(url, CONFIG) as client:
        robot = Person(client, CONFIG).join("simulated", key=SIMULATION_KEY).begin().teach()
        assert robot.state["part"]["state"] == "open"
        robot.do("/api/part", {})
        assert robot.finish().state["stage"] == "finished"
    with served(url, CONFIG, trial=True) as client:
        assert Person(client, CONFIG).join().begin().teach().state["part"]["state"] == "open"


def test_two_sessions_with_signed_links_and_balanced_maps(url, served, later, tmp_path):
    """Three people, as the documentation describes it."""
    parts = (StudyPart(("A", "E")), StudyPart(("F", "G"), after_days=1))
    maps = [study.load_config().maps[index] for index in (0, 4, 1, 2)]
    named = tuple(type(each)(name, each.rewards) for each, name in zip(maps, "AEFG", strict=True))
    config = study.parse_config(
        tiny(maps=named, parts=parts, links="signed", map_order="balanced", steps=2).to_toml()
    )
    assert config.part_sizes == (2, 2)
    assert tiny().part_sizes == (2,)
    links = ids(1, 2, 3, config=config)
    with served(url, config) as client:
        people = [Person(client, config).join(ids=link).begin().teach() for link in links]
        assert {person.state["stage"] for person in people} == {"waiting"}
        later(1.01)
        for person, link in zip(people, links, strict=True):
            assert person.join(ids=link).state["part"]["state"] == "open"
            person.do("/api/part", {})
            assert person.finish().state["stage"] == "finished"
    with open_store(url) as store:
        table = store.steps_table()
        assert verification.verify(store).problems == []
        assert [row.link for row in payment_list(store, SECRET).rows] == ["1", "2", "3"]
        export.export_study(store, tmp_path / "out")
        backups.backup(store, tmp_path / "b.backup")
    for _, own in table.groupby("participant"):
        order = list(own["map"].unique())
        assert (set(order[:2]), set(order[2:])) == ({"A", "E"}, {"F", "G"})
    assert len({tuple(own["map"].unique()) for _, own in table.groupby("participant")}) == 2
    with open_store(str(tmp_path / "again.db"), create=True) as store:
        assert export.import_study(store, tmp_path / "out") == 3
    with (tmp_path / "out" / "participants.csv").open() as file:
        pauses = [float(row["longest_pause_minutes"]) for row in csv.DictReader(file)]
    assert max(pauses) < 60  # the day between the parts is no pause


def test_rows_of_parts():
    assert map_orders.rows_of_parts((5,)) == map_orders.rows(5)
    assert map_orders.rows_of_parts((2, 2)) == ((0, 1, 2, 3), (1, 0, 3, 2))
    assert len(map_orders.rows_of_parts((2, 3))) == 6
    assert map_orders.rows_of_parts((1, 1)) == ((0, 1),)


def section(*parts):
    return SHORT + "".join(f"\n[[parts]]\n{part}\n" for part in parts)


def test_the_section_of_the_configuration():
    config = study.parse_config(
        section('maps = ["A"]', 'maps = ["E"]\nafter_days = 7\nwithin_days = 2')
    )
    assert config.parts == PARTS
    assert study.parse_config(config.to_toml()) == config
    assert config.hash != study.parse_config(SHORT).hash
    for parts, said in (
        (['maps = ["A", "E"]'], "parts must be two or more"),
        (['maps = ["E"]', 'maps = ["A"]'], "parts must name every map once"),
        (['maps = ["A"]', 'maps = ["A"]'], "parts must name every map once"),
        (['maps = ["A"]\nafter_days = 1', 'maps = ["E"]'], "parts[1] begins the study"),
        (['maps = "A"', 'maps = ["E"]'], "parts[1].maps must be a list of names"),
        (['maps = ["A"]', 'maps = ["E"]\nafter_days = -1'], "parts[2].after_days must be"),
        (['maps = ["A"]', 'maps = ["E"]\nwithin_days = 0'], "parts[2].within_days must be"),
        (['maps = ["A"]', 'maps = ["E"]\nbefore = 1'], "unknown key parts[2].before"),
    ):
        with pytest.raises(InputError) as refused:
            study.parse_config(section(*parts))
        assert said in str(refused.value)
