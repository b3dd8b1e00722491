"""How rational the learner thinks the teacher is: ``beta="auto"``, from the sharpness of q."""

import jax
import jax.numpy as jnp

from ital.tools.types import Array, Bool, Float, Scalar

# What the rule aims at: the mean probability of the most probable example under q.
SHARPNESS = 0.8
# Mini-batches per seed that the rule looks at.
BATCHES = 64
# The largest |β| that the rule considers.
LARGEST = 1e8
# Halvings of the interval of log|β|: enough for the last bit of a float64.
HALVINGS = 60
# The largest awareness coefficient 2βη, in naive steps, for a linear model and for a network.
LINEAR = 100.0
NETWORK = 0.1


def sharpness(
    beta: Scalar,
    volumes: Float[Array, "n B"],
    same: Bool[Array, "n B B"],
) -> Float[Array, ""]:
    """Return the mean probability under q of the most probable example; copies count as one.

    Args:
        beta: the rationality β.
        volumes: teaching volumes of n mini-batches (n, B).
        same: which examples of a mini-batch are copies of one another (n, B, B).

    Returns:
        The mean over the mini-batches, a scalar.
    """
    q = jax.nn.softmax(beta * volumes, axis=-1)
    of_copies = jnp.where(same, q[:, None, :], 0.0)
    # (n, B): the probability of each example together with its copies.
    with_copies = jnp.sum(of_copies, axis=-1)
    largest = jnp.max(with_copies, axis=-1)
    return jnp.mean(largest)


def auto_beta(
    lr: Scalar,
    sign: Scalar,
    volumes: Float[Array, "n B"],
    same: Bool[Array, "n B B"],
    most: float = LINEAR,
) -> Float[Array, ""]:
    """Return β by the paper's rule, made exact.

    Bisect log|β| in [1, 10⁸] until q's sharpness is 0.8, then cap 2|β|η.

    Args:
        lr: the step size η.
        sign: the sign of β.
        volumes: the volumes that the learner imagines at its start on 64 mini-batches, after the
            teacher's real choices (n, B).
        same: which examples of a mini-batch are copies of one another (n, B, B).
        most: the cap of 2|β|η, the length of the awareness step in naive steps.

    Returns:
        β, a scalar.
    """

    def halve(_: Array | int, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) / 2
        beta = sign * jnp.exp(middle)
        # The sharpness grows with |β|.
        too_sharp = sharpness(beta, volumes, same) > SHARPNESS
        low = jnp.where(too_sharp, low, middle)
        high = jnp.where(too_sharp, middle, high)
        return low, high

    lowest = jnp.zeros((), volumes.dtype)
    highest = jnp.log(jnp.asarray(LARGEST, volumes.dtype))
    low, high = jax.lax.fori_loop(0, HALVINGS, halve, (lowest, highest))
    found = jnp.exp((low + high) / 2)
    cap = most / (2 * lr)
    return sign * jnp.minimum(found, cap)


__all__ = ["auto_beta", "sharpness"]
