"""Watching learners: their parameters as they change, on one seed."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from ital.learners import Learner
from ital.models import Init
from ital.steps import Form
from ital.tasks import Task
from ital.teachers._base import AnyTeacher
from ital.teaching import Session, check_settings, open_sessions, parts

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure


class Watched(NamedTuple):
    """Parameters of each learner (by name, leading axis: steps) on the way, and the target they are taught."""

    task: Task
    teacher: str
    seed: int
    steps: np.ndarray
    params: dict[str, Any]
    target: Any
    labels: dict[str, str]

    def plot(self, steps: Sequence[int] | None = None) -> "Figure":
        """A matplotlib figure: a row per learner, a column per step, and the target."""
        from ital.figures import plot_pictures

        return plot_pictures(self, steps)

    def animate(self, file: Path | str, seconds: float = 8.0) -> Path:
        """Writes a GIF of all learners side by side."""
        from ital.figures import animate

        return animate(self, Path(file), seconds=seconds)


def watch(
    task: Task | str,
    teacher: AnyTeacher | str = "cooperative",
    learner: Learner | str | Sequence[Learner | str] = ("imt", "ital"),
    *,
    seed: int = 0,
    frames: int = 40,
    steps: int = 2000,
    beta: float | str | None = None,
    lr: float = 1e-3,
    batch_size: int = 20,
    init: str | Init | None = None,
    step: str | Form = "rate",
    show: Callable[[float], None] = lambda done: None,
) -> Watched:
    """Teaches as :func:`ital.teach` does, on one seed, and keeps the parameters at about ``frames`` moments.

    ``show`` is told now and then how much is done, from 0 to 1.
    """
    task, teacher, watched = parts(task, teacher, learner)
    every = max(1, -(-steps // max(1, frames)))
    check_settings(watched, [seed], steps=steps, lr=lr, batch_size=batch_size, eval_every=every, beta=beta)
    sessions = open_sessions(
        task, teacher, watched, [seed], steps=steps, lr=lr, batch_size=batch_size,
        init=task.init if init is None else Init.parse(init), eval_every=every, beta=beta, step=step,
    )  # fmt: skip
    params: dict[str, Any] = {}
    for number, session in enumerate(sessions):
        kept, at = [_params(session)], [0]
        while session.step < session.steps:
            while session.step < min(at[-1] + every, steps):
                session.advance((at[-1] + every - session.step) // session.stride)
            kept.append(_params(session))
            at.append(session.step)
            show((number + session.step / session.steps) / len(sessions))
        for lane, one in enumerate(session.learners):
            params[one.name] = jax.tree.map(lambda *leaves, lane=lane: np.stack([a[lane] for a in leaves]), *kept)
    target = task.world(seed).truth.target
    labels = {one.name: one.label for one in watched}
    return Watched(task, teacher.name, seed, np.asarray(at), {name: params[name] for name in labels}, target, labels)


def seen(curves: "xr.Dataset", task: Task, methods: Sequence[str]) -> Watched | None:
    """What a stored run kept of the way of its first seed; None where it kept nothing of these methods."""
    seed = int(curves["seed"].values[0])
    if "path" not in curves or int(curves["path"].attrs["seed"]) != seed:
        return None
    path = curves["path"].sel({"method": list(methods)})
    if np.isnan(path.values).all(axis=(1, 2)).any():
        return None
    labels = {name: str(curves["label"].sel({"method": name}).values) for name in methods}
    params = {name: path.sel({"method": name}).values for name in methods}
    target = task.world(seed).truth.target
    return Watched(task, curves.attrs["teacher"], seed, curves["frame"].values, params, target, labels)


def _params(session: Session) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf[0]), session.carry.lanes.params)


__all__ = ["Watched", "seen", "watch"]
