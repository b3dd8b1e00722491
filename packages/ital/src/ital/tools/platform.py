"""Which platform JAX computes on, and where it stores compiled programs."""

import contextlib
import functools
import os
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

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
    """Return whether the code being traced will run on a CPU: see :func:`traced_for`."""
    import jax

    return (_target.get() or jax.default_backend()) == "cpu"


def double_precision() -> contextlib.AbstractContextManager[Any]:
    """Let JAX compute in float64 within a block."""
    import jax

    if hasattr(jax, "enable_x64"):  # from JAX 0.8 on
        return jax.enable_x64(True)
    from jax.experimental import enable_x64  # type: ignore[attr-defined]

    return enable_x64()


def check_platform(platform: str | None) -> None:
    """Raise InputError for an unknown platform."""
    if platform not in (None, "cpu", "gpu"):
        raise InputError(f"platform must be cpu or gpu, not {platform!r}")


def set_up_jax(platform: str | None, *, cache: bool = True) -> None:
    """Choose JAX's platform, and store compiled programs on disk for a second run.

    Args:
        platform: "cpu", "gpu", or None for JAX's default.
        cache: whether to store compiled programs.

    Raises:
        InputError: if there is no such platform here, or the process may not reserve the memory
            that JAX needs.
    """
    check_platform(platform)
    check_addresses()
    import jax

    if platform == "cpu":
        jax.config.update("jax_platforms", "cpu")
    if platform == "gpu":
        try:
            # If there is one, it is JAX's default.
            jax.devices("gpu")
        except RuntimeError:
            raise InputError(
                "JAX finds no GPU on this machine: leave out --platform, or use --platform cpu"
            ) from None
    if cache:
        keep_programs()


@functools.cache
def keep_programs() -> None:
    """Store compiled programs on disk from now on.

    Nothing happens if JAX already has a cache folder, or if ``ITAL_CACHE=0``.
    The folder is ``ital/xla`` in ``XDG_CACHE_HOME`` (by default ``~/.cache``).
    """
    import jax

    if os.environ.get("ITAL_CACHE") == "0":
        return
    # JAX reads JAX_COMPILATION_CACHE_DIR itself.
    if getattr(jax.config, "jax_compilation_cache_dir", None):
        return
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = caches / "ital" / "xla"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        # The folder cannot be written: compile every time.
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # JAX would keep only programs that take a second to compile.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
