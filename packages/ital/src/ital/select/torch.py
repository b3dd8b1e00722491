"""Selection in PyTorch: large batches in, the examples worth training on out."""

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ital import select
from ital.errors import InputError
from ital.tools.checks import install

try:
    import torch
    from torch import Tensor
    from torch.nn import Module
    from torch.utils.data import DataLoader, Dataset, Subset
except ImportError as error:
    raise InputError(f"selection in PyTorch needs {error.name}: {install('ital[torch]')}") from None

Loss = Callable[[Tensor, Any], Tensor]  # (outputs, labels) → one loss per example
Norms = Callable[[Tensor, Any], Tensor]  # (outputs, labels) → ‖gᵢ‖² of every example


class ChosenBatch(NamedTuple):
    """The examples to train on.

    Attributes:
        x: their inputs, on the device of the model.
        y: their labels.
        indices: their rows in the dataset, or, if the loader gives none, their places in the large
            batch (k,).
        scores: their scores, the first choice first (k,).
        large: inputs and labels of the whole large batch, for ``choice_loss``.
        places: places of the chosen examples in the large batch (k,).
        losses: losses of the whole large batch before the step (N,).
    """

    x: Tensor
    y: Tensor
    indices: Tensor
    scores: Tensor
    large: tuple[Tensor, Tensor]
    places: Tensor
    losses: Tensor


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

    Scoring costs one forward pass of the large batch, without gradients and with the model in
    evaluation mode; the model is back in its mode before the batch is yielded. The loader follows
    the model as it learns.

    Args:
        loader: yields pairs (x, y), or triples (x, y, index) such as those of :class:`Indexed`.
        model: the learner, on its device; may be compiled.
        reference: the model that already knows, a network on the same device; or its losses by row
            of the dataset, from :func:`precompute_reference`, which need a loader of triples.
        k: how many examples to train on.
        loss: one loss per example, from outputs and labels; cross-entropy if None.
        squared_norms: ‖gᵢ‖² from outputs and labels, such as ``ital.select.squared_norms_of``; None
            leaves it out.
        lr: the step size, needed with the norms; change the attribute if you have a schedule.
        temperature: 0 takes the k best; more makes the choice more random.
        seed: seed of random choices, and of the loader's order if it has no ``generator`` of its
            own. The global random generator stays as it is.
        autocast: type for mixed precision in scoring, such as ``torch.bfloat16``; None for full
            precision.
        every: how many batches to take from a large one. It is scored once; the best k are yielded
            first, then the next k, …
        scorer: a smaller network that scores in place of the model; train it on the same examples.
        on_nan: whether to "refuse" scores that are not finite, or to choose them "last".

    Example:
        >>> loader = TeachingLoader(DataLoader(data, 320, shuffle=True), model, reference, k=32)
        >>> for chosen in loader:
        ...     loss = cross_entropy(model(chosen.x), chosen.y)
    """

    def __init__(  # noqa: PLR0913
        self,
        loader: DataLoader[Any],
        model: Module,
        reference: Module | Tensor | np.ndarray,
        k: int,
        *,
        loss: Loss | None = None,
        squared_norms: Norms | None = None,
        lr: float | None = None,
        temperature: float = 0.0,
        seed: int = 0,
        autocast: torch.dtype | None = None,
        every: int = 1,
        scorer: Module | None = None,
        on_nan: str = "refuse",
    ) -> None:
        if not isinstance(loader, DataLoader):
            raise InputError(
                f"loader must be a DataLoader of large batches, not {type(loader).__name__}"
            )
        if k < 1:
            raise InputError(f"k must be at least 1, not {k}")
        if every < 1:
            raise InputError(f"every must be at least 1, not {every}")
        if squared_norms is not None and lr is None:
            raise InputError("squared_norms need lr, the step size")
        self.loader = loader
        self.model = model
        self.scorer = scorer or model
        self.k = k
        self.every = every
        if isinstance(reference, np.ndarray):
            reference = torch.as_tensor(reference)
        self.reference = reference
        _check_length(self.reference, loader)
        self.loss = loss or _cross_entropy
        self.squared_norms = squared_norms
        self.lr = lr
        self.temperature = temperature
        self.autocast = autocast
        self.on_nan = on_nan
        self._rng = np.random.default_rng(seed)
        self._done = 0  # batches that this epoch has yielded
        self._places: Tensor | None = None  # the choice from the large batch of the last one
        # Global randomness of the loader: its order without a generator, the seeds of its workers,
        # random transforms.
        self._own_state = torch.Generator().manual_seed(seed).get_state()
        self._epoch_began: dict[str, Any] = {"order": None, "own": self._own_state}

    def __len__(self) -> int:
        return len(self.loader) * self.every

    def __iter__(self) -> Iterator[ChosenBatch]:
        # After an interruption, the batches that were trained on are skipped.
        skip = self._done
        self._begin_epoch(resumes=skip > 0)
        for number, batch in enumerate(self._large_batches()):
            first = number * self.every  # the number of small batches before this large one
            if first + self.every <= skip:
                continue
            # In the middle of a large batch, the choice made before the interruption holds.
            made_before = None
            if first < skip:
                made_before = self._places
            scored = self._scored(batch, made_before)
            self._places = scored.places
            for turn in range(max(0, skip - first), self.every):
                places = scored.places[turn * self.k : (turn + 1) * self.k]
                self._done = first + turn + 1
                if len(places):
                    yield scored.chosen(places)
        self._done = 0

    def _begin_epoch(self, resumes: bool) -> None:
        """Keep the random states from which the epoch starts, or return to them."""
        if resumes and self.loader.persistent_workers:
            raise InputError(
                "persistent workers have random states that no checkpoint holds: "
                "resume within an epoch with persistent_workers=False"
            )
        generator = self.loader.generator
        if resumes:
            self._own_state = self._epoch_began["own"]
            if generator is not None and self._epoch_began["order"] is not None:
                generator.set_state(self._epoch_began["order"])
        order = None
        if generator is not None:
            order = generator.get_state()
        self._epoch_began = {"order": order, "own": self._own_state}

    def _large_batches(self) -> Iterator[Any]:
        """Yield the loader's batches; it draws its random numbers apart from everybody else's."""
        with self._apart():
            batches = iter(self.loader)
        while True:
            with self._apart():
                batch = next(batches, None)
            if batch is None:
                return
            yield batch

    @contextlib.contextmanager
    def _apart(self) -> Iterator[None]:
        """Use a global random generator of our own within a block."""
        outside = torch.get_rng_state()
        torch.set_rng_state(self._own_state)
        try:
            yield
        finally:
            self._own_state = torch.get_rng_state()
            torch.set_rng_state(outside)

    def _scored(self, batch: Sequence[Any], places: Tensor | None) -> "_Scored":
        """Score a large batch and choose from it.

        ``places`` is a choice made before an interruption.
        """
        device = next(self.model.parameters()).device
        x, y, *rows = (part.to(device, non_blocking=True) for part in batch)
        losses, outputs = self._losses(self.scorer, x, y)
        norms = None
        if self.squared_norms is not None:
            norms = self.squared_norms(outputs.float(), y)
        # A loader of pairs does not say which rows they are.
        indices = next(iter(rows), None)
        reference_losses = self._reference_losses(x, y, indices)
        scores = select.volumes(losses, reference_losses, norms, self.lr)
        if places is None:
            wanted = min(self.k * self.every, len(scores))
            places = select.choose(scores, wanted, self.temperature, self._rng, on_nan=self.on_nan)
        return _Scored(x, y, indices, scores, losses, places)

    def _reference_losses(
        self,
        x: Tensor,
        y: Tensor,
        indices: Tensor | None,
    ) -> Tensor:
        """Return the reference's losses of a large batch, computed now or before."""
        if isinstance(self.reference, Module):
            losses, _ = self._losses(self.reference, x, y)
            return losses
        if indices is None:
            raise InputError(
                "precomputed reference losses need rows (x, y, index): wrap the dataset in Indexed"
            )
        # Losses of a large dataset may lie in another memory than the batch.
        at_reference = indices.to(self.reference.device)
        return self.reference[at_reference].to(x.device)

    def _losses(
        self,
        network: Module,
        x: Tensor,
        y: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return a network's losses and outputs."""
        with _scoring(network, x.device, self.autocast):
            outputs = network(x)
            losses = self.loss(outputs.float(), y)
        return losses, outputs

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint must keep, so that training resumes with the same choices.

        Returns:
            A dictionary for ``torch.save``.
        """
        return {
            "rng": self._rng.bit_generator.state,
            "done": self._done,
            "places": self._places,
            **self._epoch_began,
            "next_own": self._own_state,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from a checkpoint: the next epoch skips the batches that were trained on.

        Args:
            state: what :meth:`state_dict` returned.
        """
        missing = sorted(set(self.state_dict()) - set(state))
        if missing:
            raise InputError(f"this is no state of a TeachingLoader: it lacks {', '.join(missing)}")
        self._rng.bit_generator.state = state["rng"]
        self._done = state["done"]
        self._places = state["places"]
        self._epoch_began = {"order": state["order"], "own": state["own"]}
        self._own_state = state["next_own"]


class _Scored(NamedTuple):
    """A large batch with its scores.

    Attributes:
        x: the inputs.
        y: the labels.
        rows: the rows in the dataset (N,), if the loader gives them.
        scores: the scores (N,).
        losses: the model's losses (N,).
        places: the chosen places in the large batch, the first choice first.
    """

    x: Tensor
    y: Tensor
    rows: Tensor | None
    scores: Tensor
    losses: Tensor
    places: Tensor

    def chosen(self, places: Tensor) -> ChosenBatch:
        """Return the examples at some of the places."""
        indices = places
        if self.rows is not None:
            indices = self.rows[places]
        return ChosenBatch(
            x=self.x[places],
            y=self.y[places],
            indices=indices,
            scores=self.scores[places],
            large=(self.x, self.y),
            places=places,
            losses=self.losses,
        )


def _check_length(reference: Any, loader: DataLoader[Any]) -> None:
    """Raise InputError for reference losses that do not cover the dataset."""
    if isinstance(reference, Module) or not hasattr(loader.dataset, "__len__"):
        return
    rows = len(loader.dataset)
    if len(reference) != rows:
        raise InputError(
            f"the reference has {len(reference)} losses, but the dataset has {rows} rows"
        )


def precompute_reference(
    model: Module,
    dataset: Any,
    file: str | os.PathLike[str],
    *,
    loss: Loss | None = None,
    batch_size: int = 1024,
    workers: int = 0,
    autocast: torch.dtype | None = None,
) -> Tensor:
    """Compute the reference model's loss on every row of a dataset, once, and keep it in a file.

    An interrupted computation resumes where it stopped. A finished file is read, not computed
    again.

    Args:
        model: the model that already knows, on its device.
        dataset: a dataset of pairs (input, label) with a length.
        file: where to keep the losses (``.npy``); a small ``.json`` file beside it says how far it
            is.
        loss: one loss per example, from outputs and labels; cross-entropy if None.
        batch_size: rows at a time.
        workers: processes that load data.
        autocast: type for mixed precision, such as ``torch.bfloat16``; None for full precision.

    Returns:
        The losses by row (len(dataset),).

    Raises:
        InputError: if the file belongs to another model or dataset, or a loss is not finite.
    """
    path = Path(file)
    count = len(dataset)
    note = path.with_suffix(".json")
    belongs_to = {
        "rows": count,
        "model": _fingerprint(model),
        "precision": str(autocast or torch.float32),
    }
    done = _done_before(path, note, belongs_to)
    mode = "w+"
    if done:
        mode = "r+"
    kept = np.lib.format.open_memmap(path, mode, np.float32, (count,))
    if done < count:
        rest = Subset(dataset, range(done, count))
        for losses in _losses_of(model, rest, loss, batch_size, workers, autocast):
            last = done + len(losses)
            if not np.isfinite(losses).all():
                raise InputError(f"the reference's loss is not finite in rows {done} to {last - 1}")
            kept[done:last] = losses
            # The losses are on disk before the note says so: an interruption loses no row.
            kept.flush()
            done = last
            _write_note(note, belongs_to | {"done": done})
    return torch.from_numpy(np.array(kept))


def _write_note(note: Path, content: dict[str, Any]) -> None:
    """Write how far a file of losses is; an interruption leaves the old note or the new one."""
    part = note.with_suffix(".part")
    part.write_text(json.dumps(content), encoding="utf-8")
    part.replace(note)


def cross_reference(
    train: Callable[[Any], Module],
    dataset: Any,
    *,
    seed: int = 0,
    loss: Loss | None = None,
    batch_size: int = 1024,
    workers: int = 0,
    autocast: torch.dtype | None = None,
) -> Tensor:
    """Compute reference losses without trusted rows.

    Each half of the dataset is judged by a model trained on the other half. No model judges a row
    that it has learned, so a wrong label stays surprising.

    Args:
        train: trains a model on a dataset, half of the rows, and returns it. It is called twice.
        dataset: a dataset of pairs (input, label) with a length.
        seed: seed of the halves.
        loss: one loss per example, from outputs and labels; cross-entropy if None.
        batch_size: rows at a time.
        workers: processes that load data.
        autocast: type for mixed precision, such as ``torch.bfloat16``; None for full precision.

    Returns:
        The losses by row (len(dataset),), for a :class:`TeachingLoader`.

    Raises:
        InputError: if the dataset has fewer than two rows, or a loss is not finite.

    Example:
        >>> reference = cross_reference(train, data)
        >>> large = DataLoader(Indexed(data), 320, shuffle=True)
        >>> loader = TeachingLoader(large, model, reference, k=32)
    """
    count = len(dataset)
    if count < 2:
        raise InputError(f"two halves need at least two rows, and the dataset has {count}")
    order = np.random.default_rng(seed).permutation(count)
    middle = count // 2
    one_half = np.sort(order[:middle])
    other_half = np.sort(order[middle:])
    found = np.empty(count, np.float32)
    for learned, judged in ((one_half, other_half), (other_half, one_half)):
        model = train(Subset(dataset, learned.tolist()))
        rows = Subset(dataset, judged.tolist())
        parts = _losses_of(model, rows, loss, batch_size, workers, autocast)
        found[judged] = np.concatenate(list(parts))
    faults = np.flatnonzero(~np.isfinite(found))
    if len(faults):
        raise InputError(f"the loss of row {faults[0]} is not finite: has the model diverged?")
    return torch.from_numpy(found)


def _losses_of(
    model: Module,
    dataset: Any,
    loss: Loss | None,
    batch_size: int,
    workers: int,
    autocast: torch.dtype | None,
) -> Iterator[np.ndarray]:
    """Yield the losses of a model on a dataset, batch by batch.

    The global random generator stays as it is.
    """
    device = next(model.parameters()).device
    loss = loss or _cross_entropy
    # A DataLoader without a generator of its own draws a seed from the global one, even if it does
    # not shuffle.
    loader = DataLoader(
        dataset,
        batch_size,
        num_workers=workers,
        generator=torch.Generator(),
    )
    for x, y in loader:
        with _scoring(model, device, autocast):
            outputs = model(x.to(device)).float()
            losses = loss(outputs, y.to(device))
        yield losses.cpu().numpy()


def _done_before(path: Path, note: Path, belongs_to: dict[str, Any]) -> int:
    """Return how many rows the file has already.

    Raises:
        InputError: if they are of another model or dataset.
    """
    if not (path.exists() and note.exists()):
        return 0
    before = json.loads(note.read_text(encoding="utf-8"))
    done = before.pop("done", 0)
    if before != belongs_to:
        differing = [name for name, value in belongs_to.items() if before.get(name) != value]
        raise InputError(
            f"{path} was computed with another {differing[0]}: remove it, or give another file"
        )
    return int(done)


def _fingerprint(model: Module) -> str:
    """Return a checksum of a model's weights; the same for a compiled one."""
    digest = hashlib.sha256()
    for name, value in model.state_dict().items():
        flat = value.detach().cpu().contiguous().view(-1)
        digest.update(name.removeprefix("_orig_mod.").encode())  # torch.compile adds it
        digest.update(flat.view(torch.uint8).numpy().tobytes())  # NumPy does not know bfloat16
    return digest.hexdigest()


def _cross_entropy(outputs: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy of each example (N,)."""
    return torch.nn.functional.cross_entropy(outputs, labels, reduction="none")


@contextlib.contextmanager
def _scoring(
    network: Module,
    device: torch.device,
    autocast: torch.dtype | None,
) -> Iterator[None]:
    """Compute without gradients in evaluation mode; then return the network to its mode."""
    training = network.training
    network.eval()
    precision: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
    if autocast is not None:
        precision = torch.autocast(device.type, dtype=autocast)
    try:
        with torch.no_grad(), precision:
            yield
    finally:
        network.train(training)


__all__ = ["ChosenBatch", "Indexed", "TeachingLoader", "cross_reference", "precompute_reference"]
