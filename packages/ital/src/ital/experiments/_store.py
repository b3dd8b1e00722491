"""The files of an experiment: written completely or not at all, and checked when read."""

import contextlib
import hashlib
import io
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import jax
import numpy as np

from ital.errors import InputError
from ital.experiments._settings import DEFAULTS
from ital.teaching import Block, Recording
from ital.tools.curve_files import Damaged, load_curves, save_curves
from ital.tools.files import write

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Damaged", "load_curves", "save_curves"]  # re-exported for other modules of the package

LOCK = ".lock"  # the file that a run locks while it writes to its folder
DIGEST = hashlib.sha256().digest_size  # bytes of the checksum at the beginning of a checkpoint


def own_mark() -> str:
    """Return a suffix that distinguishes temporary files of this process from those of others."""
    return f".{socket.gethostname()}-{os.getpid()}"


def stored_result(
    identity: Mapping[str, Any], file: Path, say: Callable[[str], None] | None = None
) -> "xr.Dataset | None":
    """Return a stored result, or None; rename a damaged file and report it.

    Args:
        identity: the settings that the result must have, without defaults.
        file: its file.
        say: called with a line about damage; None: leave a damaged file where it is.

    Raises:
        InputError: if the file cannot be read, or was made with other settings.
    """
    try:
        curves = load_curves(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror or error}") from None
    except Damaged as damage:
        if say is not None:
            say(f"{damage}: computing it again (the old file is now {put_aside(file).name})")
        return None
    for name, expected in {**DEFAULTS, **identity}.items():
        found = curves.attrs.get(name, DEFAULTS.get(name))
        if found != expected:
            difference = f"{name} = {found}, not {expected}"
            raise InputError(
                f"{file} was made with {difference}: "
                "choose another --out, or replace it with --overwrite"
            )
    return curves


def put_aside(file: Path) -> Path:
    """Rename a damaged file, so that a new one can replace it."""
    return file.replace(file.with_name(f"{file.name}.damaged"))


def remove_if_empty(folder: Path) -> None:
    """Remove a folder if it is empty."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def save_checkpoint(recording: Recording, seconds: float, path: Path) -> None:
    """Write the state of a run: carry and measurements of every session, and the time so far.

    Both are in one file, so that a kill cannot leave a carry with the measurements of another step.
    """
    arrays: dict[str, np.ndarray] = {"seconds": np.asarray(seconds)}
    for i, session in enumerate(recording.sessions):
        for j, leaf in enumerate(jax.tree.leaves(session.state)):
            arrays[f"carry/{i}/{j}"] = leaf
        if session.begun:
            for name, row in recording.rows(i).items():
                arrays[f"rows/{i}/{name}"] = row
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    content = buffer.getvalue()
    # The mark keeps two machines that compute the same cell from writing one temporary file.
    write(path, hashlib.sha256(content).digest() + content, own_mark())


def load_checkpoint(recording: Recording, path: Path) -> float | None:
    """Restore a run from its checkpoint.

    Args:
        recording: the sessions of the run, not begun; they are changed.
        path: the file.

    Returns:
        The seconds that it had taken; None if there is no checkpoint.

    Raises:
        Damaged: if the checkpoint cannot be used.
    """
    if not path.exists():
        return None
    file = path.read_bytes()
    checksum = file[:DIGEST]
    content = file[DIGEST:]
    if hashlib.sha256(content).digest() != checksum:
        raise Damaged(f"{path} does not match its checksum")
    with np.load(io.BytesIO(content)) as arrays:
        for i, session in enumerate(recording.sessions):
            leaves, structure = jax.tree.flatten(session.carry)
            if f"carry/{i}/{len(leaves)}" in arrays:
                # It holds more leaves than a carry has now.
                raise Damaged(f"{path} is of an earlier version")
            saved = [arrays[f"carry/{i}/{j}"] for j in range(len(leaves))]
            session.state = jax.tree.unflatten(structure, saved)
            prefix = f"rows/{i}/"
            rows = {
                name.removeprefix(prefix): arrays[name]
                for name in arrays.files
                if name.startswith(prefix)
            }
            session.begun = bool(rows)
            # All blocks so far come back as one.
            recording.blocks[i] = [Block(rows.pop("step"), rows)] if rows else []
        return float(arrays["seconds"])


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
