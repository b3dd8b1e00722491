"""``ital features build mnist-pixels``: the images themselves, at half size.

Their rows are those of ``mnist``.
"""

from pathlib import Path

import numpy as np

from ital.errors import InputError
from ital_paper.features import _formats
from ital_paper.features._build import KINDS, kept_rows, versions
from ital_paper.features._file import Features, accuracy, save

VIEW = "pixels"
TEST_ROWS = 2000


def build_pixels(
    folder: Path,
    out: Path,
    *,
    seed: int,
    rows: int | None = None,
) -> Path:
    """Write images at half size, for the rows of ``ital features build mnist`` with the same seed.

    The last layer is the nearest class mean: nothing is trained, and a check detects a file whose
    images and labels do not belong together.
    """
    data = _formats.read_mnist(folder)
    sides = data.train_x.shape[1:3]
    if sides[0] % 2 or sides[1] % 2:
        raise InputError(f"{folder}: images of {sides} pixels cannot be halved: sides must be even")
    kept = kept_rows(len(data.train_y), rows or KINDS["mnist"].rows, seed)
    # Tests are chosen at random, because the first half of the test set is easier.
    tested = kept_rows(len(data.test_y), TEST_ROWS, seed)
    view = halved(data.train_x[kept, ..., 0])
    labels = data.train_y[kept]
    test_view = halved(data.test_x[tested, ..., 0])
    test_labels = data.test_y[tested]
    layer = class_means(view, labels, data.classes)
    card = {
        "name": "mnist-pixels",
        "data": (
            "MNIST, handwritten digits: pictures in bytes, each pixel the mean of four; "
            "rows as in mnist."
        ),
        "layer": "The last layer is the nearest class mean of the training rows, a yardstick.",
        "learner": VIEW,
        "teachers": [],
        "accuracy": {VIEW: {"test_top1": accuracy(test_view, layer, test_labels)}},
        "rows": len(kept),
        "of_rows": len(data.train_y),
        "test_rows": len(tested),
        "of_test_rows": len(data.test_y),
        "side": sides[0] // 2,
        "classes": data.classes,
        "seed": seed,
        "versions": versions(),
    }
    features = Features(
        card,
        labels.astype(np.uint8),
        {VIEW: view},
        {VIEW: layer},
        test_labels.astype(np.uint8),
        {VIEW: test_view},
    )
    return save(features, out)


def halved(pictures: np.ndarray) -> np.ndarray:
    """Return bytes (N, h, w) as bytes (N, h/2 · w/2): each pixel is the mean of four."""
    count, height, width = pictures.shape
    squares = pictures.reshape(count, height // 2, 2, width // 2, 2)
    return np.rint(squares.mean(axis=(2, 4))).astype(np.uint8).reshape(count, -1)


def class_means(
    view: np.ndarray,
    labels: np.ndarray,
    classes: int,
) -> np.ndarray:
    """Return [W, b] (K, d + 1) whose largest output is the class with the nearest mean.

    Class k has the output μ_k·x − ‖μ_k‖²/2, which is −‖x − μ_k‖²/2 up to a constant.
    """
    absent = set(range(classes)) - set(labels.tolist())
    if absent:
        raise InputError(f"the training rows have no image of class {min(absent)}: use more rows")
    # Sums of thousands of bytes need more than the precision of the result.
    means = np.stack(
        [view[labels == label].mean(axis=0, dtype=np.float64) for label in range(classes)]
    )
    biases = -np.sum(means**2, axis=1) / 2
    return np.column_stack([means, biases]).astype(np.float32)
