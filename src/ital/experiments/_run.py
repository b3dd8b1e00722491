"""One experiment from settings to files."""

import hashlib
import json
import platform
import time
from collections.abc import Callable, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ital import _interrupts
from ital._progress import show_progress
from ital._version import __version__
from ital.errors import InputError
from ital.experiments import _store
from ital.experiments._settings import Plan, Settings
from ital.figures._pictures import picture_of
from ital.results import Recording, summarise
from ital.tasks import Task
from ital.teaching import check_world, open_sessions
from ital.watching import watch

if TYPE_CHECKING:
    import xarray as xr

SECONDS_BETWEEN_CHECKPOINTS = 5.0


@dataclass(frozen=True)
class Outcome:
    """What an experiment left behind, and how much of it was computed now rather than found."""

    curves: "xr.Dataset"
    task: Task
    files: list[Path]
    lanes_computed: int


def run(
    settings: Settings,
    out: Path | str = "results",
    *,
    animate: bool = False,
    overwrite: bool = False,
    progress: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Outcome:
    """Computes what is missing of an experiment and writes ``OUT/TASK/TEACHER/``.

    (method, seed) pairs that a result of the same settings already holds are kept. An interrupted run goes on
    where its last checkpoint left it, with the same numbers. ``say`` is told in a line what was found. A task that
    can be drawn is, as its first seed learns it; ``animate`` makes it move.
    """
    plan = settings.plan()
    if animate:
        picture_of(plan.task)  # refuses a task that has none
    folder = Path(out) / plan.task.name / plan.teacher.name.replace(":", "-")
    file = folder / "curves.nc"
    if not overwrite:
        _found(plan, file)  # refuses what does not fit before the folder is touched
    check_world(plan.task, plan.teacher, plan.task.world(plan.seeds[0]))
    computed = 0
    with _store.owned(folder):
        curves = None if overwrite else _found(plan, file, say)
        for methods, seeds in _missing(plan, curves):
            checkpoint = folder / f".checkpoint-{_hash(plan, methods, seeds)}"
            recording = _open(plan, methods, seeds)
            seconds = _compute(plan, recording, methods, seeds, checkpoint, progress, say)
            if curves is not None:
                seconds += float(curves.attrs["seconds"])
            curves = _store.merge(curves, recording.curves(seeds, methods))
            curves.attrs = {**plan.identity, **_versions(), "seconds": seconds}
            for picture in folder.glob("pictures.*"):
                picture.unlink()  # of what was there before
            _store.save_curves(curves, file)
            checkpoint.unlink(missing_ok=True)
            computed += len(methods) * len(seeds)
        assert curves is not None
        files = [file, *_write_summary(curves, plan.task, folder)]
        if plan.task.picture is not None:
            files += _write_pictures(plan, curves, folder, animate, progress)
        return Outcome(curves, plan.task, files, computed)


def _found(plan: Plan, file: Path, say: Callable[[str], None] | None = None) -> "xr.Dataset | None":
    """The result that is there already, or None; refuses one of other settings, puts a damaged one aside (and says)."""
    try:
        curves = _store.load_curves(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror or error}") from None
    except _store.Damaged as damage:
        if say is not None:
            aside = file.with_name(f"{file.name}.damaged")
            file.replace(aside)
            say(f"{damage}: computing it again (the old file is now {aside.name})")
        return None
    for name, wanted in plan.identity.items():
        there = curves.attrs.get(name)
        if there != wanted:
            raise InputError(
                f"{file} was made with {name} = {there}, not {wanted}: choose another --out, or --overwrite it"
            )
    return curves


def _missing(plan: Plan, curves: "xr.Dataset | None") -> list[tuple[list[str], list[int]]]:
    """The (method, seed) pairs still to be computed, as rectangles: seeds that miss the same methods go together."""
    together: dict[tuple[str, ...], list[int]] = {}
    for seed in plan.seeds:
        missing = tuple(name for name in plan.methods if not _is_there(curves, name, seed))
        if missing:
            together.setdefault(missing, []).append(seed)
    return [(list(methods), seeds) for methods, seeds in together.items()]


def _is_there(curves: "xr.Dataset | None", method: str, seed: int) -> bool:
    if curves is None or method not in curves["method"].values or seed not in curves["seed"].values:
        return False
    return bool(curves["computed"].sel({"method": method, "seed": seed}))


def _open(plan: Plan, methods: list[str], seeds: list[int]) -> Recording:
    wanted = [learner for learner in plan.learners if learner.name in methods]
    return Recording(open_sessions(plan.task, plan.teacher, wanted, seeds, **plan.options))


def _hash(plan: Plan, methods: list[str], seeds: list[int]) -> str:
    """Tells one computation from another, so that each has a checkpoint of its own."""
    text = json.dumps([plan.identity, methods, seeds, _versions()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _compute(
    plan: Plan,
    recording: Recording,
    methods: list[str],
    seeds: list[int],
    checkpoint: Path,
    progress: bool,
    say: Callable[[str], None],
) -> float:
    """Runs all sessions to their end, from the last checkpoint if there is one; returns the seconds it took in all."""
    began = time.monotonic()
    try:
        earlier = _store.load_checkpoint(recording, checkpoint)
    except _store.Damaged as damage:
        say(f"{damage}: starting again")
        earlier = None
    if earlier is not None:
        share = recording.done / recording.total
        say(f"going on with an interrupted run, {share:.0%} of it done")
        began -= earlier
    saved = time.monotonic()
    title = f"{plan.task.name}, {plan.teacher.name} teacher: {_count(methods, 'method')} × {_count(seeds, 'seed')}"
    with show_progress(title, recording.total, progress) as show, _interrupts.deferred() as interrupted:
        show(recording.done)
        for i, session in enumerate(recording.sessions):
            for block in session.blocks(lambda share: show(recording.done_with(share))):
                recording.blocks[i].append(block)
                show(recording.done)
                now = time.monotonic()
                if interrupted() or now - saved > SECONDS_BETWEEN_CHECKPOINTS:
                    _store.save_checkpoint(recording, now - began, checkpoint)
                    saved = now
                if interrupted():
                    raise KeyboardInterrupt
    return time.monotonic() - began


def _count(things: Sized, name: str) -> str:
    return f"{len(things)} {name}" + ("" if len(things) == 1 else "s")


def _versions() -> dict[str, Any]:
    device = jax.devices()[0]
    return {
        "ital_version": __version__,
        "jax_version": jax.__version__,
        "numpy_version": np.__version__,
        "python_version": platform.python_version(),
        "device": f"{device.platform}: {device.device_kind}",
    }


def _write_summary(curves: "xr.Dataset", task: Task, folder: Path) -> list[Path]:
    """``summary.csv`` and the figures."""
    from ital import figures

    summary = folder / "summary.csv"
    _store.write(summary, summarise(curves).to_csv(index=False).encode())
    return [summary, *figures.save(figures.plot_curves(curves, task), folder / "curves")]


def _write_pictures(plan: Plan, curves: "xr.Dataset", folder: Path, animate: bool, progress: bool) -> list[Path]:
    """``pictures.png`` and ``.pdf``, and ``pictures.gif`` if asked for: what the first seed learns, taught once more.

    Naive beside aware where the result has both. Files that are there are of this result: new curves remove them.
    """
    from ital import figures, learners

    stills, moving = [folder / f"pictures{suffix}" for suffix in (".png", ".pdf")], folder / "pictures.gif"
    wanted = {
        "stills": not all(file.exists() for file in stills),
        "moving": animate and not moving.exists(),
    }
    there = [*stills, *([moving] if animate else [])]
    if not any(wanted.values()):
        return there
    methods = [str(name) for name in curves["method"].values]
    pair = [learners.make(name) for name in methods if name in ("imt", "ital")]
    pair = pair or [learners.make(name) for name in methods[:2]]
    options = {name: value for name, value in plan.options.items() if name != "eval_every"}
    with show_progress(f"{plan.task.name}: pictures", 100, progress) as show:
        share = 30 if wanted["moving"] else 100
        watched = watch(
            plan.task,
            plan.teacher,
            pair,
            seed=int(curves["seed"].values[0]),
            show=lambda done: show(round(share * done)),
            **options,
        )
        if wanted["stills"]:
            figures.save(figures.plot_pictures(watched), folder / "pictures")
        if wanted["moving"]:
            figures.animate(watched, moving, show=lambda done: show(round(share + (100 - share) * done)))
    return there
