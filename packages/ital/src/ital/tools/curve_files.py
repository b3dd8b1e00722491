"""Curves as NetCDF files with a checksum: written whole or not at all, checked when read."""

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ital.tools.files import write

if TYPE_CHECKING:
    import xarray as xr


class Damaged(Exception):
    """A file does not hold what was written: it is truncated, altered, or of another format."""


def save_curves(curves: "xr.Dataset", path: Path, mark: str = "") -> None:
    """Write a Dataset as NetCDF with a checksum of its content among the attributes.

    Args:
        curves: the curves.
        path: the file.
        mark: a suffix for the temporary file, so that several writers of one file do not collide.
    """
    curves = curves.assign_attrs(checksum=_checksum(curves))
    # NetCDF 3 through SciPy: every xarray installation can open it, without an extra library.
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
    except Exception as error:
        # A broken file can raise almost anything.
        raise Damaged(f"{path} cannot be read ({type(error).__name__})") from error
    if not intact:
        raise Damaged(f"{path} does not match its checksum")
    if "method" in curves.dims:
        # A file of an earlier version.
        return curves.rename(method="learner")
    return curves


def _checksum(curves: "xr.Dataset") -> str:
    """Return a hash of names, values and attributes.

    It is the same before writing and after reading, although a file keeps fewer types of numbers.
    """
    digest = hashlib.sha256()
    for name in sorted(map(str, curves.variables)):
        variable = curves.variables[name]
        is_number = variable.dtype.kind in "fiub"
        values = variable.values.astype(np.float64 if is_number else "U")
        digest.update(f"{name} {variable.dims} {values.shape}".encode())
        # The bytes of a text depend on the longest text beside it.
        digest.update(values.tobytes() if is_number else json.dumps(values.tolist()).encode())
        digest.update(_attributes_as_json(variable.attrs))
    digest.update(_attributes_as_json(curves.attrs))
    return digest.hexdigest()


def _attributes_as_json(attributes: Mapping[Any, Any]) -> bytes:
    """Write attributes in one way: a file returns an array of length 1 as a number."""
    values = {
        str(name): value if isinstance(value, str) else np.ravel(value).tolist()
        for name, value in attributes.items()
    }
    return json.dumps(values, sort_keys=True, default=float).encode()
