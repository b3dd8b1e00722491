"""The files of an experiment: complete or not there, and checked when read."""

import contextlib
import hashlib
import io
import json
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ital._files import write
from ital.errors import InputError
from ital.results import Recording
from ital.teaching import Block

if TYPE_CHECKING:
    import xarray as xr


class Damaged(Exception):
    """A file is not what was written: cut short, altered, or of another make."""


def own_mark() -> str:
    """Tells the temporary files of this process from those of another that may be at the same work."""
    return f".{socket.gethostname()}-{os.getpid()}"


def put_aside(file: Path) -> Path:
    """Renames a damaged file, so that another can take its place."""
    return file.replace(file.with_name(f"{file.name}.damaged"))


def remove_if_empty(folder: Path) -> None:
    """Removes a folder in which there is nothing."""
    with contextlib.suppress(OSError):
        folder.rmdir()


def save_curves(curves: "xr.Dataset", path: Path, mark: str = "") -> None:
    """Write a Dataset as NetCDF with a checksum of its content among the attributes.

    Args:
        curves: the curves.
        path: the file.
        mark: keeps apart the temporary files of writers that may write the same file at the same time.
    """
    curves = curves.assign_attrs(checksum=_checksum(curves))
    # NetCDF 3 through SciPy: opens everywhere that xarray does, and needs no library of its own.
    write(path, bytes(curves.to_netcdf(engine="scipy")), mark)


def load_curves(path: Path) -> "xr.Dataset":
    """Read what :func:`save_curves` wrote.

    Args:
        path: the file.

    Returns:
        The curves.

    Raises:
        Damaged: if the file is not exactly what was written.
    """
    import xarray as xr

    try:
        curves = xr.load_dataset(io.BytesIO(Path(path).read_bytes()), engine="scipy")
        checksum = curves.attrs.pop("checksum", None)
        intact = checksum == _checksum(curves)
    except OSError:
        raise
    except Exception as error:  # whatever a reader stumbles over in a broken file
        raise Damaged(f"{path} cannot be read ({type(error).__name__})") from error
    if not intact:
        raise Damaged(f"{path} does not match its checksum")
    return curves


def _checksum(curves: "xr.Dataset") -> str:
    """A hash of names, values and attributes that survives the trip through a file."""
    digest = hashlib.sha256()
    for name in sorted(map(str, curves.variables)):
        variable = curves.variables[name]
        values = variable.values
        plain = values.astype(np.float64 if values.dtype.kind in "fiub" else "U")
        digest.update(f"{name} {variable.dims} {plain.shape}".encode())
        digest.update(plain.tobytes() if plain.dtype.kind == "f" else json.dumps(plain.tolist()).encode())
        digest.update(_plain_attributes(variable.attrs))
    digest.update(_plain_attributes(curves.attrs))
    return digest.hexdigest()


def _plain_attributes(attributes: Mapping[Any, Any]) -> bytes:
    plain = {str(k): v if isinstance(v, str) else np.ravel(v).tolist() for k, v in attributes.items()}
    return json.dumps(plain, sort_keys=True, default=float).encode()


def save_checkpoint(recording: Recording, seconds: float, path: Path) -> None:
    """Writes the state of a run: the carry of every session, all that it has measured, and the time it took."""
    arrays: dict[str, np.ndarray] = {"seconds": np.asarray(seconds)}
    for i, session in enumerate(recording.sessions):
        arrays |= {f"carry/{i}/{j}": leaf for j, leaf in enumerate(jax.tree.leaves(session.state))}
        if session.begun:
            arrays |= {f"rows/{i}/{name}": row for name, row in recording.rows(i).items()}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    content = buffer.getvalue()
    write(path, hashlib.sha256(content).digest() + content, own_mark())


def load_checkpoint(recording: Recording, path: Path) -> float | None:
    """Puts a run back where its checkpoint left it and returns the seconds it had taken; None where there is none.

    Raises Damaged.
    """
    if not path.exists():
        return None
    content = path.read_bytes()
    if hashlib.sha256(content[32:]).digest() != content[:32]:
        raise Damaged(f"{path} does not match its checksum")
    with np.load(io.BytesIO(content[32:])) as arrays:
        for i, session in enumerate(recording.sessions):
            leaves, structure = jax.tree.flatten(session.carry)
            if f"carry/{i}/{len(leaves)}" in arrays:
                return None  # of a version that carried more: the run starts over
            saved = [arrays[f"carry/{i}/{j}"] for j in range(len(leaves))]
            session.state = jax.tree.unflatten(structure, saved)
            rows = {name.split("/", 2)[2]: arrays[name] for name in arrays.files if name.startswith(f"rows/{i}/")}
            session.begun = bool(rows)
            recording.blocks[i] = [Block(rows.pop("step"), rows)] if rows else []
        return float(arrays["seconds"])


@contextlib.contextmanager
def owned(folder: Path) -> Iterator[None]:
    """Makes ``folder`` and keeps other runs out of it while this one writes there."""
    lock = folder / ".lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = lock.open("w")
    except OSError as error:
        raise InputError(f"cannot write to {folder}: {error.strerror or error}") from None
    with file:
        try:
            import fcntl
        except ImportError:  # not on this system: runs are trusted not to share a folder
            yield
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"another run is writing to {folder}: wait for it or choose another --out") from None
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)
