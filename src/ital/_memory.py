"""Free memory, and a check that runs before anything too large is allocated."""

import os

from ital.errors import InputError

UNKNOWN = 2**36  # bytes assumed to be free on a system that does not report it


def free_memory() -> int:
    """Bytes of free memory on this machine."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") + cached_memory()
    except (ValueError, OSError, AttributeError):  # not available on this system
        return UNKNOWN


def cached_memory() -> int:
    """Bytes that the system would release if asked: on Linux, the file cache."""
    try:
        with open("/proc/meminfo") as lines:
            return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Cached:"))
    except (OSError, StopIteration):
        return 0


def check_memory(what: str, needed: int, remedy: str) -> None:
    """Raise InputError if ``needed`` bytes are more than are free."""
    if needed > (free := free_memory()):
        raise InputError(f"{what} need at least {in_words(needed)} of memory, but {in_words(free)} are free: {remedy}")


def in_words(size: int) -> str:
    """A number of bytes in MiB or GiB."""
    return f"{size / 2**20:,.0f} MiB" if size < 2**30 else f"{size / 2**30:,.1f} GiB"
