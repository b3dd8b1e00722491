"""Load a stored result, and compute the rest so that an interruption loses nothing."""

import platform
import time
from collections.abc import Callable, Mapping, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ital._version import __version__
from ital.errors import InputError
from ital.experiments import _store
from ital.experiments._settings import DEFAULTS
from ital.teaching import Recording
from ital.tools import devices as _devices
from ital.tools import interrupts

if TYPE_CHECKING:
    import xarray as xr

SECONDS_BETWEEN_CHECKPOINTS = 5.0


def stored(identity: Mapping[str, Any], file: Path, say: Callable[[str], None] | None = None) -> "xr.Dataset | None":
    """The stored result, or None; raises InputError for other settings; renames a damaged file and reports it."""
    try:
        curves = _store.load_curves(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror or error}") from None
    except _store.Damaged as damage:
        if say is not None:
            say(f"{damage}: computing it again (the old file is now {_store.put_aside(file).name})")
        return None
    for name, expected in {**DEFAULTS, **identity}.items():
        found = curves.attrs.get(name, DEFAULTS.get(name))
        if found != expected:
            difference = f"{name} = {found}, not {expected}"
            raise InputError(f"{file} was made with {difference}: choose another --out, or replace it with --overwrite")
    return curves


def compute(recording: Recording, checkpoint: Path, show: Callable[[float], None], say: Callable[[str], None]) -> float:
    """Run all sessions to their end, from the last checkpoint if there is one; return the total time in seconds.

    ``show`` is called with the share that is done.
    """
    began = time.monotonic()
    try:
        earlier = _store.load_checkpoint(recording, checkpoint)
    except _store.Damaged as damage:
        say(f"{damage}: starting from the beginning")
        earlier = None
    if earlier is not None:
        share = recording.done / recording.total
        say(f"resuming an interrupted run ({share:.0%} done)")
        began -= earlier
    devices = recording.sessions[0].layout.devices
    if _devices.worth_saying(devices):
        say(f"computing on {_devices.named(devices)}")
    saved = time.monotonic()
    with interrupts.deferred() as interrupted:
        show(recording.done / recording.total)
        for i, session in enumerate(recording.sessions):
            for block in session.blocks(lambda share: show(recording.done_with(share) / recording.total)):
                recording.blocks[i].append(block)
                show(recording.done / recording.total)
                now = time.monotonic()
                if interrupted() or now - saved > SECONDS_BETWEEN_CHECKPOINTS:
                    _store.save_checkpoint(recording, now - began, checkpoint)
                    saved = now
                if interrupted():
                    raise KeyboardInterrupt
    return time.monotonic() - began


def count(things: Sized, name: str) -> str:
    """A number of things with its noun: ``1 seed``, ``3 seeds``."""
    return f"{len(things)} {name}" + ("" if len(things) == 1 else "s")


def versions() -> dict[str, Any]:
    """The software versions that computed a result, for its attributes."""
    return {
        "ital_version": __version__,
        "jax_version": jax.__version__,
        "numpy_version": np.__version__,
        "python_version": platform.python_version(),
        "device": _devices.named(jax.devices()[:1]),
    }
