"""``ital data get``: download public data sets and write them in their usual file formats."""

import gzip
import os
import pickle
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ital.errors import InputError
from ital.tools.files import check_writable, write

OPENML = {"mnist": ("mnist_784", 1, 60_000), "cifar10": ("CIFAR_10", 1, 50_000)}
WIDTHS = {"mnist": 784, "cifar10": 3072}  # bytes of a picture


def data_folder(name: str) -> Path:
    """Return where ``ital data get`` puts a data set: $ITAL_DATA, else the user's data folder."""
    base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return Path(os.environ.get("ITAL_DATA") or base / "ital" / "data") / name


def get_data(name: str, out: Path | None = None) -> list[Path]:
    """Download MNIST or CIFAR-10 through scikit-learn and write idx files or Python batches.

    Args:
        name: ``mnist`` or ``cifar10``.
        out: the folder; None for the user's own.

    Returns:
        The files.

    Raises:
        InputError: if there is no such data set, or it cannot be downloaded.
    """
    if name not in OPENML:
        raise InputError(
            f"{name!r} cannot be downloaded: choose from {', '.join(OPENML)}. "
            "For Tiny ImageNet, name its folder with --data DIR in ital features build"
        )
    from sklearn.datasets import fetch_openml

    title, version, train = OPENML[name]
    folder = data_folder(name) if out is None else out
    check_writable(folder)
    try:
        with warnings.catch_warnings():
            # They are about retries: the error says enough.
            warnings.simplefilter("ignore")
            x, y = fetch_openml(
                title, version=version, return_X_y=True, as_frame=False, parser="liac-arff"
            )
    except Exception as error:  # scikit-learn passes on whatever its libraries raise
        raise InputError(
            f"cannot download {name} ({type(error).__name__}: {error}). "
            f"Without a network, use files of your own: ital features build {name} --data DIR"
        ) from None
    x = np.asarray(x)
    y = np.asarray(y).astype(np.int64)
    width = WIDTHS[name]
    # The official split is by position: the first rows are the training set.
    if x.ndim != 2 or x.shape[1] != width or len(x) <= train or len(y) != len(x):
        raise InputError(
            f"the downloaded {name} has shape {x.shape}, expected more than {train} rows of {width}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_files = _write_mnist if name == "mnist" else _write_cifar10
    return write_files(folder, x.astype(np.uint8), y, train)


def _write_mnist(
    folder: Path,
    x: np.ndarray,
    y: np.ndarray,
    train: int,
) -> list[Path]:
    written = []
    for split, rows in (("train", slice(train)), ("t10k", slice(train, None))):
        arrays = {
            f"{split}-images-idx3-ubyte.gz": x[rows].reshape(-1, 28, 28),
            f"{split}-labels-idx1-ubyte.gz": y[rows].astype(np.uint8),
        }
        for name, array in arrays.items():
            write(folder / name, gzip.compress(_idx(array), 6))
            written.append(folder / name)
    return written


def _idx(array: np.ndarray) -> bytes:
    """Return an array of bytes in the idx format: its type (8), its shape, its content."""
    shape = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes([0, 0, 8, array.ndim]) + shape + array.tobytes()


def _write_cifar10(
    folder: Path,
    x: np.ndarray,
    y: np.ndarray,
    train: int,
) -> list[Path]:
    fifths = np.array_split(np.arange(train), 5)
    rows_of: dict[str, Any] = {f"data_batch_{i}": rows for i, rows in enumerate(fifths, start=1)}
    rows_of["test_batch"] = np.arange(train, len(x))
    for name, rows in rows_of.items():
        write(folder / name, pickle.dumps({b"data": x[rows], b"labels": y[rows].tolist()}))
    return [folder / name for name in rows_of]
