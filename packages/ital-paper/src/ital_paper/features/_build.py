"""``ital features build``: from a data set to a feature file."""

import functools
import importlib
import itertools
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
    """Training data of a network, with labels, and the test set.

    Attributes:
        train_x: images or extracted features. The first ``rows`` rows are the data set itself; the
            others are variants, used only for training.
        train_y: their labels.
        test_x: the rows of the test set.
        test_y: their labels.
        rows: the number of rows of the data set.
    """

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    rows: int


class FeatureKind(NamedTuple):
    """A feature file that can be built.

    Attributes:
        networks: names of its networks, the learner's first.
        load: ``load(folder)`` reads the data.
        source: ``source(data, network, working, show)`` returns a network's training data.
        make: ``make(network, data)`` returns a network's constructor.
        recipe: how the networks are trained.
        card: what the data card says of the data.
        rows: number of training rows in the file.
        top: the accuracies on the card: how many of the largest outputs count.
        beta: the β of its tasks, if the scale of the views is chosen for it.
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


# ---- training data and constructors ----


def _images(
    data: _formats.Images,
    network: str,
    working: Path,
    show: Show,
) -> Source:
    return Source(data.train_x, data.train_y, data.test_x, data.test_y, len(data.train_y))


def _cnn(
    constructor: str,
    network: str,
    data: _formats.Images,
) -> Callable[..., Any]:
    # Imported here: the networks need the extra ``features``.
    from ital_paper.features import _networks

    make = getattr(_networks, constructor)
    return functools.partial(make, int(network), side=data.train_x.shape[1])


def _extracted(
    make: Callable[[str, str], _extractors.Extractor],
    size: Callable[[str], int],
    data: _formats.Photos,
    network: str,
    working: Path,
    show: Show,
) -> Source:
    """Return features of all images from the frozen network.

    They are scaled to mean 0 and deviation 1 over the training rows. A row is the mean over an
    image and its mirror image. Training also uses both separately.

    Args:
        make: ``make(network, device)`` makes the frozen network.
        size: ``size(network)`` is the size of its images in pixels.
        data: the images.
        network: name of the network.
        working: folder for the features of parts of the images.
        show: called with the share of the images that is done.
    """
    import jax

    device = "cpu" if jax.default_backend() == "cpu" else "cuda"
    # One network serves all splits; it is not loaded if all are cached.
    extractor = functools.cache(lambda: make(network, device))
    splits = {"train": data.train, "test": data.test}
    total = 2 * sum(map(len, splits.values()))
    before = 0
    features = {}
    for (split, files), mirrored in itertools.product(splits.items(), (False, True)):
        suffix = "-mirrored" if mirrored else ""
        features[split, mirrored] = _extractors.extract_all(
            extractor,
            files,
            size(network),
            working / f"{network}-{split}{suffix}",
            _show_share(show, before / total, len(files) / total),
            mirrored=mirrored,
        ).astype(np.float32)
        before += len(files)

    # The mirrored rows and the test rows are scaled as the training rows are.
    mean = features["train", False].mean(axis=0)
    deviation = features["train", False].std(axis=0) + 1e-3
    upright, turned, test_upright, test_turned = (
        (part - mean) / deviation for part in features.values()
    )
    return Source(
        train_x=np.concatenate([(upright + turned) / 2, upright, turned]),
        train_y=np.concatenate([data.train_y] * 3),
        test_x=(test_upright + test_turned) / 2,
        test_y=data.test_y,
        rows=len(data.train),
    )


def _show_share(
    show: Show,
    first: float,
    share: float,
) -> Callable[[float], None]:
    """Return a function that shows the progress of one of several extractions."""
    return lambda done: show(first + share * done, "extracting")


def _mlp(
    inputs: int,
    network: str,
    data: _formats.Photos,
) -> Callable[..., Any]:
    from ital_paper.features._networks import bottleneck_mlp

    return functools.partial(bottleneck_mlp, inputs, data.classes)


# ---- the kinds ----

_TINY = {
    "data": (
        "Tiny ImageNet: the training images in the folder given, and its 10,000 validation images "
        "as test set."
    ),
    "caution": (
        "Tiny ImageNet is drawn from ImageNet, on which the extractors were trained: accuracies "
        "are flattered."
    ),
}
_MLP = {"epochs": 60, "batch": 256, "rate": 3e-3, "optimiser": "adam", "weight_decay": 0.01}

KINDS: dict[str, FeatureKind] = {
    "mnist": FeatureKind(
        networks=("24", "20", "30"),
        load=_formats.read_mnist,
        source=_images,
        make=functools.partial(_cnn, "mnist_cnn"),
        recipe={
            "epochs": 3,
            "batch": 128,
            "rate": 2e-3,
            "optimiser": "adam",
            "weight_decay": 1e-4,
        },
        card={
            "data": (
                "MNIST, handwritten digits: the official 60,000 training and 10,000 test images."
            )
        },
    ),
    "cifar10": FeatureKind(
        networks=("9", "6", "12"),
        load=_formats.read_cifar10,
        source=_images,
        make=functools.partial(_cnn, "cifar_cnn"),
        recipe={
            "epochs": 40,
            "batch": 128,
            "rate": 0.1,
            "optimiser": "sgd",
            "weight_decay": 5e-4,
            "augment": True,
        },
        card={"data": "CIFAR-10: the official 50,000 training and 10,000 test images."},
    ),
    "tiny-imagenet": FeatureKind(
        networks=("lite1", "lite0", "lite2"),
        load=_formats.read_tiny_imagenet,
        source=functools.partial(
            _extracted, _extractors.efficientnet_lite, _extractors.LITE_SIZES.__getitem__
        ),
        make=functools.partial(_mlp, 1280),
        recipe=_MLP,
        card={
            **_TINY,
            "extractors": (
                "EfficientNet-Lite with ImageNet weights, pictures of 224, 240 and 260 pixels."
            ),
        },
        top=(1, 5),
        beta=1000.0,
    ),
    "tiny-imagenet-vgg": FeatureKind(
        networks=("16", "13", "19"),
        load=_formats.read_tiny_imagenet,
        source=functools.partial(_extracted, _extractors.vgg, lambda network: 224),
        make=functools.partial(_mlp, 4096),
        recipe=_MLP,
        card={
            **_TINY,
            "extractors": (
                "VGG with batch norm and ImageNet weights, pictures resized to 224 pixels."
            ),
        },
        top=(1, 5),
        beta=1000.0,
    ),
}
# Names of features that are not trained on images; each has a module of its own.
OTHERS = ("mnist-pixels", "equation")


# ---- building ----


def build(  # noqa: PLR0913
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

    Finished parts are kept in a folder beside the file until the file is complete: an interrupted
    build resumes there.

    Args:
        name: e.g. ``mnist`` or ``equation``.
        data: folder with the data set; None for the folder of ``ital data get``.
        out: the file to write; None for the user's data folder.
        seed: seed for training and for choosing rows.
        rows: number of training rows in the file; None for the usual number.
        epochs: number of epochs; None for the usual number.
        positives: for ``equation``, the states that training ranks above each state of a
            trajectory: the next one ("consecutive", the default), or "any" later one.
        show: called with the share done and a description of the current work.
        scale: ``scale(features, beta)`` scales the views before the file is written, if their
            scale depends on the task's β; the command passes :func:`ital_paper.tasks.scaled_for`.

    Returns:
        The file.

    Raises:
        InputError: if there are no such features, the data cannot be read, a library is missing,
            or the training diverged.
    """
    if name not in KINDS and name not in OTHERS:
        names = ", ".join([*KINDS, *OTHERS])
        raise InputError(f"unknown features {name!r}: choose from {names}")
    out = own_folder() / f"{name}.npz" if out is None else out
    _check_target(out, seed)
    if name == "equation":
        return _build_equations(data, out, seed, positives, show)
    if positives is not None:
        raise InputError(f"positives is only for equation: {name} has none")
    folder = _folder_of(name, data)
    if name == "mnist-pixels":
        return with_extra("_pixels").build_pixels(folder, out, seed=seed, rows=rows)

    kind = KINDS[name]
    if rows:
        kind = kind._replace(rows=rows)
    if epochs is not None:
        kind = kind._replace(recipe={**kind.recipe, "epochs": epochs})
    working = out.with_name(f"{out.name}.building")
    features = _train_networks(name, kind, folder, working, seed, show)
    if kind.beta is not None:
        features = scale(features, kind.beta)
    save(features, out)
    shutil.rmtree(working, ignore_errors=True)
    return out


def _check_target(out: Path, seed: int) -> None:
    """Raise InputError for a file that cannot be written, or a seed that is too large."""
    if out.is_dir():
        raise InputError(f"cannot write features to {out}: it is a folder")
    check_writable(out.parent)
    # Equations use four seeds for each seed, which must fit into 32 bits.
    if not 0 <= seed < 2**29:
        raise InputError(f"the seed must lie in [0, 2**29), not {seed}")


def _build_equations(
    data: Path | None, out: Path, seed: int, positives: str | None, show: Show
) -> Path:
    if data is not None:
        raise InputError(
            "features of equations need no data: leave out --data, the trajectories are generated"
        )
    equations = with_extra("_equations")
    recipe = equations.EquationRecipe()
    if positives is not None:
        recipe = recipe._replace(positives=positives)
    return Path(equations.build_equations(out, seed=seed, recipe=recipe, show=show))


def _folder_of(name: str, data: Path | None) -> Path:
    """Return the folder with the data, or say where to get them."""
    data_set = name.removesuffix("-pixels")
    folder = data_folder(data_set) if data is None else data
    if not folder.is_dir():
        fault = f"no data for {name}: {folder} is not a folder. Name the folder with --data DIR"
        if data_set in ("mnist", "cifar10"):
            fault += f", or download the data: ital data get {data_set}"
        raise InputError(fault)
    return folder


class _Built(NamedTuple):
    """What a trained network gives to the file."""

    view: np.ndarray  # of the rows that are kept
    test_view: np.ndarray
    last_layer: np.ndarray
    accuracy: dict[str, float]


def _train_networks(
    name: str, kind: FeatureKind, folder: Path, working: Path, seed: int, show: Show
) -> Features:
    """Train all networks of a kind, each from its checkpoint, and return the file's content."""
    training = with_extra("_training")
    data = kind.load(folder)
    recipe = training.Recipe(**kind.recipe)
    built: dict[str, _Built] = {}
    labels = test_labels = kept = np.empty(0, int)
    for number, network in enumerate(kind.networks):
        show_part = _show_network(show, number, len(kind.networks), f"{name} {network}")
        source = kind.source(data, network, working, show_part)
        # Labels are those of the data set, and so the same for all networks.
        labels = source.train_y[: source.rows]
        test_labels = source.test_y
        kept = kept_rows(len(labels), kind.rows, seed)
        trained = training.train(
            kind.make(network, data),
            source.train_x,
            source.train_y,
            recipe,
            seed=seed,
            checkpoint=working / f"{network}.eqx",
            show=show_part,
        )
        built[network] = _views_of(trained, source, kept, kind.top)
        show_part(1.0, f"test accuracy {built[network].accuracy['test_top1']:.1%}")
    for network, parts in built.items():
        if not (np.isfinite(parts.view).all() and np.isfinite(parts.last_layer).all()):
            raise InputError(
                f"training of {name} {network} diverged; its checkpoints are in {working}"
            )

    learner, *teachers = kind.networks
    classes = max(int(labels.max()) + 1, len(built[learner].last_layer))
    card = {
        "name": name,
        **kind.card,
        "learner": learner,
        "teachers": teachers,
        "accuracy": {network: parts.accuracy for network, parts in built.items()},
        "rows": len(kept),
        "of_rows": len(labels),
        "test_rows": len(test_labels),
        "classes": classes,
        "seed": seed,
        "recipe": recipe._asdict(),
        "versions": versions(),
    }
    small = np.uint8 if classes <= 256 else np.int32
    return Features(
        card,
        labels[kept].astype(small),
        {network: parts.view for network, parts in built.items()},
        {network: parts.last_layer for network, parts in built.items()},
        test_labels.astype(small),
        # Only the learner is tested, so the file needs no other views of the test rows.
        {learner: built[learner].test_view.astype(np.float16)},
    )


def _show_network(
    show: Show,
    number: int,
    count: int,
    title: str,
) -> Show:
    """Return a function that shows the progress of one of several networks."""
    return lambda done, text: show((number + done) / count, f"{title}: {text}")


def _views_of(
    trained: Any,
    source: Source,
    kept: np.ndarray,
    top: tuple[int, ...],
) -> _Built:
    """Compute the views of a trained network, and its accuracies on the whole test set."""
    training = with_extra("_training")
    last_layer = training.last_layer(trained)
    # Accuracies come from full precision, views are stored in half.
    test_view = training.views(trained, source.test_x)
    view = training.views(trained, source.train_x[kept]).astype(np.float16)
    reached = {
        f"test_top{most}": accuracy(test_view, last_layer, source.test_y, most) for most in top
    }
    return _Built(view, test_view, last_layer, reached)


def kept_rows(
    count: int,
    rows: int,
    seed: int,
) -> np.ndarray:
    """Return the indices of the data set's rows that go into a file, in order.

    They are the same for all files made with one seed.
    """
    return np.sort(np.random.default_rng(seed).permutation(count)[:rows])


def with_extra(module: str) -> Any:
    """Import a module of this package that needs the extra ``features``.

    Raises:
        InputError: if the extra is missing.
    """
    try:
        return importlib.import_module(f"ital_paper.features.{module}")
    except ImportError as error:
        raise InputError(
            f"building features needs {error.name}: {install('ital-paper[features]')}"
        ) from None


def versions() -> dict[str, str]:
    """Return the versions of everything that the numbers depend on."""
    import equinox
    import jax
    import optax

    device = jax.devices()[0]
    return {
        "ital": __version__,
        "jax": jax.__version__,
        "equinox": equinox.__version__,
        "optax": optax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "device": f"{device.platform}: {device.device_kind}",
    }
