"""Atomic file writes: to a temporary file in the same folder, fsync, rename."""

import contextlib
import os
from pathlib import Path

from ital.errors import InputError


class Unwritable(OSError):
    """A folder cannot be written to: it is full, read-only, or owned by someone else. Existing files are unchanged."""


def check_writable(folder: Path | str) -> None:
    """Raise InputError if a folder could not be created or written to; creates nothing."""
    place = Path(folder)
    try:
        while not place.exists() and place != place.parent:
            place = place.parent
        fault = "" if place.is_dir() else f"{place} is not a folder"
    except (OSError, ValueError) as error:  # the name is too long, or empty
        fault = getattr(error, "strerror", None) or str(error)
    if not fault and not os.access(place, os.W_OK | os.X_OK):
        fault = f"{place} is read-only, or owned by someone else"
    if fault:
        raise InputError(f"cannot write to {folder}: {fault}; choose another folder")


def write(path: Path, content: bytes, mark: str = "") -> None:
    """Write ``content`` to ``path``, completely or not at all, even if the power fails.

    ``mark`` is a suffix for the temporary file, so that concurrent writers do not collide; the last one wins.
    """
    temporary = path.with_name(f".{path.name}{mark}.part")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            reason = f"cannot write here: {error.strerror or error}"
            raise Unwritable(error.errno, reason, str(path.parent)) from error
        raise
