"""Regression, gaussian and IRL at the paper's settings end where independent runs of the same rules
ended.
"""

import pytest

import ital
from ital import learners

pytestmark = pytest.mark.usefixtures("fast")

# Final distance / initial distance of an independent run, and the tolerance for a mean over 20
# seeds: twice its standard error plus the rounding of the numbers here. Uniform starts were run
# with 10 seeds.
EXPECTED = {
    ("regression", "normal:0.1", "cooperative"): {
        "batch": (0.58, 0.016),
        "imt": (0.28, 0.017),
        "ital": (0.014, 0.002),
        "ital-2": (0.076, 0.006),
    },
    ("gaussian", "normal:0.1", "cooperative"): {
        "batch": (0.82, 0.010),
        "imt": (0.81, 0.010),
        "ital": (0.13, 0.009),
        "ital-5": (0.22, 0.023),
        "ital-2": (0.88, 0.013),
    },
    ("regression", "uniform", "cooperative"): {
        "batch": (0.58, 0.016),
        "imt": (0.29, 0.019),
        "ital": (0.022, 0.0033),
        "ital-2": (0.108, 0.011),
    },
    ("gaussian", "uniform", "cooperative"): {
        "batch": (0.89, 0.008),
        "imt": (0.83, 0.009),
        "ital": (0.34, 0.021),
        "ital-2": (0.40, 0.025),
    },
    ("regression", "uniform", "adversarial"): {"imt": (0.997, 0.001), "ital": (0.048, 0.006)},
    ("gaussian", "uniform", "adversarial"): {"imt": (0.98, 0.007), "ital": (0.43, 0.019)},
}
# final distance of IRL, and the tolerance for a mean over 10 seeds
IRL = {
    ("irl-dense", "cooperative"): {"imt": (12.5, 0.2), "ital": (5.8, 0.4), "ital-2": (8.1, 0.4)},
    ("irl-dense", "adversarial"): {"imt": (12.9, 0.5), "ital": (3.1, 0.3)},
    ("irl-sparse", "cooperative"): {
        "imt": (8.75, 0.36),
        "ital": (0.92, 0.12),
        "ital-2": (2.74, 0.33),
    },
    ("irl-sparse", "adversarial"): {"imt": (9.3, 0.36), "ital": (1.1, 0.15)},
}


def final_over_start(task, init, teacher):
    methods = [name for name in learners.PAPER if name != "sgd"]
    distance = (
        ital.teach(task, teacher, methods, seeds=20, init=init, eval_every=2000)
        .curves["distance"]
        .mean("seed")
    )
    return (distance.isel(step=-1) / distance.isel(step=0)).to_series().to_dict()


@pytest.mark.parametrize(("task", "init", "teacher"), EXPECTED)
def test_final_distances(task, init, teacher):
    got = final_over_start(task, init, teacher)
    for name, (value, off) in EXPECTED[task, init, teacher].items():
        assert got[name] == pytest.approx(value, abs=off), name


@pytest.mark.parametrize(
    ("task", "teacher"),
    [
        ("irl-dense", "cooperative"),
        # The loop is walked with an adversary on a small map in test_teaching.py.
        pytest.param("irl-sparse", "adversarial", marks=pytest.mark.slow),
        pytest.param("irl-dense", "adversarial", marks=pytest.mark.slow),
        pytest.param("irl-sparse", "cooperative", marks=pytest.mark.slow),
    ],
)
def test_final_distances_of_irl(task, teacher):
    expected = IRL[task, teacher]
    curves = ital.teach(task, teacher, list(expected), seeds=10, eval_every=2000).curves.mean(
        "seed"
    )
    end = curves.isel(step=-1)
    for name, (value, off) in expected.items():
        assert float(end["distance"].sel({"learner": name})) == pytest.approx(value, abs=off), name
    if (task, teacher) == ("irl-sparse", "cooperative"):
        assert float(end["distance_centred"].sel({"learner": "ital"})) < 0.25
    if (task, teacher) == ("irl-dense", "cooperative"):
        assert float(curves["policy_tv"].isel(step=0, learner=0)) == pytest.approx(0.39, abs=0.015)
        assert float(end["policy_tv"].sel({"learner": "ital"})) < 0.15
        assert float(end["policy_tv"].sel({"learner": "imt"})) > 0.365


def test_aware_learners_gain_nothing_from_a_random_teacher_in_irl():
    distance = ital.teach("irl-dense", "random", ["imt", "ital"], seeds=10, eval_every=2000).curves[
        "distance"
    ]
    gain = 1 - distance.isel(step=-1) / distance.isel(step=0)
    assert abs(float(gain.sel({"learner": "ital"}).mean())) < 0.02
    assert float(gain.sel({"learner": "ital"}).std()) > float(gain.sel({"learner": "imt"}).std())
