import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ital.tools import randomness


def data(key):
    return np.asarray(jax.random.key_data(key))


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1])
def test_keys_are_those_of_jax(seed):
    ours, theirs = randomness.key(seed), jax.random.key(seed, impl="threefry2x32")
    np.testing.assert_array_equal(data(ours), data(theirs))
    for number in (0, 7, 2**31 - 1):
        np.testing.assert_array_equal(
            data(jax.random.fold_in(ours, number)), data(jax.random.fold_in(theirs, number))
        )
    for shape in (2, 4, (3, 2)):
        np.testing.assert_array_equal(
            data(jax.random.split(ours, shape)), data(jax.random.split(theirs, shape))
        )


@pytest.mark.parametrize("wide", [False, True])
def test_numbers_are_those_of_jax(wide, request):
    if wide:
        request.getfixturevalue("x64")
    keys = [
        jax.random.split(make, 3)
        for make in (randomness.key(5), jax.random.key(5, impl="threefry2x32"))
    ]

    @jax.jit
    @jax.vmap
    def draw(key):
        return {
            "bits": [
                jax.random.bits(key, (5, 2), dtype) for dtype in (jnp.uint8, jnp.uint16, jnp.uint32)
            ],
            "below": jax.random.randint(key, (7,), 0, 12345),
            "uniform": jax.random.uniform(key, (3,), minval=-2.0, maxval=2.0),
            "normal": jax.random.normal(key, (3,)),
            "gumbel": jax.random.gumbel(key, (3,)),
            "category": jax.random.categorical(key, jnp.arange(4.0)),
        }

    ours, theirs = map(draw, keys)
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    assert ours["normal"].dtype == (np.float64 if wide else np.float32)
