"""Where JAX computes, and where it keeps compiled programs."""

import contextlib
import functools
import os
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

from ital.errors import InputError

_target: ContextVar[str | None] = ContextVar("target", default=None)


@contextlib.contextmanager
def traced_for(platform: str) -> Iterator[None]:
    """While it lasts, programs are traced for devices of this platform."""
    token = _target.set(platform)
    try:
        yield
    finally:
        _target.reset(token)


def on_cpu() -> bool:
    """Whether what is being traced will run on a CPU: as :func:`traced_for` says, else JAX's default."""
    import jax

    return (_target.get() or jax.default_backend()) == "cpu"


def check_platform(platform: str | None) -> None:
    """Refuses what is no platform."""
    if platform not in (None, "cpu", "gpu"):
        raise InputError(f"platform must be cpu or gpu, not {platform!r}")


def set_up_jax(platform: str | None, *, cache: bool = True) -> None:
    """Chooses the platform before JAX does, and keeps compiled programs on disk so that a second run starts at once."""
    check_platform(platform)
    import jax

    if platform == "cpu":
        jax.config.update("jax_platforms", "cpu")
    if platform == "gpu":
        try:
            jax.devices("gpu")  # where there is one, it is JAX's default
        except RuntimeError:
            raise InputError("no GPU that JAX can use on this machine: leave --platform out or say cpu") from None
    if cache:
        keep_programs()


@functools.cache
def keep_programs() -> None:
    """Keeps compiled programs on disk from now on, unless JAX has a place for them or ``ITAL_CACHE=0``.

    They lie in ``ital/xla`` of ``XDG_CACHE_HOME``, by default ``~/.cache``.
    """
    import jax

    if os.environ.get("ITAL_CACHE") == "0" or getattr(jax.config, "jax_compilation_cache_dir", None):
        return  # JAX reads JAX_COMPILATION_CACHE_DIR itself
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ital" / "xla"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # no place for a cache: compile every time
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
