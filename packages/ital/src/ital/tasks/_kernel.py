"""Nonparametric teaching: a learner with a kernel fits a grey picture, pixel by pixel."""

import functools

import jax.numpy as jnp
import numpy as np
from threadpoolctl import threadpool_limits

from ital import losses, models
from ital.errors import InputError
from ital.models import Model
from ital.tasks._base import Metric, Picture, Rules, Task, Truth
from ital.tasks._pool import Pool, from_pool
from ital.tools.checks import require_whole
from ital.tools.types import Array, Params

BRIGHTEST = 100.0  # decibels: a better fit is rounding


def face(size: int) -> np.ndarray:
    """Return a grey picture of ``size`` × ``size`` pixels from 0 (black) to 1: a face.

    It is made of discs with soft edges.
    """
    centres = np.indices((size, size)) + 0.5
    row, column = centres * 2 / size - 1  # from −1 to 1
    from_centre = np.hypot(row, column)

    def inside(distance: np.ndarray) -> np.ndarray:
        """Return 1 within an edge (distances below 0), 0 outside; the edge is a pixel wide."""
        in_pixels = np.clip(distance * size, -50, 50)
        return 1 / (1 + np.exp(in_pixels))

    head = inside(from_centre - 0.85)
    # Both eyes are one disc, because the columns count from the middle in both directions.
    from_eye = np.hypot(row + 0.25, np.abs(column) - 0.33)
    eyes = inside(from_eye - 0.13)
    # The mouth is the lower part of a ring.
    from_ring = np.abs(from_centre - 0.5)
    mouth = inside(from_ring - 0.08) * inside(0.15 - row)
    background = 0.1 + 0.1 * (row + 1) / 2
    features = np.maximum(eyes, mouth)
    skin = 0.7 - 0.15 * column - 0.6 * features
    return background + head * skin


@functools.cache  # one model per setting, so that equal tasks share one compiled program
def model_on(size: int, width: float) -> tuple[np.ndarray, Model]:
    """Return the positions of all pixels (N, 2), and the model whose centres they are."""
    rows_and_columns = np.indices((size, size)).reshape(2, -1)
    pixels = rows_and_columns.T.astype(float)
    kernel_of_width = models.gaussian_kernel(width)
    return pixels, models.kernel(losses.squared, kernel_of_width, pixels)


@functools.cache
def with_psnr(rules: Rules) -> Rules:
    """Also measure the peak signal-to-noise ratio in decibels.

    It is −10 log₁₀ of the mean squared error, which is twice the loss.
    """

    def measure(params: Params, truth: Truth) -> dict[str, Array]:
        metrics = rules.measure(params, truth)
        least = 10 ** (-BRIGHTEST / 10)
        squared_error = jnp.maximum(2 * metrics["loss"], least)
        return {"psnr": -10 * jnp.log10(squared_error), **metrics}

    return rules._replace(measure=measure)


def _pixels_with_brightness(pixels: np.ndarray, features: np.ndarray, grey: np.ndarray) -> Pool:
    """Return all pixels (N, 2) with the brightness that the target gives them."""
    squared_lengths = np.sum(features**2, axis=0)
    weights = grey.ravel() @ features / squared_lengths
    target = weights[None]
    # The picture; for a wide kernel, the nearest one that its functions can show.
    brightness = features @ target.T
    return Pool(
        learner_x=pixels,
        teacher_x=pixels,
        labels=brightness,
        teacher_target=target,
        learner_target=target,
        test_x=pixels,
        test_labels=brightness,
    )


def kernel(size: int = 24, *, width: float = 1.0, label_noise: float | str = 0.0) -> Task:
    """A grey picture of 24 × 24 pixels for a learner with a Gaussian kernel
    (nonparametric teaching); try --lr 0.2.

    The target f* has the picture's values on all pixels.
    ``distance`` is ‖f − f*‖ in the space of the kernel.

    Args:
        size: number of pixels along a side.
        width: σ of the kernel, in pixels.
        label_noise: probability that a label of the pool is replaced.

    Returns:
        The task.

    Raises:
        InputError: if a number is too small.
    """
    require_whole(size=size)
    if size < 2:
        raise InputError(f"a picture needs at least 2 pixels along a side, not {size}")
    # Threads cost more than they save on matrices this small.
    with threadpool_limits(limits=1):
        pixels, model = model_on(size, float(width))
        features = model.rows(pixels).x  # φ of the pixels; its columns are orthogonal
        task = from_pool(
            "kernel",
            _pixels_with_brightness(pixels, features, face(size)),
            losses.squared,
            model=model,
            teacher_model=model,
            beta=2.5,  # at η = 0.2 both steps have equal weight: 2βη = 1
            title=f"A picture of {size} × {size} pixels",
            label_noise=label_noise,
            settings={"size": size, "width": width},
        )

    def grid(params: Params) -> tuple[np.ndarray, None]:
        weights = np.asarray(params)[0]
        values = features @ weights
        return values.reshape(size, size), None

    caption = "The learner's function on all pixels."
    return task._replace(
        rules=with_psnr(task.rules),
        metrics={"psnr": Metric("PSNR (dB)", higher_is_better=True), **task.metrics},
        panels=("psnr", "distance"),
        picture=Picture(grid, "brightness", caption, limit=1.0, grey=True),
    )
