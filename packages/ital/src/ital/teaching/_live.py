"""Live teachers: a person, a notebook or another program chooses, and the learner takes a step.

A live session has one lane, whose teacher reads its choice from the lane's numbers. Its steps are
those of the compiled block: with the choices of the cooperative teacher, it gives the same
parameters as :func:`ital.teach`.
"""

import functools
import hashlib
import json
import math
import operator
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from ital.errors import InputError
from ital.learners import Learner
from ital.results import FINITE, PATH, SIGNAL
from ital.tasks import Task, World
from ital.teachers import LearnerView, Teacher, TeacherView, plan_worths, planner
from ital.teaching._lanes import Recording, open_sessions, version_of
from ital.teaching._program import (
    STEPS,
    Carry,
    Lane,
    LaneNumbers,
    Moment,
    Program,
)
from ital.teaching._run import Run, check_parts, make_run, parts, takes_run
from ital.teaching._session import Numbers, key_of, spread
from ital.teaching._step import draw, learner_view, meet, view_of
from ital.tools import files
from ital.tools.platform import keep_programs, traced_for
from ital.tools.types import Array, Params

if TYPE_CHECKING:
    import xarray as xr

LookFn = Callable[[TeacherView, LearnerView], Any]

# In place of an index: no choice has been made yet.
NOBODY = -1.0

# The format of a saved session: JSON with a checksum, written completely or not at all.
FORMAT = 1
# Settings of a run that older files do not hold, as these runs had them.
LATER = {"choices": 1, "optimizer": None}


def _index_given(key: Any, view: TeacherView, index: Array) -> Array:
    """Return the index in the lane's numbers."""
    # Before the first choice ``beta="auto"`` needs one: it takes the cooperative teacher's.
    return jnp.where(index < 0, jnp.argmax(view.volumes), index.astype(int))


LIVE = Teacher("live", _index_given, settings=NOBODY)


class Live:
    """A learner that waits for the teacher's next choice.

    Made by :func:`ital.session` and :func:`ital.load_session`.

    Args:
        task: the task.
        learner: the learner.
        run: the numbers of the run, with one seed.
    """

    def __init__(self, task: Task, learner: Learner, run: Run) -> None:
        keep_programs()
        run.check(task, [learner])
        check_parts(task, LIVE, [learner], run.choices)
        self.task = task
        self.learner = learner
        self.run = run
        self.choices: list[int] = []
        # What the teacher sees of the next step: computed when it is asked for.
        self._view: TeacherView | None = None
        # No exam: it takes seconds, too long for an interactive session.
        without_exam = task._replace(exam=None)
        (self._session,) = open_sessions(without_exam, LIVE, [learner], run)
        self._numbers = self._session.numbers
        self._recording = Recording([self._session])
        self._recording.blocks[0].append(self._session.at_start)

    def __repr__(self) -> str:
        at = f"step={self.step}, steps={self.steps}"
        return f"<live session: {self.task.name}, {self.learner.name}, {at}>"

    @property
    def step(self) -> int:
        """The number of steps taken so far."""
        return len(self.choices)

    @property
    def steps(self) -> int:
        """The number of steps after which the session ends."""
        return self.run.steps

    @property
    def view(self) -> TeacherView:
        """Everything that a machine teacher would see of the next step.

        Raises InputError at the end of the session.
        """
        self._refuse_after_end()
        if self._view is None:
            seen = _look(self._session.program, _seen, self._numbers, self._session.carry)
            self._view = jax.tree.map(np.asarray, seen)
        return self._view

    @property
    def scores(self) -> dict[str, np.ndarray]:
        """By what teachers choose, by name (B,): what a fit compares with people's choices.

        ``exact`` and ``imitated`` teaching volume, ``loss``, norm of the ``gradient``; on tasks
        that offer a simulation also the squared ``error`` of the learner's outputs.
        """
        self._refuse_after_end()
        program = self._session.program
        found = _look(program, _scored, self._numbers, self._session.carry)
        return {name: np.asarray(values) for name, values in found.items()}

    def plan_worths(self, horizon: int) -> np.ndarray:
        """Return by what a planner chooses: what the best plan is worth that begins with each
        candidate.

        Args:
            horizon: number of mini-batches that the planner sees; with 1 these are the exact
                volumes.

        Returns:
            The sums of the exact volumes of the plans (B,).

        Raises:
            InputError: if a planner cannot have this horizon, or the session is at its end.
        """
        self._refuse_after_end()
        # A planner sees the mini-batches of the next steps: the program draws them too.
        program = self._session.program
        teacher = program.teacher._replace(ahead=planner(horizon).ahead)
        program = program._replace(teacher=teacher)
        look = _planned(horizon)
        return np.asarray(_look(program, look, self._numbers, self._session.carry))

    @property
    def candidates(self) -> Any:
        """The mini-batch as the teacher sees it, along the first axis.

        That is rows and labels, or states and actions.
        """
        return self.view.examples

    @property
    def volumes(self) -> np.ndarray:
        """The imitated teaching volume of every candidate; the cooperative teacher maximises it."""
        return np.asarray(self.view.volumes)

    @property
    def params(self) -> Params:
        """The learner's parameters."""
        lanes = self._session.state.lanes
        return jax.tree.map(lambda leaf: leaf[0, 0].copy(), lanes.params)

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics after the latest choice, or at the start."""
        (blocks,) = self._recording.blocks
        latest = blocks[-1]
        metrics = {}
        for name, row in latest.rows.items():
            if name in (FINITE, PATH):
                continue
            metrics[name.removeprefix(SIGNAL)] = float(row[-1, 0, 0])
        return metrics

    @property
    def curves(self) -> "xr.Dataset":
        """All metrics so far, with the dimensions of :func:`ital.teach`: (learner, seed, step)."""
        curves = self._recording.curves(self.run.seed_list, [self.learner.name])
        curves.attrs |= {
            "task": self.task.name,
            "teacher": LIVE.name,
            "lr": self.run.lr,
            "steps": self.step,
        }
        return curves

    def choose(self, index: Any) -> dict[str, float]:
        """Show the learner one candidate, and let it take its step.

        Args:
            index: index of the candidate in the mini-batch, from 0.

        Returns:
            The metrics after the step, by name.

        Raises:
            InputError: if there is no such candidate, or the session is at its end.
        """
        self._refuse_after_end()
        chosen = self._checked_choice(index)
        # The teacher of the compiled block reads its choice from the lane's numbers.
        teacher = self._session.layout.spread(spread(chosen, (1, 1)))
        lanes = self._numbers.lanes._replace(teacher=teacher)
        self._session.numbers = self._numbers._replace(lanes=lanes)
        self._recording.blocks[0].append(self._session.advance(1))
        self.choices.append(chosen)
        self._view = None
        return self.metrics

    def _checked_choice(self, index: Any) -> int:
        """Return the index of a candidate as a number; raise InputError if there is none."""
        last = self.run.batch_size - 1
        try:
            chosen = operator.index(index)
        except TypeError:
            raise InputError(
                f"a choice is one whole number from 0 to {last}, not {index!r}"
            ) from None
        if not 0 <= chosen <= last:
            raise InputError(f"choice {chosen} is not in the mini-batch: choose from 0 to {last}")
        return chosen

    def save(self, file: Path | str) -> Path:
        """Write the session to a small JSON file: its settings, every choice, and its metrics.

        Args:
            file: the file; an existing one is replaced.

        Returns:
            The file.

        Raises:
            InputError: if a number of the run cannot be written.
            OSError: if the file cannot be written.
        """
        content = {**self.identity, "choices": self.choices, "metrics": self.metrics}
        return write_session(Path(file), content)

    @property
    def identity(self) -> dict[str, Any]:
        """What identifies this session: its parts, their versions, and all numbers."""
        lanes = self._numbers.lanes
        numbers = (lanes.lr, lanes.form, lanes.learner)
        # What the user may write in several ways has one spelling here.
        run = asdict(self.run)
        if run["labels"] == "all":
            # As in results: the default is not stored, so earlier sessions stay valid.
            del run["labels"]
        if self.run.init:
            run["init"] = str(self.run.start_on(self.task))
        run["form"] = self.run.forms(1)[0].name
        run["optimizer"] = self.run.optimizer_name
        return {
            "task": self.task.name,
            "task_settings": dict(self.task.settings),
            "data_version": self.task.data_version,
            "learner": self.learner.name,
            "version": version_of(LIVE, self.learner),
            "run": run,
            "numbers": [np.ravel(leaf).tolist() for leaf in jax.tree.leaves(numbers)],
        }

    def _refuse_after_end(self) -> None:
        """Raise InputError if no step is left."""
        if self.step >= self.steps:
            raise InputError(
                f"the session has ended after {self.steps} steps: open a session with more steps"
            )


@takes_run("seeds", "eval_every", "devices")
def session(
    task: Task | str,
    learner: Learner | str = "ital",
    *,
    seed: int = 0,
    **settings: Any,
) -> Live:
    """Open a live session, in which you or your program choose each example that the learner sees.

    Args:
        task: the task, or its registered name.
        learner: the learner, or its registered name.
        seed: the seed of the world, the start and the mini-batches, as in :func:`ital.teach`.
        **settings: the numbers of the run, such as ``steps=2000`` or ``lr=1e-3``: see
            :class:`ital.teaching.Run`.

    Returns:
        The session, before its first step.

    Raises:
        InputError: if the parts or the numbers are not valid; the message says why.

    Example:
        >>> live = ital.session("regression", "ital", seed=0)
        >>> live.choose(int(live.volumes.argmax()))["distance"]
    """
    made, _, learners = parts(task, LIVE, learner)
    if len(learners) != 1:
        raise InputError(f"a live session has one learner, not {len(learners)}")
    return Live(made, learners[0], make_run(settings, seeds=[seed], eval_every=1, devices=1))


def load_session(
    file: Path | str,
    task: Task | None = None,
    learner: Learner | None = None,
) -> Live:
    """Resume a saved session: open it and repeat its steps.

    That gives the same parameters bit for bit.

    Args:
        file: a file that ``save`` wrote.
        task: the task, unless it is a registered one with its default settings.
        learner: the learner, likewise.

    Returns:
        The session after its latest choice.

    Raises:
        InputError: if the file is missing or damaged, or is of another task, learner or version.
    """
    stored = read_session(Path(file))
    made, _, learners = parts(task or stored["task"], LIVE, learner or stored["learner"])
    live = Live(made, learners[0], Run(**stored["run"]))
    for name, value in as_read_back(live.identity).items():
        if value == stored.get(name):
            continue
        # The task or the learner was given, and it is another than the saved one.
        part = "learner" if name in ("learner", "numbers") else "task"
        what = name.replace("_", " ")
        raise InputError(f"{file}: the {what} differ: pass the saved {part} to load_session")
    for index in stored["choices"]:
        live.choose(index)
    # Another machine rounds differently; a task whose data changed leads much farther away.
    for name, value in live.metrics.items():
        saved = stored["metrics"].get(name, math.nan)
        is_same = np.isclose(value, saved, rtol=1e-3, atol=1e-6, equal_nan=True)
        if not is_same:
            raise InputError(
                f"{file}: its choices now lead elsewhere ({name} {value:g}): use the same task"
            )
    return live


@functools.partial(jax.jit, static_argnums=(0, 1))
def _look(program: Program, look: LookFn, numbers: Numbers, carry: Carry) -> Any:
    """Return what ``look`` finds before the next step, in a session with one lane and one seed."""
    moment = Moment(carry.step, numbers.last_step)

    def of_seed(
        world: World,
        seed: Array,
        per_lane: LaneNumbers,
        lanes: Lane,
    ) -> Any:
        # The same keys as in the compiled block, so that steps show the same mini-batches.
        key_of_steps = jax.random.fold_in(key_of(seed), STEPS)
        key_at = functools.partial(jax.random.fold_in, key_of_steps)
        later = None
        if program.teacher.ahead > 1:
            later = jax.vmap(key_at)(moment.step + jnp.arange(1, program.teacher.ahead))
        drawn = draw(program, world, key_at(moment.step), later)
        lr = per_lane.lr[0]
        lane = _first_of_each(lanes)
        scene = meet(program, world, drawn, lane.params, lane.previous)
        view = view_of(program, world, drawn, scene, moment, lr)
        learner = learner_view(program, world, drawn, scene, lane.params, lr)
        return look(view, learner)

    with traced_for(program.platform):
        found = numbers.each_seed(
            program,
            of_seed,
            numbers.seeds,
            numbers.lanes,
            carry.lanes,
        )
    return _first_of_each(found)


def _first_of_each(tree: Any) -> Any:
    """Return the first part of each array, along its first axis."""
    return jax.tree.map(lambda leaf: leaf[0], tree)


def _seen(view: TeacherView, learner: LearnerView) -> TeacherView:
    """Return what the teacher sees."""
    # The model is code, not data: a compiled function cannot return it.
    return view._replace(model=None)


@functools.cache  # one object per horizon, so that equal programs are compiled once
def _planned(horizon: int) -> LookFn:
    """Return a function that scores the candidates as a planner does."""

    def look(view: TeacherView, learner: LearnerView) -> Array:
        return plan_worths(learner, view.lr, horizon)

    return look


def _scored(view: TeacherView, learner: LearnerView) -> dict[str, Array]:
    """Return the scores by which teachers choose."""
    here = learner.gradients(learner.params, 0)
    scores = {
        "exact": learner.volumes,
        "imitated": view.volumes,
        "loss": here.losses,
        "gradient": jnp.sqrt(here.squared_norms),
    }
    if view.model is not None:
        wanted = view.model.outputs(view.target, view.examples.x)
        errors = view.feedback - wanted
        scores["error"] = jnp.sum(errors**2, axis=-1)
    return scores


def as_read_back(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content as a file gives it back; values that JSON does not support become text."""
    text = json.dumps(content, default=str)
    return dict(json.loads(text))


def write_session(file: Path, content: dict[str, Any]) -> Path:
    """Write the file, with its format and its checksum."""
    content = as_read_back({"ital_session": FORMAT, **content})
    with_checksum = {**content, "checksum": _checksum(content)}
    text = json.dumps(with_checksum, indent=1)
    files.write(file, text.encode() + b"\n")
    return file


def read_session(file: Path) -> dict[str, Any]:
    """Read the content of the file; raise InputError if it is not what was written."""
    files.check_readable(file, f"the live session {file}")
    try:
        content = dict(json.loads(file.read_bytes()))
        intact = content.pop("checksum") == _checksum(content)
    except (ValueError, KeyError, TypeError):
        intact = False
    if not intact:
        raise InputError(f"{file}: damaged, or not a saved live session")
    stored_format = content["ital_session"]
    if stored_format != FORMAT:
        raise InputError(
            f"{file}: format {stored_format}, but this version of ital reads format {FORMAT}"
        )
    return content | {"run": LATER | content["run"]}


def _checksum(content: dict[str, Any]) -> str:
    """Return the checksum of the content, whatever the order of its keys."""
    in_order = json.dumps(content, sort_keys=True)
    return hashlib.sha256(in_order.encode()).hexdigest()
