import numpy as np
import pytest

from ital_paper import features
from ital_paper.features import Features


def small():
    rng = np.random.default_rng(0)
    views = {name: rng.normal(size=(12, d)).astype(np.float16) for name, d in (("a", 3), ("b", 2))}
    layers = {
        name: rng.normal(size=(4, view.shape[1] + 1)).astype(np.float32)
        for name, view in views.items()
    }
    card = {"name": "small", "data": "made up", "learner": "a"}
    labels = (np.arange(12) % 4).astype(np.uint8)
    return Features(card, labels, views, layers, labels[:5], {"a": views["a"][:5]})


def test_what_is_saved_is_loaded(tmp_path):
    file = features.save(small(), tmp_path / "new" / "small.npz")
    loaded, made = features.load(file), small()
    assert loaded.card["name"] == "small"
    for field in ("views", "last_layers", "test_views"):
        for name, array in getattr(made, field).items():
            assert (getattr(loaded, field)[name] == array).all()
            assert getattr(loaded, field)[name].dtype == array.dtype
    assert (loaded.labels == made.labels).all()
    assert [path.name for path in file.parent.iterdir()] == ["small.npz"]


def test_other_content_has_another_version(tmp_path):
    made = small()
    other = made._replace(labels=made.labels[::-1])
    versions = {
        features.load(features.save(one, tmp_path / "f.npz")).version for one in (made, other)
    }
    assert len(versions) == 2


def test_damage_is_noticed(tmp_path):
    file = features.save(small(), tmp_path / "small.npz")
    whole = file.read_bytes()
    for content in (b"", whole[:100], whole[: len(whole) // 2], b"not a zip at all"):
        file.write_bytes(content)
        with pytest.raises(ValueError, match="not a whole feature file"):
            features.load(file)
    # A byte changed anywhere is noticed, or changes nothing.
    for place in range(60, len(whole) - 60, 97):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        try:
            loaded = features.load(file)
        except ValueError:
            continue
        assert (loaded.views["a"] == small().views["a"]).all()
    with pytest.raises(
        ValueError, match=r"cannot read the feature file .*nowhere\.npz: No such file"
    ):
        features.load(tmp_path / "nowhere.npz")


def test_a_file_with_other_arrays_than_its_checksum_says_is_refused(tmp_path):
    file = features.save(small(), tmp_path / "small.npz")
    with np.load(file) as archive:
        arrays = dict(archive)
    arrays["labels"] = arrays["labels"][::-1]
    np.savez(file, **arrays)
    with pytest.raises(ValueError, match="checksum"):
        features.load(file)


def test_own_files_come_before_those_of_the_package(tmp_path, monkeypatch):
    monkeypatch.setenv("ITAL_FEATURES", str(tmp_path))
    shipped = features.find("mnist")
    assert shipped is not None
    assert shipped.parent.name == "data"
    features.save(small(), tmp_path / "mnist.npz")
    assert features.find("mnist") == tmp_path / "mnist.npz"
    assert features.find("nothing") is None


@pytest.mark.parametrize(
    ("name", "networks", "least", "top5"),
    [
        ("mnist", {"24": 24, "20": 20, "30": 30}, 0.97, None),
        ("cifar10", {"9": 32, "6": 32, "12": 32}, 0.82, None),
        ("tiny-imagenet", {"lite1": 10, "lite0": 10, "lite2": 10}, 0.45, 0.72),
    ],
)
def test_shipped_files_are_what_they_say(name, networks, least, top5, monkeypatch, tmp_path):
    monkeypatch.setenv("ITAL_FEATURES", str(tmp_path))
    loaded = features.load(features.find(name))
    assert {network: view.shape[1] for network, view in loaded.views.items()} == networks
    assert all(len(view) == len(loaded.labels) >= 20_000 for view in loaded.views.values())
    assert len(loaded.test_labels) == 10_000
    for reached in loaded.card["accuracy"].values():
        assert reached["test_top1"] >= least
        assert top5 is None or reached["test_top5"] >= top5
    learner = loaded.card["learner"]
    now = features.accuracy(
        loaded.test_views[learner], loaded.last_layers[learner], loaded.test_labels
    )
    # Half precision.
    assert now == pytest.approx(loaded.card["accuracy"][learner]["test_top1"], abs=1e-3)
    # The views are paired: each network knows the labels of the same rows.
    for network, view in loaded.views.items():
        assert features.accuracy(view, loaded.last_layers[network], loaded.labels) > least


def test_all_shipped_files_together_are_small():
    shipped = features.find("mnist").parent
    assert sum(file.stat().st_size for file in shipped.iterdir()) < 25_000_000
