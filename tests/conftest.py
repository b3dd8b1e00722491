import os
from pathlib import Path

# Workers, and the servers and commands that tests start, compile each program once between them.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / "build" / "xla"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
# Most of the time of the tests is compilation: half of it is enough for programs that run for a moment.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=1")

import matplotlib as mpl
import pytest
from hypothesis import Phase, settings
from jaxtyping import install_import_hook

# Shapes written in the annotations are checked in every call that the tests make.
install_import_hook("ital", "beartype.beartype")

import jax  # noqa: E402

mpl.use("Agg")
settings.register_profile("ital", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("ital")
# One counterexample will do (mutants.py).
settings.register_profile("mutants", settings.get_profile("ital"), phases=[Phase.explicit, Phase.generate])


@pytest.fixture
def x64():
    """Float64 for the time of a test."""
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", False)


@pytest.fixture(autouse=True, scope="module")
def _room_for_programs():
    """Forgets compiled programs between files: each maps memory, and the system allows a process only so many maps."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and len(maps.read_bytes().splitlines()) > 20_000:
        jax.clear_caches()
