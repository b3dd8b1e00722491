"""Files: what a user names is checked before it is read; what we write appears whole.

A folder is written by one process at a time, which holds its lock.
"""

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO

from ital.errors import InputError
from ital.tools.memory import free_memory, in_words

LOCK = ".lock"  # the file that a process locks while it writes to its folder


class Unwritable(OSError):
    """A folder cannot be written to: it is full, read-only, or owned by someone else.

    Existing files are unchanged.
    """


def check_readable(file: Path | str, what: str, *, at_once: bool = True) -> Path:
    """Return a file that a user named; raise InputError if it cannot be read to its end.

    A device such as ``/dev/zero`` never ends, a pipe may never begin, and a file may be larger than
    the memory.

    Args:
        file: the file; a link counts as what it leads to.
        what: what the message says cannot be read, e.g. ``the map world.csv``.
        at_once: whether it will be read as a whole, and must fit into memory.
    """
    path = Path(file)
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        # A ValueError is about a null character in the name.
        fault = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {what}: {fault}") from None
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
    """Return the text of a file that a user named, as :func:`check_readable` checks it.

    It is in UTF-8, with or without a byte-order mark.
    """
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
    fault = _writing_fault(Path(folder))
    if fault:
        raise InputError(f"cannot write to {folder}: {fault}; choose another folder")


def _writing_fault(folder: Path) -> str:
    """Say why a folder cannot be created or written to; empty if it can."""
    # What exists already decides; what does not can be created in it.
    existing = folder
    try:
        while not existing.exists() and existing != existing.parent:
            existing = existing.parent
        if not existing.is_dir():
            return f"{existing} is not a folder"
    except (OSError, ValueError) as error:
        # The name is too long, or holds a null character.
        return getattr(error, "strerror", None) or str(error)
    if not os.access(existing, os.W_OK | os.X_OK):
        return f"{existing} is read-only, or owned by someone else"
    # Some folders take no new entries although their owner may write to them, as in /proc.
    try:
        with tempfile.TemporaryDirectory(dir=existing, prefix=".ital-"):
            return ""
    except OSError as error:
        return f"{existing} takes no files ({error.strerror or error})"


def open_private(path: str, flags: int) -> int:
    """Open a new file that only its owner may read: an ``opener`` for ``open``.

    A file of this name is removed first, because it would keep its permissions.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    return os.open(path, flags | os.O_EXCL, 0o600)


def replace(path: Path, other: Path) -> None:
    """Put ``other`` in the place of ``path``, even if the power fails afterwards.

    The content of ``other`` must be on the disk already.
    """
    os.replace(other, path)
    # The name of a file is an entry of its folder, which has to reach the disk, too.
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def whole(path: Path, mark: str = "", *, private: bool = False) -> Iterator[BinaryIO]:
    """Open a new file that appears at ``path`` when the block ends.

    It appears completely or not at all, even if the power fails.

    Args:
        path: the file.
        mark: a suffix for the temporary file, so that concurrent writers do not collide; the last
            one wins.
        private: whether only the owner may read the file.
    """
    temporary = path.with_name(f".{path.name}{mark}.part")
    try:
        with open(temporary, "wb", opener=open_private if private else None) as file:
            yield file
            # First the content, then the name: a reader never finds a name without its content.
            file.flush()
            os.fsync(file.fileno())
        replace(path, temporary)
    except BaseException as error:
        # Also after Ctrl-C.
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            reason = f"cannot write here: {error.strerror or error}"
            folder = path if path.is_dir() else path.parent
            raise Unwritable(error.errno, reason, str(folder)) from error
        raise


def write(path: Path, content: bytes, mark: str = "", *, private: bool = False) -> None:
    """Write ``content`` to ``path``, as :func:`whole` does."""
    with whole(path, mark, private=private) as file:
        file.write(content)


@contextlib.contextmanager
def owned(folder: Path) -> Iterator[None]:
    """Create ``folder`` and lock it against other runs while this one writes to it."""
    try:
        import fcntl  # noqa: F401
    except ImportError:
        # This system has no file locks: runs must not share a folder.
        _open_lock(folder).close()
        yield
        return
    # A race: between our open and our lock, the owner may end and remove the file. Then we hold a
    # file that nobody else can find, and the folder is free for a third run.
    file = _locked(folder)
    while not _is_current(file, folder):
        file.close()
        file = _locked(folder)
    with file:
        try:
            yield
        finally:
            # Before the file is closed: until then nobody else owns the folder.
            (folder / LOCK).unlink(missing_ok=True)


def _locked(folder: Path) -> IO[str]:
    """Return the folder's lock file, open and locked; raise InputError if another run holds it."""
    import fcntl

    file = _open_lock(folder)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise InputError(
            f"another run is writing to {folder}: wait for it or choose another --out"
        ) from None
    return file


def _open_lock(folder: Path) -> IO[str]:
    """Create the folder and open its lock file."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return (folder / LOCK).open("w")
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror or error}") from None


def _is_current(file: IO[str], folder: Path) -> bool:
    """Return whether an open lock file is still the one in the folder."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(folder / LOCK))
    except FileNotFoundError:
        return False
