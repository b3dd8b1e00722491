"""How a cluster worker computes a cell, and the log that it leaves for the next worker."""

import functools
import os
import socket
from pathlib import Path

from ital.errors import InputError
from ital.experiments._cells import CELLS, Cell, compute_cell, read
from ital.tools.platform import set_up_jax

ATTEMPTS = 3  # a cell that fails this often is skipped
TOKEN = ".token"  # lets a worker verify that it sees the same folder


class GivenUp(Exception):
    """Too many workers died while computing a cell."""


def attempt(cell: Cell, folder: str, token: str, platform: str | None) -> list[str]:
    """Compute a cell in a worker; return lines to print.

    Every attempt is logged before it starts, because a worker that dies leaves no other trace.
    """
    _set_up(platform)
    place = Path(folder)
    _check_shared(place, token)
    lines: list[str] = []
    if read(cell.path(place), lines.append) is not None:
        return lines
    begun = starts(cell, place, token)
    if begun >= ATTEMPTS:
        raise GivenUp(f"{begun} workers died while computing this cell (killed, or out of memory?)")
    with _log(cell, place).open("a") as log:
        log.write(f"{token} {socket.gethostname()} {os.getpid()}\n")
    compute_cell(cell, place, say=lines.append)
    return lines


def clear(folder: Path) -> None:
    """Remove what a cluster leaves beside the cells: token, logs, partial files."""
    for pattern in (".*", "*.log"):
        for file in (folder / CELLS).glob(pattern):
            file.unlink(missing_ok=True)


def _log(cell: Cell, folder: Path) -> Path:
    return folder / CELLS / f"{cell.name}.log"


def starts(cell: Cell, folder: Path, token: str) -> int:
    """The number of times a cell was started since it was first sent."""
    try:
        return sum(line.startswith(token) for line in _log(cell, folder).read_text().splitlines())
    except FileNotFoundError:
        return 0


_set_up = functools.cache(set_up_jax)


def _check_shared(folder: Path, token: str) -> None:
    """Raise InputError if this worker does not see the sender's folder."""
    try:
        token_there = (folder / CELLS / TOKEN).read_text()
    except OSError:
        token_there = ""
    if token_there != token:
        host = socket.gethostname()
        raise InputError(f"worker {host} does not see {folder}: --out must be on a file system that all workers share")
