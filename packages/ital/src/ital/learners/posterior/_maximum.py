"""The minimum of a function by a few damped Gauss–Newton steps (Levenberg–Marquardt)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve

from ital.likelihoods import Quadratic
from ital.tools.types import Array, Float, Scalar

FIRST_DAMPING = 1e-3
LEAST_DAMPING = 1e-6
MOST_DAMPING = 1e6
ROUNDINGS = 8  # of a value, in units of the precision

Objective = Callable[[Array], tuple[Quadratic, Any]]


class Minimum(NamedTuple):
    """Where the search ended.

    Attributes:
        params: the parameters (D,).
        damping: the damping with which a later search should begin.
        here: the function at the parameters.
        extra: what the objective returned beside it.
    """

    params: Float[Array, " D"]
    damping: Scalar
    here: Quadratic
    extra: Any


def damped_step(here: Quadratic, damping: Scalar) -> Float[Array, " D"]:
    """Return the Gauss–Newton step −(H + λ·diag H)⁻¹g."""
    diagonal = jnp.diagonal(here.curvature)
    damped = here.curvature + jnp.diag(damping * diagonal)
    factor = jnp.linalg.cholesky(damped)
    is_lower = True
    return -cho_solve((factor, is_lower), here.gradient)


def search_minimum(
    objective: Objective,
    start: Float[Array, " D"],
    damping: Scalar,
    iterations: int,
) -> Minimum:
    """Search from a start that is nearly the minimum.

    A step that raises the value is not taken, and the next one is damped ten times as much.

    Args:
        objective: ``objective(ν)`` returns the function to second order, and anything else to
            return with it.
        start: where to start (D,).
        damping: λ of the first step.
        iterations: number of steps.

    Returns:
        The best parameters that were found.
    """

    def improve(_: Any, best: Minimum) -> Minimum:
        candidate = best.params + damped_step(best.here, best.damping)
        there, extra = objective(candidate)
        # At the minimum, rounding decides which value is lower. A step refused there would raise
        # the damping, step after step, until the search could not follow new lessons any more.
        value = best.here.value
        eps = jnp.finfo(candidate.dtype).eps
        rounding = ROUNDINGS * eps * jnp.abs(value)
        # False where the candidate is infinite or not a number, too.
        is_better = there.value <= value + rounding
        damping = jnp.where(is_better, best.damping / 10, best.damping * 10)

        def better_of(new: Array, old: Array) -> Array:
            return jnp.where(is_better, new, old)

        found = Minimum(candidate, damping, there, extra)
        kept = jax.tree.map(better_of, found, best)
        return kept._replace(damping=jnp.clip(damping, LEAST_DAMPING, MOST_DAMPING))

    here, extra = objective(start)
    first = Minimum(start, damping, here, extra)
    return jax.lax.fori_loop(0, iterations, improve, first)
