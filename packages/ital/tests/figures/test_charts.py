import json

import numpy as np

from ital.figures import charts


def falling(name, steps, **options):
    return charts.line(
        name, "#08306b", steps, np.linspace(9, 1, len(steps)), 0.1 * np.ones(len(steps)), **options
    )


def test_a_stored_panel_is_plain_data_with_thin_curves_that_share_their_steps():
    panel = charts.stored(charts.panel("", [falling(name, np.arange(2001)) for name in "ab"]))
    assert len(panel["steps"]) <= charts.POINTS
    assert (panel["steps"][0], panel["steps"][-1]) == (0, 2000)
    assert all("x" not in mark for mark in panel["marks"])
    assert panel["marks"][0]["y"][-1] == 1.0
    assert json.loads(json.dumps(panel)) == panel


def test_a_diverged_curve_is_stored_as_gaps_and_still_drawn():
    panel = charts.panel("", [charts.line("gone", "#08306b", [0, 1, 2], [1.0, np.inf, np.nan])])
    kept = charts.stored(panel)
    assert kept["marks"][0]["y"] == [1.0, None, None]
    for shown in (panel, kept):
        (line,) = charts.chart([shown], "").axes[0].lines
        assert line.get_ydata()[0] == 1.0
        assert not np.isfinite(line.get_ydata()[1:]).any()


def test_a_figure_draws_what_is_stored_where_the_whole_panel_would_be():
    panel = charts.panel(
        "Panel",
        [falling("a", np.arange(11)), charts.rule("y", 3.0, "floor")],
        y="Distance",
        zero=True,
        x_range=(0, 10),
    )
    whole, kept = (
        charts.chart([shown], "Title", note="a note").axes[0]
        for shown in (panel, charts.stored(panel))
    )
    for axis in (whole, kept):
        assert (axis.get_title(), axis.get_ylabel(), axis.get_ylim()[0], axis.get_xlim()) == (
            "Panel",
            "Distance",
            0,
            (0, 10),
        )
        np.testing.assert_allclose(axis.lines[0].get_ydata(), np.linspace(9, 1, 11))
    assert whole.figure.get_suptitle() == "Title\na note"


def test_a_figure_has_one_legend_and_leaves_places_free():
    panels = [charts.panel(title, [falling("a", np.arange(3))]) for title in "xy"]
    figure = charts.chart([panels[0], charts.blank(), panels[1]], "", columns=2)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a"]
    assert [axis.axison for axis in figure.axes] == [True, False, True, False]
    assert [mark["label"] for mark in charts.legend(panels)] == ["a"]


def test_bars_have_their_stars_above_them():
    bars = charts.bars(
        "a", "#08306b", [0, 1], [2.0, -1.0], [0.1, np.nan], width=0.5, marks=["**", ""], hatch="//"
    )
    axis = charts.chart([charts.panel("", [bars])], "").axes[0]
    assert [patch.get_height() for patch in axis.patches] == [2.0, -1.0]
    assert [(text.get_text(), text.xy) for text in axis.texts] == [("**", (0.0, 2.1))]


def test_maps_share_the_colours_they_are_given_and_old_ones_have_their_own():
    values = np.array([[1.0, 10.0], [np.nan, 3.0]])
    mark = charts.cells(
        values,
        [["1", "10"], ["×", "3"]],
        [(0, 0)],
        values > 5,
        charts.colour_limits(np.array([0.1, 100.0])),
    )
    old = {name: own for name, own in mark.items() if name != "limits"}
    shown, alone = (
        charts.chart([charts.panel("", [each])], "").axes[0].collections[0] for each in (mark, old)
    )
    assert (shown.norm.vmin, shown.norm.vmax) == (0.1, 100.0)
    assert (alone.norm.vmin, alone.norm.vmax) == (1.0, 10.0)
