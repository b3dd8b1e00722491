"""Several devices share the seeds of a run. Each computes its own, and none has to wait for another."""

from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ital.errors import InputError

SEEDS = PartitionSpec("seeds")
EVERYWHERE = PartitionSpec()


def chosen(devices: int | str) -> list[Any]:
    """The first ``devices`` devices of JAX's default platform, or "all"; refuses more than there are."""
    available = jax.local_devices()
    if devices == "all":
        return available
    if not isinstance(devices, int) or isinstance(devices, bool) or devices < 1:
        raise InputError(f"devices must be a whole number from 1 on, or 'all', not {devices!r}")
    if devices > len(available):
        raise InputError(f"devices = {devices}, but JAX finds {named(available)} on this machine")
    return available[:devices]


def named(devices: list[Any]) -> str:
    """Devices in words: ``2 × gpu: NVIDIA H200``."""
    kind = f"{devices[0].platform}: {devices[0].device_kind}"
    return kind if len(devices) == 1 else f"{len(devices)} × {kind}"


def worth_saying(devices: list[Any]) -> bool:
    """Whether to report the devices (anything but a single CPU)."""
    return len(devices) > 1 or devices[0].platform != "cpu"


SIZES = (1, 2, 5, 10, 20, 30, 40, 60, 80)  # numbers of seeds for which programs are compiled; beyond, every 40


def padded(seeds: int) -> int:
    """The number of seeds that a program computes for this many: one of a short list, so that few are compiled."""
    return next((size for size in SIZES if size >= seeds), -(-seeds // 40) * 40)


class Layout(NamedTuple):
    """Where the seeds of a run are: on one device (``mesh`` None), or in equal parts on several.

    The first seeds are computed again to fill up a number from the list, and cut off.
    """

    seeds: int
    mesh: Mesh | None = None

    @classmethod
    def of(cls, seeds: int, devices: int | str) -> "Layout":
        """A layout for that many seeds; there is no use for more devices than seeds."""
        used = chosen(devices)[:seeds]
        return cls(seeds, Mesh(np.asarray(used), ("seeds",)) if len(used) > 1 else None)

    @property
    def devices(self) -> list[Any]:
        """The devices that compute."""
        return chosen(1) if self.mesh is None else list(self.mesh.devices.flat)

    def spread(self, tree: Any) -> Any:
        """Arrays with a leading axis of seeds, laid over the devices."""
        devices = 1 if self.mesh is None else self.mesh.size
        number = devices * padded(-(-self.seeds // devices))
        order = np.arange(number) % self.seeds
        sharding = None if self.mesh is None else NamedSharding(self.mesh, SEEDS)

        def put(leaf: Any) -> Any:
            return jax.device_put(leaf if number == self.seeds else np.asarray(leaf)[order], sharding)

        return jax.tree.map(put, tree)

    def copied(self, tree: Any) -> Any:
        """Arrays that all seeds share, one copy for each device."""
        return jax.device_put(tree, None if self.mesh is None else NamedSharding(self.mesh, EVERYWHERE))

    def cut(self, tree: Any) -> Any:
        """Arrays with a leading axis of seeds, without the repeated ones."""
        return jax.tree.map(lambda leaf: leaf[: self.seeds], tree)
