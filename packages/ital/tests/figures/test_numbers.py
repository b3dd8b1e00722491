"""Every number that a figure shows, computed a second time on results that differ in everything."""

import html
import re

import numpy as np
import pytest

from ital import figures
from ital.figures import charts
from ital.statistics import number
from tests.experiments.made_up import QUESTIONS, experiment, sweep

STEPS = np.array([0, 90, 200, 310, 500, 640, 900, 1000])


@pytest.fixture(scope="module")
def uneven():
    """A run in which a method lacks a seed and another diverges on one."""
    made = experiment(seeds=[4, 9, 2, 7, 5, 11], steps=STEPS, rough=0.1)
    curves = made.curves.sel(learner=["ital-2", "imt", "batch", "ital"])
    curves["computed"].loc[{"learner": "imt", "seed": 9}] = 0
    curves["diverged_at"].loc[{"learner": "ital-2", "seed": 7}] = 640
    dead = (curves["diverged_at"] >= 0) & (curves["step"] >= curves["diverged_at"])
    alive = ~dead & (curves["computed"] == 1)
    curves = curves.map(
        lambda own: own.where(alive) if "step" in own.dims else own, keep_attrs=True
    )
    return made._replace(curves=curves)


def ends(rows, questions=None):
    """Mean and standard error of each column; of an exam, with the choice of its questions."""
    error = rows.std(ddof=1) / np.sqrt(len(rows))
    if questions:
        error = np.sqrt(error**2 + (rows * (1 - rows)).mean() / (questions - 1))
    return rows.mean(skipna=False), error


@pytest.mark.parametrize("metric", ["distance", "loss", "accuracy"])
def test_a_curve_is_a_mean_with_the_band_of_its_error(uneven, metric):
    panel = figures.curve_panel(uneven.curves, uneven.task, metric)
    lines = [mark for mark in panel["marks"] if mark["kind"] == "line"]
    assert [line["label"] for line in lines] == ["BATCH", "IMT", "ITAL", "ITAL-2"]
    for line in lines:
        method = line["label"].lower()
        rows = uneven.curves[metric].sel(learner=method).to_pandas()
        rows = rows.drop(index=9) if method == "imt" else rows
        rows = rows[STEPS[::2] if metric == "accuracy" else STEPS]
        mean, error = ends(rows, QUESTIONS if metric == "accuracy" else None)
        assert list(line["x"]) == list(rows.columns)
        np.testing.assert_allclose(line["y"], mean)
        known = np.isfinite(mean)  # where a seed has diverged there is no mean, and no band
        np.testing.assert_allclose(np.asarray(line["error"])[known], error[known])
        assert np.isnan(np.asarray(line["error"])[~known]).all()
        assert known.all() == (method != "ital-2")
    floors = [mark["at"] for mark in panel["marks"] if mark["kind"] == "rule"]
    assert floors == (
        [np.mean(uneven.curves["distance"].attrs["floor"])] if metric == "distance" else []
    )
    assert panel["x_range"] == [0, 1000]
    assert panel["zero"] == (metric != "accuracy")


def test_a_single_seed_has_no_band(uneven):
    one = uneven.curves.isel(seed=[0])
    assert all(
        "error" not in mark for mark in figures.curve_panel(one, uneven.task, "loss")["marks"]
    )


@pytest.mark.parametrize(("smallest", "log"), [(0.021, ""), (0.019, "y"), (0.0, "")])
def test_a_loss_over_a_wide_range_is_drawn_on_a_logarithmic_axis(uneven, smallest, log):
    curves = uneven.curves.copy(deep=True)
    curves["loss"][:] = 1.0
    curves["loss"].loc[{"learner": "imt", "step": 500}] = smallest
    panel = figures.curve_panel(curves, uneven.task, "loss")
    assert panel["log"] == log
    assert panel["zero"] == (log == "")
    curves["distance"][:] = curves["loss"]
    assert figures.curve_panel(curves, uneven.task, "distance")["log"] == ""


def test_a_drawn_band_reaches_from_mean_minus_to_mean_plus_error(uneven):
    axis = figures.plot_curves(uneven.curves, uneven.task, ["distance"], methods=["imt"]).axes[0]
    mean, error = ends(uneven.curves["distance"].sel(learner="imt").to_pandas().drop(index=9))
    (band,) = axis.collections
    corners = {(round(x), y) for x, y in band.get_paths()[0].vertices}
    for step in STEPS:
        heights = [y for x, y in corners if x == step]
        assert min(heights) == pytest.approx(mean[step] - error[step])
        assert max(heights) == pytest.approx(mean[step] + error[step])


def test_a_card_has_the_last_step(uneven):
    text = figures.card(uneven.curves, uneven.task)
    rows = re.findall(r"<tr>(.*?)</tr>", text)
    cells = [re.findall(r"<t[hd]>(.*?)</t[hd]>", row) for row in rows]
    assert cells[0] == ["learner", "Distance to the target", "Square loss", "Accuracy"]
    for row, method in zip(cells[1:], ("batch", "imt", "ital", "ital-2"), strict=True):
        shown = []
        for metric in ("distance", "loss", "accuracy"):
            rows = (
                uneven.curves[metric]
                .sel(learner=method)
                .to_pandas()
                .drop(index=[9] if method == "imt" else [])
            )
            mean, error = ends(rows, QUESTIONS if metric == "accuracy" else None)
            step = 900 if metric == "accuracy" else 1000
            shown.append(
                number(mean[step])
                + (f" ± {number(error[step], 2)}" if np.isfinite(mean[step]) else "")
            )
        if method == "ital-2":
            assert row[1:] == ["–", "–", "–"]
        else:
            assert [html.unescape(cell) for cell in row] == [method.upper(), *shown]
    assert "step 1000, mean ± SE over 6 seeds" in text


# ---- sweeps ----


@pytest.mark.parametrize("metric", ["distance", "distance_centred"])
def test_the_maps_of_a_sweep(metric):
    grid = sweep(draw=1, lead=0.8, metric=metric)
    last = grid["step"].values[-1]
    seeds = grid[metric].where(
        ~((grid["diverged_at"] >= 0) & (grid["step"] >= grid["diverged_at"])), np.inf
    )
    seeds = seeds.where(grid["computed"] == 1).sel(step=[0, last])
    means = seeds.mean("seed").to_series().dropna().unstack("step")
    panels = figures.sweep_panels(grid)
    names = [["batch", "imt"], ["ital"], ["imt-matched"], ["ital-5"]]
    assert sorted(panel["title"].partition(":")[0] for panel in panels[:4]) == [
        "IMT-MATCHED",
        "ITAL",
        "ITAL-5",
        "Naive",
    ]
    of = {panel["title"].partition(":")[0].lower(): panel for panel in panels[:4]}
    best_naive = min(means.loc[name][last].min() for name in ("batch", "imt"))
    far = means[last] > means[0]
    shown = []
    for name in (one for group in names for one in group):
        panel = of["naive" if name in names[0] else name]
        mark = panel["marks"][0]
        for j, lr in enumerate(grid["lr"].values):
            for i, beta in enumerate([0.0] if name in names[0] else grid["beta"].values):
                row = names[0].index(name) if name in names[0] else i
                value, text = mark["values"][row][j], mark["texts"][row][j]
                place = (name, lr, beta)
                if place not in means.index:
                    assert (value, text) == (None, "")
                elif far[place]:
                    assert (value, text) == (None, "×")
                else:
                    shown.append(means.loc[place, last])
                    assert value == pytest.approx(shown[-1], rel=1e-2)
                    assert text == number(shown[-1], 2)
                dotted = (
                    name in ("ital", "ital-5")
                    and place in means.index
                    and means.loc[place, last] < best_naive
                )
                assert ([row, j] in mark["dots"]) == dotted
        own = means[last][[name]][~far]
        _, lr, beta = own.idxmin()
        row = names[0].index(name) if name in names[0] else list(grid["beta"].values).index(beta)
        assert [row, list(grid["lr"].values).index(lr)] in mark["framed"]
        assert len(mark["framed"]) == (2 if name in names[0] else 1)
    for panel in panels[:4]:
        np.testing.assert_allclose(panel["marks"][0]["limits"], [min(shown), max(shown)], rtol=1e-3)
    assert far.any()
    assert any(panel["marks"][0]["dots"] for panel in panels[:4])


def test_the_maps_of_how_soon():
    from ital import tuning

    grid = sweep(draw=4, lead=1.0)
    grid["distance"].loc[{"step": 700}] *= 0.3
    steps = tuning.steps_to(grid)  # compared with a table in packages/ital/tests/test_tuning.py
    panels = {panel["title"].partition(":")[0]: panel for panel in figures.sweep_panels(grid)[4:]}
    mark = panels["ITAL"]["marks"][0]
    far = tuning.diverged(grid, 1200).sel(learner="ital")
    for i, beta in enumerate(grid["beta"].values):
        for j, lr in enumerate(grid["lr"].values):
            value = float(steps.sel(learner="ital", lr=lr, beta=beta))
            bad = bool(far.sel(lr=lr, beta=beta))
            expected = "×" if bad else number(value, 2) if np.isfinite(value) else "–"
            ran = (grid["computed"].sel(learner="ital", lr=lr, beta=beta) == 1).any()
            assert mark["texts"][i][j] == (expected if ran else "")
    assert {"", "–", "×", "1200", "700"} & {text for row in mark["texts"] for text in row}


# ---- charts ----


def test_thinned_curves_keep_their_ends_and_their_values():
    steps = np.arange(0, 401, 4)
    values = np.random.default_rng(0).uniform(1, 9, len(steps))
    mark = charts.stored(charts.panel("", [charts.line("", "#000000", steps, values, values / 7)]))
    places = np.searchsorted(steps, mark["steps"])
    assert (len(places), places[0], places[-1]) == (25, 0, 100)
    assert np.ptp(np.diff(places)) <= 1
    np.testing.assert_allclose(mark["marks"][0]["y"], values[places], rtol=1e-3)
    np.testing.assert_allclose(mark["marks"][0]["error"], values[places] / 7, rtol=0.05)


def test_colours_span_the_positive_values():
    assert charts.colour_limits(np.array([np.nan, -1.0, 0.0, 3.0, np.inf, 0.5])) == (0.5, 3.0)
    assert charts.colour_limits(np.array([2.0, 2.0])) == pytest.approx((2.0, 2.002))
    assert charts.colour_limits(np.array([np.nan])) == (0.1, 1.0)


def test_panels_of_teachers_are_those_of_each_run():
    runs = {
        f"t{i}": experiment(seeds=3 + i, rough=0.1, draw=i, steps=STEPS).curves for i in range(3)
    }
    task = experiment(rough=0.1).task
    figure = figures.plot_teachers(runs, task, ["loss", "distance"], methods=["ital", "imt"])
    for k, (method, metric) in enumerate(
        (m, n) for m in ("ital", "imt") for n in ("loss", "distance")
    ):
        for line, (name, curves) in zip(figure.axes[k].lines, runs.items(), strict=False):
            assert line.get_label() == name
            np.testing.assert_allclose(
                line.get_ydata(), curves[metric].sel(learner=method).mean("seed")
            )
            assert len(figure.axes[k].collections) == 3  # a band each


def test_speeds_and_memory_in_the_figure_of_scaling(monkeypatch):
    monkeypatch.setattr(charts, "chart", lambda panels, *arguments, **options: panels)
    points = [
        {
            "lanes": lanes,
            "rows": 10 * lanes,
            "steps_per_second": 1000.0 * lanes,
            "bound": bound,
            "bounds": {"memory": 1e-5 * lanes, "arithmetic": 3e-5 * lanes, "launch": 0.5 + lanes},
        }
        for lanes, bound in ((8, "memory"), (64, "arithmetic"), (512, "launch"))
    ]
    measured = {
        "device": "cpu",
        "lanes": {"gaussian": points},
        "rows": points,
        "workers": [
            {"workers": 1, "steps_per_second": 2500.0},
            {"workers": 2, "steps_per_second": 4000.0},
        ],
        "memory": [
            {
                "rows": rows,
                "pool_bytes": rows * 2**20,
                "above_empty_bytes": above,
                "device_above_empty_bytes": 2**19 * rows,
            }
            for rows, above in ((1, -5), (3, 5 * 2**20))
        ],
    }
    by_lanes, by_rows, by_workers, by_memory = figures.plot_scaling(measured)
    speed, bounds, *dots = by_lanes["marks"]
    assert list(speed["x"]) == [8, 64, 512]
    assert list(speed["y"]) == [8000.0, 64000.0, 512000.0]
    np.testing.assert_allclose(bounds["y"], [1e5, 1 / 3e-5, 512 / 512.5])
    assert [dot["marker"] for dot in dots] == ["o", "s", "^"]
    np.testing.assert_allclose([dot["y"][0] for dot in dots], bounds["y"])
    assert list(by_rows["marks"][0]["x"]) == [80, 640, 5120]
    (bars,) = by_workers["marks"]
    assert list(bars["y"]) == [2.5, 4.0]
    pool, twice, process, device = by_memory["marks"]
    assert list(pool["y"]) == [1.0, 3.0]
    assert list(twice["y"]) == [2.0, 6.0]
    np.testing.assert_allclose(process["y"], [2**-20, 5.0])
    np.testing.assert_allclose(device["y"], [0.5, 1.5])
    for point in measured["memory"]:
        del point["device_above_empty_bytes"]
    assert len(figures.plot_scaling(measured)[-1]["marks"]) == 3
