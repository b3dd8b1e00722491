"""A grid of step sizes and rationalities, all of it lanes of one compiled program."""

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from ital import tuning
from ital.errors import InputError
from ital.experiments import _store
from ital.experiments._resume import checkpoint_of, compute, count, found, missing, versions
from ital.experiments._settings import Plan, Settings
from ital.learners import Learner
from ital.results import Recording
from ital.tasks import Task, World
from ital.teaching import check_settings, check_world, open_sessions, situation

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

NUMBERS_AT_ONCE = 2**25  # parameters of all lanes together; a larger sweep takes its seeds in blocks


@dataclass(frozen=True)
class Sweep:
    """What a sweep found: ``grid`` is a Dataset with dimensions (method, lr, beta, seed, step).

    Methods without a β are computed once per η and repeated along ``beta``: ``grid.attrs["without_beta"]`` names them.
    ``lanes_computed`` counts what was computed now rather than found: a method at one η and one β on one seed.
    """

    grid: "xr.Dataset"
    task: Task
    files: list[Path]
    lanes_computed: int

    def verdicts(self) -> list[tuning.Verdict]:
        """Each method at its best, and who wins: after 500 and 1000 steps and at the end."""
        return [tuning.judge(self.grid, step) for step in tuning.judged_steps(self.grid)]

    def plot(self) -> "Figure":
        """Heat maps: the final distance, and the steps to a tenth of the distance at the start."""
        from ital.figures import plot_sweep

        return plot_sweep(self.grid, self.task)


def sweep(
    settings: Settings,
    lr: Sequence[float],
    beta: Sequence[float],
    out: Path | str = "results",
    *,
    overwrite: bool = False,
    progress: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Sweep:
    """Computes what is missing of a grid η × β and writes ``sweep.nc`` and its maps to ``OUT/TASK/TEACHER/``.

    ``lr`` and ``beta`` stand in for those of the settings. They tell one sweep from another; methods and seeds do
    not: those that are missing are added. An interrupted sweep goes on where its last checkpoint left it. ``say`` is
    told in a line what was found. Exams (the equation tasks' greedy searches) are left out.
    """
    plan = _plan(settings, lr, beta)
    lr, beta = sorted(map(float, lr)), sorted(map(float, beta))
    identity = {**plan.identity, "lr": json.dumps(lr), "beta": json.dumps(beta)}
    folder = Path(out) / plan.task.name / plan.teacher.name.replace(":", "-")
    file = folder / "sweep.nc"
    if not overwrite:
        found(identity, file)  # refuses what does not fit before the folder is touched
    parameters = _parameters(plan, plan.task.world(plan.seeds[0]))
    computed = 0
    with _store.owned(folder):
        grid = None if overwrite else found(identity, file, say)
        for methods, seeds in missing(plan.methods, plan.seeds, grid):
            wanted = [learner for learner in plan.learners if learner.name in methods]
            lanes = Lanes.of(plan, wanted, lr, beta)
            repeated = {learner.name for learner in wanted if _ignores_beta(plan, learner)}
            for block in _blocks(seeds, NUMBERS_AT_ONCE // (parameters * len(lanes.learners))):
                checkpoint = checkpoint_of(folder, identity, methods, block)
                recording = _open(plan, lanes, block)
                what = f"{count(lanes.learners, 'setting')} × {count(block, 'seed')}"
                title = f"{plan.task.name}, {plan.teacher.name} teacher: {what}"
                seconds = compute(recording, checkpoint, title, progress=progress, say=say)
                if grid is not None:
                    seconds += float(grid.attrs["seconds"])
                    repeated |= set(tuning.without_beta(grid))
                grid = _store.merge(grid, lanes.on_grid(recording, block))
                grid = grid.transpose("method", "lr", "beta", "seed", "step")
                known = {"without_beta": json.dumps(sorted(repeated)), "seconds": seconds}
                grid.attrs = {**identity, **versions(), **known}
                _store.save_curves(grid, file)
                checkpoint.unlink(missing_ok=True)
                computed += len(lanes.learners) * len(block)
        assert grid is not None
        from ital import figures

        maps = figures.save(figures.plot_sweep(grid, plan.task), folder / "sweep")
        return Sweep(grid, plan.task, [file, *maps], computed)


def _plan(settings: Settings, lr: Sequence[float], beta: Sequence[float]) -> Plan:
    """The plan of a corner of the grid; refuses a grid that is none."""
    for name, values in (("lr", lr), ("beta", beta)):
        if not len(values):
            raise InputError(f"a sweep needs at least one {name}")
        for i, value in enumerate(values):
            if not isinstance(value, int | float | np.number) or not math.isfinite(value):
                raise InputError(f"every {name} of a sweep must be a finite number, not {value!r}")
            if value in list(values)[:i]:
                raise InputError(f"{name} {value:g} is given twice")
    plan = dataclasses.replace(settings, lr=float(lr[0]), beta=float(beta[0])).plan()
    for value in lr:
        check_settings(plan.learners, plan.seeds, **{**_checked(plan), "lr": value})
    return dataclasses.replace(plan, task=plan.task._replace(exam=None))


def _checked(plan: Plan) -> dict[str, Any]:
    return {name: value for name, value in plan.options.items() if name not in ("init", "step")}


def _parameters(plan: Plan, world: World) -> int:
    """How many parameters a learner has; refuses a task without a target to be near to."""
    check_world(plan.task, plan.teacher, world)

    def measured(world: World) -> tuple[Any, dict[str, Any]]:
        start = plan.task.rules.start(jax.random.key(0, impl="threefry2x32"), plan.init, world)
        return start, plan.task.rules.measure(start, world.truth)

    start, metrics = jax.eval_shape(measured, world)
    if "distance" not in metrics:
        raise InputError(f"task {plan.task.name!r} has no target, so a sweep cannot tell how near a method comes")
    return sum(leaf.size for leaf in jax.tree.leaves(start))


def _blocks(seeds: list[int], at_once: int) -> list[list[int]]:
    """The seeds in as few blocks of about one size as hold no more than that many each (but one at least)."""
    return [block.tolist() for block in np.array_split(seeds, math.ceil(len(seeds) / max(1, at_once)))]


class Lanes(NamedTuple):
    """The lanes of a sweep: learners with all their numbers, their step sizes, and the lane of each cell of the grid.

    A learner whom β does not touch has one lane per η, and cells of all β point to it.
    """

    learners: list[Learner]
    lrs: list[float]
    cells: "xr.DataArray"

    @classmethod
    def of(cls, plan: Plan, methods: Sequence[Learner], lr: Sequence[float], beta: Sequence[float]) -> "Lanes":
        """Lanes for the grid; cells have dimensions (method, lr, beta)."""
        import xarray as xr

        lanes: list[Learner] = []
        lrs: list[float] = []
        cells = np.zeros((len(methods), len(lr), len(beta)), int)
        for i, method in enumerate(methods):
            versions = _versions(plan, method, beta)
            for j, step_size in enumerate(lr):
                cells[i, j] = len(lanes) + np.arange(len(versions))
                lanes += versions
                lrs += [step_size] * len(versions)
        named = [lane._replace(name=str(number)) for number, lane in enumerate(lanes)]
        coords = {
            "method": [method.name for method in methods],
            "label": ("method", [method.label for method in methods]),
            "lr": list(lr),
            "beta": list(beta),
        }
        return cls(named, lrs, xr.DataArray(cells, coords, ("method", "lr", "beta")))

    def on_grid(self, recording: Recording, seeds: Sequence[int]) -> "xr.Dataset":
        """What the lanes recorded, each in all of its cells."""
        flat = recording.curves(seeds, [lane.name for lane in self.learners])
        lanes = flat.drop_vars(["method", "label", "beta"]).rename_dims(method="lane")
        return lanes.isel(lane=self.cells)


def _versions(plan: Plan, method: Learner, beta: Sequence[float]) -> list[Learner]:
    """A learner with each β and nothing left open; one of him alone if β does not touch him."""

    def no_auto(*asked: Any) -> float:
        raise InputError(f"method {method.name!r} finds its own β for one η: try it with ital run, a sweep gives both")

    def version(value: float) -> Learner:
        told = situation(plan.task, plan.teacher, value, plan.batch_size, auto_beta=no_auto)
        return method.resolve(method, told)._replace(resolve=lambda learner, situation: learner)

    made = [version(value) for value in beta]
    first = jax.tree.leaves(made[0].settings)
    alike = [all(map(np.array_equal, first, jax.tree.leaves(other.settings))) for other in made]
    return made[:1] if all(alike) else made


def _ignores_beta(plan: Plan, method: Learner) -> bool:
    """Whether β does not touch a learner (a grid with a single β cannot tell)."""
    return len(_versions(plan, method, [0.0, 1.0])) == 1


def _open(plan: Plan, lanes: Lanes, seeds: list[int]) -> Recording:
    options = {**plan.options, "lr": lanes.lrs, "devices": plan.devices}
    return Recording(open_sessions(plan.task, plan.teacher, lanes.learners, seeds, **options))
