import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ital.teachers import first_largest

NAN, INF = np.nan, np.inf


@pytest.mark.parametrize(
    "values",
    [
        [1.0],
        [0.0, 2.0, 1.0],
        [2.0, 2.0],
        [0.0, -0.0],
        [1.0, NAN, 3.0, NAN],
        [NAN, NAN],
        [-INF, -INF],
        [INF, 1.0, INF],
    ],
)
def test_the_first_largest_is_where_argmax_points(values):
    values = jnp.asarray(values)
    for one in (values, -values):
        assert int(jax.jit(first_largest)(one)) == int(jnp.argmax(one))
