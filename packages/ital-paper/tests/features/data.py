"""Tiny data sets in the formats of the real ones."""

import gzip
import pickle
import struct

import numpy as np


def idx(array):
    return (
        bytes([0, 0, 8, array.ndim])
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.tobytes()
    )


def digits(rng, count, side=8):
    """Images of ten patterns with noise: a network can tell them apart."""
    y = np.arange(count) % 10
    patterns = np.random.default_rng(7).integers(0, 200, (10, side, side))
    return (patterns[y] + rng.integers(0, 56, (count, side, side))).astype(np.uint8), y.astype(
        np.uint8
    )


def write_mnist(folder, train=200, test=60, zipped=False):
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in (("train", train), ("t10k", test)):
        x, y = digits(rng, count)
        for name, array in (("images-idx3", x), ("labels-idx1", y)):
            data = idx(array)
            if zipped:
                (folder / f"{split}-{name}-ubyte.gz").write_bytes(gzip.compress(data))
            else:
                (folder / f"{split}-{name}-ubyte").write_bytes(data)
    return folder


def write_cifar10(folder, each=20):
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
        batch = {
            b"batch_label": b"some",
            b"labels": rng.integers(0, 10, each).tolist(),
            b"data": rng.integers(0, 256, (each, 3072), dtype=np.uint8),
            b"filenames": [b"a.png"] * each,
        }
        (folder / name).write_bytes(pickle.dumps(batch, protocol=2))
    return folder


def write_tiny_imagenet(folder, classes=3, each=8, test=9):
    from PIL import Image

    rng = np.random.default_rng(0)
    names = [f"n{10 - i:04}" for i in range(classes)]
    for number, name in enumerate(names):
        images = folder / "train" / name / "images"
        images.mkdir(parents=True)
        for i in range(each):
            shape = (16, 16) if i == 0 else (16, 16, 3)  # some are grey
            picture = rng.integers(0, 60, shape) + 80 * number
            Image.fromarray(picture.astype(np.uint8)).save(images / f"{name}_{i}.JPEG")
    val = folder / "val" / "images"
    val.mkdir(parents=True)
    lines = []
    for i in range(test):
        Image.fromarray(
            (rng.integers(0, 60, (16, 16, 3)) + 80 * (i % classes)).astype(np.uint8)
        ).save(val / f"v{i}.JPEG")
        lines.append(f"v{i}.JPEG\t{names[i % classes]}\t0\t0\t15\t15")
    (folder / "val" / "val_annotations.txt").write_text("\n".join(lines) + "\n")
    (folder / "wnids.txt").write_text("\n".join(names) + "\n")
    return folder


KINDS = {
    "mnist": ({"24": 4, "20": 3, "30": 5}, 10),
    "cifar10": ({"9": 4, "6": 3, "12": 5}, 10),
    "tiny-imagenet": ({"lite1": 3, "lite0": 3, "lite2": 3}, 12),
    "tiny-imagenet-vgg": ({"16": 3, "13": 3, "19": 3}, 12),
}


def write_features(folder, rows=40, test=15):
    """Small feature files of every kind."""
    rng = np.random.default_rng(0)
    for name in KINDS:
        write_views(folder, name, rows, test, rng)
    write_pixels(folder, test)
    write_equation_features(folder, rows, test)
    return folder


def write_views(folder, name, rows=40, test=15, rng=None):
    """A small feature file of pictures, from linear teachers that know their labels."""
    from ital_paper import features

    rng = np.random.default_rng(0) if rng is None else rng
    networks, classes = KINDS[name]
    views = {net: rng.normal(size=(rows, d)).astype(np.float16) for net, d in networks.items()}
    layers = {
        net: rng.normal(size=(classes, d + 1)).astype(np.float32) for net, d in networks.items()
    }
    learner = next(iter(networks))
    tested = rng.normal(size=(test, networks[learner])).astype(np.float16)
    card = {"name": name, "data": "made up", "learner": learner}
    labels = rng.integers(0, classes, rows).astype(np.uint8)
    made = features.Features(card, labels, views, layers, labels[:test], {learner: tested})
    features.save(made, folder / f"{name}.npz")


def write_pixels(folder, test=15, side=4):
    """Small pictures of the rows of the small ``mnist`` file there, with its labels."""
    from ital_paper import features

    labels = features.load(folder / "mnist.npz").labels
    rng = np.random.default_rng(1)
    patterns = rng.integers(0, 200, (10, side * side))
    view = (patterns[labels] + rng.integers(0, 56, (len(labels), side * side))).astype(np.uint8)
    layer = rng.normal(size=(10, side * side + 1)).astype(np.float32)
    card = {"name": "mnist-pixels", "data": "made up", "learner": "pixels"}
    features.save(
        features.Features(
            card,
            labels,
            {"pixels": view},
            {"pixels": layer},
            labels[:test],
            {"pixels": view[:test]},
        ),
        folder / "mnist-pixels.npz",
    )


def write_equation_features(folder, rows=40, test=15):
    """A small feature file of equations, from untrained networks."""
    import jax

    from ital_paper import equation, features
    from ital_paper.equation.network import Network, features_of, to_weights

    states = [text for some in equation.generate_trajectories(30, seed=1) for text in some.texts]
    codes = equation.encode(list(dict.fromkeys(states))[: rows + test])
    networks = {str(d): Network(d, jax.random.key(d)) for d in (45, 40, 50)}
    views = {
        name: features_of(network)(codes).astype(np.float16) for name, network in networks.items()
    }
    layers = {
        name: np.append(np.asarray(net.value), np.float32(0))[None]
        for name, net in networks.items()
    }
    labels = views["45"].astype(np.float32) @ layers["45"][0, :-1]
    weights = {f"45/{leaf}": array for leaf, array in to_weights(networks["45"]).items()}
    card = {"name": "equation", "data": "made up", "learner": "45"}
    train = {name: view[:rows] for name, view in views.items()}
    tested = {"45": views["45"][rows:]}
    file = folder / "equation.npz"
    features.save(
        features.Features(card, labels[:rows], train, layers, labels[rows:], tested, weights), file
    )
