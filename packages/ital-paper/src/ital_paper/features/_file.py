"""Feature files: paired views of one data set through several networks.

They also hold the last layers of the networks, and a data card.
"""

import hashlib
import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ital.errors import InputError
from ital.tools.files import check_readable, write


class Features(NamedTuple):
    """What a feature file holds.

    Attributes:
        card: the data card: what the file was made from, and how.
        labels: labels of the rows (N,).
        views: network → its view of the rows (N, d), paired row by row.
        last_layers: network → its last layer [W, b] (K, d + 1).
        test_labels: labels of the test rows.
        test_views: network → its view of the test rows, for the learner's network at least.
        weights: weights of the networks themselves, if tasks need features of new rows.
    """

    card: dict[str, Any]
    labels: np.ndarray
    views: dict[str, np.ndarray]
    last_layers: dict[str, np.ndarray]
    test_labels: np.ndarray
    test_views: dict[str, np.ndarray]
    weights: dict[str, np.ndarray] = {}  # noqa: RUF012

    @property
    def version(self) -> str:
        """A version that identifies this file's content."""
        return self.card["checksum"][:16]


def save(features: Features, file: Path) -> Path:
    """Write a feature file, completely or not at all, with the checksum of all arrays in its card.

    Args:
        features: the content.
        file: where to write it.

    Returns:
        The file.
    """
    arrays = {
        "labels": features.labels,
        "test_labels": features.test_labels,
        **{f"view/{name}": view for name, view in features.views.items()},
        **{f"test/{name}": view for name, view in features.test_views.items()},
        **{f"last/{name}": layer for name, layer in features.last_layers.items()},
        **{f"net/{name}": array for name, array in features.weights.items()},
    }
    card = {**features.card, "checksum": checksum(features.card, arrays)}
    buffer = io.BytesIO()
    content: dict[str, Any] = {"card": np.array(json.dumps(card, indent=1)), **arrays}
    np.savez_compressed(buffer, **content)
    file.parent.mkdir(parents=True, exist_ok=True)
    write(file, buffer.getvalue())
    return file


def load(file: Path) -> Features:
    """Read a feature file.

    Args:
        file: the file.

    Returns:
        Its content.

    Raises:
        InputError: if the file is missing or damaged.
    """
    check_readable(file, f"the feature file {file}")
    try:
        card, arrays = _read_archive(file)
    except _DAMAGE as error:
        raise InputError(f"{file} is not a whole feature file ({error}): build it again") from None
    if checksum(card, arrays) != card["checksum"]:
        raise InputError(
            f"{file} is damaged: its checksum does not match its content; build it again"
        )
    return Features(
        card,
        arrays["labels"],
        _with_prefix(arrays, "view/"),
        _with_prefix(arrays, "last/"),
        arrays["test_labels"],
        _with_prefix(arrays, "test/"),
        _with_prefix(arrays, "net/"),
    )


# What reading a file that is cut short or changed may raise:
_DAMAGE = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,
)


def _read_archive(file: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the card and the arrays of a file; raise one of ``_DAMAGE`` if parts are missing."""
    # Without pickles, because a file from elsewhere must not run code.
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    card = json.loads(str(arrays.pop("card")))
    if "checksum" not in card:
        raise KeyError("checksum")
    missing = [name for name in ("labels", "test_labels") if name not in arrays]
    missing += [name for name in ("name", "data", "learner") if name not in card]
    if missing:
        raise ValueError(f"it has no {missing[0]}")
    return card, arrays


def _with_prefix(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }


def checksum(card: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """Return the SHA-256 of the card (without its checksum) and of all arrays.

    Names, types and shapes of the arrays count as well.
    """
    content = {name: value for name, value in card.items() if name != "checksum"}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def own_folder() -> Path:
    """Return where ``ital features build`` puts its files.

    This is $ITAL_FEATURES, else the user's data folder.

    Returns:
        The folder, which need not exist.
    """
    base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    return Path(os.environ.get("ITAL_FEATURES") or base / "ital" / "features")


def find(name: str) -> Path | None:
    """Find the feature file of that name: the user's own, else the one shipped with the package.

    Args:
        name: e.g. ``mnist``.

    Returns:
        The file, or None if there is none.
    """
    users = own_folder() / f"{name}.npz"
    if users.is_file():
        return users
    with resources.as_file(
        resources.files("ital_paper.features") / "data" / f"{name}.npz"
    ) as shipped:
        return shipped if shipped.is_file() else None


def accuracy(
    view: np.ndarray,
    layer: np.ndarray,
    labels: np.ndarray,
    top: int = 1,
) -> float:
    """Return the share of rows whose label is among the largest outputs of a last layer.

    The first output wins a tie.

    Args:
        view: features of the rows (N, d).
        layer: the last layer [W, b] (K, d + 1).
        labels: labels of the rows (N,).
        top: number of outputs that count.

    Returns:
        The share, in [0, 1].
    """
    weights = layer[:, :-1]
    bias = layer[:, -1]
    outputs = view.astype(np.float32) @ weights.T + bias
    best = np.argsort(-outputs, axis=1, kind="stable")[:, :top]
    return float(np.mean((best == labels[:, None]).any(axis=1)))
