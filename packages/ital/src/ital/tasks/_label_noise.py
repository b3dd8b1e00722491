"""Noise of a pool's labels: a share of them replaced, or Gaussian noise added to numeric ones."""

import math
from typing import Any, NamedTuple

import numpy as np

from ital.errors import InputError
from ital.losses import Loss
from ital.tools import registry
from ital.tools.checks import shown

NOISE_STREAM = 0x6E6F6973  # of random numbers, so that noise does not change the data of a seed


class LabelNoise(NamedTuple):
    """How labels are made noisy, once per seed.

    Attributes:
        kind: "replaced" or "sd".
        size: the probability that a label is replaced, or the standard deviation of the noise.
    """

    kind: str
    size: float

    @classmethod
    def parse(cls, given: Any) -> "LabelNoise":
        """Read a probability, or ``sd:NUMBER``.

        Args:
            given: the probability that a label is replaced, or the text.

        Returns:
            The noise.

        Raises:
            InputError: if it is neither.
        """
        kind = "replaced"
        size = given
        if isinstance(given, str):
            before, colon, after = given.partition(":")
            if colon:
                kind = before
                before = after
            size = registry.number(before)
        is_number = isinstance(size, int | float | np.number) and not isinstance(size, bool)
        if kind == "replaced" and is_number and 0 <= size <= 1:
            return cls(kind, size)
        if kind == "sd" and is_number and math.isfinite(size) and size >= 0:
            return cls(kind, float(size))
        raise InputError(
            "label noise must be a probability in [0, 1], or sd:NUMBER for Gaussian noise, "
            f"not {shown(given)}"
        )

    @property
    def setting(self) -> float | str:
        """The noise in one spelling, as it is stored with a result."""
        if self.kind == "replaced" or not self.size:
            return self.size
        return f"sd:{repr(self.size).removesuffix('.0')}"

    def check_loss(self, loss: Loss) -> None:
        """Raise InputError for Gaussian noise on classes.

        Args:
            loss: the loss of the task.

        Raises:
            InputError: if the labels are classes.
        """
        if self.kind == "sd" and self.size and loss.classes:
            raise InputError(
                "Gaussian label noise is for labels that are numbers; for classes, give the "
                "probability that a label is replaced"
            )

    def applied(self, labels: np.ndarray, loss: Loss, classes: int, seed: int) -> np.ndarray:
        """Return noisy labels.

        Args:
            labels: class indices (N,), or targets (N, K).
            loss: the loss of the task.
            classes: number of classes, if labels are classes.
            seed: the seed of the world.

        Returns:
            The labels, a new array.
        """
        rng = np.random.default_rng([seed, NOISE_STREAM])
        if self.kind == "sd":
            noise = self.size * rng.standard_normal(labels.shape)
            return (labels + noise).astype(labels.dtype)
        replaced = rng.random(len(labels)) < self.size
        if loss.classes:
            # Adding 1 … K − 1 modulo K gives any class but the label itself.
            others = (labels + rng.integers(1, classes, len(labels))) % classes
        else:
            # The label of another row, drawn in the same way.
            rows = len(labels)
            other_rows = (np.arange(rows) + rng.integers(1, rows, rows)) % rows
            others = labels[other_rows]
        noisy = labels.copy()
        noisy[replaced] = others[replaced]
        return noisy


def label_noise_of(label_noise: float | str, noise: float) -> float | str:
    """Return the label noise of a task that takes ``label_noise`` and ``noise`` (its deviation).

    Args:
        label_noise: a probability, or ``sd:NUMBER``.
        noise: the standard deviation of Gaussian noise; 0 for none.

    Returns:
        The one that is given.

    Raises:
        InputError: if both are given.
    """
    if noise == 0:
        return label_noise
    if label_noise:
        raise InputError("noise and label_noise exclude each other: give one of them")
    return f"sd:{noise!r}"
