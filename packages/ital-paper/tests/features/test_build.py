import functools
import sys
from unittest import mock

import equinox as eqx
import numpy as np
import pytest

from ital_paper import features
from ital_paper.features import _build, _extractors, _get, _training
from tests.features import data

EPOCHS = 12
# This many steps take longer than an optimised compilation.
WELL = {"xla_backend_optimization_level": 1}
steps_of = eqx.filter_jit(
    _training._steps_of.__wrapped__, donate="all-except-first", compiler_options=WELL
)


def build(folder, out, **options):
    shown = []
    with mock.patch.object(_training, "_steps_of", steps_of):
        file = features.build(
            "mnist",
            folder,
            out,
            epochs=EPOCHS,
            show=lambda done, text: shown.append((done, text)),
            **options,
        )
    return features.load(file), shown


@pytest.fixture(scope="module")
def mnist(tmp_path_factory):
    return data.write_mnist(tmp_path_factory.mktemp("mnist"), train=300, zipped=True)


@pytest.fixture(scope="module")
def built(mnist, tmp_path_factory):
    return build(mnist, tmp_path_factory.mktemp("out") / "mnist.npz", rows=150)


def test_a_build_from_idx_files_learns_and_says_what_it_did(built):
    loaded, shown = built
    assert {name: view.shape for name, view in loaded.views.items()} == {
        "24": (150, 24),
        "20": (150, 20),
        "30": (150, 30),
    }
    assert all(view.dtype == np.float16 for view in loaded.views.values())
    assert loaded.test_views["24"].shape == (60, 24)
    assert loaded.last_layers["20"].shape == (10, 21)
    card = loaded.card
    assert (card["rows"], card["of_rows"], card["test_rows"], card["seed"]) == (150, 300, 60, 0)
    assert {"jax", "equinox", "optax", "device"} <= set(card["versions"])
    for network, reached in card["accuracy"].items():
        assert reached["test_top1"] > 0.5, network  # ten patterns: chance is 0.1
    assert np.diff([done for done, _ in shown]).min() >= 0
    assert shown[-1][0] == 1
    now = features.accuracy(loaded.test_views["24"], loaded.last_layers["24"], loaded.test_labels)
    assert now == pytest.approx(card["accuracy"]["24"]["test_top1"], abs=0.02)


class Killed(BaseException):
    pass


def test_an_interrupted_build_resumes_and_ends_the_same(mnist, built, tmp_path, monkeypatch):
    expected, _ = built
    trained = []
    epoch = _training._epoch

    def counting(*arguments):
        trained.append(1)
        if len(trained) == EPOCHS + 2:  # the second epoch of the second network
            raise Killed
        return epoch(*arguments)

    monkeypatch.setattr(_training, "_epoch", counting)
    with pytest.raises(Killed):
        build(mnist, tmp_path / "mnist.npz", rows=150)
    assert not (tmp_path / "mnist.npz").exists()
    loaded, _ = build(mnist, tmp_path / "mnist.npz", rows=150)
    assert len(trained) == 3 * EPOCHS + 1  # the interrupted one was computed again
    assert loaded.version == expected.version
    assert [path.name for path in tmp_path.iterdir()] == ["mnist.npz"]


def test_a_checkpoint_of_another_seed_or_a_broken_one_is_not_used(mnist, built, tmp_path):
    folder = tmp_path / "mnist.npz.building"
    folder.mkdir()
    (folder / "24.eqx").write_bytes(b'{"identity": "something else", "epochs": 3}\n')
    (folder / "20.eqx").write_bytes(b"\x93NUMPY broken")
    loaded, _ = build(mnist, tmp_path / "mnist.npz", rows=150)
    assert loaded.version == built[0].version


def test_another_seed_is_another_file(mnist, built, tmp_path):
    loaded, _ = build(mnist, tmp_path / "m.npz", rows=150, seed=1)
    assert loaded.version != built[0].version


def test_cifar10_networks_are_built(tmp_path, monkeypatch):
    kind = _build.KINDS["cifar10"]
    monkeypatch.setitem(_build.KINDS, "cifar10", kind._replace(networks=("6",)))
    file = features.build(
        "cifar10",
        data.write_cifar10(tmp_path / "data", each=8),
        tmp_path / "c.npz",
        epochs=1,
        rows=30,
    )
    loaded = features.load(file)
    assert {name: view.shape for name, view in loaded.views.items()} == {"6": (30, 32)}
    assert np.isfinite(loaded.views["6"]).all()


def mean_colours(network):
    """An extractor that needs no PyTorch: mean colours and their squares, many times over."""

    def extract(images):
        colours = images.mean(axis=(1, 2)) / 255
        return np.tile(np.concatenate([colours, colours**2], axis=1), 214)[:, :1280]

    return extract


def test_tiny_imagenet_is_built_from_its_folders(tmp_path, monkeypatch):
    kind, made = _build.KINDS["tiny-imagenet"], []

    def make(network, device):
        assert device == "cpu"
        made.append(network)
        return mean_colours(network)

    source = functools.partial(_build._extracted, make, lambda network: 16)
    monkeypatch.setitem(_build.KINDS, "tiny-imagenet", kind._replace(source=source))
    folder = data.write_tiny_imagenet(tmp_path / "data")
    loaded = features.load(features.build("tiny-imagenet", folder, tmp_path / "t.npz", epochs=30))
    assert made == ["lite1", "lite0", "lite2"]
    assert {view.shape for view in loaded.views.values()} == {(24, 10)}
    assert loaded.last_layers["lite0"].shape == (3, 11)
    assert loaded.labels.tolist() == [0] * 8 + [1] * 8 + [2] * 8
    assert loaded.card["accuracy"]["lite1"]["test_top1"] > 0.5  # the classes differ in brightness
    assert "caution" in loaded.card


def test_extracted_features_are_kept_and_found_again(tmp_path):
    files = sorted(data.write_tiny_imagenet(tmp_path / "data").rglob("val/images/*.JPEG"))
    keep = tmp_path / "kept.npy"
    first = _extractors.extract_all(lambda: mean_colours(""), files, 16, keep, batch=4, part=5)
    again = _extractors.extract_all(lambda: pytest.fail("made again"), files, 16, keep, part=5)
    assert first.shape == (9, 1280)
    assert (first == again).all()
    kept = sorted(tmp_path.glob("kept.npy-*.npy"))
    assert len(kept) == 2
    kept[0].write_bytes(b"broken")
    assert (
        _extractors.extract_all(lambda: mean_colours(""), files, 16, keep, part=5) == first
    ).all()
    turned = _extractors.extract_all(lambda: mean_colours(""), files[::-1], 16, keep, part=5)
    assert (
        turned == first[::-1]
    ).all()  # other pictures, or in another order, are not mistaken for these


def test_features_beyond_half_precision_are_refused(tmp_path):
    files = sorted(data.write_tiny_imagenet(tmp_path / "data").rglob("val/images/*.JPEG"))
    with pytest.raises(ValueError, match="half precision"), np.errstate(over="ignore"):
        _extractors.extract_all(
            lambda: lambda images: np.full((len(images), 3), 1e6), files, 16, tmp_path / "k"
        )


def test_bad_seeds_and_places_are_refused_before_training(mnist, tmp_path):
    with pytest.raises(ValueError, match="seed"):
        features.build("mnist", mnist, tmp_path / "m.npz", seed=-1)
    with pytest.raises(ValueError, match="is a folder"):
        features.build("mnist", mnist, tmp_path)
    assert not list(tmp_path.iterdir())


def test_without_pytorch_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ValueError, match=r"needs PyTorch: pip install .*\[features\]'"):
        _extractors.efficientnet_lite("lite0")
    with pytest.raises(ValueError, match="needs PyTorch"):
        _extractors.vgg("16")


def test_augmented_images_are_the_image_moved_and_flipped():
    import jax
    import jax.numpy as jnp

    x = np.random.default_rng(0).normal(size=(60, 2, 6, 6)).astype(np.float32)
    moved = np.asarray(_training.augmented(jnp.asarray(x), jax.random.key(0), margin=1))
    ways = set()
    for before, after in zip(x, moved, strict=True):
        for flip, image in enumerate((before, before[..., ::-1])):
            padded = np.pad(image, ((0, 0), (1, 1), (1, 1)))
            places = [
                (r, c)
                for r in range(3)
                for c in range(3)
                if (padded[:, r : r + 6, c : c + 6] == after).all()
            ]
            ways |= {(flip, *place) for place in places}
    assert len(ways) > 12  # of 18: flipped or not, moved in nine ways


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("imagenet", "unknown features 'imagenet'"),
        ("mnist", "ital data get mnist"),
        ("tiny-imagenet", "Name the folder with --data DIR"),
    ],
)
def test_a_build_without_data_says_where_to_get_it(name, message, tmp_path, monkeypatch):
    monkeypatch.setenv("ITAL_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match=message):
        features.build(name, None, tmp_path / "out.npz")
    assert not list(tmp_path.iterdir())


def openml(count, width, train, monkeypatch, title):
    rng = np.random.default_rng(0)
    x, y = (
        rng.integers(0, 256, (count, width)).astype(float),
        rng.integers(0, 10, count).astype(str),
    )
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda *a, **k: (x, y))
    monkeypatch.setitem(_get.OPENML, title, (title, 1, train))
    return x, y


def test_mnist_is_fetched_into_idx_files(tmp_path, monkeypatch):
    from ital_paper.features import _formats

    x, y = openml(30, 784, 20, monkeypatch, "mnist")
    monkeypatch.setenv("ITAL_DATA", str(tmp_path))
    assert len(features.get_data("mnist")) == 4
    images = _formats.read_mnist(tmp_path / "mnist")
    assert (images.train_x.reshape(20, 784) == x[:20]).all()
    assert images.test_y.tolist() == y[20:].astype(int).tolist()


def test_cifar10_is_fetched_into_python_batches(tmp_path, monkeypatch):
    from ital_paper.features import _formats

    x, _ = openml(30, 3072, 20, monkeypatch, "cifar10")
    assert len(features.get_data("cifar10", tmp_path)) == 6
    images = _formats.read_cifar10(tmp_path)
    assert (images.train_x.transpose(0, 3, 1, 2).reshape(20, 3072) == x[:20]).all()


def test_without_a_network_fetching_says_so(monkeypatch, tmp_path):
    def unreachable(*arguments, **options):
        raise OSError("no route to host")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", unreachable)
    with pytest.raises(ValueError, match=r"cannot download mnist .*no route to host.*--data DIR"):
        features.get_data("mnist", tmp_path)
    with pytest.raises(ValueError, match="cannot be downloaded"):
        features.get_data("tiny-imagenet", tmp_path)
    openml(30, 5, 20, monkeypatch, "mnist")
    with pytest.raises(ValueError, match="has shape"):
        features.get_data("mnist", tmp_path)
    assert not list(tmp_path.iterdir())
