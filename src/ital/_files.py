"""Files that are complete or not there: written beside their place, synchronised, renamed."""

import contextlib
import os
from pathlib import Path

from ital.errors import InputError


class Unwritable(OSError):
    """A folder that cannot be written to: full, read-only, or not ours. What was there is as it was."""


def check_writable(folder: Path | str) -> None:
    """Refuses a folder that could not be made or written to; makes nothing."""
    place = Path(folder)
    try:
        while not place.exists() and place != place.parent:
            place = place.parent
        fault = "" if place.is_dir() else f"{place} is not a folder"
    except (OSError, ValueError) as error:  # a name that is too long, or no name at all
        fault = getattr(error, "strerror", None) or str(error)
    if not fault and not os.access(place, os.W_OK | os.X_OK):
        fault = f"{place} is read-only, or not yours"
    if fault:
        raise InputError(f"cannot write to {folder}: {fault}: choose another folder")


def write(path: Path, content: bytes, mark: str = "") -> None:
    """Puts ``content`` at ``path``, wholly or not at all, even through a power cut.

    ``mark`` keeps writers apart that may write the same file at the same time; the last of them wins.
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
