"""No text of any figure is cut, and none overlaps another."""

import pytest
from matplotlib.figure import Figure

from tests.newcomer.gallery import FIGURES, faults


@pytest.mark.parametrize("name", FIGURES)
def test_text_is_neither_cut_nor_on_other_text(name):
    cut, overlapping = faults(FIGURES[name]())
    assert not cut
    assert not overlapping


def test_a_fault_would_be_seen():
    figure = Figure(figsize=(3, 2))
    for place in ((0.1, 0.5), (0.15, 0.5), (0.9, 0.1)):
        figure.text(*place, f"words at {place[0]}")
    cut, overlapping = faults(figure)
    assert cut == ["words at 0.9"]
    assert overlapping == [("words at 0.1", "words at 0.15")]


def test_numbers_of_a_map_are_left_out_where_they_have_no_room():
    few, many = (FIGURES[name]() for name in ("pictures", "pictures, larger"))
    assert sum(len(axis.texts) for axis in few.axes) == 9 * 25
    assert not any(axis.texts for axis in many.axes)
