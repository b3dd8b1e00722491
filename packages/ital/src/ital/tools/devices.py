"""Several devices share the seeds of a run.

Each computes its own seeds and never waits for another device.
"""

import math
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ital.errors import InputError

SEEDS = PartitionSpec("seeds")
EVERYWHERE = PartitionSpec()


def chosen(devices: int | str) -> list[Any]:
    """Return the first devices of JAX's default platform.

    Args:
        devices: their number, or "all".

    Raises:
        InputError: if there are too few, or the number is not valid.
    """
    available = jax.local_devices()
    if devices == "all":
        return available
    if not isinstance(devices, int) or isinstance(devices, bool) or devices < 1:
        raise InputError(f"devices must be a whole number of at least 1, or 'all', not {devices!r}")
    if devices > len(available):
        raise InputError(f"devices = {devices}, but JAX finds {named(available)} on this machine")
    return available[:devices]


def named(devices: list[Any]) -> str:
    """Return devices in words: ``2 × gpu: NVIDIA H200``."""
    first, *others = devices
    kind = f"{first.platform}: {first.device_kind}"
    if not others:
        return kind
    return f"{len(devices)} × {kind}"


def worth_saying(devices: list[Any]) -> bool:
    """Return whether to report the devices (anything but a single CPU)."""
    return len(devices) > 1 or devices[0].platform != "cpu"


# Numbers of seeds for which programs are compiled; beyond, every 40.
SIZES = (1, 2, 5, 10, 20, 30, 40, 60, 80)


def padded(seeds: int) -> int:
    """Return the number of seeds that a program computes.

    It is ``seeds`` rounded up to one of a few sizes: each other size needs a program of its own.
    """
    for size in SIZES:
        if size >= seeds:
            return size
    return 40 * math.ceil(seeds / 40)


class Layout(NamedTuple):
    """How the seeds of a run are placed: on one device, or in equal parts on several.

    To reach one of the compiled sizes, the first seeds are computed a second time; these copies are
    dropped.

    Attributes:
        seeds: number of seeds.
        mesh: the devices, with one axis; None for one device.
    """

    seeds: int
    mesh: Mesh | None = None

    @classmethod
    def of(cls, seeds: int, devices: int | str) -> "Layout":
        """Make a layout for this number of seeds, on at most one device per seed."""
        used = chosen(devices)[:seeds]
        if len(used) == 1:
            return cls(seeds)
        mesh = Mesh(np.asarray(used), ("seeds",))
        return cls(seeds, mesh)

    @property
    def devices(self) -> list[Any]:
        """The devices that compute."""
        if self.mesh is None:
            return chosen(1)
        return list(self.mesh.devices.flat)

    def spread(self, tree: Any) -> Any:
        """Distribute arrays with a leading axis of seeds over the devices."""
        devices = 1 if self.mesh is None else self.mesh.size
        # All devices run the same program, so each has the same number of seeds.
        per_device = padded(math.ceil(self.seeds / devices))
        number = devices * per_device
        order = np.arange(number) % self.seeds
        sharding = self._sharding(SEEDS)

        def spread_leaf(leaf: Any) -> Any:
            repeated = leaf
            if number != self.seeds:
                repeated = np.asarray(leaf)[order]
            return jax.device_put(repeated, sharding)

        return jax.tree.map(spread_leaf, tree)

    def copied(self, tree: Any) -> Any:
        """Copy arrays that all seeds share to each device."""
        return jax.device_put(tree, self._sharding(EVERYWHERE))

    def _sharding(self, spec: PartitionSpec) -> NamedSharding | None:
        if self.mesh is None:
            return None
        return NamedSharding(self.mesh, spec)

    def cut(self, tree: Any) -> Any:
        """Drop the repeated seeds of arrays with a leading axis of seeds."""
        return jax.tree.map(lambda leaf: leaf[: self.seeds], tree)
