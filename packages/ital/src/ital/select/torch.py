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
from ital.errors import InputError
from ital.tools.checks import install

try:
    import torch
    from torch.utils.data import DataLoader, Dataset
except ImportError as error:
    raise InputError(f"selection in PyTorch needs {error.name}: {install('ital[torch]')}") from None

Loss = Callable[[torch.Tensor, Any], torch.Tensor]  # (outputs, labels) → one loss per example
Norms = Callable[[torch.Tensor, Any], torch.Tensor]  # (outputs, labels) → ‖gᵢ‖² of every example


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
        every: int = 1,
        scorer: torch.nn.Module | None = None,
        on_nan: str = "refuse",
    ) -> None:
        if not isinstance(loader, DataLoader):
            raise InputError(
                f"loader must be a DataLoader of large batches, not {type(loader).__name__}"
            )
        for name, number in (("k", k), ("every", every)):
            if number < 1:
                raise InputError(f"{name} must be at least 1, not {number}")
        if squared_norms is not None and lr is None:
            raise InputError("squared_norms need lr, the step size")
        self.loader = loader
        self.model = model
        self.scorer = scorer or model
        self.k = k
        self.every = every
        self.reference = (
            torch.as_tensor(reference) if isinstance(reference, np.ndarray) else reference
        )
        _check_length(self.reference, loader)
        self.loss = loss or _cross_entropy
        self.squared_norms = squared_norms
        self.lr = lr
        self.temperature = temperature
        self.autocast = autocast
        self.on_nan = on_nan
        self._rng = np.random.default_rng(seed)
        self._done = 0  # batches that this epoch has yielded
        self._places: torch.Tensor | None = None  # the choice from the large batch of the last one
        # Global randomness of the loader: its order without a generator, the seeds of its workers, random transforms.
        self._own_state = torch.Generator().manual_seed(seed).get_state()
        self._epoch_began: dict[str, Any] = {"order": None, "own": self._own_state}

    def __len__(self) -> int:
        return len(self.loader) * self.every

    def __iter__(self) -> Iterator[ChosenBatch]:
        skip = self._done
        self._begin_epoch(resumes=skip > 0)
        for number, batch in enumerate(self._large_batches()):
            first = number * self.every  # of the small batches
            if first + self.every <= skip:
                continue
            scored = self._scored(batch, self._places if first < skip else None)
            self._places = scored.places
            for turn in range(max(0, skip - first), self.every):
                chosen = scored.places[turn * self.k : (turn + 1) * self.k]
                self._done = first + turn + 1
                if len(chosen):
                    yield scored.chosen(chosen)
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
        order = None if generator is None else generator.get_state()
        self._epoch_began = {"order": order, "own": self._own_state}

    def _large_batches(self) -> Iterator[Any]:
        """The batches of the loader, which draws its random numbers apart from everybody else's."""
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
        outside = torch.get_rng_state()
        torch.set_rng_state(self._own_state)
        try:
            yield
        finally:
            self._own_state = torch.get_rng_state()
            torch.set_rng_state(outside)

    def _scored(self, batch: Sequence[Any], places: torch.Tensor | None) -> "_Scored":
        """A large batch with its scores and a choice; ``places`` is a choice made before an
        interruption.
        """
        device = next(self.model.parameters()).device
        x, y, *rows = (part.to(device, non_blocking=True) for part in batch)
        losses, outputs = self._losses(self.scorer, x, y)
        norms = None if self.squared_norms is None else self.squared_norms(outputs.float(), y)
        scores = select.volumes(losses, self._reference_losses(x, y, rows), norms, self.lr)
        if places is None:
            wanted = min(self.k * self.every, len(scores))
            places = select.choose(scores, wanted, self.temperature, self._rng, on_nan=self.on_nan)
        return _Scored(x, y, rows[0] if rows else None, scores, losses, places)

    def _reference_losses(
        self,
        x: torch.Tensor,
        y: torch.Tensor,
        rows: Sequence[torch.Tensor],
    ) -> torch.Tensor:
        if isinstance(self.reference, torch.nn.Module):
            return self._losses(self.reference, x, y)[0]
        if not rows:
            raise InputError(
                "precomputed reference losses need rows (x, y, index): wrap the dataset in Indexed"
            )
        return self.reference[rows[0].to(self.reference.device)].to(x.device)

    def _losses(
        self,
        network: torch.nn.Module,
        x: torch.Tensor,
        y: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        with _scoring(network, x.device, self.autocast):
            outputs = network(x)
            return self.loss(outputs.float(), y), outputs

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint of the training must keep, so that it resumes with the same choices.

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
    """A large batch, its scores and losses, and the places that were chosen, the first choice
    first.
    """

    x: torch.Tensor
    y: torch.Tensor
    rows: torch.Tensor | None
    scores: torch.Tensor
    losses: torch.Tensor
    places: torch.Tensor

    def chosen(self, places: torch.Tensor) -> ChosenBatch:
        """The examples at some of the places."""
        indices = places if self.rows is None else self.rows[places]
        large = (self.x, self.y)
        return ChosenBatch(
            self.x[places], self.y[places], indices, self.scores[places], large, places, self.losses
        )


def _check_length(reference: Any, loader: DataLoader[Any]) -> None:
    """Raise InputError for reference losses that do not cover the dataset."""
    if isinstance(reference, torch.nn.Module) or not hasattr(loader.dataset, "__len__"):
        return
    if len(reference) != len(loader.dataset):
        raise InputError(
            f"the reference has {len(reference)} losses, but the dataset has {len(loader.dataset)} rows"
        )


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
    path, count = Path(file), len(dataset)
    note = path.with_suffix(".json")
    told = {
        "rows": count,
        "model": _fingerprint(model),
        "precision": str(autocast or torch.float32),
    }
    done = _done_before(path, note, told)
    kept = np.lib.format.open_memmap(path, "r+" if done else "w+", np.float32, (count,))
    rest = torch.utils.data.Subset(dataset, range(done, count))
    for losses in (
        _losses_of(model, rest, loss, batch_size, workers, autocast) if done < count else ()
    ):
        if not np.isfinite(losses).all():
            raise InputError(
                f"the reference's loss is not finite in rows {done} to {done + len(losses) - 1}"
            )
        kept[done : done + len(losses)] = losses
        kept.flush()
        done += len(losses)
        part = note.with_suffix(".part")
        part.write_text(json.dumps(told | {"done": done}), encoding="utf-8")
        part.replace(note)
    return torch.from_numpy(np.array(kept))


def cross_reference(
    train: Callable[[Any], torch.nn.Module],
    dataset: Any,
    *,
    seed: int = 0,
    loss: Loss | None = None,
    batch_size: int = 1024,
    workers: int = 0,
    autocast: torch.dtype | None = None,
) -> torch.Tensor:
    """Reference losses without trusted rows: each half of the dataset is judged by a model trained
    on the other.

    No model judges a row that it has learned, so a wrong label stays surprising.

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
        >>> loader = TeachingLoader(DataLoader(Indexed(data), 320, shuffle=True), model, reference, k=32)
    """
    count = len(dataset)
    if count < 2:
        raise InputError(f"two halves need at least two rows, and the dataset has {count}")
    order = np.random.default_rng(seed).permutation(count)
    halves = [np.sort(order[: count // 2]), np.sort(order[count // 2 :])]
    found = np.empty(count, np.float32)
    for learned, judged in (halves, halves[::-1]):
        model = train(torch.utils.data.Subset(dataset, learned.tolist()))
        rows = torch.utils.data.Subset(dataset, judged.tolist())
        found[judged] = np.concatenate(
            [*_losses_of(model, rows, loss, batch_size, workers, autocast)]
        )
    if not np.isfinite(found).all():
        row = int(np.flatnonzero(~np.isfinite(found))[0])
        raise InputError(f"the loss of row {row} is not finite: has the model diverged?")
    return torch.from_numpy(found)


def _losses_of(
    model: torch.nn.Module,
    dataset: Any,
    loss: Loss | None,
    batch_size: int,
    workers: int,
    autocast: torch.dtype | None,
) -> Iterator[np.ndarray]:
    """The losses of a model on a dataset, batch by batch; the global random generator stays as it
    is.
    """
    device = next(model.parameters()).device
    # A DataLoader without a generator of its own draws a seed from the global one, even if it does not shuffle.
    loader = DataLoader(dataset, batch_size, num_workers=workers, generator=torch.Generator())
    for x, y in loader:
        with _scoring(model, device, autocast):
            losses = (loss or _cross_entropy)(model(x.to(device)).float(), y.to(device))
        yield losses.cpu().numpy()


def _done_before(path: Path, note: Path, told: dict[str, Any]) -> int:
    """How many rows the file has already; raises if they are of another model or dataset."""
    if not (path.exists() and note.exists()):
        return 0
    before = json.loads(note.read_text(encoding="utf-8"))
    done = before.pop("done", 0)
    if before != told:
        differs = next(name for name in told if before.get(name) != told[name])
        raise InputError(
            f"{path} was computed with another {differs}: remove it, or give another file"
        )
    return int(done)


def _fingerprint(model: torch.nn.Module) -> str:
    digest = hashlib.sha256()
    for name, value in model.state_dict().items():
        digest.update(name.removeprefix("_orig_mod.").encode())
        digest.update(
            value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
        )
    return digest.hexdigest()


def _cross_entropy(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(outputs, labels, reduction="none")


@contextlib.contextmanager
def _scoring(
    network: torch.nn.Module, device: torch.device, autocast: torch.dtype | None
) -> Iterator[None]:
    """Without gradients, in evaluation mode; afterwards the network is in its mode again."""
    training = network.training
    network.eval()
    mixed = (
        contextlib.nullcontext()
        if autocast is None
        else torch.autocast(device.type, dtype=autocast)
    )
    try:
        with torch.no_grad(), mixed:
            yield
    finally:
        network.train(training)


__all__ = ["ChosenBatch", "Indexed", "TeachingLoader", "cross_reference", "precompute_reference"]
