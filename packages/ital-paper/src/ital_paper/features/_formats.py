"""Read image data sets in their usual file formats."""

import gzip
import pickle
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ital.errors import InputError
from ital.tools.files import check_readable

_IDX_TYPES = {8: "u1", 9: "i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


class Images(NamedTuple):
    """A data set with its official split: images (N, height, width, channels) as bytes, labels (N,)."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    classes: int


def read_idx(file: Path) -> np.ndarray:
    """An array in the idx format of MNIST, gzipped or not."""
    check_readable(file, str(file))
    try:
        data = file.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"cannot read {file}: {getattr(error, 'strerror', None) or error}"
        ) from None
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _IDX_TYPES:
        raise InputError(
            f"{file} is not an idx file: its first bytes are {data[:4].hex(' ') or 'missing'}"
        )
    dimensions = data[3]
    header = 4 + 4 * dimensions
    if len(data) < header:
        raise InputError(f"{file} is truncated: {len(data)} bytes are too few for its header")
    shape = struct.unpack(f">{dimensions}I", data[4:header])
    dtype = np.dtype(_IDX_TYPES[data[2]])
    expected = header + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if len(data) != expected:
        fault = "is truncated" if len(data) < expected else "is too long"
        raise InputError(f"{file} {fault}: {len(data)} bytes, expected {expected}")
    return np.frombuffer(data, dtype, offset=header).reshape(shape)


def mnist(folder: Path) -> Images:
    """The four idx files of MNIST (``train-images-idx3-ubyte`` …, also ``.gz``)."""

    def find(name: str) -> np.ndarray:
        for candidate in (
            name,
            f"{name}.gz",
            name.replace("-idx", ".idx"),
            f"{name.replace('-idx', '.idx')}.gz",
        ):
            if (folder / candidate).is_file():
                return read_idx(folder / candidate)
        raise InputError(f"{folder} has no {name} (or {name}.gz): MNIST consists of four idx files")

    parts = []
    for split in ("train", "t10k"):
        x, y = find(f"{split}-images-idx3-ubyte"), find(f"{split}-labels-idx1-ubyte")
        if x.ndim != 3 or x.dtype != np.uint8:
            raise InputError(
                f"{folder}: the {split} images have shape {x.shape} of {x.dtype}, expected bytes (N, 28, 28)"
            )
        if y.shape != x.shape[:1]:
            raise InputError(f"{folder}: {len(x)} {split} images, but labels of shape {y.shape}")
        parts += [x[..., None], y]
    train_x, train_y, test_x, test_y = parts
    return check(Images(train_x, train_y, test_x, test_y, classes=10), folder)


def cifar10(folder: Path) -> Images:
    """The Python batches of CIFAR-10 (``data_batch_1`` … ``data_batch_5``, ``test_batch``)."""
    if (folder / "cifar-10-batches-py").is_dir():
        folder = folder / "cifar-10-batches-py"

    def read(name: str) -> tuple[np.ndarray, np.ndarray]:
        batch = read_batch(folder / name)
        x, y = np.asarray(batch["data"]), np.asarray(batch["labels"])
        if x.ndim != 2 or x.shape[1] != 3072 or x.dtype != np.uint8 or y.shape != x.shape[:1]:
            raise InputError(
                f"{folder / name}: data of shape {x.shape} and {y.shape} labels, expected bytes (N, 3072)"
            )
        return x.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), y

    x, y = zip(*(read(f"data_batch_{i}") for i in range(1, 6)), strict=True)
    test_x, test_y = read("test_batch")
    return check(Images(np.concatenate(x), np.concatenate(y), test_x, test_y, classes=10), folder)


class _Plain(pickle.Unpickler):
    """Reads arrays and plain values only: a pickle from elsewhere must not run code."""

    ALLOWED = frozenset(
        {
            ("numpy", "ndarray"),
            ("numpy", "dtype"),
            *(
                (module, "_reconstruct")
                for module in ("numpy.core.multiarray", "numpy._core.multiarray")
            ),
            *((module, "scalar") for module in ("numpy.core.multiarray", "numpy._core.multiarray")),
            *((module, "_frombuffer") for module in ("numpy.core.numeric", "numpy._core.numeric")),
            ("_codecs", "encode"),
        }
    )

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.ALLOWED:
            raise pickle.UnpicklingError(f"it refers to {module}.{name}")
        return super().find_class(module, name)


def read_batch(file: Path) -> dict[str, Any]:
    """One pickled batch of CIFAR-10, with its keys as text."""
    check_readable(file, str(file))
    try:
        with file.open("rb") as stream:
            batch = _Plain(stream, encoding="bytes").load()
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None
    except Exception as error:  # a broken pickle can raise almost anything
        raise InputError(
            f"{file} is not a batch of CIFAR-10 ({type(error).__name__}: {error})"
        ) from None
    if not isinstance(batch, dict):
        raise InputError(f"{file} is not a batch of CIFAR-10: it holds a {type(batch).__name__}")
    named = {key.decode() if isinstance(key, bytes) else key: value for key, value in batch.items()}
    for key in ("data", "labels"):
        if key not in named:
            raise InputError(f"{file} is not a batch of CIFAR-10: it has no {key!r}")
    return named


class Photos(NamedTuple):
    """Image files with labels, each read when needed."""

    train: list[Path]
    train_y: np.ndarray
    test: list[Path]
    test_y: np.ndarray
    classes: int


def tiny_imagenet(folder: Path) -> Photos:
    """The folders of Tiny ImageNet: ``train/WNID/images/*.JPEG``, ``val/images`` and ``val/val_annotations.txt``.

    Its validation images are the test set (the official one has no labels). Classes are numbered in the order of
    ``wnids.txt``, else of their names.
    """
    if (folder / "tiny-imagenet-200").is_dir():
        folder = folder / "tiny-imagenet-200"
    if not (folder / "train").is_dir():
        raise InputError(
            f"{folder} has no folder train: Tiny ImageNet consists of train/WNID/images/*.JPEG and val/"
        )
    listed = folder / "wnids.txt"
    names = (
        listed.read_text().split()
        if listed.is_file()
        else sorted(p.name for p in (folder / "train").iterdir())
    )
    number = {name: i for i, name in enumerate(names)}
    train, train_y = [], []
    for name in names:
        files = sorted((folder / "train" / name / "images").glob("*.JPEG"))
        if not files:
            raise InputError(f"{folder / 'train' / name / 'images'} has no *.JPEG files")
        train += files
        train_y += [number[name]] * len(files)
    annotations = folder / "val" / "val_annotations.txt"
    try:
        lines = [line.split() for line in annotations.read_text().splitlines() if line.strip()]
    except OSError as error:
        raise InputError(f"cannot read {annotations}: {error.strerror}") from None
    test, test_y = [], []
    for i, words in enumerate(lines, start=1):
        if len(words) < 2 or words[1] not in number:
            raise InputError(f"{annotations}, line {i}: expected a file and a known class")
        file = folder / "val" / "images" / words[0]
        if not file.is_file():
            raise InputError(f"{annotations}, line {i}: {file} does not exist")
        test.append(file)
        test_y.append(number[words[1]])
    if not test:
        raise InputError(f"{annotations} lists no images")
    return Photos(train, np.asarray(train_y), test, np.asarray(test_y), len(names))


def read_photo(file: Path, size: int, mirrored: bool = False) -> np.ndarray:
    """An image as bytes (size, size, 3); greyscale becomes colour."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(file) as image:
            picture = np.asarray(
                image.convert("RGB").resize((size, size), Image.Resampling.BICUBIC)
            )
            return picture[:, ::-1] if mirrored else picture
    except (OSError, UnidentifiedImageError, SyntaxError) as error:
        raise InputError(f"cannot read the image {file}: {error}") from None


def check(images: Images, folder: Path) -> Images:
    """Raise InputError for an empty set or a label outside the classes."""
    for split, x, y in (
        ("training", images.train_x, images.train_y),
        ("test", images.test_x, images.test_y),
    ):
        if len(x) == 0:
            raise InputError(f"{folder}: the {split} set is empty")
        if y.min() < 0 or y.max() >= images.classes:
            raise InputError(
                f"{folder}: {split} labels from {y.min()} to {y.max()}, expected 0 to {images.classes - 1}"
            )
    return images._replace(
        train_y=images.train_y.astype(np.int32), test_y=images.test_y.astype(np.int32)
    )


def in_batches(count: int, size: int) -> Iterator[slice]:
    """Slices of at most ``size`` that together cover ``count``."""
    for first in range(0, count, size):
        yield slice(first, min(first + size, count))
