"""A study with the adaptive robot, which remembers more than its belief."""

import io

import numpy as np
import pytest

from ital_study import Arrow, StudyRules
from ital_study.analysis.measures import analyze
from ital_study.config import lineup
from ital_study.data import table as _table
from ital_study.store import open_store, operations
from ital_study.store.verification import problems_of, verify
from tests.server.people import Person, Researcher, tiny

STEPS = 14


@pytest.fixture
def config():
    return tiny(adaptive=True, steps=STEPS)


def best(rules, one):
    """The machine's pick, given what is on the screen: with it the adaptive robot soon trusts its
    teacher.
    """
    scene = one.state["scene"]
    arrows = [Arrow(**arrow) for arrow in scene["arrows"]]
    target, belief = (np.asarray(scene[name], np.float32) for name in ("truth", "belief"))
    return int(np.argmax(rules.volumes_toward(target, belief, arrows)))


def round_of(config, order, learner, on=0):
    return f"{on + 1}-{1 + lineup.robots(order, on, config.learners).index(learner)}"


def test_the_whole_way_with_a_restart_in_the_middle_of_the_adaptive_robot(url, served, config):
    """Beliefs are those of an uninterrupted run, bit for bit, so the memory was restored with the
    belief.
    """
    rules = StudyRules(config)
    with served(url, config) as client:
        one = Person(client, config).join().begin()
        assert one.state["study"]["robots"] == 3
        assert one.state["progress"]["total"] == 2 + 2 * 3 * STEPS
        with open_store(url) as store, store.reading() as connection:
            order = connection.exec_driver_sql('select "order" from participants').scalar_one()
        middle = (round_of(config, order, "adaptive"), STEPS // 2)
        while (one.state["scene"]["round"], one.state["scene"]["step"]) != middle:
            one.step(choice=best(rules, one))
        before = one.look()
    rounds = [before["scene"]["round"]]
    with served(url, config) as client:  # the new server knows only the store
        one.client = client
        assert one.look() == before
        while one.state["stage"] == "teach":
            rounds.append(one.state["scene"]["round"])
            one.step(choice=best(rules, one))
        one.finish()
        assert one.state["completion"]["steps_stored"] == 2 + 2 * 3 * STEPS
        told = Researcher(client, config).log_in().overview("live")
        csv = Researcher(client, config).log_in().get("export/steps.csv?mode=live").text
    assert {"2-1", "2-2", "2-3"} <= set(rounds)
    with open_store(url) as store:
        report = verify(store)
        assert (report.participants, report.steps, report.problems) == (1, 2 + 2 * 3 * STEPS, [])
        with store.reading() as connection:
            stored = {
                (step.map, step.learner, step.step): step.state
                for step in operations.steps_of(connection, 1)
            }
    table = _table.read_csv(io.StringIO(csv))
    for (name, learner), rows in table.groupby(["map", "learner"]):
        lived = rules.replay(1, name, learner, rows.sort_values("step")["choice"].tolist())[1:]
        assert [stored[name, learner, mind.step] for mind in lived] == [
            mind.belief.tobytes() for mind in lived
        ]
    # A lost memory would show: from the same belief the robot would have made another step.
    name = config.maps[0].name
    rows = table[(table["map"] == name) & (table["learner"] == "adaptive")].sort_values("step")
    lived = rules.replay(1, name, "adaptive", rows["choice"].tolist())
    forgetful = rules.mind("adaptive", lived[STEPS // 2].belief)
    for t in range(STEPS // 2, STEPS):
        forgetful = rules.update(
            name, "adaptive", forgetful, rules.candidates(1, name)[t], int(rows["choice"].iloc[t])
        )
    assert np.abs(forgetful.belief - lived[-1].belief).max() > 0.01
    places = table[table["step"] == 1].set_index(["map", "robot"])["learner"]
    for on, one_map in enumerate(config.maps):
        assert tuple(places[one_map.name, place] for place in (1, 2, 3)) == lineup.robots(
            order, on, config.learners
        )
    assert [list(row) for row in told["firsts"].values()] == [["naive", "aware", "adaptive"]] * 2
    assert all(curve["adaptive"]["n"] == 1 for curve in told["curves"].values())


def test_no_state_tells_the_kind_of_robot(sqlite_url, served, config):
    with served(sqlite_url, config) as client:
        one = Person(client, config).join().begin()
        said = []
        while one.state["stage"] in ("warm_up", "teach"):
            one.step()
            said.append(str({key: value for key, value in one.state.items() if key != "study"}))
    assert not [text for text in said if "naive" in text or "aware" in text or "adaptive" in text]


def test_verify_notices_a_robot_in_the_wrong_place(sqlite_url, served, config):
    with served(sqlite_url, config) as client:
        Person(client, config).join().begin().teach()
    with open_store(sqlite_url) as store, store.reading() as connection:
        assert verify(store).problems == []
        one, taken = operations.find(connection, number=1), operations.steps_of(connection, 1)
    moved = [step._replace(robot=1 + step.robot % 3) for step in taken]
    found = problems_of(StudyRules(config), one, moved)
    assert len(found) == 6
    assert all("the robot does not match the order" in text for text in found)


def test_orders_are_given_in_turn(sqlite_url, served, config):
    with served(sqlite_url, config) as client:
        for _ in range(6):
            Person(client, config).join().begin()
        told = Researcher(client, config).log_in().overview("live")
    assert all(set(row.values()) == {2} for row in told["firsts"].values())
    assert len({row["order"] for row in told["orders"]}) == 6


def test_the_analysis_has_the_third_arm(sqlite_url, served, config):
    with served(sqlite_url, config) as client:
        for _ in range(2):
            Person(client, config).join().begin().finish()
    with open_store(sqlite_url) as store:
        found = analyze(_table.StudyData(store.config(), store.steps_table("live")))
    assert found.participants == {"human": 2}
    assert found.replay_error < 1e-3
    arms = {(row["teacher"], row["learner"]) for row in found.summary.to_dict("records")}
    assert {(who, "adaptive") for who in ("human", "machine", "random")} <= arms
    compared = {(row["first"], row["second"]) for row in found.tests.to_dict("records")}
    assert {("adaptive", "naive"), ("adaptive", "aware"), ("aware", "naive")} <= compared
