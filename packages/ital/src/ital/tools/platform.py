"""Which platform JAX computes on, and where it stores compiled programs."""

import contextlib
import functools
import os
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

from ital.errors import InputError
from ital.tools.memory import check_addresses

_target: ContextVar[str | None] = ContextVar("target", default=None)


@contextlib.contextmanager
def traced_for(platform: str) -> Iterator[None]:
    """In this context, programs are traced for devices of this platform."""
    token = _target.set(platform)
    try:
        yield
    finally:
        _target.reset(token)


def on_cpu() -> bool:
    """Whether the code being traced will run on a CPU: as set by :func:`traced_for`, else JAX's default."""
    import jax

    return (_target.get() or jax.default_backend()) == "cpu"


def check_platform(platform: str | None) -> None:
    """Raise InputError for an unknown platform."""
    if platform not in (None, "cpu", "gpu"):
        raise InputError(f"platform must be cpu or gpu, not {platform!r}")


def set_up_jax(platform: str | None, *, cache: bool = True) -> None:
    """Choose JAX's platform, and store compiled programs on disk so that a second run starts at once.

    Raises:
        InputError: if there is no such platform here, or the process may not reserve the memory that JAX needs.
    """
    check_platform(platform)
    check_addresses()
    import jax

    if platform == "cpu":
        jax.config.update("jax_platforms", "cpu")
    if platform == "gpu":
        try:
            jax.devices("gpu")  # if there is one, it is JAX's default
        except RuntimeError:
            raise InputError(
                "JAX finds no GPU on this machine: leave out --platform, or use --platform cpu"
            ) from None
    if cache:
        keep_programs()


@functools.cache
def keep_programs() -> None:
    """Store compiled programs on disk from now on, unless JAX already has a cache folder or ``ITAL_CACHE=0``.

    The folder is ``ital/xla`` in ``XDG_CACHE_HOME`` (by default ``~/.cache``).
    """
    import jax

    if os.environ.get("ITAL_CACHE") == "0" or getattr(
        jax.config, "jax_compilation_cache_dir", None
    ):
        return  # JAX reads JAX_COMPILATION_CACHE_DIR itself
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ital" / "xla"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # no folder can be written: compile every time
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
