import gzip
import pickle

import numpy as np
import pytest

from ital_paper.features import _formats
from tests.features import data


@pytest.mark.parametrize("zipped", [False, True])
def test_mnist_is_read_from_idx_files(tmp_path, zipped):
    images = _formats.read_mnist(data.write_mnist(tmp_path, zipped=zipped))
    assert images.train_x.shape == (200, 8, 8, 1)
    assert images.test_x.shape == (60, 8, 8, 1)
    x, y = data.digits(np.random.default_rng(0), 200)
    assert (images.train_x[..., 0] == x).all()
    assert (images.train_y == y).all()


def test_cifar10_is_read_from_python_batches(tmp_path):
    images = _formats.read_cifar10(data.write_cifar10(tmp_path / "cifar-10-batches-py").parent)
    assert images.train_x.shape == (100, 32, 32, 3)
    batch = pickle.loads(
        (tmp_path / "cifar-10-batches-py/data_batch_2").read_bytes(), encoding="bytes"
    )
    assert (
        images.train_x[20, :, :, 1].ravel() == batch[b"data"][0, 1024:2048]
    ).all()  # the green plane
    assert images.train_y[20:40].tolist() == batch[b"labels"]


def test_tiny_imagenet_is_read_from_its_folders(tmp_path):
    photos = _formats.read_tiny_imagenet(data.write_tiny_imagenet(tmp_path))
    assert (len(photos.train), len(photos.test), photos.classes) == (24, 9, 3)
    # In the order of wnids.txt, not of the names.
    assert photos.train_y.tolist() == [0] * 8 + [1] * 8 + [2] * 8
    assert photos.test_y.tolist() == [0, 1, 2] * 3
    grey = _formats.read_photo(photos.train[0], 32)
    assert grey.shape == (32, 32, 3)
    assert (grey[..., 0] == grey[..., 1]).all()
    assert (
        _formats.read_photo(photos.train[1], 16, mirrored=True)
        == _formats.read_photo(photos.train[1], 16)[:, ::-1]
    ).all()


def broken_deflate():
    whole = bytearray(gzip.compress(data.idx(np.arange(60, dtype=np.uint8) % 10)))
    whole[10:14] = b"\xff\xff\xff\xff"
    return bytes(whole)


def cut(file, to):
    file.write_bytes(file.read_bytes()[:to])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "train-images-idx3-ubyte").unlink(), "has no train-images-idx3-ubyte"),
        (lambda f: cut(f / "train-images-idx3-ubyte", 500), "truncated: 500 bytes, expected 12816"),
        (lambda f: cut(f / "train-images-idx3-ubyte", 10), "are too few for its header"),
        (lambda f: (f / "t10k-labels-idx1-ubyte").write_bytes(b""), "not an idx file"),
        (lambda f: (f / "t10k-labels-idx1-ubyte").write_bytes(b"PNG something"), "not an idx file"),
        (
            lambda f: (f / "t10k-labels-idx1-ubyte").write_bytes(b"\x1f\x8b\x08broken"),
            "cannot read",
        ),
        (lambda f: (f / "t10k-labels-idx1-ubyte").write_bytes(broken_deflate()), "cannot read"),
        (
            lambda f: (f / "t10k-labels-idx1-ubyte").write_bytes(data.idx(np.zeros(7, np.uint8))),
            "60 t10k images, but",
        ),
        (
            lambda f: (f / "t10k-labels-idx1-ubyte").write_bytes(
                data.idx(np.full(60, 11, np.uint8))
            ),
            "labels from 11",
        ),
        (
            lambda f: (f / "train-images-idx3-ubyte").write_bytes(
                data.idx(np.zeros((0, 8, 8), np.uint8))
            ),
            "labels of shape",
        ),
    ],
)
def test_broken_mnist_is_refused(tmp_path, damage, message):
    damage(data.write_mnist(tmp_path))
    with pytest.raises(ValueError, match=message):
        _formats.read_mnist(tmp_path)


class Harmful:
    def __reduce__(self):
        return print, ("run",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read"),
        (b"", "not a batch of CIFAR-10"),
        (pickle.dumps([1, 2]), "it holds a list"),
        (pickle.dumps({b"data": np.zeros((2, 3072), np.uint8)}), "no 'labels'"),
        (pickle.dumps({b"data": np.zeros((2, 30), np.uint8), b"labels": [1, 2]}), "expected bytes"),
        (pickle.dumps(Harmful()), "refers to builtins.print"),
    ],
)
def test_broken_cifar10_is_refused(tmp_path, capsys, content, message):
    data.write_cifar10(tmp_path)
    (tmp_path / "data_batch_3").unlink()
    if content is not None:
        (tmp_path / "data_batch_3").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        _formats.read_cifar10(tmp_path)
    assert capsys.readouterr().out == ""


def test_broken_tiny_imagenet_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no folder train"):
        _formats.read_tiny_imagenet(tmp_path)
    data.write_tiny_imagenet(tmp_path)
    photos = _formats.read_tiny_imagenet(tmp_path)
    cut(photos.train[0], 50)
    with pytest.raises(ValueError, match="cannot read the image"):
        _formats.read_photo(photos.train[0], 16)
    annotations = tmp_path / "val/val_annotations.txt"
    annotations.write_text("v0.JPEG\tn9999\n")
    with pytest.raises(ValueError, match="line 1: expected a file and a known class"):
        _formats.read_tiny_imagenet(tmp_path)
    annotations.write_text("nowhere.JPEG\tn0010\n")
    with pytest.raises(ValueError, match="does not exist"):
        _formats.read_tiny_imagenet(tmp_path)
    annotations.unlink()
    with pytest.raises(ValueError, match="cannot read"):
        _formats.read_tiny_imagenet(tmp_path)
