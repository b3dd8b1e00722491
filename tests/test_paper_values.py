"""The two synthetic tasks at the paper's settings end where an independent run of the same rules ended (20 seeds)."""

import pytest

import ital
from ital import learners

# final distance / start distance, and how far a mean over 20 seeds may lie off
EXPECTED = {
    ("regression", "normal:0.1", "cooperative"): (0.15, {"batch": 0.58, "imt": 0.28, "ital": 0.014, "ital-2": 0.076}),
    ("gaussian", "normal:0.1", "cooperative"): (
        0.15,
        {"batch": 0.82, "imt": 0.81, "ital": 0.13, "ital-5": 0.22, "ital-2": 0.88},
    ),
    ("regression", "uniform", "cooperative"): (0.20, {"imt": 0.29, "ital": 0.022, "ital-2": 0.108}),
    ("gaussian", "uniform", "cooperative"): (0.20, {"imt": 0.83, "ital": 0.34, "ital-2": 0.40}),
    ("regression", "normal:0.1", "adversarial"): (0.02, {"imt": 1.0}),
}


def final_over_start(task, init, teacher):
    methods = [name for name in learners.PAPER if name != "sgd"]
    distance = ital.teach(task, teacher, methods, seeds=20, init=init, eval_every=2000).curves["distance"].mean("seed")
    return (distance.isel(step=-1) / distance.isel(step=0)).to_series().to_dict()


@pytest.mark.parametrize(("task", "init", "teacher"), EXPECTED)
def test_final_distances(task, init, teacher):
    tolerance, expected = EXPECTED[task, init, teacher]
    got = final_over_start(task, init, teacher)
    assert {name: got[name] for name in expected} == pytest.approx(expected, rel=tolerance)
    if teacher == "adversarial":
        assert got["ital"] < 0.1
