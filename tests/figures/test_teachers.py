import pytest

from ital import figures, tasks
from ital.errors import InputError
from tests.reproduce.made_up import experiment


def runs():
    return {teacher: experiment(teacher=teacher).curves for teacher in ("cooperative", "mine")}


def test_teachers_are_lines_and_methods_are_rows():
    figure = figures.plot_teachers(runs(), tasks.make("regression"), methods=["imt", "ital"])
    assert len(figure.axes) == 4  # two methods, distance and loss
    assert [line.get_label() for line in figure.axes[0].lines] == ["cooperative", "mine"]
    expected = runs()["mine"]["distance"].sel(learner="imt").mean("seed").values
    assert figure.axes[0].lines[1].get_ydata() == pytest.approx(expected)
    assert {axis.get_title() for axis in figure.axes} == {"IMT", "ITAL"}


def test_what_a_run_lacks_is_named():
    with pytest.raises(InputError, match="the run with the cooperative teacher has no method 'ital-7'"):
        figures.plot_teachers(runs(), tasks.make("regression"), methods=["ital-7"])
    with pytest.raises(InputError, match="has no metric 'regret'"):
        figures.plot_teachers(runs(), tasks.make("regression"), ["regret"])
    with pytest.raises(InputError, match="at least one run"):
        figures.plot_teachers({}, tasks.make("regression"))
