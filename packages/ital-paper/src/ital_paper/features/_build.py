"""``ital features build``: from a data set to a feature file."""

import functools
import importlib
import platform
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ital import __version__
from ital.errors import InputError
from ital.tools.checks import install
from ital.tools.files import check_writable
from ital_paper.features import _extractors, _formats
from ital_paper.features._file import Features, accuracy, own_folder, save
from ital_paper.features._get import data_folder

Show = Callable[[float, str], None]


class Source(NamedTuple):
    """Training data of a network: rows (images or extracted features) with labels, and the test set.

    The first ``rows`` rows are the data set itself; the others are variants, used only for training.
    """

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    rows: int


class FeatureKind(NamedTuple):
    """A feature file that can be built: its networks (the learner's first), and how to load, make and train them.

    ``load(folder)`` reads the data; ``source(data, network, working, show)`` returns a network's training data;
    ``make(network, classes, inputs)`` returns its constructor; ``card`` describes the data. If ``beta`` is given, the
    scale of the views is chosen for it.
    """

    networks: tuple[str, ...]
    load: Callable[[Path], Any]
    source: Callable[[Any, str, Path, Show], Source]
    make: Callable[[str, Any], Callable[..., Any]]
    recipe: dict[str, Any]
    card: dict[str, Any]
    rows: int = 20_000
    top: tuple[int, ...] = (1,)
    beta: float | None = None


def _images(data: _formats.Images, network: str, working: Path, show: Show) -> Source:
    return Source(data.train_x, data.train_y, data.test_x, data.test_y, len(data.train_y))


def _cnn(constructor: str, network: str, data: _formats.Images) -> Callable[..., Any]:
    from ital_paper.features import _networks

    return functools.partial(
        getattr(_networks, constructor), int(network), side=data.train_x.shape[1]
    )


def _extracted(
    make: Callable[[str, str], _extractors.Extractor],
    size: Callable[[str], int],
    data: _formats.Photos,
    network: str,
    working: Path,
    show: Show,
) -> Source:
    """Features of all images from the frozen network, scaled to mean 0 and deviation 1 over the training rows.

    A row is the mean over an image and its mirror image. Training also uses both separately.
    """
    import jax

    device = "cpu" if jax.default_backend() == "cpu" else "cuda"
    # One network serves all splits; it is not loaded if all are cached.
    extractor = functools.cache(lambda: make(network, device))
    splits = [(split, files, mirrored) for split, files in (("train", data.train), ("test", data.test))
              for mirrored in (False, True)]  # fmt: skip
    total, before, features = sum(len(files) for _, files, _ in splits), 0, {}
    for split, files, mirrored in splits:
        first, share = before / total, len(files) / total
        tell = lambda done, first=first, share=share: show(first + share * done, "extracting")  # noqa: E731
        keep = working / f"{network}-{split}{'-mirrored' * mirrored}"
        features[split, mirrored] = _extractors.extract_all(
            extractor, files, size(network), keep, tell, mirrored=mirrored
        ).astype(np.float32)
        before += len(files)
    mean, deviation = (
        features["train", False].mean(axis=0),
        features["train", False].std(axis=0) + 1e-3,
    )
    plain, mirrored_rows, test, mirrored_test = (
        (part - mean) / deviation for part in features.values()
    )
    return Source(
        np.concatenate([(plain + mirrored_rows) / 2, plain, mirrored_rows]),
        np.concatenate([data.train_y] * 3),
        (test + mirrored_test) / 2,
        data.test_y,
        len(data.train),
    )


def _mlp(inputs: int, network: str, data: _formats.Photos) -> Callable[..., Any]:
    from ital_paper.features._networks import bottleneck_mlp

    return functools.partial(bottleneck_mlp, inputs, data.classes)


_TINY = {
    "data": "Tiny ImageNet: the training images in the folder given, and its 10,000 validation images as test set.",
    "caution": "Tiny ImageNet is drawn from ImageNet, on which the extractors were trained: accuracies are flattered.",
}
_MLP = {"epochs": 60, "batch": 256, "rate": 3e-3, "optimiser": "adam", "weight_decay": 0.01}

KINDS: dict[str, FeatureKind] = {
    "mnist": FeatureKind(
        ("24", "20", "30"), _formats.mnist, _images, functools.partial(_cnn, "mnist_cnn"),
        {"epochs": 3, "batch": 128, "rate": 2e-3, "optimiser": "adam", "weight_decay": 1e-4},
        {"data": "MNIST, handwritten digits: the official 60,000 training and 10,000 test images."},
    ),
    "cifar10": FeatureKind(
        ("9", "6", "12"), _formats.cifar10, _images, functools.partial(_cnn, "cifar_cnn"),
        {"epochs": 40, "batch": 128, "rate": 0.1, "optimiser": "sgd", "weight_decay": 5e-4, "augment": True},
        {"data": "CIFAR-10: the official 50,000 training and 10,000 test images."},
    ),
    "tiny-imagenet": FeatureKind(
        ("lite1", "lite0", "lite2"), _formats.tiny_imagenet,
        functools.partial(_extracted, _extractors.efficientnet_lite, _extractors.LITE_SIZES.__getitem__),
        functools.partial(_mlp, 1280), _MLP,
        {**_TINY, "extractors": "EfficientNet-Lite with ImageNet weights, pictures of 224, 240 and 260 pixels."},
        top=(1, 5), beta=1000.0,
    ),
    "tiny-imagenet-vgg": FeatureKind(
        ("16", "13", "19"), _formats.tiny_imagenet,
        functools.partial(_extracted, _extractors.vgg, lambda network: 224), functools.partial(_mlp, 4096), _MLP,
        {**_TINY, "extractors": "VGG with batch norm and ImageNet weights, pictures resized to 224 pixels."},
        top=(1, 5), beta=1000.0,
    ),
}  # fmt: skip


def build(
    name: str,
    data: Path | None = None,
    out: Path | None = None,
    *,
    seed: int = 0,
    rows: int | None = None,
    epochs: int | None = None,
    positives: str | None = None,
    show: Show = lambda done, text: None,
    scale: Callable[[Features, float], Features] = lambda features, beta: features,
) -> Path:
    """Train the networks of ``name`` and write their feature file.

    Finished parts are kept in a folder beside the file until the file is complete: an interrupted build resumes there.

    Args:
        name: e.g. ``mnist`` or ``equation``.
        data: folder with the data set; None for the folder of ``ital data get``.
        out: the file to write; None for the user's data folder.
        seed: seed for training and for choosing rows.
        rows: number of training rows in the file; None for the usual number.
        epochs: number of epochs; None for the usual number.
        positives: for ``equation``, the states that training ranks above each state of a trajectory: the next one
            ("consecutive", the default), or "any" later one.
        show: called with the share done and a description of the current work.
        scale: ``scale(features, beta)`` scales the views before the file is written, if their scale depends on the
            task's β; the command passes :func:`ital_paper.tasks.scaled_for`.

    Returns:
        The file.

    Raises:
        InputError: if there are no such features, the data cannot be read, a library is missing, or the training
            diverged.
    """
    if name not in KINDS and name not in ("mnist-pixels", "equation"):
        raise InputError(
            f"unknown features {name!r}: choose from {', '.join([*KINDS, 'mnist-pixels', 'equation'])}"
        )
    out = own_folder() / f"{name}.npz" if out is None else out
    if out.is_dir():
        raise InputError(f"cannot write features to {out}: it is a folder")
    check_writable(out.parent)
    if not 0 <= seed < 2**29:
        raise InputError(f"the seed must lie in [0, 2**29), not {seed}")
    if name == "equation":
        if data is not None:
            raise InputError(
                "features of equations need no data: leave out --data, the trajectories are generated"
            )
        _equations = with_extra("_equations")
        recipe = (
            _equations.EquationRecipe()
            if positives is None
            else _equations.EquationRecipe(positives=positives)
        )
        return Path(_equations.build(out, seed=seed, recipe=recipe, show=show))
    if positives is not None:
        raise InputError(f"positives is only for equation: {name} has none")
    data_set = name.removesuffix("-pixels")
    folder = data_folder(data_set) if data is None else data
    if not folder.is_dir():
        raise InputError(
            f"no data for {name}: {folder} is not a folder. Name the folder with --data DIR"
            + (
                f", or download the data: ital data get {data_set}"
                if data_set in ("mnist", "cifar10")
                else ""
            )
        )
    if name == "mnist-pixels":
        return with_extra("_pixels").build(folder, out, seed=seed, rows=rows)
    kind = KINDS[name]
    _training = with_extra("_training")
    loaded = kind.load(folder)
    working = out.with_name(f"{out.name}.building")
    recipe = _training.Recipe(
        **(kind.recipe if epochs is None else {**kind.recipe, "epochs": epochs})
    )
    views, test_views, layers, reached = {}, {}, {}, {}
    labels = test_labels = kept = np.empty(0, int)
    for number, network in enumerate(kind.networks):

        def part(done: float, text: str, number: int = number, network: str = network) -> None:
            show((number + done) / len(kind.networks), f"{name} {network}: {text}")

        source = kind.source(loaded, network, working, part)
        trained = _training.train(
            kind.make(network, loaded), source.train_x, source.train_y, recipe,
            seed=seed, checkpoint=working / f"{network}.eqx", show=part,
        )  # fmt: skip
        labels, test_labels = source.train_y[: source.rows], source.test_y
        kept = kept_rows(len(labels), rows or kind.rows, seed)
        layers[network] = _training.last_layer(trained)
        test = _training.views(trained, source.test_x)
        views[network] = _training.views(trained, source.train_x[kept]).astype(np.float16)
        reached[network] = {
            f"test_top{top}": accuracy(test, layers[network], test_labels, top) for top in kind.top
        }
        if network == kind.networks[0]:
            test_views[network] = test.astype(np.float16)
        part(1.0, f"test accuracy {reached[network]['test_top1']:.1%}")
    classes = max(int(labels.max()) + 1, len(layers[kind.networks[0]]))
    card = {
        "name": name, **kind.card, "learner": kind.networks[0], "teachers": list(kind.networks[1:]),
        "accuracy": reached, "rows": len(kept), "of_rows": len(labels), "test_rows": len(test_labels),
        "classes": classes, "seed": seed, "recipe": recipe._asdict(), "versions": versions(),
    }  # fmt: skip
    small = np.uint8 if classes <= 256 else np.int32
    for network in kind.networks:
        if not (np.isfinite(views[network]).all() and np.isfinite(layers[network]).all()):
            raise InputError(
                f"training of {name} {network} diverged; its checkpoints are in {working}"
            )
    features = Features(
        card, labels[kept].astype(small), views, layers, test_labels.astype(small), test_views
    )
    save(features if kind.beta is None else scale(features, kind.beta), out)
    shutil.rmtree(working, ignore_errors=True)
    return out


def kept_rows(count: int, rows: int, seed: int) -> np.ndarray:
    """Indices of the data set's rows that go into a file, in order: the same for all files made with one seed."""
    return np.sort(np.random.default_rng(seed).permutation(count)[:rows])


def with_extra(module: str) -> Any:
    """A module of this package that needs the extra ``features``; raises InputError if the extra is missing."""
    try:
        return importlib.import_module(f"ital_paper.features.{module}")
    except ImportError as error:
        raise InputError(
            f"building features needs {error.name}: {install('ital-paper[features]')}"
        ) from None


def versions() -> dict[str, str]:
    """The versions of everything that the numbers depend on."""
    import equinox
    import jax
    import optax

    device = jax.devices()[0]
    return {
        "ital": __version__, "jax": jax.__version__, "equinox": equinox.__version__, "optax": optax.__version__,
        "numpy": np.__version__, "python": platform.python_version(),
        "device": f"{device.platform}: {device.device_kind}",
    }  # fmt: skip
