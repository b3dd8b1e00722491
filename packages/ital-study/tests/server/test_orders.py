"""Counterbalancing."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ital_study.config import lineup

TWO, THREE = ("naive", "aware"), ("naive", "aware", "adaptive")


def spread(counts):
    return max(counts) - min(counts)


@pytest.mark.parametrize("learners", [TWO, THREE])
@pytest.mark.parametrize("maps", [1, 2, 5, 8])
def test_without_drop_outs_all_orders_and_all_maps_balance_within_one(maps, learners):
    counted = Counter()
    every = lineup.orders(maps, learners)
    for _ in range(100 if len(every) > 200 else 150):
        counted[lineup.next_order(counted, maps, learners)] += 1
        assert spread([counted[order] for order in every]) <= 1
        assert all(spread(row.values()) <= 1 for row in lineup.firsts(counted, maps, learners))


@pytest.mark.parametrize("learners", [TWO, THREE])
@settings(max_examples=10)
@given(st.lists(st.integers(0, 2**20), max_size=30))
def test_after_drop_outs_the_maps_come_back_into_balance(learners, drops):
    counted = Counter()
    for _ in range(40):
        counted[lineup.next_order(counted, 3, learners)] += 1
    taken = sorted(counted.elements())
    for drop in drops:
        counted[taken.pop(drop % len(taken))] -= 1
    worst = max(
        sum(max(row.values()) - n for n in row.values())
        for row in lineup.firsts(+counted, 3, learners)
    )
    for _ in range(worst):
        counted[lineup.next_order(+counted, 3, learners)] += 1
    assert all(spread(row.values()) <= 1 for row in lineup.firsts(+counted, 3, learners))


def test_the_two_robots_of_a_map_are_of_both_kinds():
    assert lineup.robots("naive-aware", 0) == ("naive", "aware")
    assert lineup.robots("naive-aware", 1) == ("aware", "naive")
    assert len(set(lineup.orders(5))) == 32
    assert len(lineup.orders(8)[0].split("-")) == 8
    assert lineup.turns("naive-aware-aware") == ("naive-aware-aware", "aware-naive-naive")


def test_three_robots_come_in_turn():
    order = "aware-adaptive-naive"
    assert lineup.robots(order, 0, THREE) == ("aware", "adaptive", "naive")
    assert lineup.robots(order, 1, THREE) == ("adaptive", "naive", "aware")
    assert lineup.robots(order, 2, THREE) == THREE
    assert lineup.turns(order, THREE) == (order, "adaptive-naive-aware", "naive-aware-adaptive")
    assert len(set(lineup.orders(5, THREE))) == 3**5


def test_every_robot_is_equally_often_in_every_place():
    counted = Counter()
    for _ in range(30):
        counted[lineup.next_order(counted, 5, THREE)] += 1
    for on in range(5):
        places = Counter()
        for order, times in counted.items():
            places.update(dict.fromkeys(enumerate(lineup.robots(order, on, THREE)), times))
        assert len(places) == 9
        assert set(places.values()) == {10}
