"""Teach learners on seeds, and return their curves."""

import functools
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ital.errors import AwarenessWarning, DivergenceWarning, InputError
from ital.learners import Learner
from ital.results import behind_note, compare, divergence_note, summarise
from ital.tasks import Task
from ital.teachers import Teacher
from ital.teaching._awareness import awareness
from ital.teaching._kept import read_run, write_run
from ital.teaching._lanes import Recording, open_sessions
from ital.teaching._program import Lane
from ital.teaching._run import Run, check_footprint, check_parts, make_run, parts, takes_run
from ital.teaching._session import Session
from ital.tools import registry
from ital.tools.checks import path_of
from ital.tools.platform import keep_programs
from ital.tools.progress import show_progress

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Result:
    """The result of :func:`ital.teach`.

    Attributes:
        curves: a Dataset with dimensions (learner, seed, step).
        task: the task.
        parameters: method → its final parameters, with a leading axis of seeds.
        memories: method → the final memory of its teacher, likewise; ``()`` for a teacher without
            one.
    """

    curves: "xr.Dataset"
    task: Task
    parameters: Mapping[str, Any]
    memories: Mapping[str, Any] = field(default_factory=dict)

    def plot(
        self,
        metrics: Sequence[str] | None = None,
        *,
        methods: Sequence[str] | None = None,
        ax: Any = None,
        figsize: tuple[float, float] | None = None,
    ) -> "Figure":
        """Draw a matplotlib figure, one panel per metric.

        Curves are means over seeds, with a band of ±1 standard error. A notebook shows it at the
        end of a cell.

        Args:
            metrics: names of the metrics; None for the task's panels.
            methods: names of the methods; None for all.
            ax: your own axes to draw on, one for each metric; a single one takes the first metric.
            figsize: width and height of a new figure in inches.

        Returns:
            The figure.

        Raises:
            InputError: if a metric was not recorded, a method was not taught, or there are too few
                axes.
        """
        from ital.figures import plot_curves

        return plot_curves(self.curves, self.task, metrics, methods=methods, ax=ax, figsize=figsize)

    def predict(self, x: Any, learner: str | None = None, seed: int | None = None) -> np.ndarray:
        """Return answers of a taught learner on your own rows: labels, or targets in their units.

        ``result.task.encoding`` holds the units of the columns, the fitted targets and a linear
        learner's coefficients.

        Args:
            x: rows (n, d) of the learner's view, in the units of the data that the task was made
                from.
            learner: name of the method; None if there is only one.
            seed: the seed; None for the first.

        Returns:
            The answers (n,), or (n, K) for K > 1 targets.

        Raises:
            InputError: if the task was not made by :func:`ital.tasks.from_arrays` or
                :func:`ital.tasks.from_table`, the rows do not fit, or there is no such learner or
                seed.

        Example:
            >>> result.predict(x_new, learner="ital")
        """
        encoding = self.task.encoding
        if encoding is None:
            raise InputError(
                f"task {self.task.name!r} was not made here by from_arrays or from_table, so the "
                "units of its data are not known: make the task and teach again"
            )
        at = self._seed_position(seed)
        of_all_seeds = self.parameters[self._taught_name(learner)]
        params = jax.tree.map(lambda leaf: leaf[at], of_all_seeds)
        return np.asarray(encoding.predict(params, x))

    def _taught_name(self, learner: str | None) -> str:
        """Return the name of a method whose final parameters are known."""
        if not self.parameters:
            raise InputError("files do not hold the final parameters: teach again to predict")
        names = list(self.parameters)
        if learner is None:
            if len(names) > 1:
                raise InputError(
                    f"several learners were taught: choose learner= from {', '.join(names)}"
                )
            return names[0]
        if learner not in names:
            raise InputError(registry.nearest("method", str(learner), names))
        return learner

    def _seed_position(self, seed: int | None) -> int:
        """Return the position of a seed along its axis."""
        if seed is None:
            return 0
        seeds = [int(taught) for taught in self.curves["seed"].values]
        if seed not in seeds:
            raise InputError(
                f"seed {seed!r} was not taught: choose from {', '.join(map(str, seeds))}"
            )
        return seeds.index(seed)

    def save(self, folder: Path | str, *, overwrite: bool = False) -> list[Path]:
        """Write what ``ital run`` writes: ``curves.nc``, ``summary.csv`` and the figures.

        :func:`ital.load` reads it. The final parameters are not written.

        Args:
            folder: the folder to write to; it is created if needed.
            overwrite: replace an existing run.

        Returns:
            The files.

        Raises:
            InputError: if the folder has no name, holds a run already, or cannot be created.
        """
        return write_run(self.curves, self.task, path_of(folder, "folder"), overwrite)

    def __reduce__(self) -> tuple[Any, ...]:
        parameters = jax.tree.map(np.asarray, dict(self.parameters))
        memories = jax.tree.map(np.asarray, dict(self.memories))
        return Result, (self.curves, self.task, parameters, memories)

    def _repr_html_(self) -> str:
        from ital.figures import card

        return card(self.curves, self.task)

    def __repr__(self) -> str:
        curves = self.curves
        methods = ", ".join(map(str, curves["learner"].values))
        teacher = curves.attrs.get("teacher", "")
        last_step = int(curves["step"].values[-1])
        size = f"{curves.sizes['seed']} seeds, {last_step} steps"
        return f"Result({self.task.name!r}, {teacher!r} teacher: {methods}; {size})"

    def summary(self) -> "pd.DataFrame":
        """Return mean and standard error over seeds per method and metric, at five steps.

        Returns:
            One row per method, metric and step.
        """
        return summarise(self.curves)

    def compare(
        self,
        against: str | None = None,
        metrics: Sequence[str] | str | None = None,
        *,
        step: int | None = None,
    ) -> "pd.DataFrame":
        """Compare every method with one of them: paired differences, their intervals, and tests.

        Differences are paired by seed. :func:`ital.results.latex` writes the table for a paper.

        Args:
            against: name of the method to compare with; None for ``imt``, or the first.
            metrics: names of the metrics; None for all.
            step: the step at which to compare; None for the last measured one.

        Returns:
            One row per metric and other method: the mean ``difference``, its 95 % interval from
            ``low`` to ``high``, the p-value of the paired test, the same after Holm's adjustment
            (``p_holm``), and the probability that a seed of the method is better than a seed of the
            other (``improvement``).

        Raises:
            InputError: if a method was not taught, or a metric not recorded at that step.

        Example:
            >>> result.compare(against="imt", metrics=["distance"])
        """
        better_high = _higher_is_better(self.task)
        return compare(self.curves, against, metrics, step=step, higher_is_better=better_high)

    def awareness(self) -> "pd.DataFrame":
        """Measure what awareness amounted to at the start.

        That is how sharp the learner's q was, and how long its awareness step. It makes the parts
        again by their names, and measures 64 mini-batches per seed.

        Returns:
            One row per aware learner: see :func:`ital.teaching.awareness`.

        Raises:
            InputError: if the teacher or a learner is not registered: call
                :func:`ital.teaching.awareness` with them.
        """
        attributes = self.curves.attrs
        return awareness(
            self.task,
            str(attributes["teacher"]),
            [str(name) for name in self.curves["learner"].values],
            seeds=[int(seed) for seed in self.curves["seed"].values],
            beta=self._beta_of_run(),
            lr=float(attributes["lr"]),
            batch_size=int(attributes["batch_size"]),
            init=None if self.task.init.kind == "own" else str(attributes["init"]),
        )

    def _beta_of_run(self) -> float | str | None:
        """Return the β of the run, as far as the curves tell."""
        betas = self.curves["beta"].values
        # Only the automatic rule gives one learner a β per seed.
        if (betas != betas[:, :1]).any():
            return "auto"
        is_used = np.isfinite(betas) & (betas != 0)
        used = betas[is_used]
        if not len(used):
            return None
        return float(used[0])


def load(folder: Path | str) -> Result:
    """Read a run that ``ital run`` or :meth:`ital.Result.save` wrote.

    A registered task is rebuilt. Results of other tasks can be drawn and summarised, but not taught
    again.

    Args:
        folder: the folder with ``curves.nc``, e.g. ``results/regression/cooperative``, or that
            file.

    Returns:
        The result, without the final parameters, which files do not contain.

    Raises:
        InputError: if there is no run, or its file is damaged.

    Example:
        >>> ital.load("results/regression/cooperative").plot()
    """
    return Result(*read_run(path_of(folder, "folder")), {})


@takes_run()
def teach(
    task: Task | str,
    teacher: Teacher | str = "cooperative",
    learner: Learner | str | Sequence[Learner | str] = "ital",
    *,
    progress: bool = False,
    **settings: Any,
) -> Result:
    """Teach one or several learners, each on every seed, and return their learning curves.

    Args:
        task: the task, e.g. ``ital.tasks.regression()``. Tasks, teachers and learners may be given
            by registered name.
        teacher: the teacher, which chooses the examples, e.g. ``ital.teachers.cooperative()``.
        learner: one learner, e.g. ``ital.learners.teacher_aware()``, or several, which share
            mini-batches and starts.
        progress: show a progress bar.
        **settings: the numbers of the run, such as ``steps=2000``, ``seeds=20`` or ``lr=1e-3``: see
            :class:`ital.teaching.Run`.

    Returns:
        The curves, the task, and the learners' final parameters.

    Raises:
        InputError: if the parts or the numbers are not valid; the message says why.

    Warns:
        DivergenceWarning: if the parameters of a learner become infinite or NaN on some seed.
        AwarenessWarning: if ``beta="auto"`` leaves an aware learner behind ``imt``.

    Example:
        >>> result = ital.teach("regression", "cooperative", ["imt", "ital"], steps=200, seeds=5)
        >>> result.plot().savefig("curves.png")
    """
    keep_programs()
    task, teacher, learners = parts(task, teacher, learner)
    run = make_run(settings)
    run.check(task, learners)
    check_parts(task, teacher, learners, run.choices)
    check_footprint(task, run, len(learners), run.seed_list)
    sessions = open_sessions(task, teacher, learners, run)
    recording = Recording(sessions)
    title = f"{task.name}, {teacher.name} teacher"
    with show_progress(title, recording.total, progress) as show:

        def show_exam(share: float) -> None:
            show(recording.done_with(share))

        for i, session in enumerate(sessions):
            for block in session.blocks(show_exam):
                recording.blocks[i].append(block)
                show(recording.done)
    curves = recording.curves(run.seed_list, [learner.name for learner in learners])
    curves.attrs |= _attributes(task, teacher, run, len(learners))
    for message, category in _notes(curves, task, run, learners):
        warnings.warn(message, category, stacklevel=2)
    final: dict[str, Lane] = {}
    for session in sessions:
        final |= _final_lanes(session)
    parameters = {name: lane.params for name, lane in final.items()}
    memories = {name: lane.teacher for name, lane in final.items()}
    return Result(curves, task, parameters, memories)


def _final_lanes(session: Session) -> dict[str, Lane]:
    """Return learner → a copy of its lane, arrays with a leading axis of seeds."""
    # Arrays of a session have the axes (seed, lane, …).
    lanes = session.state.lanes
    final = {}
    for lane, learner in enumerate(session.learners):
        of_lane = functools.partial(_copy_of_lane, lane=lane)
        final[learner.name] = jax.tree.map(of_lane, lanes)
    return final


def _copy_of_lane(leaf: np.ndarray, lane: int) -> np.ndarray:
    """Return a copy of the part of an array (seed, lane, …) that belongs to one lane."""
    return leaf[:, lane].copy()


def _attributes(task: Task, teacher: Teacher, run: Run, learners: int) -> dict[str, Any]:
    """Return the attributes of the curves: what describes the run in a file."""
    attributes: dict[str, Any] = {
        "task": task.name,
        "teacher": teacher.name,
        "lr": run.lr,
        "init": str(run.start_on(task)),
        "steps": run.steps,
        "batch_size": run.batch_size,
        "step_form": run.forms(learners)[0].name,
    }
    if run.optimizer is not None:
        attributes["optimizer"] = run.optimizer_name
    return attributes


def _notes(
    curves: "xr.Dataset",
    task: Task,
    run: Run,
    learners: Sequence[Learner],
) -> Iterator[tuple[str, type[Warning]]]:
    """Yield what a user should know about the curves, with the category of the warning."""
    diverged = [divergence_note(curves, learner.name) for learner in learners]
    if any(diverged):
        yield " ".join(filter(None, diverged)), DivergenceWarning
    beta = task.beta if run.beta is None else run.beta
    if beta == "auto":
        behind = behind_note(curves, _higher_is_better(task))
        if behind is not None:
            yield behind, AwarenessWarning


def _higher_is_better(task: Task) -> list[str]:
    """Return the names of the metrics whose larger values are better."""
    return [name for name, metric in task.metrics.items() if metric.higher_is_better]
