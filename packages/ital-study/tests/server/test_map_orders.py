"""Balanced orders of maps: a Latin square, independent of the order of robots."""

import itertools
from collections import Counter

import pandas as pd
import pytest

import ital_study as study
from ital.errors import InputError
from ital_study.analysis import measures
from ital_study.cli.analysis import read_source
from ital_study.config import lineup, map_orders
from ital_study.store import open_store, verification
from ital_study.store.answers_table import answers_table
from tests.questions import asking
from tests.server.people import Person, Researcher, tiny
from tests.server.test_panel import SHORT

BALANCED = tiny(map_order="balanced")
LEARNERS = ("naive", "aware")


@pytest.mark.parametrize("maps", range(1, 9))
def test_every_map_is_everywhere_and_after_every_other_equally_often(maps):
    rows = map_orders.rows(maps)
    assert len(set(rows)) == len(rows)
    assert all(sorted(row) == list(range(maps)) for row in rows)
    places = Counter((place, index) for row in rows for place, index in enumerate(row))
    assert len(places) == maps**2
    assert len(set(places.values())) == 1
    after = Counter(pair for row in rows for pair in itertools.pairwise(row))
    assert len(after) == maps * (maps - 1)
    assert len(set(after.values())) <= 1


def test_orders_with_and_without_a_row():
    order = map_orders.with_row("naive-ital-posterior-aware", 2)
    assert order == "naive-ital-posterior-aware@2"
    assert map_orders.robots_of(order) == "naive-ital-posterior-aware"
    assert map_orders.row_of(order) == 2
    assert map_orders.taught(order, (3,)) == map_orders.rows(3)[2]
    assert map_orders.taught("naive-aware", (2,)) == map_orders.taught(None, (2,)) == (0, 1)
    assert map_orders.numbers("naive-aware@1", BALANCED) == {"E": 1, "A": 2}
    assert lineup.first_robots("aware-naive@1") == ["aware", "naive"]


def test_rows_and_first_robots_stay_independent():
    counted = Counter()
    robots_so_far = Counter()
    for _ in range(200):
        robots = lineup.next_order(robots_so_far, 5, LEARNERS)
        robots_so_far[robots] += 1
        counted[map_orders.with_row(robots, map_orders.next_row(counted, robots, (5,)))] += 1
    rows = Counter()
    together = Counter()
    for order, times in counted.items():
        row = map_orders.row_of(order)
        rows[row] += times
        for index, first in enumerate(lineup.first_robots(order)):
            together[row, index, first] += times
    assert set(rows.values()) == {20}
    assert len(together) == 10 * 5 * 2
    assert max(together.values()) - min(together.values()) <= 4


def test_people_teach_the_maps_in_their_own_order(url, served):
    with served(url, BALANCED) as client:
        people = [Person(client, BALANCED).join().begin() for _ in range(4)]
        first = people[0]
        first.teach(5)
        again = Person(client, BALANCED)
        again.cookies = first.cookies
        assert again.look()["scene"] == first.state["scene"]  # rebuilt from the store
        for person in people:
            person.finish()
        overview = Researcher(client, BALANCED).log_in().overview("live")
    assert overview["map_orders"] == [
        {"maps": ["A", "E"], "usable": 2, "open": 0},
        {"maps": ["E", "A"], "usable": 2, "open": 0},
    ]
    assert all("@" not in each["order"] for each in overview["orders"])
    assert all(set(times.values()) == {2} for times in overview["firsts"].values())
    with open_store(url) as store:
        table = store.steps_table()
        assert verification.verify(store).problems == []
        with store.reading() as connection:
            [stored] = {
                tuple(row) for row in connection.exec_driver_sql("SELECT count(*) FROM steps")
            }
    assert stored == (4 * BALANCED.total_steps,)
    for number, own in table.groupby("participant"):
        in_time = own.sort_values("stored_at", kind="stable")["map"].unique()
        row = map_orders.taught(own["order"].iloc[0], (2,))
        assert list(in_time) == ["AE"[index] for index in row], number
        assert list(own["map"].unique()) == list(in_time)
    assert measures.analyze(read_source(url, None)[0]).summary is not None


def test_questions_name_the_map_by_its_number_for_the_participant(sqlite_url, served):
    config = asking(map_order="balanced", steps=2, warm_up_steps=1)
    with served(sqlite_url, config) as client:
        for _ in range(2):
            Person(client, config).join().begin().through().do("/api/comments", {"text": ""})
    with open_store(sqlite_url) as store:
        answers = answers_table(store, "live")
        assert not any(verification.unreadable(store, "live").values())
    about_maps = answers[answers["map"] != ""]
    numbers = {
        (row.participant, row.place.partition("-")[0], row.map) for row in about_maps.itertuples()
    }
    assert numbers == {(1, "1", "A"), (1, "2", "E"), (2, "1", "E"), (2, "2", "A")}


def test_simulated_people_have_rows_too():
    teachers = [study.teacher("random", default=1.0)]
    steps = study.simulate(BALANCED, 4, teachers)
    assert {map_orders.row_of(order) for order in steps["order"]} == {0, 1}
    fixed = study.simulate(tiny(), 4, teachers)
    assert not any("@" in order for order in fixed["order"])
    measured = ["participant", "teacher", "learner", "map", "step", "distance"]
    pd.testing.assert_frame_equal(steps[measured], fixed[measured])


def test_the_key_of_the_configuration():
    plain = study.parse_config(SHORT)
    assert study.parse_config(f'map_order = "fixed"\n{SHORT}').hash == plain.hash
    balanced = study.parse_config(f'map_order = "balanced"\n{SHORT}')
    assert study.parse_config(balanced.to_toml()) == balanced
    assert balanced.hash != plain.hash
    with pytest.raises(InputError, match="map_order must be one of fixed, balanced, not 'random'"):
        study.parse_config(f'map_order = "random"\n{SHORT}')
