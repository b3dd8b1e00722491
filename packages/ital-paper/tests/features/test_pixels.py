import numpy as np
import pytest

from ital_paper import features
from ital_paper.features import _build, _formats, _pixels
from tests.features import data


@pytest.fixture
def only_shipped_features(monkeypatch, tmp_path):
    monkeypatch.setenv("ITAL_FEATURES", str(tmp_path / "own"))


def test_pictures_are_halved_by_means():
    picture = np.array(
        [[[0, 1, 10, 10], [2, 4, 10, 10], [255, 255, 0, 0], [255, 255, 0, 1]]], np.uint8
    )
    assert _pixels.halved(picture).tolist() == [[2, 10, 255, 0]]


def test_rows_are_those_of_the_features_built_with_the_same_seed(tmp_path, monkeypatch):
    """One network determines the rows; it is trained as long as in other tests, so that they share
    programs.
    """
    monkeypatch.setitem(_build.KINDS, "mnist", _build.KINDS["mnist"]._replace(networks=("24",)))
    folder = data.write_mnist(tmp_path / "data", train=300)
    pixels = features.load(
        features.build("mnist-pixels", folder, tmp_path / "p.npz", rows=150, seed=3)
    )
    networks = features.load(
        features.build("mnist", folder, tmp_path / "m.npz", rows=150, seed=3, epochs=12)
    )
    assert (pixels.labels == networks.labels).all()
    kept = _build.kept_rows(300, 150, 3)
    images = _formats.read_mnist(folder)
    assert (pixels.views["pixels"] == _pixels.halved(images.train_x[kept, ..., 0])).all()
    assert pixels.views["pixels"].dtype == np.uint8
    assert (
        pixels.card["rows"],
        pixels.card["of_rows"],
        pixels.card["test_rows"],
        pixels.card["side"],
    ) == (
        150,
        300,
        60,
        4,
    )


def test_the_last_layer_is_the_nearest_class_mean():
    rng = np.random.default_rng(0)
    view, labels = rng.integers(0, 256, (40, 6), dtype=np.uint8), np.arange(40) % 3
    layer = _pixels.class_means(view, labels, 3)
    means = np.stack([view[labels == label].mean(axis=0) for label in range(3)])
    nearest = np.argmin(((view[:, None].astype(float) - means) ** 2).sum(axis=2), axis=1)
    assert features.accuracy(view, layer, nearest) == 1
    with pytest.raises(ValueError, match="no image of class 3"):
        _pixels.class_means(view, labels, 4)


def test_without_data_it_says_where_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("ITAL_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=r"ital data get mnist$"):
        features.build("mnist-pixels", None, tmp_path / "p.npz")
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("only_shipped_features")
def test_shipped_pictures_are_paired_with_the_shipped_features():
    """Row by row, not only class by class: pictures of one digit explain what the networks make of
    that digit.
    """
    file = features.find("mnist-pixels")
    assert file.stat().st_size < 2_000_000
    pixels, networks = features.load(file), features.load(features.find("mnist"))
    view = pixels.views["pixels"]
    assert view.shape == (20_000, 196)
    assert pixels.test_views["pixels"].shape == (2000, 196)
    assert (pixels.labels == networks.labels).all()
    now = features.accuracy(
        pixels.test_views["pixels"], pixels.last_layers["pixels"], pixels.test_labels
    )
    assert now == pytest.approx(pixels.card["accuracy"]["pixels"]["test_top1"], abs=1e-3)

    of_one = np.flatnonzero(pixels.labels == 8)
    pictures, seen = (
        array[of_one].astype(np.float64) for array in (view / 255, networks.views["20"])
    )
    pictures, seen = pictures - pictures.mean(axis=0), seen - seen.mean(axis=0)

    def unexplained(pictures):
        """By ridge regression on the first thousand, of the variance of the others."""
        fit = pictures[:1000]
        weights = np.linalg.solve(fit.T @ fit + 10 * np.eye(196), fit.T @ seen[:1000])
        return np.mean((pictures[1000:] @ weights - seen[1000:]) ** 2) / np.mean(seen[1000:] ** 2)

    assert unexplained(pictures) < 0.75
    assert unexplained(np.roll(pictures, 1, axis=0)) > 1
