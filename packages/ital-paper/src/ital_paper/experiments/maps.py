"""The rewards that learners infer for a grid, on one seed: the supplement's pictures as numbers."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ital.figures import charts, extent
from ital.tasks import Task
from ital.teaching import seen, watch
from ital.tools.files import write

if TYPE_CHECKING:
    import xarray as xr

SIZE = (3.1, 3.1)


def store(
    task: Task,
    curves: "xr.Dataset",
    out: Path,
    steps: int,
) -> None:
    """Store the final maps of a naive and an aware learner on the first seed.

    Maps that are stored already are skipped, and so are tasks without a picture.
    """
    picture = task.picture
    if picture is None or stored(out, task.name, steps):
        return
    watched = seen(curves, task, ("imt", "ital")) or watch(task, steps=steps, frames=1)
    by_title = {
        f"{watched.labels[name]}, step {steps}": jax.tree.map(lambda leaf: leaf[-1], frames)
        for name, frames in watched.params.items()
    }
    by_title["The truth"] = watched.target

    # One colour scale for all maps, so that they can be compared.
    limit = extent([watched.target])
    panels = [
        charts.panel(title, [charts.rewards(*picture.grid(np.asarray(params)), limit)], size=SIZE)
        for title, params in by_title.items()
    ]
    write(_maps_file(out, task.name), json.dumps({"steps": steps, "panels": panels}).encode())


def stored(
    out: Path,
    task: str,
    steps: int | None = None,
) -> list[charts.Panel]:
    """Return the stored maps, of a run of ``steps`` steps if given; empty if there are none."""
    try:
        content: dict[str, Any] = json.loads(_maps_file(out, task).read_text())
        if steps is not None and content["steps"] != steps:
            return []
        return content["panels"]
    except (OSError, ValueError, KeyError):
        return []


def _maps_file(out: Path, task: str) -> Path:
    return out / task / "cooperative" / "maps.json"
