"""Files: what a user names is checked before it is read; what we write is written whole (temporary file, rename)."""

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ital.errors import InputError
from ital.tools.memory import free_memory, in_words


class Unwritable(OSError):
    """A folder cannot be written to: it is full, read-only, or owned by someone else. Existing files are unchanged."""


def check_readable(file: Path | str, what: str, *, at_once: bool = True) -> Path:
    """A file that a user named, if it can be read to its end; raises InputError for anything else.

    A device such as ``/dev/zero`` never ends, a pipe may never begin, and a file may be larger than the memory.

    Args:
        file: the file; a link counts as what it leads to.
        what: what the message says cannot be read, e.g. ``the map world.csv``.
        at_once: whether it will be read as a whole, and must fit into memory.
    """
    path = Path(file)
    try:
        status = path.stat()
    except (OSError, ValueError) as error:  # a name may hold a null character
        raise InputError(
            f"cannot read {what}: {getattr(error, 'strerror', None) or error}"
        ) from None
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"cannot read {what}: Is a directory")
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"cannot read {what}: it is not a regular file; save what it holds as one")
    free = free_memory()
    if at_once and status.st_size > free:
        sizes = f"it holds {in_words(status.st_size)}, but {in_words(free)} of memory are free"
        raise InputError(f"cannot read {what}: {sizes}; give a smaller file")
    return path


def read_text(file: Path | str, what: str) -> str:
    """The text of a file that a user named, in UTF-8 with or without a byte-order mark; as :func:`check_readable`."""
    path = check_readable(file, what)
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {what}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"cannot read {what}: not a text file") from None


def check_writable(folder: Path | str) -> None:
    """Raise InputError if a folder could not be created or written to; leaves nothing behind."""
    if not str(folder):
        raise InputError(
            "the name of the folder is empty: name a folder, or . for the working folder"
        )
    place = Path(folder)
    try:
        while not place.exists() and place != place.parent:
            place = place.parent
        fault = "" if place.is_dir() else f"{place} is not a folder"
    except (OSError, ValueError) as error:  # the name is too long, or empty
        fault = getattr(error, "strerror", None) or str(error)
    if not fault and not os.access(place, os.W_OK | os.X_OK):
        fault = f"{place} is read-only, or owned by someone else"
    if not fault:
        fault = _fault_of_writing(place)
    if fault:
        raise InputError(f"cannot write to {folder}: {fault}; choose another folder")


def _fault_of_writing(place: Path) -> str:
    """Why a folder takes no new entries, though its owner may write to it, as in ``/proc``; empty if it takes them."""
    try:
        with tempfile.TemporaryDirectory(dir=place, prefix=".ital-"):
            return ""
    except OSError as error:
        return f"{place} takes no files ({error.strerror or error})"


def open_private(path: str, flags: int) -> int:
    """Open a file that only its owner may read; an ``opener`` for ``open``. What was there before is removed."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    return os.open(path, flags | os.O_EXCL, 0o600)


def replace(path: Path, other: Path) -> None:
    """Put ``other``, which is on the disk, in the place of ``path``, even if the power fails afterwards."""
    os.replace(other, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def whole(path: Path, mark: str = "", *, private: bool = False) -> Iterator[BinaryIO]:
    """Open a new file that appears at ``path`` when the block ends: completely or not at all, even if the power fails.

    ``mark`` is a suffix for the temporary file, so that concurrent writers do not collide; the last one wins.
    Only the owner may read a ``private`` file.
    """
    temporary = path.with_name(f".{path.name}{mark}.part")
    try:
        with open(temporary, "wb", opener=open_private if private else None) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        replace(path, temporary)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            reason = f"cannot write here: {error.strerror or error}"
            raise Unwritable(
                error.errno, reason, str(path if path.is_dir() else path.parent)
            ) from error
        raise


def write(path: Path, content: bytes, mark: str = "", *, private: bool = False) -> None:
    """Write ``content`` to ``path``, as :func:`whole` does."""
    with whole(path, mark, private=private) as file:
        file.write(content)
