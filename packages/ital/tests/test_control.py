"""Optimal control in the plane, against published step counts, brute force and closed forms."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize

from ital import control
from ital.errors import InputError


@pytest.fixture(scope="module")
def path():
    return control.extremal()


def velocities(w, radii=21, angles=1440):
    """(y − wᵀx)x over a grid of the unit disc, with y = ±1 and in between."""
    r, angle, y = np.meshgrid(
        np.linspace(0, 1, radii), np.linspace(0, 2 * np.pi, angles), [-1.0, 0.0, 1.0]
    )
    x = np.stack([r * np.cos(angle), r * np.sin(angle)], axis=-1)
    return ((y - x @ w)[..., None] * x).reshape(-1, 2)


@pytest.mark.parametrize(
    ("teach", "published"),
    [
        (control.greedy, (219, 220)),
        (control.straight, (172, 173)),
        (control.optimal, (148, 149, 150, 151)),
    ],
)
def test_published_step_counts(teach, published):
    course = teach()
    assert course.steps in published
    assert (
        np.linalg.norm(course.path[-1] - control.TARGET)
        <= 1e-3
        < np.linalg.norm(course.path[-2] - control.TARGET)
    )
    assert np.linalg.norm(course.x, axis=1).max() <= 1 + 1e-9
    assert np.abs(course.y).max() <= 1
    w = np.array(control.START)
    for x, y in zip(course.x, course.y, strict=True):
        w = w - 0.01 * (w @ x - y) * x
    np.testing.assert_allclose(w, course.path[-1], atol=1e-12)


def missed_by(angles):
    """The squared distance to the target after examples (cos θ, sin θ) with label 1, and its
    gradient.
    """
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    turned = np.stack([-x[:, 1], x[:, 0]], axis=1)
    before = []
    w = np.array(control.START)
    for example in x:
        before.append(w)
        w = w - 0.01 * (w @ example - 1) * example
    gap = w - control.TARGET
    gradient = np.zeros(len(angles))
    p = 2 * gap  # the derivative with respect to w after the step
    for i in reversed(range(len(angles))):
        along = (before[i] @ turned[i]) * (p @ x[i])
        gradient[i] = -0.01 * (along + (before[i] @ x[i] - 1) * (p @ turned[i]))
        p = p - 0.01 * (p @ x[i]) * x[i]
    return gap @ gap, gradient


def test_optimising_the_steps_themselves_saves_none():
    """The best 150 steps end four times the tolerance from the target."""
    course = control.optimal()
    planned = np.arctan2(course.x[:150, 1], course.x[:150, 0])
    found = [
        minimize(missed_by, first, jac=True, method="L-BFGS-B", options={"maxiter": 60}).fun
        for first in (planned, planned + 0.2)
    ]
    assert np.sqrt(min(found)) == pytest.approx(0.0040, abs=1e-4)


@pytest.mark.parametrize("lr", [0.0, 0.5])
def test_no_example_on_a_grid_is_better(lr):
    rng = np.random.default_rng(0)
    for w, p in rng.normal(0, 0.7, (20, 2, 2)):
        x, y = control.steepest(p, w, lr)
        v = (y - w @ x) * x
        others = velocities(w)
        on_grid = np.max(others @ p - lr / 2 * np.sum(others**2, axis=1))
        own = v @ p - lr / 2 * v @ v
        assert on_grid - 1e-12 <= own <= on_grid + 0.05 * np.linalg.norm(p)


def test_the_optimal_path_satisfies_pontryagins_conditions(path):
    def flow(t):
        w, p = path.at(t)
        x, y = control.steepest(p, w)
        return (y - w @ x) * x, (p @ x) * x, p

    times = np.linspace(0.01, path.time - 0.01, 9)
    hamiltonians = [p @ v for v, _, p in map(flow, times)]
    np.testing.assert_allclose(hamiltonians, hamiltonians[0], rtol=1e-8)
    for t in times:
        assert flow(t)[2] @ flow(t)[0] >= np.max(velocities(path.at(t)[0]) @ flow(t)[2]) - 1e-12
        (w, p), (later_w, later_p) = path.at(t - 1e-5), path.at(t + 1e-5)
        np.testing.assert_allclose((later_w - w) / 2e-5, flow(t)[0], atol=1e-5)
        np.testing.assert_allclose((later_p - p) / 2e-5, flow(t)[1], atol=1e-5)
    np.testing.assert_allclose(path.at(0)[0], control.START)
    np.testing.assert_allclose(path.at(path.time)[0], control.TARGET, atol=1e-6)


def test_towards_the_origin_the_time_has_a_closed_form():
    # From (1, 0) the fastest example is x = −w/‖w‖: ‖w‖ falls at the rate 1 + ‖w‖.
    assert control.extremal((1, 0), (0, 0)).time == pytest.approx(math.log(2), abs=1e-7)
    # With steps of η, 1 + ‖w‖ = 2(1 − η)ᵗ, and the course ends at ‖w‖ ≤ 0.001.
    expected = math.ceil(math.log(2 / 1.001) / -math.log1p(-1e-3))
    assert control.straight((1, 0), (0, 0), lr=1e-3).steps == expected


def test_planning_is_never_slower():
    teachers = (control.optimal, control.straight, control.greedy)
    steps = [teach((-0.54, 0.32), (0.6, 0.66)).steps for teach in teachers]
    assert all(few < many for few, many in itertools.pairwise(steps))


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="start must be two finite numbers"):
        control.greedy([0, 0, 1])
    with pytest.raises(InputError, match="lr must be a positive number"):
        control.straight(lr=0)
    with pytest.raises(InputError, match="no path is needed"):
        control.extremal((0, 1), (0, 1))
    with pytest.raises(InputError, match="found no optimal path"):
        control.extremal((0.8, 0), (0.2, 0))
    assert control.optimal((0, 1), (0, 1)).steps == 0
