import pytest

from ital import figures, tasks
from ital.errors import InputError
from tests.experiments.made_up import experiment


def runs():
    return {teacher: experiment(teacher=teacher).curves for teacher in ("cooperative", "mine")}


def test_teachers_are_lines_and_methods_are_rows():
    figure = figures.plot_teachers(runs(), tasks.make("regression"), methods=["imt", "ital"])
    assert len(figure.axes) == 4  # two methods, distance and loss
    assert [line.get_label() for line in figure.axes[0].lines] == ["cooperative", "mine"]
    expected = runs()["mine"]["distance"].sel(learner="imt").mean("seed").values
    assert figure.axes[0].lines[1].get_ydata() == pytest.approx(expected)
    assert {axis.get_title() for axis in figure.axes} == {"IMT", "ITAL"}


def test_panels_of_a_metric_share_one_scale():
    made = runs()
    made["mine"]["loss"].loc[{"learner": "ital"}] = 1e-6
    figure = figures.plot_teachers(
        made, tasks.make("regression"), ["loss"], methods=["imt", "ital"]
    )
    assert [axis.get_yscale() for axis in figure.axes] == ["log", "log"]
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()
    assert figure.axes[0].get_ylim()[0] < 1e-6


def test_what_a_run_lacks_is_named():
    with pytest.raises(
        InputError, match="the run with the cooperative teacher has no method 'ital-7'"
    ):
        figures.plot_teachers(runs(), tasks.make("regression"), methods=["ital-7"])
    with pytest.raises(InputError, match="has no metric 'regret'"):
        figures.plot_teachers(runs(), tasks.make("regression"), ["regret"])
    with pytest.raises(InputError, match="at least one run"):
        figures.plot_teachers({}, tasks.make("regression"))
