"""Curves as NetCDF files with a checksum: written completely or not at all, and checked when read."""

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
    except Exception as error:  # a broken file can raise almost anything
        raise Damaged(f"{path} cannot be read ({type(error).__name__})") from error
    if not intact:
        raise Damaged(f"{path} does not match its checksum")
    return (
        curves.rename(method="learner") if "method" in curves.dims else curves
    )  # files of earlier versions


def _checksum(curves: "xr.Dataset") -> str:
    """A hash of names, values and attributes that is the same before writing and after reading."""
    digest = hashlib.sha256()
    for name in sorted(map(str, curves.variables)):
        variable = curves.variables[name]
        values = variable.values
        plain = values.astype(np.float64 if values.dtype.kind in "fiub" else "U")
        digest.update(f"{name} {variable.dims} {plain.shape}".encode())
        digest.update(
            plain.tobytes() if plain.dtype.kind == "f" else json.dumps(plain.tolist()).encode()
        )
        digest.update(_plain_attributes(variable.attrs))
    digest.update(_plain_attributes(curves.attrs))
    return digest.hexdigest()


def _plain_attributes(attributes: Mapping[Any, Any]) -> bytes:
    plain = {
        str(k): v if isinstance(v, str) else np.ravel(v).tolist() for k, v in attributes.items()
    }
    return json.dumps(plain, sort_keys=True, default=float).encode()
