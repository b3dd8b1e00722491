"""Regression, gaussian and IRL at the paper's settings end where independent runs of the same rules ended."""

import pytest

import ital
from ital import learners

pytestmark = pytest.mark.usefixtures("fast")

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
# final distance of IRL: from, to
IRL = {
    ("irl-dense", "cooperative"): {"imt": (12.3, 12.8), "ital": (5.2, 6.5), "ital-2": (7.6, 8.8)},
    ("irl-dense", "adversarial"): {"imt": (0.85 * 12.9, 1.15 * 12.9), "ital": (0.85 * 3.1, 1.15 * 3.1)},
    ("irl-sparse", "cooperative"): {
        "imt": (0.85 * 8.75, 1.15 * 8.75),
        "ital": (0.85 * 0.92, 1.15 * 0.92),
        "ital-2": (0.85 * 2.74, 1.15 * 2.74),
    },
    ("irl-sparse", "adversarial"): {"imt": (0.85 * 9.3, 1.15 * 9.3), "ital": (0.85 * 1.1, 1.15 * 1.1)},
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


@pytest.mark.parametrize(
    ("task", "teacher"),
    [
        ("irl-dense", "cooperative"),
        ("irl-sparse", "adversarial"),
        pytest.param("irl-dense", "adversarial", marks=pytest.mark.slow),
        pytest.param("irl-sparse", "cooperative", marks=pytest.mark.slow),
    ],
)
def test_final_distances_of_irl(task, teacher):
    expected = IRL[task, teacher]
    curves = ital.teach(task, teacher, list(expected), seeds=10, eval_every=2000).curves.mean("seed")
    end = curves.isel(step=-1)
    for name, (low, high) in expected.items():
        assert low <= float(end["distance"].sel({"learner": name})) <= high, name
    if (task, teacher) == ("irl-sparse", "cooperative"):
        assert float(end["distance_centred"].sel({"learner": "ital"})) < 0.6
    if (task, teacher) == ("irl-dense", "cooperative"):
        assert float(curves["policy_tv"].isel(step=0, learner=0)) == pytest.approx(0.39, abs=0.02)
        assert float(end["policy_tv"].sel({"learner": "ital"})) < 0.2
        assert float(end["policy_tv"].sel({"learner": "imt"})) > 0.36


def test_aware_learners_gain_nothing_from_a_random_teacher_in_irl():
    distance = ital.teach("irl-dense", "random", ["imt", "ital"], seeds=10, eval_every=2000).curves["distance"]
    gain = 1 - distance.isel(step=-1) / distance.isel(step=0)
    assert abs(float(gain.sel({"learner": "ital"}).mean())) < 0.02
    assert float(gain.sel({"learner": "ital"}).std()) > float(gain.sel({"learner": "imt"}).std())
