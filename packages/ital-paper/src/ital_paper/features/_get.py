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


def data_folder(name: str) -> Path:
    """Where ``ital data get`` puts a data set: $ITAL_DATA, else the user's data folder."""
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
            f"{name!r} cannot be downloaded: choose from {', '.join(OPENML)}. For Tiny ImageNet, name its folder with "
            "--data DIR in ital features build"
        )
    from sklearn.datasets import fetch_openml

    title, version, train = OPENML[name]
    folder = data_folder(name) if out is None else out
    check_writable(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about retries: the error says enough
            x, y = fetch_openml(
                title, version=version, return_X_y=True, as_frame=False, parser="liac-arff"
            )
    except Exception as error:
        raise InputError(
            f"cannot download {name} ({type(error).__name__}: {error}). Without a network, use files of your own: "
            f"ital features build {name} --data DIR"
        ) from None
    x, y = np.asarray(x), np.asarray(y).astype(np.int64)
    expected = {"mnist": 784, "cifar10": 3072}[name]
    if x.ndim != 2 or x.shape[1] != expected or len(x) <= train or len(y) != len(x):
        raise InputError(
            f"the downloaded {name} has shape {x.shape}, expected more than {train} rows of {expected}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    x = x.astype(np.uint8)
    return (_write_mnist if name == "mnist" else _write_cifar10)(folder, x, y, train)


def _write_mnist(folder: Path, x: np.ndarray, y: np.ndarray, train: int) -> list[Path]:
    written = []
    for split, rows in (("train", slice(train)), ("t10k", slice(train, None))):
        images, labels = x[rows].reshape(-1, 28, 28), y[rows].astype(np.uint8)
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
            written.append(folder / f"{split}-{kind}-ubyte.gz")
            write(written[-1], gzip.compress(header + array.tobytes(), 6))
    return written


def _write_cifar10(folder: Path, x: np.ndarray, y: np.ndarray, train: int) -> list[Path]:
    parts: dict[str, Any] = {
        f"data_batch_{i + 1}": rows for i, rows in enumerate(np.array_split(np.arange(train), 5))
    }
    parts["test_batch"] = np.arange(train, len(x))
    for name, rows in parts.items():
        write(folder / name, pickle.dumps({b"data": x[rows], b"labels": y[rows].tolist()}))
    return [folder / name for name in parts]
