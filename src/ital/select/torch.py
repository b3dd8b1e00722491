"""Selection in PyTorch: a DataLoader of large batches that yields the examples worth training on."""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ital import select
from ital._checks import install
from ital.errors import InputError

try:
    import torch
    from torch.utils.data import DataLoader, Dataset
except ImportError as error:
    raise InputError(f"selection in PyTorch needs {error.name}: {install('torch')}") from None

Loss = Callable[[torch.Tensor, Any], torch.Tensor]  # (outputs, labels) → one loss per example
Norms = Callable[[torch.Tensor, Any], torch.Tensor]  # (outputs, labels) → ‖gᵢ‖² of every example


class ChosenBatch(NamedTuple):
    """The examples to train on.

    Attributes:
        x: their inputs, on the device of the model.
        y: their labels.
        indices: their rows in the dataset, or, if the loader gives none, their places in the large batch (k,).
        scores: their scores, the first choice first (k,).
        large: inputs and labels of the whole large batch, for ``choice_loss``.
        places: places of the chosen examples in the large batch (k,).
        losses: losses of the whole large batch before the step (N,).
    """

    x: torch.Tensor
    y: torch.Tensor
    indices: torch.Tensor
    scores: torch.Tensor
    large: tuple[torch.Tensor, torch.Tensor]
    places: torch.Tensor
    losses: torch.Tensor


class Indexed(Dataset[Any]):  # type: ignore[misc]  # PyTorch is not checked
    """A dataset whose rows end in their index, which precomputed reference losses need.

    Args:
        dataset: a dataset of pairs (input, label) with a length.
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> tuple[Any, Any, int]:
        x, y = self.dataset[index]
        return x, y, index


class TeachingLoader:
    """Wrap a DataLoader of large batches; yield the k examples of each that help the model most.

    Scoring costs one forward pass of the large batch, without gradients and with the model in evaluation mode; the
    model is back in its mode before the batch is yielded. The loader follows the model as it learns.

    Args:
        loader: yields pairs (x, y), or triples (x, y, index) such as those of :class:`Indexed`.
        model: the learner, on its device; may be compiled.
        reference: the model that already knows, a network on the same device; or its losses by row of the dataset, from
            :func:`precompute_reference`, which need a loader of triples.
        k: how many examples to train on.
        loss: one loss per example, from outputs and labels; cross-entropy if None.
        squared_norms: ‖gᵢ‖² from outputs and labels, such as ``ital.select.squared_norms_of``; None leaves it out.
        lr: the step size, needed with the norms; change the attribute if you have a schedule.
        temperature: 0 takes the k best; more makes the choice more random.
        seed: seed of random choices.
        autocast: type for mixed precision in scoring, such as ``torch.bfloat16``; None for full precision.

    Example:
        >>> loader = TeachingLoader(DataLoader(data, 320, shuffle=True), model, reference, k=32)
        >>> for chosen in loader:
        ...     loss = cross_entropy(model(chosen.x), chosen.y)
    """

    def __init__(
        self,
        loader: DataLoader[Any],
        model: torch.nn.Module,
        reference: torch.nn.Module | torch.Tensor | np.ndarray,
        k: int,
        *,
        loss: Loss | None = None,
        squared_norms: Norms | None = None,
        lr: float | None = None,
        temperature: float = 0.0,
        seed: int = 0,
        autocast: torch.dtype | None = None,
    ) -> None:
        if k < 1:
            raise InputError(f"k must be at least 1, not {k}")
        if squared_norms is not None and lr is None:
            raise InputError("squared_norms need lr, the step size")
        self.loader, self.model, self.k = loader, model, k
        self.reference = torch.as_tensor(reference) if isinstance(reference, np.ndarray) else reference
        self.loss = loss or _cross_entropy
        self.squared_norms, self.lr, self.temperature, self.autocast = squared_norms, lr, temperature, autocast
        self._rng = np.random.default_rng(seed)
        self._done = 0  # batches of this epoch
        self._order: Any = None  # state of the loader's own generator when the epoch began

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[ChosenBatch]:
        skip, generator = self._done, self.loader.generator
        if generator is not None:
            if skip and self._order is not None:
                generator.set_state(self._order)
            self._order = generator.get_state()
        for number, batch in enumerate(self.loader):
            if number < skip:
                continue
            self._done = number + 1
            yield self._chosen(batch)
        self._done = 0

    def _chosen(self, batch: Sequence[Any]) -> ChosenBatch:
        device = next(self.model.parameters()).device
        x, y, *rows = (part.to(device, non_blocking=True) for part in batch)
        losses, outputs = self._losses(self.model, x, y)
        norms = None if self.squared_norms is None else self.squared_norms(outputs.float(), y)
        scores = select.volumes(losses, self._reference_losses(x, y, rows), norms, self.lr)
        places = select.choose(scores, min(self.k, len(scores)), self.temperature, self._rng)
        indices = rows[0][places] if rows else places
        return ChosenBatch(x[places], y[places], indices, scores[places], (x, y), places, losses)

    def _reference_losses(self, x: torch.Tensor, y: torch.Tensor, rows: Sequence[torch.Tensor]) -> torch.Tensor:
        if isinstance(self.reference, torch.nn.Module):
            return self._losses(self.reference, x, y)[0]
        if not rows:
            raise InputError("precomputed reference losses need rows (x, y, index): wrap the dataset in Indexed")
        return self.reference[rows[0].to(self.reference.device)].to(x.device)

    def _losses(self, network: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with _scoring(network, x.device, self.autocast):
            outputs = network(x)
            return self.loss(outputs.float(), y), outputs

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint of the training must keep, so that it resumes with the same choices.

        The order of batches is kept if the loader has a ``generator``.

        Returns:
            A dictionary for ``torch.save``.
        """
        return {"rng": self._rng.bit_generator.state, "done": self._done, "order": self._order}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a checkpoint: the next epoch skips the batches that were trained on.

        Args:
            state: what :meth:`state_dict` returned.
        """
        self._rng.bit_generator.state = state["rng"]
        self._done, self._order = state["done"], state["order"]


def precompute_reference(
    model: torch.nn.Module,
    dataset: Any,
    file: str | os.PathLike[str],
    *,
    loss: Loss | None = None,
    batch_size: int = 1024,
    workers: int = 0,
    autocast: torch.dtype | None = None,
) -> torch.Tensor:
    """Compute the reference model's loss on every row of a dataset, once, and keep it in a file.

    An interrupted computation resumes where it stopped. A finished file is read, not computed again.

    Args:
        model: the model that already knows, on its device.
        dataset: a dataset of pairs (input, label) with a length.
        file: where to keep the losses (``.npy``); a small ``.json`` file beside it says how far it is.
        loss: one loss per example, from outputs and labels; cross-entropy if None.
        batch_size: rows at a time.
        workers: processes that load data.
        autocast: type for mixed precision, such as ``torch.bfloat16``; None for full precision.

    Returns:
        The losses by row (len(dataset),).

    Raises:
        InputError: if the file belongs to another model or dataset, or a loss is not finite.
    """
    path, count = Path(file), len(dataset)
    note = path.with_suffix(".json")
    told = {"rows": count, "model": _fingerprint(model), "precision": str(autocast or torch.float32)}
    done = _done_before(path, note, told)
    kept = np.lib.format.open_memmap(path, "r+" if done else "w+", np.float32, (count,))
    device = next(model.parameters()).device
    rest = torch.utils.data.Subset(dataset, range(done, count))
    for x, y in DataLoader(rest, batch_size, num_workers=workers) if done < count else ():
        with _scoring(model, device, autocast):
            losses = (loss or _cross_entropy)(model(x.to(device)).float(), y.to(device))
        if not bool(torch.isfinite(losses).all()):
            raise InputError(f"the reference's loss is not finite in rows {done} to {done + len(losses) - 1}")
        kept[done : done + len(losses)] = losses.cpu().numpy()
        kept.flush()
        done += len(losses)
        part = note.with_suffix(".part")
        part.write_text(json.dumps(told | {"done": done}), encoding="utf-8")
        part.replace(note)
    return torch.from_numpy(np.array(kept))


def _done_before(path: Path, note: Path, told: dict[str, Any]) -> int:
    """How many rows the file has already; raises if they are of another model or dataset."""
    if not (path.exists() and note.exists()):
        return 0
    before = json.loads(note.read_text(encoding="utf-8"))
    done = before.pop("done", 0)
    if before != told:
        differs = next(name for name in told if before.get(name) != told[name])
        raise InputError(f"{path} was computed with another {differs}: remove it, or give another file")
    return int(done)


def _fingerprint(model: torch.nn.Module) -> str:
    digest = hashlib.sha256()
    for name, value in model.state_dict().items():
        digest.update(name.removeprefix("_orig_mod.").encode())
        digest.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _cross_entropy(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(outputs, labels, reduction="none")


@contextlib.contextmanager
def _scoring(network: torch.nn.Module, device: torch.device, autocast: torch.dtype | None) -> Iterator[None]:
    """Without gradients, in evaluation mode; afterwards the network is in its mode again."""
    training = network.training
    network.eval()
    mixed = contextlib.nullcontext() if autocast is None else torch.autocast(device.type, dtype=autocast)
    try:
        with torch.no_grad(), mixed:
            yield
    finally:
        network.train(training)


__all__ = ["ChosenBatch", "Indexed", "TeachingLoader", "precompute_reference"]
