"""Files that are complete or not there: written beside their place, synchronised, renamed."""

import contextlib
import os
from pathlib import Path


class Unwritable(OSError):
    """A folder that cannot be written to: full, read-only, or not ours. What was there is as it was."""


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
