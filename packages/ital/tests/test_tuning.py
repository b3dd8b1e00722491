import itertools
import json

import matplotlib.image
import numpy as np
import pytest
import xarray as xr

from ital import figures, tasks, tuning
from ital.results import long_form
from tests.experiments.made_up import sweep
from tests.experiments.plain import edges

LRS, BETAS, STEPS = [0.01, 0.1, 1.0], [0.0, 10.0, 100.0], [0, 500, 1000, 1500]


def made_up(**ends):
    """A sweep whose distances fall from 10 in a straight line to ends[method] (lr, beta) at the
    last step.
    """
    shape = (len(ends), len(LRS), len(BETAS))
    end = np.stack([np.broadcast_to(np.asarray(one, float), shape[1:]) for one in ends.values()])
    line = 10 + (end[..., None] - 10) * np.asarray(STEPS) / STEPS[-1]
    distance = np.stack([line, line], axis=3)  # two seeds
    dims = ("learner", "lr", "beta", "seed")
    data = {
        "distance": ((*dims, "step"), distance),
        "diverged_at": (dims, np.full(distance.shape[:-1], -1)),
        "computed": (dims, np.ones(distance.shape[:-1], np.int8)),
    }
    labels = [name.upper() for name in ends]
    coords = {
        "learner": list(ends),
        "label": ("learner", labels),
        "lr": LRS,
        "beta": BETAS,
        "seed": [0, 1],
        "step": STEPS,
    }
    naive = [name for name in ends if name in ("batch", "sgd", "imt")]
    return xr.Dataset(data, coords, {"without_beta": json.dumps(naive), "teacher": "cooperative"})


def row(*values):
    """The same for every β."""
    return np.repeat(np.asarray(values, float)[:, None], len(BETAS), axis=1)


ITAL = np.array([[5.0, 4.0, 3.0], [3.0, 0.5, 2.5], [8.0, 8.0, 8.0]])


def test_every_method_is_judged_at_its_own_best_setting():
    grid = made_up(batch=row(4, 2, 1), imt=row(5, 3, 8), ital=ITAL)
    verdict = tuning.judge(grid, 1500)
    assert [str(setting) for setting in verdict.best] == [
        "ITAL (η = 0.1, β = 10)",
        "BATCH (η = 1)",
        "IMT (η = 0.1)",
    ]
    assert verdict.best[0].mean == pytest.approx(0.5)
    assert verdict.best[0].share == pytest.approx(0.05)
    assert (verdict.naive.method, verdict.aware.method) == ("batch", "ital")
    assert verdict.closer == (2, 2)


def test_a_setting_is_one_line_at_the_prompt():
    grid = made_up(imt=np.full((3, 3), 4.0), ital=np.full((3, 3), 2.0))
    best, second = tuning.judge(grid, 1500).best
    assert repr(best).startswith("Setting('ital', lr=0.01, beta=")
    assert repr(second) == "Setting('imt', lr=0.01, mean=4, error=0)"


def test_the_naive_may_win():
    grid = made_up(batch=row(4, 0.1, 1), imt=row(5, 3, 8), ital=ITAL)
    verdict = tuning.judge(grid, 1500)
    assert verdict.best[0].method == verdict.naive.method == "batch"
    assert not tuning.pays(grid, "ital", 1500).any()


def test_an_end_of_the_range_is_named_but_not_where_awareness_ends():
    assert tuning.best(made_up(ital=[[9, 9, 9], [9, 1, 9], [9, 9, 9]]), "ital", 1500).edge == ()
    assert tuning.best(made_up(ital=[[9, 9, 9], [9, 9, 1], [9, 9, 9]]), "ital", 1500).edge == ("β",)
    assert tuning.best(made_up(ital=[[9, 9, 9], [9, 9, 9], [9, 1, 9]]), "ital", 1500).edge == ("η",)
    assert tuning.best(made_up(ital=[[9, 9, 1], [9, 9, 9], [9, 9, 9]]), "ital", 1500).edge == (
        "η",
        "β",
    )
    assert tuning.best(made_up(ital=[[9, 9, 9], [1, 9, 9], [9, 9, 9]]), "ital", 1500).edge == ()
    # Repeated along β, so first there.
    assert tuning.best(made_up(imt=row(9, 1, 9)), "imt", 1500).edge == ()


def test_where_awareness_pays():
    grid = made_up(batch=row(4, 2, 1), imt=row(5, 3, 8), ital=ITAL)
    assert np.argwhere(tuning.pays(grid, "ital", 1500).values).tolist() == [[1, 1]]
    at_same_lr = tuning.pays_at_same_lr(grid, "ital", 1500)
    assert np.argwhere(at_same_lr.transpose("lr", "beta").values).tolist() == [
        [0, 1],
        [0, 2],
        [1, 1],
        [1, 2],
    ]
    assert tuning.pays(made_up(ital=ITAL), "ital", 1500) is None
    assert tuning.pays_at_same_lr(made_up(ital=ITAL), "ital", 1500) is None


def test_controls_are_neither_naive_nor_aware():
    grid = made_up(**{"batch": row(4, 2, 1), "imt-matched": 0.1 * ITAL, "ital": ITAL})
    verdict = tuning.judge(grid, 1500)
    assert verdict.best[0].method == "imt-matched"
    assert verdict.aware.method == "ital"
    assert tuning.naive_methods(grid) == ["batch"]


def test_a_diverged_seed_spoils_a_setting_from_then_on():
    grid = made_up(ital=ITAL)
    grid["diverged_at"][0, 1, 1, 0] = 1000
    assert tuning.best(grid, "ital", 500).beta == 10.0
    assert tuning.best(grid, "ital", 1000).beta != 10.0
    assert np.isinf(tuning.mean_values(grid, 1500).values[0, 1, 1])
    assert np.argwhere(tuning.diverged(grid, 1500).values).tolist() == [[0, 1, 1]]
    assert not tuning.diverged(grid, 500).any()
    # Farther than at the start.
    assert tuning.diverged(made_up(ital=row(5, 11, 5)), 1500).values[0, 1].all()


def test_seeds_that_were_not_run_do_not_count():
    grid = made_up(imt=row(5, 3, 8), ital=ITAL)
    grid["distance"][1, ..., 1, :] = np.nan
    grid["computed"][1, ..., 1] = 0
    verdict = tuning.judge(grid, 1500)
    assert verdict.best[0].method == "ital"
    assert verdict.best[0].values["seed"].values.tolist() == [0]
    assert verdict.closer == (1, 1)


def test_steps_to_a_share_of_the_start():
    grid = made_up(ital=[[0.0, 1.0, 1.1], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    grid["distance"][0, 1, 0, :, 1] = 0.9  # both seeds are there after 500 steps
    grid["distance"][0, 1, 1, 0, :] = 5.0  # one of two never is
    steps = tuning.steps_to(grid).values[0]
    assert steps[0].tolist() == [1500.0, 1500.0, np.inf]
    assert steps[1].tolist() == [500.0, np.inf, 1500.0]
    assert tuning.steps_to(grid, share=0.5).values[0, 2, 0] == 1000.0


def test_judged_steps_are_measured_ones():
    grid = made_up(ital=ITAL)
    assert tuning.judged_steps(grid) == [500, 1000, 1500]
    assert tuning.judged_steps(grid.assign_coords(step=[0, 100, 200, 300])) == [300]
    assert tuning.judged_steps(grid.assign_coords(step=[0, 510, 990, 1000])) == [510, 1000]


def test_the_centred_distance_is_preferred():
    grid = made_up(ital=ITAL)
    grid["distance_centred"] = grid["distance"] * 0 + 3.0
    assert tuning.metric_of(grid) == "distance_centred"
    assert tuning.judge(grid, 1500).best[0].mean == 3.0


def test_maps_show_numbers_divergence_and_what_pays(tmp_path):
    grid = made_up(batch=row(4, 2, 1), imt=row(5, 3, 8), ital=ITAL)
    grid["diverged_at"][2, 2, 2, 0] = 500
    figure = figures.plot_sweep(grid, tasks.regression())
    titles = [axis.get_title() for axis in figure.axes]
    assert [title.partition(":")[0] for title in titles] == ["Naive", "ITAL", "Naive", "ITAL"]
    assert [(axis.get_xlabel(), axis.get_ylabel()) for axis in figure.axes] == [
        ("η", ""),
        ("η", "β"),
    ] * 2
    above, below = figure.axes[1], figure.axes[3]
    texts = {tuple(map(int, text.get_position())): text.get_text() for text in above.texts}
    assert texts[2, 2] == "×"  # x is η, y is β
    assert texts[1, 1] == "0.50"
    assert texts[0, 1] == "4.0"
    assert {text.get_text() for text in below.texts} == {"–", "×", "1500"}
    (dots,) = above.lines
    assert np.round(np.transpose(dots.get_data())).tolist() == [[1, 1]]
    assert [patch.get_xy() for patch in above.patches] == [(0.5, 0.5)]
    png, _ = figures.save(figure, tmp_path / "sweep")
    assert matplotlib.image.imread(png).std() > 0.05


def test_maps_of_one_setting_and_of_nothing_but_divergence():
    def texts(figure):
        figure.canvas.draw()
        return [[text.get_text() for text in axis.texts] for axis in figure.axes]

    grid = made_up(ital=ITAL).isel(lr=[0], beta=[0])
    one = figures.plot_sweep(grid, tasks.regression())
    # It ends at 5, and never comes down to a tenth of the start.
    assert texts(one) == [["5.0"], ["–"]]
    # The only setting is the best.
    assert [patch.get_xy() for patch in one.axes[0].patches] == [(-0.5, -0.5)]
    grid["diverged_at"][:] = 500
    none = figures.plot_sweep(grid, tasks.regression())
    assert texts(none) == [["×"], ["×"]]
    assert not none.axes[0].patches


# ---- every number a second time, on a sweep in which no two values are equal ----


@pytest.fixture(
    scope="module",
    params=[(0, 6, 1.0, "distance"), (3, 7, 0.0, "distance_centred"), (4, 5, 0.7, "accuracy")],
)
def uneven(request):
    draw, seeds, lead, metric = request.param
    return sweep(draw=draw, seeds=seeds, lead=lead, metric=metric)


def metric_of(grid):
    """The only metric, and the sign with which less is better."""
    (metric,) = {"distance", "distance_centred", "accuracy"} & set(grid.data_vars)
    return metric, -1 if metric == "accuracy" else 1


def rows_of(grid):
    """The grid as a table of costs: a row per setting and seed that was run, a column per step."""
    metric, sign = metric_of(grid)
    table = grid[[metric, "computed", "diverged_at"]].to_dataframe().reset_index()
    table = table[table["computed"] == 1]
    gone = (table["diverged_at"] >= 0) & (table["step"] >= table["diverged_at"])
    table = table.assign(value=sign * table[metric].where(~gone, sign * np.inf))
    return table.pivot(index=["learner", "lr", "beta", "seed"], columns="step", values="value")


def settings_of(rows, step):
    """The mean distance of every setting over its seeds: infinite if one diverged."""
    return {place: own.mean() for place, own in rows[step].groupby(["learner", "lr", "beta"])}


def test_the_best_settings_are_those_of_the_table(uneven):
    rows = rows_of(uneven)
    _, sign = metric_of(uneven)
    naive = ["batch", "imt"]
    first, last = rows.columns[0], rows.columns[-1]
    for step in (650, last):
        means, starts = settings_of(rows, step), settings_of(rows, first)
        best = {
            name: min((mean, place) for place, mean in means.items() if place[0] == name)
            for name in uneven["learner"].values
        }
        verdict = tuning.judge(uneven, int(step))
        assert [one.method for one in verdict.best] == sorted(best, key=best.get)
        for one in verdict.best:
            mean, place = best[one.method]
            beta = None if one.method in naive else place[2]
            assert (one.lr, one.beta) == (place[1], beta)
            own = rows.loc[place][step]
            assert one.mean == pytest.approx(sign * mean)
            assert one.error == pytest.approx(own.std(ddof=1) / np.sqrt(len(own)), nan_ok=True)
            assert one.share == pytest.approx(mean / starts[place])
            assert one.values["seed"].values.tolist() == own.index.tolist()
            assert list(one.edge) == edges(means, place, beta)
        assert verdict.naive.method == min(naive, key=best.get)
        assert verdict.aware.method == min(["ital", "ital-5"], key=best.get)
        ours, theirs = (rows.loc[best[one.method][1]][step] for one in verdict.best[:2])
        shared = ours.index.intersection(theirs.index)
        assert verdict.closer == ((ours[shared] < theirs[shared]).sum(), len(shared))
        least = min(best[name][0] for name in naive)
        for method in ("ital", "ital-5"):
            pays, at_same_lr = {}, {}
            for lr, beta in itertools.product(uneven["lr"].values, uneven["beta"].values):
                own = means.get((method, lr, beta), np.inf)
                pays[lr, beta] = own < least
                at_same_lr[lr, beta] = own < means["imt", lr, 0.0]
            assert places(tuning.pays(uneven, method, step)) == pays
            assert places(tuning.pays_at_same_lr(uneven, method, step)) == at_same_lr


def places(found):
    """Values by η and β."""
    return found.to_series().reorder_levels(["lr", "beta"]).to_dict()


def test_where_methods_diverge_and_how_soon_they_are_close_is_that_of_the_table(uneven):
    rows = rows_of(uneven)
    first, last = rows.columns[0], rows.columns[-1]
    starts, means = settings_of(rows, first), settings_of(rows, last)
    diverged = tuning.diverged(uneven, int(last)).to_series()
    for place, far in diverged.items():
        assert far == (means.get(place, np.nan) > starts.get(place, np.nan))
    assert diverged.any()
    more_is_better = metric_of(uneven)[1] < 0
    goal = min(means.values()) if more_is_better else 0.0  # nothing left of a distance
    for share in (0.1, 0.35):
        found = tuning.steps_to(uneven, share).to_series()
        for place, median in found.items():
            if place not in means:
                assert np.isnan(median)
                continue
            steps = []
            for _, row in rows.loc[place].iterrows():
                near = [
                    step for step in rows.columns if row[step] <= goal + share * (row[first] - goal)
                ]
                steps.append(near[0] if near else np.inf)
            # Of an even number, the later of the two in the middle.
            assert median == sorted(steps)[len(steps) // 2]
    assert np.isfinite(found).any()
    assert np.isinf(found).any()


def test_the_table_of_a_sweep_has_every_value_once(uneven):
    rows = rows_of(uneven)
    _, sign = metric_of(uneven)
    expected = {}
    for place, row in rows.iterrows():
        method, lr, beta, seed = place
        single = method in ("batch", "imt")
        for step in rows.columns if beta == 0 or not single else ():
            expected[method, lr, -1.0 if single else beta, seed, step] = row[step]
    table = long_form(uneven).fillna({"beta": -1.0})
    assert set(table["task"] + table["teacher"]) == {"regressioncooperative"}
    found = table.set_index(["method", "lr", "beta", "seed", "step"])["value"]
    assert found.index.is_unique
    assert set(found.index) == set(expected)
    for place, value in found.items():
        assert value == sign * expected[place] or (np.isnan(value) and np.isinf(expected[place]))


def test_where_more_is_better_the_best_is_the_highest_everywhere():
    grid = made_up(imt=row(5, 3, 8), ital=ITAL)
    grid["accuracy"] = 1 - grid["distance"] / 20  # from a half at the start
    grid["computed"][1, 2, 2] = 0
    grid["accuracy"][1, 2, 2] = np.nan
    judged = tuning.judged_by(grid, tasks.gaussian(), "accuracy")
    verdict = tuning.judge(judged, 1500)
    assert [(setting.method, setting.lr, setting.beta) for setting in verdict.best] == [
        ("ital", 0.1, 10.0),
        ("imt", 0.1, None),
    ]
    assert verdict.best[0].mean == pytest.approx(0.975)
    assert verdict.closer == (2, 2)
    assert (
        tuning.pays(judged, "ital", 1500).values.tolist()
        == tuning.pays(grid, "ital", 1500).values.tolist()
    )
    # nine tenths of the way from 0.5 to 0.975 are behind 0.9275: a distance of 1.45
    assert tuning.steps_to(judged).sel(learner="ital", lr=0.1, beta=10.0) == 1500
    assert np.isinf(tuning.steps_to(judged).sel(learner="imt", lr=0.1, beta=10.0))
    assert np.isnan(tuning.steps_to(judged).sel(learner="ital", lr=1.0, beta=100.0))
    (cells,) = next(
        panel for panel in figures.sweep_panels(judged) if "ITAL: accuracy" in panel["title"]
    )["marks"]
    assert cells["framed"] == [[1, 1]]
    assert cells["texts"][2][2] == ""
    assert cells["limits"] == [0.6, 0.975]
    with pytest.raises(ValueError, match="did you mean 'accuracy'"):
        tuning.judged_by(grid, tasks.gaussian(), "acuracy")
