"""Everything a learner believes, as a function of its target ν*: prior, labels and choices.

    −log p(ν* | everything) = ‖ν* − m‖²/2s²
        + Σ labels −log p(y | x, ν*) + Σ choices −log q_t(c | ν*)

with q_t(c | ν*) = ε/B + (1 − ε)·softmax(b·TV(ν_t; ν*))_c. Each part is a function of ν* to second
order, a :class:`ital.likelihoods.Quadratic`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ital.gradients import HIGHEST
from ital.learners.posterior._types import StepWindow
from ital.likelihoods import Evaluation, Quadratic
from ital.tools.types import Array, Float, Scalar

LEAST_VALUE = 1e-6  # below it, −log q of a choice is rounding


def total(parts: Sequence[Quadratic]) -> Quadratic:
    """Return the sum of several functions around the same point."""

    def add(first: Array, *others: Array) -> Array:
        return sum(others, first)

    return jax.tree.map(add, *parts)


def scaled(factor: Scalar, part: Quadratic) -> Quadratic:
    """Return a multiple of a function."""
    return jax.tree.map(lambda term: factor * term, part)


def moved(part: Quadratic, way: Float[Array, " D"]) -> Quadratic:
    """Return the same function around a point that is ``way`` from the former one."""
    bend = jnp.matmul(part.curvature, way, precision=HIGHEST)  # the change of the gradient
    linear = jnp.sum(part.gradient * way)
    quadratic = 0.5 * jnp.sum(bend * way)
    return Quadratic(
        value=part.value + linear + quadratic,
        gradient=part.gradient + bend,
        curvature=part.curvature,
    )


def bounded(part: Quadratic) -> Quadratic:
    """Return a function that promises no more than its value, for one that is never negative.

    −log q of a choice that looks wrong here is a steep straight line: extrapolated as it is, it
    promises any gain to parameters further on. The curvature along the gradient is raised until
    the line bends before it falls below zero.
    """
    gradient = part.gradient
    steepness = jnp.sum(gradient**2)
    slope = jnp.matmul(part.curvature, gradient, precision=HIGHEST)
    # Without a gradient there is no line to bend, and nothing to divide by.
    divisor = jnp.where(steepness > 0, steepness**2, 1.0)
    along_gradient = jnp.sum(slope * gradient) / divisor
    value = jnp.maximum(part.value, LEAST_VALUE)
    least = 1 / (2 * value)
    missing = jnp.maximum(least - along_gradient, 0.0)
    missing = jnp.where(steepness > 0, missing, 0.0)
    outer = gradient[:, None] * gradient
    return part._replace(curvature=part.curvature + missing * outer)


def prior(params: Float[Array, " D"], mean: Float[Array, " D"], scale: Scalar) -> Quadratic:
    """Return ‖ν − m‖²/2s²."""
    precision = 1 / scale**2
    away = params - mean
    curvature = precision * jnp.eye(len(params), dtype=params.dtype)
    return Quadratic(
        value=0.5 * precision * jnp.sum(away**2),
        gradient=precision * away,
        curvature=curvature,
    )


def as_rows(tree: Any) -> Any:
    """Return arrays (W, B, …) as arrays (W·B, …)."""

    def rows_of(leaf: Array) -> Array:
        _, _, *of_row = leaf.shape
        return leaf.reshape(-1, *of_row)

    return jax.tree.map(rows_of, tree)


def windowed_labels(at: Evaluation, window: StepWindow, wrong: Scalar | None) -> Quadratic:
    """Return −log p of the labels in the window that count.

    With a share p of wrong labels, the probability of a label is (1 − p)·exp(−l) + p·exp(−w). The
    gradient is that of l times the probability that the label is right, and so is the curvature,
    whose negative part is left out.

    Args:
        at: the likelihood at ν.
        window: the latest steps.
        wrong: the share p; None if all labels are right.

    Returns:
        The sum over all labels that count.
    """
    kept = as_rows(window.kept)
    weights = window.label_weights.ravel()
    losses = at.losses(kept)
    value = jnp.sum(weights * losses)
    if wrong is not None:
        assert at.wrong is not None
        log_right = jnp.log1p(-wrong) - losses
        log_wrong = jnp.log(wrong) - at.wrong(kept)
        log_mixture = jnp.logaddexp(log_right, log_wrong)
        value = -jnp.sum(weights * log_mixture)
        is_right = jnp.exp(log_right - log_mixture)  # the probability of each
        weights = weights * is_right
    gradient = jnp.matmul(weights, at.gradients(kept), precision=HIGHEST)
    curvature = at.curvature(kept, weights)
    return Quadratic(value, gradient, curvature)


class Readings(NamedTuple):
    """How choices look under a target.

    Attributes:
        values: −log q of each choice (W, k).
        by_reason: the probability that the choice was not made by chance (W, k).
        expected: softmax of b·TV over the examples that were left to choose (W, k, B).
    """

    values: Float[Array, "W k"]
    by_reason: Float[Array, "W k"]
    expected: Float[Array, "W k B"]


def read_choices(
    volumes: Float[Array, "W B"],
    window: StepWindow,
    sharpness: Float[Array, " W"],
    lapse: Scalar,
) -> Readings:
    """Return how probable every choice was, one after the other among those left (Plackett–Luce).

    Args:
        volumes: the volumes that a teacher with this target would have seen.
        window: the latest steps.
        sharpness: b in each step.
        lapse: ε.

    Returns:
        The readings.
    """
    batch_size = volumes.shape[1]
    choices = window.chosen.shape[1]
    chosen = window.chosen[:, :, None]  # (W, k, 1)
    is_choice = chosen == jnp.arange(batch_size)
    # Whether example i of a step was chosen before its j-th choice, (W, k, B).
    taken = jnp.cumsum(is_choice, axis=1) > is_choice
    scores = sharpness[:, None] * volumes
    scores_left = jnp.where(taken, -jnp.inf, scores[:, None, :])
    log_expected = jax.nn.log_softmax(scores_left, axis=2)
    of_choice = jnp.take_along_axis(log_expected, chosen, axis=2)[:, :, 0]
    left = batch_size - jnp.arange(choices)
    log_by_reason = jnp.log1p(-lapse) + of_choice
    log_by_chance = jnp.log(lapse / left)
    log_q = jnp.logaddexp(log_by_reason, log_by_chance)
    # Empty slots of the window hold no choice.
    present = window.present[:, None]
    return Readings(
        values=-present * log_q,
        by_reason=present * jnp.exp(log_by_reason - log_q),
        expected=jnp.exp(log_expected),
    )


def windowed_choices(
    progress: Float[Array, "W B"],
    gradients: Float[Array, "W B D"],
    window: StepWindow,
    sharpness: Float[Array, " W"],
    lapse: Scalar,
    lr: Scalar,
) -> Quadratic:
    """Return −log q of the choices in the window.

    TVᵢ = knownᵢ − 2ηlᵢ(ν*); for exact volumes, ⟨ν*, gᵢ⟩ stands in place of the loss.

    Args:
        progress: lᵢ(ν*), or ⟨ν*, gᵢ⟩ for exact volumes.
        gradients: the gradients of ``progress`` with respect to ν*.
        window: the latest steps.
        sharpness: b in each step.
        lapse: ε.
        lr: the step size η that the teacher assumes.

    Returns:
        The sum over all choices in the window.
    """
    volumes = window.known - 2 * lr * progress
    readings = read_choices(volumes, window, sharpness, lapse)
    by_reason = readings.by_reason[:, :, None]  # (W, k, 1)
    expected = readings.expected
    is_choice = window.chosen[:, :, None] == jnp.arange(progress.shape[1])
    slope = 2 * lr * sharpness[:, None, None]
    surprise = by_reason * (is_choice - expected)
    per_example = jnp.sum(slope * surprise, axis=1).ravel()  # (W·B,)
    size = gradients.shape[-1]
    flat_gradients = gradients.reshape(-1, size)
    gradient = jnp.matmul(per_example, flat_gradients, precision=HIGHEST)
    # Σ qᵢ(gᵢ − ḡ)(gᵢ − ḡ)′, each row relative to the mean: where q is sharp, Σ qᵢgᵢgᵢ′ − ḡḡ′ would
    # be a small difference of large numbers.
    mean = jnp.einsum("wki,wid->wkd", expected, gradients, precision=HIGHEST)
    weights = jnp.abs(slope) * jnp.sqrt(by_reason * expected)
    centred = gradients[:, None] - mean[:, :, None]  # (W, k, B, D)
    rows = weights[..., None] * centred
    rows = rows.reshape(-1, size)  # (W·k·B, D)
    curvature = jnp.matmul(rows.T, rows, precision=HIGHEST)
    return Quadratic(jnp.sum(readings.values), gradient, curvature)
