"""Kernel models against functional gradients in closed form and the linear model; the picture."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ital
from ital import figures, losses, models, tasks, teachers
from ital.tasks._kernel import face

RUN = {"batch_size": 5, "seeds": 2, "steps": 30, "eval_every": 10}


@pytest.mark.usefixtures("x64")
def test_the_three_operations_are_those_of_the_function_space():
    """⟨gᵢ, gⱼ⟩ = rᵢrⱼk(xᵢ, xⱼ), and a step is f ← f − η Σᵢ wᵢrᵢk(xᵢ, ·)."""
    rng = np.random.default_rng(0)
    x, y, w = (
        rng.normal(size=(8, 2)),
        jnp.asarray(rng.normal(size=(8, 1))),
        jnp.asarray(rng.normal(size=8)),
    )
    k = models.gaussian_kernel(0.7)
    gram = np.exp(-np.sum((x[:, None] - x) ** 2, axis=-1) / (2 * 0.7**2))
    np.testing.assert_allclose(k(x, x), gram, rtol=1e-12)
    model = models.kernel(losses.squared, k, x)
    rows = jax.tree.map(jnp.asarray, model.rows(x))
    params = jnp.asarray(rng.normal(size=(1, 8)))
    there = model.gradients(params, rows, y)
    residuals = np.asarray(model.outputs(params, rows) - y)[:, 0]
    np.testing.assert_allclose(there.squared_norms, residuals**2, rtol=1e-10)  # k(x, x) = 1
    direction = there.weighted_sum(w)
    np.testing.assert_allclose(
        there.inner(direction), residuals * (gram @ (np.asarray(w) * residuals)), rtol=1e-10
    )
    moved = model.outputs(params - 0.3 * direction, rows) - model.outputs(params, rows)
    np.testing.assert_allclose(moved[:, 0], -0.3 * gram @ (np.asarray(w) * residuals), rtol=1e-10)
    elsewhere = rng.normal(size=(3, 2))  # f = Σᵢ aᵢk(xᵢ, ·) also between the centres
    values = jnp.asarray(model.rows(elsewhere).x) @ params[0]
    coefficients = np.linalg.solve(gram, np.asarray(model.outputs(params, rows))[:, 0])
    np.testing.assert_allclose(values, k(elsewhere, x) @ coefficients, rtol=1e-8)


@pytest.mark.usefixtures("x64")
def test_a_linear_kernel_gives_the_curves_of_the_linear_learner():
    rng = np.random.default_rng(1)
    x, target = rng.normal(size=(30, 3)), rng.normal(size=(1, 4))
    y = x @ target[:, :-1].T + target[:, -1]
    model = models.kernel(losses.squared, models.linear_kernel, x)
    in_features = np.linalg.lstsq(model.rows(x).x, y, rcond=None)[0].T
    linear = tasks.from_pool(
        "linear", tasks.Pool(x, x, y, target, target, x, y), losses.squared, beta=3.0
    )
    pool = tasks.Pool(x, x, y, in_features, in_features, x, y)
    kernel = tasks.from_pool(
        "kernel", pool, losses.squared, beta=3.0, model=model, teacher_model=model
    )
    both = {"init": "uniform:0", "lr": 0.05, **RUN}
    first, second = (
        ital.teach(task, learner=["imt", "ital"], **both).curves for task in (linear, kernel)
    )
    for metric in ("distance", "loss"):
        np.testing.assert_allclose(first[metric], second[metric], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("unit", [0.01, 1.0, 1000.0])
def test_rounding_errors_are_no_features_in_any_unit(unit):
    x = unit * np.random.default_rng(2).normal(size=(12, 3))
    model = models.kernel(losses.squared, models.linear_kernel, x)
    features = model.rows(x).x
    assert features.shape == (12, 4)  # three columns and the constant
    np.testing.assert_allclose(features @ features.T, x @ x.T + 1, rtol=1e-7, atol=1e-7 * unit**2)


def test_the_target_is_the_picture_and_pictures_show_functions():
    task = tasks.kernel(size=6)
    values, policy = task.picture.grid(task.world(0).truth.target)
    np.testing.assert_allclose(values, face(6), atol=1e-6)
    assert policy is None
    assert face(24).min() >= 0
    assert face(24).max() <= 1
    watched = ital.watch(task, "largest-error", "imt", steps=4, frames=2, lr=0.5)
    figure = figures.plot_pictures(watched)
    shown = [axis.images[0] for axis in figure.axes if axis.images]
    np.testing.assert_allclose(shown[0].get_array(), np.zeros((6, 6)))  # f⁰ = 0
    np.testing.assert_allclose(shown[3].get_array(), values, atol=1e-6)
    assert {image.get_clim() for image in shown} == {(0, 1)}


def test_the_largest_error_teaches_a_picture_sooner_than_a_random_pixel():
    """Steps to 15 dB on a small picture, on every seed; PSNR is −10 log₁₀ of the squared error."""
    steps = []
    for teacher in ("random", "largest-error"):
        run = {**RUN, "steps": 200, "eval_every": 1}
        curves = ital.teach(tasks.kernel(size=6), teacher, "imt", lr=0.5, **run).curves
        np.testing.assert_allclose(curves["psnr"], -10 * np.log10(2 * curves["loss"]), rtol=1e-5)
        np.testing.assert_allclose(
            curves["psnr"][0, :, 0], -10 * np.log10(np.mean(face(6) ** 2)), rtol=1e-5
        )
        steps.append((curves["psnr"][0] > 15).values.argmax(axis=1))
    assert (steps[1] > 0).all()
    assert (steps[1] < steps[0]).all()


def test_with_equal_norms_the_cooperative_teacher_shows_the_largest_error():
    """TV̂ = (η − η²k(x,x))r² grows with |r| if k(x, x) is constant and ηk < 1."""
    final = [
        ital.teach(tasks.kernel(size=6), teacher, "imt", lr=0.5, choices=3, **RUN).parameters["imt"]
        for teacher in ("cooperative", "largest-error")
    ]
    np.testing.assert_allclose(*final, atol=1e-6)


def test_the_largest_error_is_that_to_the_teachers_target():
    outputs = jnp.asarray([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])
    model = models.linear(losses.squared)
    x = jax.tree.map(jnp.asarray, models.linear_rows(np.zeros((3, 1))))
    target = jnp.asarray([[0.0, 1.0], [0.0, 1.0]])  # f* = (1, 1): errors 1, 2 and 8
    examples = type("Examples", (), {"x": x})
    view = teachers.TeacherView(
        None, outputs, examples, target, 0.1, jnp.asarray(0), jnp.asarray(9), model=model
    )
    teacher = teachers.largest_error()
    assert int(teacher.choose(None, view, ())) == 2
    assert teacher.several(2)(None, view, ()).tolist() == [2, 1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tasks.kernel(size=1), "at least 2 pixels"),
        (lambda: tasks.kernel(width=0.0), "width of a Gaussian kernel must be positive"),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(ital.errors.InputError, match=message):
        make()
