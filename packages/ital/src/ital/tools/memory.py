"""Free memory, and a check that runs before anything too large is allocated.

Three things bound what a process may take: the machine, the limits of the process (``ulimit``), and
those of its container or batch job (control groups of Linux, in version 1 or 2).
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ital.errors import InputError

UNKNOWN = 2**36  # bytes assumed to be free on a system that does not report it
# Measured on two cores: JAX, its compiler and the libraries for figures reserve 3 GiB, of which
# they use half a GiB.
LEAST_ADDRESSES = 4 * 2**30
MEMINFO = Path("/proc/meminfo")
PROCESS = Path("/proc/self")
GROUPS = Path("/sys/fs/cgroup")


def free_memory() -> int:
    """Return the bytes of memory that this process may still take."""
    return min([shared_memory(), *_left_to_the_process()])


def shared_memory() -> int:
    """Return the bytes that this process and those that it starts may still take together."""
    return min([_free_on_the_machine(), *_left_to_groups()])


def _free_on_the_machine() -> int:
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") + cached_memory()
    except (ValueError, OSError, AttributeError):
        # This system does not say.
        return UNKNOWN


def cached_memory() -> int:
    """Return the bytes that the system would release if asked: on Linux, the file cache."""
    return 1024 * _numbers_in(MEMINFO).get("Cached", 0)


def _left_to_the_process() -> Iterator[int]:
    """Yield what each limit of the process leaves.

    They are on all its addresses (``ulimit -v``), and on its data (``ulimit -d``).
    """
    for limit, name in (("RLIMIT_AS", "VmSize"), ("RLIMIT_DATA", "VmData")):
        bound = _process_limit(limit)
        if bound is not None:
            used = 1024 * _numbers_in(PROCESS / "status").get(name, 0)
            yield max(0, bound - used)


def _process_limit(name: str) -> int | None:
    """Return a limit of the process in bytes; None if there is none."""
    try:
        import resource
    except ImportError:
        # A system without such limits.
        return None
    bound, _ = resource.getrlimit(getattr(resource, name))
    return None if bound == resource.RLIM_INFINITY else bound


def check_addresses() -> None:
    """Raise InputError if the process may not reserve what JAX needs.

    Its compiler would abort or hang.
    """
    bound = _process_limit("RLIMIT_AS")
    if bound is not None and bound < LEAST_ADDRESSES:
        raise InputError(
            f"this process may reserve {in_words(bound)} of memory (ulimit -v), but JAX and its "
            f"compiler reserve {in_words(LEAST_ADDRESSES)}, most of it unused: "
            "raise that limit, or limit the memory in use instead"
        )


class _Names(NamedTuple):
    """Where a version of control groups keeps its numbers."""

    folder: str
    limit: str
    used: str
    cached: tuple[str, ...]


# What is cached counts as used, but is released before the limit is enforced.
_VERSION_1 = _Names(
    "memory",
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    ("total_inactive_file", "total_active_file"),
)
_VERSION_2 = _Names("", "memory.max", "memory.current", ("inactive_file", "active_file"))


def _left_to_groups() -> Iterator[int]:
    """Yield what each control group of this process leaves, with all groups around it."""
    for line in _system_text(PROCESS / "cgroup").splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            names = _VERSION_2
        elif "memory" in controllers.split(","):
            names = _VERSION_1
        else:
            continue
        top = GROUPS / names.folder
        # A container may see its own group as the top one, whatever its path on the host.
        innermost = top / path.lstrip("/")
        for group in (innermost, *innermost.parents):
            left = _left_to_group(group, names)
            if left is not None:
                yield left
            if group == top:
                break


def _left_to_group(folder: Path, names: _Names) -> int | None:
    """Return what one group leaves; None if it sets no limit."""
    try:
        limit = int(_system_text(folder / names.limit))
        used = int(_system_text(folder / names.used))
    except ValueError:
        # There is no such group, or its limit is "max".
        return None
    statistics = _numbers_in(folder / "memory.stat")
    cached = sum(statistics.get(name, 0) for name in names.cached)
    return max(0, limit - max(0, used - cached))


def _numbers_in(file: Path) -> dict[str, int]:
    """Read a file with a name and a number in each line; return nothing without such a file."""
    numbers = {}
    for line in _system_text(file).splitlines():
        name, *values = line.replace(":", " ").split() or [""]
        if values and values[0].isdigit():
            numbers[name] = int(values[0])
    return numbers


def _system_text(file: Path) -> str:
    """Read a file of the system; return nothing if it cannot be read."""
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def check_memory(what: str, needed: int, remedy: str) -> None:
    """Raise InputError if ``needed`` bytes are more than are free."""
    free = free_memory()
    if needed > free:
        raise InputError(
            f"{what} need at least {in_words(needed)} of memory, "
            f"but {in_words(free)} are free: {remedy}"
        )


def in_words(size: int) -> str:
    """Write a number of bytes in MiB or GiB."""
    if size < 2**30:
        return f"{size / 2**20:,.0f} MiB"
    return f"{size / 2**30:,.1f} GiB"
