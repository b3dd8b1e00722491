"""Compiled programs are kept on disk, unless the user wants otherwise."""

import os
import subprocess
import sys

import numpy as np
import pytest

from ital import bench

CODE = """
import sys
import ital
assert "jax" not in sys.modules
from ital.tools.platform import keep_programs
{before}
keep_programs()
import jax
print(jax.config.jax_compilation_cache_dir)
"""


@pytest.mark.parametrize(
    ("variables", "before", "kept_in"),
    [
        ({}, "", "{}/ital/xla"),
        ({"ITAL_CACHE": "0"}, "", "None"),
        ({"JAX_COMPILATION_CACHE_DIR": "/mine"}, "", "/mine"),
        ({}, "import jax; jax.config.update('jax_compilation_cache_dir', '/mine')", "/mine"),
    ],
)
def test_where_compiled_programs_are_kept(tmp_path, variables, before, kept_in):
    inherited = {
        name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"
    }
    environment = (
        inherited
        | {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
        | variables
    )
    code = CODE.format(before=before)
    told = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == kept_in.format(tmp_path)


def test_bench_takes_longer_with_more_to_do():
    assert (
        1
        <= bench.expected_minutes(8, 100)
        <= bench.expected_minutes(160, 2000)
        < bench.expected_minutes(1600, 20000)
    )


@pytest.mark.parametrize("dim", [2, 10, 100])
def test_the_turn_of_a_view_is_scipys(dim):
    """SciPy's module is slow to import; its numbers are kept."""
    from scipy.stats import ortho_group

    from ital.tasks import _regression

    theirs = ortho_group.rvs(dim, random_state=np.random.default_rng(4))
    np.testing.assert_allclose(_regression._haar(dim, np.random.default_rng(4)), theirs, atol=1e-12)
