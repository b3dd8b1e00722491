"""How rational the learner thinks the teacher is: ``beta="auto"``, and the sharpness of q that it is based on."""

import jax
import jax.numpy as jnp

from ital.tools.types import Array, Bool, Float, Scalar

SHARPNESS = 0.8
BATCHES = 64
LARGEST = 1e8
LINEAR, NETWORK = 100.0, 0.1  # the largest awareness coefficient 2βη, in naive steps


def sharpness(
    beta: Scalar, volumes: Float[Array, "n B"], same: Bool[Array, "n B B"]
) -> Float[Array, ""]:
    """The mean probability under q of the most probable example, counting copies of an example as one.

    Args:
        beta: the rationality β.
        volumes: teaching volumes of n mini-batches (n, B).
        same: which examples of a mini-batch are copies of one another (n, B, B).

    Returns:
        The mean over the mini-batches, a scalar.
    """
    q = jax.nn.softmax(beta * volumes, axis=-1)
    return jnp.mean(jnp.max(jnp.sum(jnp.where(same, q[:, None, :], 0.0), axis=-1), axis=-1))


def auto_beta(
    lr: Scalar,
    sign: Scalar,
    volumes: Float[Array, "n B"],
    same: Bool[Array, "n B B"],
    most: float = LINEAR,
) -> Float[Array, ""]:
    """β by the paper's rule, made exact: bisect log|β| in [1, 10⁸] until q's sharpness is 0.8, then cap 2|β|η.

    Args:
        lr: the step size η.
        sign: the sign of β.
        volumes: the volumes that the learner imagines at its start on 64 mini-batches, after the teacher's real choices
            (n, B).
        same: which examples of a mini-batch are copies of one another (n, B, B).
        most: the cap of 2|β|η, the length of the awareness step in naive steps.

    Returns:
        β, a scalar.
    """

    def halve(_: Array | int, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) / 2
        too_sharp = sharpness(sign * jnp.exp(middle), volumes, same) > SHARPNESS
        return jnp.where(too_sharp, low, middle), jnp.where(too_sharp, middle, high)

    bounds = jnp.zeros((), volumes.dtype), jnp.log(jnp.asarray(LARGEST, volumes.dtype))
    low, high = jax.lax.fori_loop(0, 60, halve, bounds)
    return sign * jnp.minimum(jnp.exp((low + high) / 2), most / (2 * lr))


__all__ = ["auto_beta", "sharpness"]
