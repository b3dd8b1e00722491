"""Read image data sets in their usual file formats."""

import gzip
import itertools
import pickle
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ital.errors import InputError
from ital.tools.files import check_readable

_IDX_TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


class Images(NamedTuple):
    """A data set with its official split.

    Attributes:
        train_x: training images (N, height, width, channels) as bytes.
        train_y: their labels (N,).
        test_x: test images.
        test_y: their labels.
        classes: number of classes.
    """

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    classes: int


# ---- MNIST ----


def read_idx(file: Path) -> np.ndarray:
    """Read an array in the idx format of MNIST, gzipped or not.

    Two zero bytes, a byte for the type, one for the number of dimensions, then each dimension and
    the content.
    """
    data = _bytes_of(file)
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _IDX_TYPES:
        first = data[:4].hex(" ") or "missing"
        raise InputError(f"{file} is not an idx file: its first bytes are {first}")
    dimensions = data[3]
    header = 4 + 4 * dimensions
    if len(data) < header:
        raise InputError(f"{file} is truncated: {len(data)} bytes are too few for its header")
    shape = struct.unpack(f">{dimensions}I", data[4:header])
    dtype = np.dtype(_IDX_TYPES[data[2]])
    # A damaged header may promise more bytes than 32 bits can count.
    expected = header + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if len(data) != expected:
        fault = "is truncated" if len(data) < expected else "is too long"
        raise InputError(f"{file} {fault}: {len(data)} bytes, expected {expected}")
    return np.frombuffer(data, dtype, offset=header).reshape(shape)


def _bytes_of(file: Path) -> bytes:
    """Read a file, gzipped or not."""
    check_readable(file, str(file))
    try:
        data = file.read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {file}: {reason}") from None


def read_mnist(folder: Path) -> Images:
    """Read the four idx files of MNIST (``train-images-idx3-ubyte`` …, also ``.gz``)."""
    train_x, train_y = _read_mnist_split(folder, "train")
    test_x, test_y = _read_mnist_split(folder, "t10k")
    return check_images(Images(train_x, train_y, test_x, test_y, classes=10), folder)


def _read_mnist_split(folder: Path, split: str) -> tuple[np.ndarray, np.ndarray]:
    x = _read_mnist_file(folder, f"{split}-images-idx3-ubyte")
    y = _read_mnist_file(folder, f"{split}-labels-idx1-ubyte")
    if x.ndim != 3 or x.dtype != np.uint8:
        raise InputError(
            f"{folder}: the {split} images have shape {x.shape} of {x.dtype}, "
            "expected bytes (N, 28, 28)"
        )
    if y.shape != x.shape[:1]:
        raise InputError(f"{folder}: {len(x)} {split} images, but labels of shape {y.shape}")
    return x[..., None], y


def _read_mnist_file(folder: Path, name: str) -> np.ndarray:
    # Some archives write a dot for the second hyphen.
    spellings = (name, name.replace("-idx", ".idx"))
    for spelling, ending in itertools.product(spellings, ("", ".gz")):
        file = folder / f"{spelling}{ending}"
        if file.is_file():
            return read_idx(file)
    raise InputError(f"{folder} has no {name} (or {name}.gz): MNIST consists of four idx files")


# ---- CIFAR-10 ----


def read_cifar10(folder: Path) -> Images:
    """Read the Python batches of CIFAR-10 (``data_batch_1`` … ``data_batch_5``, ``test_batch``)."""
    if (folder / "cifar-10-batches-py").is_dir():
        folder = folder / "cifar-10-batches-py"
    batches = [_read_pictures(folder / f"data_batch_{i}") for i in range(1, 6)]
    x, y = zip(*batches, strict=True)
    test_x, test_y = _read_pictures(folder / "test_batch")
    images = Images(np.concatenate(x), np.concatenate(y), test_x, test_y, classes=10)
    return check_images(images, folder)


def _read_pictures(file: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read the images (N, 32, 32, 3) and labels (N,) of one batch."""
    batch = read_batch(file)
    x = np.asarray(batch["data"])
    y = np.asarray(batch["labels"])
    if x.ndim != 2 or x.shape[1] != 3072 or x.dtype != np.uint8 or y.shape != x.shape[:1]:
        raise InputError(
            f"{file}: data of shape {x.shape} and {y.shape} labels, expected bytes (N, 3072)"
        )
    # A row holds the red plane, then the green and the blue one.
    return x.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), y


class _ArraysOnly(pickle.Unpickler):
    """Reads arrays and plain values only: a pickle from elsewhere must not run code."""

    # Names of NumPy 1 and of NumPy 2.
    ALLOWED = frozenset(
        {
            ("numpy", "ndarray"),
            ("numpy", "dtype"),
            ("numpy.core.multiarray", "_reconstruct"),
            ("numpy._core.multiarray", "_reconstruct"),
            ("numpy.core.multiarray", "scalar"),
            ("numpy._core.multiarray", "scalar"),
            ("numpy.core.numeric", "_frombuffer"),
            ("numpy._core.numeric", "_frombuffer"),
            ("_codecs", "encode"),
        }
    )

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"it refers to {module}.{name}")
        return super().find_class(module, name)


def read_batch(file: Path) -> dict[str, Any]:
    """Read one pickled batch of CIFAR-10, with its keys as text."""
    check_readable(file, str(file))
    try:
        with file.open("rb") as stream:
            batch = _ArraysOnly(stream, encoding="bytes").load()
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None
    except Exception as error:  # a broken pickle can raise almost anything
        raise InputError(
            f"{file} is not a batch of CIFAR-10 ({type(error).__name__}: {error})"
        ) from None
    if not isinstance(batch, dict):
        raise InputError(f"{file} is not a batch of CIFAR-10: it holds a {type(batch).__name__}")
    # Pickles of Python 2 have bytes for keys.
    named = {key.decode() if isinstance(key, bytes) else key: value for key, value in batch.items()}
    for key in ("data", "labels"):
        if key not in named:
            raise InputError(f"{file} is not a batch of CIFAR-10: it has no {key!r}")
    return named


# ---- Tiny ImageNet ----


class Photos(NamedTuple):
    """Image files with labels, each read when needed.

    Attributes:
        train: files of the training images.
        train_y: their labels.
        test: files of the test images.
        test_y: their labels.
        classes: number of classes.
    """

    train: list[Path]
    train_y: np.ndarray
    test: list[Path]
    test_y: np.ndarray
    classes: int


def read_tiny_imagenet(folder: Path) -> Photos:
    """List the images of Tiny ImageNet.

    They are in ``train/WNID/images/*.JPEG`` and ``val/images``, the labels of the latter in
    ``val/val_annotations.txt``. The validation images are the test set (the official one has no
    labels). Classes are numbered in the order of ``wnids.txt``, else of their names.
    """
    if (folder / "tiny-imagenet-200").is_dir():
        folder = folder / "tiny-imagenet-200"
    if not (folder / "train").is_dir():
        raise InputError(
            f"{folder} has no folder train: "
            "Tiny ImageNet consists of train/WNID/images/*.JPEG and val/"
        )
    names = _class_names(folder)
    train, train_y = _training_photos(folder / "train", names)
    test, test_y = _validation_photos(folder / "val", names)
    return Photos(train, np.asarray(train_y), test, np.asarray(test_y), len(names))


def _class_names(folder: Path) -> list[str]:
    listed = folder / "wnids.txt"
    if listed.is_file():
        return listed.read_text().split()
    return sorted(path.name for path in (folder / "train").iterdir())


def _training_photos(folder: Path, names: Sequence[str]) -> tuple[list[Path], list[int]]:
    photos: list[Path] = []
    labels: list[int] = []
    for label, name in enumerate(names):
        images = folder / name / "images"
        files = sorted(images.glob("*.JPEG"))
        if not files:
            raise InputError(f"{images} has no *.JPEG files")
        photos += files
        labels += [label] * len(files)
    return photos, labels


def _validation_photos(folder: Path, names: Sequence[str]) -> tuple[list[Path], list[int]]:
    annotations = folder / "val_annotations.txt"
    try:
        lines = [line.split() for line in annotations.read_text().splitlines() if line.strip()]
    except OSError as error:
        raise InputError(f"cannot read {annotations}: {error.strerror}") from None
    label_of = {name: label for label, name in enumerate(names)}
    photos: list[Path] = []
    labels: list[int] = []
    for number, words in enumerate(lines, start=1):
        # After the file and its class, a line has the corners of a box.
        if len(words) < 2 or words[1] not in label_of:
            raise InputError(f"{annotations}, line {number}: expected a file and a known class")
        file = folder / "images" / words[0]
        if not file.is_file():
            raise InputError(f"{annotations}, line {number}: {file} does not exist")
        photos.append(file)
        labels.append(label_of[words[1]])
    if not photos:
        raise InputError(f"{annotations} lists no images")
    return photos, labels


def read_photo(
    file: Path,
    size: int,
    mirrored: bool = False,
) -> np.ndarray:
    """Read an image as bytes (size, size, 3); greyscale becomes colour."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(file) as image:
            resized = image.convert("RGB").resize((size, size), Image.Resampling.BICUBIC)
            picture = np.asarray(resized)
            return picture[:, ::-1] if mirrored else picture
    except (OSError, UnidentifiedImageError, SyntaxError) as error:
        raise InputError(f"cannot read the image {file}: {error}") from None


# ---- for all of them ----


def check_images(images: Images, folder: Path) -> Images:
    """Return the images with labels as integers.

    Raises:
        InputError: for an empty set or a label outside the classes.
    """
    for split, labels in (("training", images.train_y), ("test", images.test_y)):
        if len(labels) == 0:
            raise InputError(f"{folder}: the {split} set is empty")
        if labels.min() < 0 or labels.max() >= images.classes:
            raise InputError(
                f"{folder}: {split} labels from {labels.min()} to {labels.max()}, "
                f"expected 0 to {images.classes - 1}"
            )
    return images._replace(
        train_y=images.train_y.astype(np.int32), test_y=images.test_y.astype(np.int32)
    )


def in_batches(count: int, size: int) -> Iterator[slice]:
    """Yield slices of at most ``size`` that together cover ``count``."""
    for first in range(0, count, size):
        yield slice(first, min(first + size, count))
