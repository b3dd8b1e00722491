"""What a task knows about the probability of its labels: losses of stored examples at any
parameters.

A learner that keeps a belief over its target reads labels as evidence: −log p(y | x, ν*) is the
loss of an example. It must be able to ask for this loss again, long after the step in which it saw
the example, and at parameters that nobody showed. A :class:`Likelihood` is the task's answer: what
to keep of an example, and everything about kept examples at some parameters.

Parameters are pytrees, but gradients and curvatures are flat: D numbers in the order of
:func:`jax.flatten_util.ravel_pytree`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from ital.tools.types import Array, Float, Params, Scalar


class Quadratic(NamedTuple):
    """A function of the parameters to second order: its value, gradient and curvature at one point.

    Attributes:
        value: the value, a scalar.
        gradient: the gradient (D,).
        curvature: the second derivatives (D, D), or a positive approximation of them.
    """

    value: Scalar
    gradient: Float[Array, " D"]
    curvature: Float[Array, "D D"]


class Evaluation(NamedTuple):
    """A likelihood at some parameters ν. What is not asked for is not computed.

    Attributes:
        losses: ``losses(kept)`` returns the losses of N kept examples (N,), as teaching volumes
            contain them: −log p(y | x, ν) up to a constant, unless the likelihood is ``gaussian``.
        gradients: ``gradients(kept)`` returns their gradients with respect to ν (N, D).
        curvature: ``curvature(kept, weights)`` returns Σ wᵢHᵢ (D, D), with a positive approximation
            Hᵢ of the second derivatives of a loss (Gauss–Newton).
        counted: ``counted(statistics, wrong)`` returns the sum of the losses of all counted
            examples as a :class:`Quadratic`, with the share ``wrong`` of wrong labels; None without
            sufficient statistics.
        wrong: ``wrong(kept)`` returns −log p of each label if it is wrong (N,); None if wrong
            labels have no description.
    """

    losses: Callable[[Any], Array]
    gradients: Callable[[Any], Array]
    curvature: Callable[[Any, Array], Array]
    counted: Callable[[Any, Scalar], Quadratic] | None = None
    wrong: Callable[[Any], Array] | None = None


class Statistics(NamedTuple):
    """Sufficient statistics of labels: numbers that say as much about the target as the labels
    themselves.

    Attributes:
        empty: ``empty(params, kept)`` returns the statistics of no labels; ``kept`` is a
            mini-batch, of which only the shapes matter.
        add: ``add(statistics, kept, weights)`` counts N kept examples, with weights (N,).
        numbers: ``numbers(statistics)`` is how many numbers the counted labels hold.
    """

    empty: Callable[[Params, Any], Any]
    add: Callable[[Any, Any, Array], Any]
    numbers: Callable[[Any], Scalar]


class Likelihood(NamedTuple):
    """How probable the labels of a task are.

    Attributes:
        keep: ``keep(examples)`` returns what is needed of a mini-batch later, a pytree with a
            leading axis of examples.
        at: ``at(params, examples)`` evaluates kept examples at any parameters. ``examples`` is the
            present mini-batch, for what all examples have in common.
        statistics: sufficient statistics, if there are any. Without them a learner keeps a window
            of examples.
        gaussian: whether the loss is ½‖α − y‖², so that −log p is loss/σ² with a variance σ² of the
            label noise.
        mixes: whether a share of wrong labels can be allowed for.
    """

    keep: Callable[[Any], Any]
    at: Callable[[Params, Any], Evaluation]
    statistics: Statistics | None = None
    gaussian: bool = False
    mixes: bool = False


def differentiable(
    example_loss: Callable[[Params, Any], Array],
    keep: Callable[[Any], Any] = lambda examples: examples,
    *,
    gaussian: bool = False,
) -> Likelihood:
    """Make a likelihood from the loss of one example, with gradients by autodiff.

    The curvature is the matrix of second derivatives without its negative part, so this is for
    tasks with few parameters.

    Args:
        example_loss: ``example_loss(params, example)`` returns the loss of one kept example, a
            scalar: the loss that the teacher's volumes contain, and −log p of the label.
        keep: ``keep(examples)`` returns what the loss needs of a mini-batch.
        gaussian: whether the loss is ½‖α − y‖², so that −log p is loss/σ².

    Returns:
        The likelihood.

    Example:
        >>> def half_square(params, row):
        ...     return 0.5 * (row["x"] @ params - row["y"]) ** 2
        >>> ital.likelihoods.differentiable(half_square)
    """
    # The parameters are shared by N kept examples.
    losses_at = jax.vmap(example_loss, in_axes=(None, 0))
    gradients_at = jax.vmap(jax.grad(example_loss), in_axes=(None, 0))

    def at(params: Params, examples: Any) -> Evaluation:
        def losses(kept: Any) -> Array:
            return losses_at(params, kept)

        def gradients(kept: Any) -> Array:
            per_example = gradients_at(params, kept)
            return jax.vmap(_flat)(per_example)

        def curvature(kept: Any, weights: Array) -> Array:
            flat, unravel = ravel_pytree(params)

            def total(flat: Array) -> Array:
                each = losses_at(unravel(flat), kept)
                return jnp.sum(weights * each)

            second = jax.hessian(total)(flat)  # (D, D)
            eigenvalues, directions = jnp.linalg.eigh(second)
            # Directions in which the loss bends down get no curvature.
            positive = directions * jnp.maximum(eigenvalues, 0.0)
            return jnp.matmul(positive, directions.T, precision="highest")

        return Evaluation(losses, gradients, curvature)

    return Likelihood(keep, at, gaussian=gaussian)


def _flat(tree: Params) -> Float[Array, " D"]:
    """Return all numbers of a pytree in one row."""
    flat, _ = ravel_pytree(tree)
    return flat


__all__ = ["Evaluation", "Likelihood", "Quadratic", "Statistics", "differentiable"]
