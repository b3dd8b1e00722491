import itertools

import numpy as np
import pandas as pd
import pytest

from ital import results
from ital.results import SIGNAL
from tests.experiments.made_up import QUESTIONS, experiment


def exams(rng, seeds, questions, repeats):
    """Shares of right answers (repeat, seed): able learners pass easy questions."""
    ability, difficulty = (
        rng.normal(0, 0.5, (repeats, seeds, 1)),
        rng.normal(0, 1.5, (repeats, 1, questions)),
    )
    passes = rng.random((repeats, seeds, questions)) < 1 / (1 + np.exp(-1 - ability - difficulty))
    return passes.mean(axis=2)


def test_the_error_of_an_exam_contains_the_choice_of_questions():
    shares = exams(np.random.default_rng(0), seeds=10, questions=30, repeats=2000)
    mean, fixed = results.mean_and_error(shares.T)
    _, error = results.mean_and_error(shares.T, 30)
    actual = mean.std()  # other seeds and other questions each time
    assert np.sqrt(np.mean(fixed**2)) < 0.7 * actual
    # An upper bound, because answers are random here.
    assert actual < np.sqrt(np.mean(error**2)) < 2 * actual


def test_where_all_seeds_fail_in_the_same_questions_it_is_the_binomial_error():
    rng = np.random.default_rng(1)
    shares = np.repeat(rng.binomial(30, 0.8, (1, 4000)) / 30, 5, axis=0)
    mean, error = results.mean_and_error(shares, 30)
    assert np.sqrt(np.mean(error**2)) == pytest.approx(np.sqrt(0.8 * 0.2 / 30), rel=0.02)
    assert mean.std() == pytest.approx(np.sqrt(0.8 * 0.2 / 30), rel=0.05)


def test_without_questions_it_is_the_error_over_seeds():
    values = np.random.default_rng(2).normal(size=(20, 3))
    _, error = results.mean_and_error(values)
    np.testing.assert_allclose(error, values.std(axis=0, ddof=1) / np.sqrt(20))
    assert np.isnan(results.mean_and_error(values[:1], 30)[1]).all()


def test_a_signal_is_averaged_over_the_steps_since_the_last_row():
    """Rows of uneven length, as blocks and exams leave them; every step has its own value."""
    rng = np.random.default_rng(3)
    ends = np.array([0, 3, 10, 12, 20, 21, 37, 40, 43])
    each = rng.normal(size=(43, 2, 3))  # step, seed, lane
    rows = {
        "step": ends,
        "loss": rng.normal(size=(9, 2, 3)),
        f"{SIGNAL}kept": np.stack(
            [
                np.full((2, 3), np.nan),
                *(each[a:b].mean(axis=0) for a, b in itertools.pairwise(ends)),
            ]
        ),
    }
    thin = results.thinned(rows, 20)
    assert thin["step"].tolist() == [0, 20, 40, 43]
    np.testing.assert_array_equal(thin["loss"], rows["loss"][[0, 4, 7, 8]])
    signal = thin[f"{SIGNAL}kept"]
    assert np.isnan(signal[0]).all()
    for row, (first, end) in enumerate([(0, 20), (20, 40), (40, 43)], start=1):
        np.testing.assert_allclose(signal[row], each[first:end].mean(axis=0))
    assert results.thinned(thin, 20) is thin
    every_row = rows | {"step": 20 * np.arange(9)}
    assert results.thinned(every_row, 20) is every_row


@pytest.fixture(scope="module")
def gaps():
    """A run in which methods lack seeds, a seed diverges and the last accuracy is not measured."""
    curves = experiment(
        seeds=[4, 9, 2, 7, 5], steps=np.array([0, 90, 200, 310, 500, 640, 900, 1000]), rough=0.1
    ).curves
    curves["computed"].loc[{"learner": "imt", "seed": [9, 5]}] = 0
    curves["computed"].loc[{"learner": "sgd", "seed": [4]}] = 0
    curves["diverged_at"].loc[{"learner": "ital", "seed": [2, 7]}] = [640, 310]
    curves["diverged_at"].loc[{"learner": "imt", "seed": 5}] = 90  # of a lane that was not run
    dead = (curves["diverged_at"] >= 0) & (curves["step"] >= curves["diverged_at"])
    return curves.map(
        lambda own: own.where(~dead & (curves["computed"] == 1)) if "step" in own.dims else own
    )


def plain(curves):
    """The values of the lanes that were run, a row each."""
    frames = []
    for metric in ("distance", "loss", "accuracy"):
        own = curves[[metric, "computed"]].to_dataframe().reset_index()
        own = own[own["computed"] == 1].rename(columns={metric: "value", "learner": "method"})
        frames.append(own.assign(metric=metric))
    return pd.concat(frames)[["method", "metric", "seed", "step", "value"]]


def test_a_summary_is_that_of_the_table(gaps):
    table = plain(gaps)
    found = results.summarise(gaps).set_index(["method", "metric", "step"])
    assert set(found["task"]) == {"regression"}
    assert set(found["teacher"]) == {"cooperative"}
    nearest = {"distance": [0, 200, 500, 640, 1000], "accuracy": [0, 200, 500, 900]}
    expected = 0
    for (method, metric), own in table.groupby(["method", "metric"]):
        for step in nearest.get(metric, nearest["distance"]):
            values = own[own["step"] == step]["value"].to_numpy()
            row = found.loc[(method, metric, step)]
            error = values.std(ddof=1) / np.sqrt(len(values))
            if metric == "accuracy":
                error = np.sqrt(error**2 + np.mean(values * (1 - values)) / (QUESTIONS - 1))
            assert row["n"] == len(values) == {"imt": 3, "sgd": 4}.get(method, 5)
            assert row["mean"] == pytest.approx(values.mean(), nan_ok=True)
            assert row["sem"] == pytest.approx(error, nan_ok=True)
            expected += 1
    assert len(found) == expected


def test_a_long_table_has_every_value_that_was_measured(gaps):
    table = plain(gaps)
    table = table[(table["metric"] != "accuracy") | ~table["step"].isin([90, 310, 640, 1000])]
    key = ["method", "metric", "seed", "step"]
    found = results.long_form(gaps).set_index(key)
    assert found["value"].sort_index().equals(table.set_index(key)["value"].sort_index())
    assert (found[["task", "teacher"]] == ["regression", "cooperative"]).all(axis=None)


def test_divergence_is_the_first_of_the_seeds_that_were_run(gaps):
    assert results.divergence(gaps, "ital") == (310, 2)
    assert results.divergence(gaps, "imt") is None
    assert results.divergence_note(gaps, "imt") is None
    assert results.divergence_note(gaps, "ital", "less") == (
        "ITAL diverged: values are not finite from step 310 on (2 of 5 seeds). Try less."
    )


def test_a_metric_is_measured_where_a_lane_has_a_value_or_nobody_is_left(gaps):
    steps = gaps["step"].values
    assert steps[results.measured(gaps, "accuracy")].tolist() == [0, 200, 500, 900]
    assert results.measured(gaps, "distance").all()
    alone = gaps.sel(learner=["ital"], seed=[2, 7])
    assert steps[results.measured(alone, "accuracy")].tolist() == [0, 200, 500, 640, 900, 1000]
    # a lane that was not run does not count as alive
    with_gap = gaps.sel(learner=["ital", "imt"], seed=[2, 7]).copy(deep=True)
    with_gap["computed"].loc[{"learner": "imt"}] = 0
    assert steps[results.measured(with_gap, "accuracy")].tolist() == [0, 200, 500, 640, 900, 1000]
