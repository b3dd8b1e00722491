"""The rewards that learners infer for a grid, on one seed: the supplement's pictures, stored as numbers."""

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


def store(task: Task, curves: "xr.Dataset", out: Path, steps: int) -> None:
    """Store the final maps of a naive and an aware learner on the first seed; skip maps that are stored already."""
    if task.picture is None or stored(out, task.name, steps):
        return
    watched = seen(curves, task, ("imt", "ital")) or watch(task, steps=steps, frames=1)
    last = {
        name: jax.tree.map(lambda leaf: leaf[-1], params) for name, params in watched.params.items()
    }
    shown = {f"{watched.labels[name]}, step {steps}": params for name, params in last.items()}
    limit = extent([watched.target])
    panels = [
        charts.panel(
            title, [charts.rewards(*task.picture.grid(np.asarray(params)), limit)], size=SIZE
        )
        for title, params in (shown | {"The truth": watched.target}).items()
    ]
    write(_file(out, task.name), json.dumps({"steps": steps, "panels": panels}).encode())


def stored(out: Path, task: str, steps: int | None = None) -> list[charts.Panel]:
    """The stored maps, of a run of ``steps`` steps if given; empty if there are none."""
    try:
        content: dict[str, Any] = json.loads(_file(out, task).read_text())
        return content["panels"] if steps in (None, content["steps"]) else []
    except (OSError, ValueError, KeyError):
        return []


def _file(out: Path, task: str) -> Path:
    return out / task / "cooperative" / "maps.json"
