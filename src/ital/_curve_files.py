"""Curves as NetCDF files with a checksum: complete or not there, and checked when read."""

import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ital._files import write

if TYPE_CHECKING:
    import xarray as xr


class Damaged(Exception):
    """A file is not what was written: cut short, altered, or of another make."""


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
    return curves.rename(method="learner") if "method" in curves.dims else curves  # files of earlier versions


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
