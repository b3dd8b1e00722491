"""How much memory is free, and refusing what would not fit before any of it is taken."""

import os

from ital.errors import InputError

UNKNOWN = 2**36  # bytes taken to be free on a system that does not tell


def free_memory() -> int:
    """Bytes of memory that this machine can still give."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") + cached_memory()
    except (ValueError, OSError, AttributeError):  # not told on this system
        return UNKNOWN


def cached_memory() -> int:
    """Memory that the system would give up: on Linux, what it holds of files."""
    try:
        with open("/proc/meminfo") as lines:
            return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Cached:"))
    except (OSError, StopIteration):
        return 0


def check_memory(what: str, needed: int, remedy: str) -> None:
    """Refuses what needs more bytes than are free."""
    if needed > (free := free_memory()):
        raise InputError(f"{what} need at least {in_words(needed)} of memory, but {in_words(free)} are free: {remedy}")


def in_words(size: int) -> str:
    """Bytes as people say them."""
    return f"{size / 2**20:,.0f} MiB" if size < 2**30 else f"{size / 2**30:,.1f} GiB"
