"""Counterbalancing."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ital.study import _orders


@pytest.mark.parametrize("maps", [1, 2, 5, 8])
def test_without_drop_outs_all_orders_and_all_maps_balance_within_one(maps):
    counted = Counter()
    for _ in range(150):
        counted[_orders.next_order(counted, maps)] += 1
        times = [counted[order] for order in _orders.orders(maps)]
        assert max(times) - min(times) <= 1
        for row in _orders.firsts(counted, maps):
            assert abs(row["naive"] - row["aware"]) <= 1


@settings(max_examples=10)
@given(st.lists(st.integers(0, 2**20), max_size=30))
def test_after_drop_outs_the_maps_come_back_into_balance(drops):
    counted = Counter()
    for _ in range(40):
        counted[_orders.next_order(counted, 5)] += 1
    taken = sorted(counted.elements())
    for drop in drops:
        counted[taken.pop(drop % len(taken))] -= 1
    worst = max(abs(row["naive"] - row["aware"]) for row in _orders.firsts(+counted, 5))
    for _ in range(worst):
        counted[_orders.next_order(+counted, 5)] += 1
    assert all(abs(row["naive"] - row["aware"]) <= 1 for row in _orders.firsts(+counted, 5))


def test_the_two_robots_of_a_map_are_of_both_kinds():
    assert _orders.robots("naive-aware", 0) == ("naive", "aware")
    assert _orders.robots("naive-aware", 1) == ("aware", "naive")
    assert len(set(_orders.orders(5))) == 32
    assert len(_orders.orders(8)[0].split("-")) == 8
