"""Several devices share the seeds of a run. Each computes its own seeds and never waits for another device."""

from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ital.errors import InputError

SEEDS = PartitionSpec("seeds")
EVERYWHERE = PartitionSpec()


def chosen(devices: int | str) -> list[Any]:
    """The first ``devices`` devices of JAX's default platform, or "all"; raises InputError if there are too few."""
    available = jax.local_devices()
    if devices == "all":
        return available
    if not isinstance(devices, int) or isinstance(devices, bool) or devices < 1:
        raise InputError(f"devices must be a whole number of at least 1, or 'all', not {devices!r}")
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


SIZES = (
    1,
    2,
    5,
    10,
    20,
    30,
    40,
    60,
    80,
)  # numbers of seeds for which programs are compiled; beyond, every 40


def padded(seeds: int) -> int:
    """The number of seeds that a program computes: ``seeds`` rounded up to one of a few sizes, to compile less."""
    return next((size for size in SIZES if size >= seeds), -(-seeds // 40) * 40)


class Layout(NamedTuple):
    """How the seeds of a run are placed: on one device (``mesh`` None), or in equal parts on several.

    To reach one of the compiled sizes, the first seeds are computed a second time; these copies are dropped.
    """

    seeds: int
    mesh: Mesh | None = None

    @classmethod
    def of(cls, seeds: int, devices: int | str) -> "Layout":
        """A layout for this number of seeds, on at most one device per seed."""
        used = chosen(devices)[:seeds]
        return cls(seeds, Mesh(np.asarray(used), ("seeds",)) if len(used) > 1 else None)

    @property
    def devices(self) -> list[Any]:
        """The devices that compute."""
        return chosen(1) if self.mesh is None else list(self.mesh.devices.flat)

    def spread(self, tree: Any) -> Any:
        """Arrays with a leading axis of seeds, distributed over the devices."""
        devices = 1 if self.mesh is None else self.mesh.size
        number = devices * padded(-(-self.seeds // devices))
        order = np.arange(number) % self.seeds
        sharding = None if self.mesh is None else NamedSharding(self.mesh, SEEDS)

        def put(leaf: Any) -> Any:
            return jax.device_put(
                leaf if number == self.seeds else np.asarray(leaf)[order], sharding
            )

        return jax.tree.map(put, tree)

    def copied(self, tree: Any) -> Any:
        """Arrays that all seeds share, copied to each device."""
        return jax.device_put(
            tree, None if self.mesh is None else NamedSharding(self.mesh, EVERYWHERE)
        )

    def cut(self, tree: Any) -> Any:
        """Arrays with a leading axis of seeds, without the repeated seeds."""
        return jax.tree.map(lambda leaf: leaf[: self.seeds], tree)
