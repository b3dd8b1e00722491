"""Lanes: opened as sessions, recorded as curves, kept as tables.

:func:`open_sessions` draws the worlds, fills in open values and groups learners that share a rule:
a group is one program. :class:`Recording` collects what the sessions report, block by block, and
makes curves of it. :func:`write_summary` and :func:`write_table` write curves as CSV.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital.errors import InputError
from ital.learners import Learner, Lesson, Rule, Situation, optimizer
from ital.results import EXAM, FINITE, FRAMES, PATH, SIGNAL, long_form, summarise, thinned
from ital.steps import Form
from ital.tasks import Task, World, stack_worlds
from ital.teachers import Teacher
from ital.teaching import _program
from ital.teaching._auto_beta import auto_beta_per_seed
from ital.teaching._program import LaneNumbers, Program
from ital.teaching._run import Run, check_world
from ital.teaching._session import Block, Numbers, Session, spread, whole
from ital.tools.devices import Layout
from ital.tools.files import write
from ital.tools.types import Array, Params

if TYPE_CHECKING:
    import xarray as xr


def open_sessions(
    task: Task,
    teacher: Teacher,
    learners: Sequence[Learner],
    run: Run,
) -> list[Session]:
    """Draw the worlds, fill in what is open in teacher and learners, open one session per rule.

    Args:
        task: the task.
        teacher: the teacher.
        learners: the learners.
        run: the numbers of the run.

    Returns:
        The sessions.

    Raises:
        InputError: if the world lacks what the teacher needs, or a learner cannot take part.
    """
    common = _Common.of(task, teacher, run, len(learners))

    # Several learners ask for the β of the same imagined volumes: it is computed once.
    @functools.cache
    def auto_beta(
        imagine: Callable[[Lesson, Params], Array],
        sign: float = teacher.sign,
    ) -> np.ndarray:
        return common.auto_beta(learners[0].rule, imagine, sign)

    context = situation(task, teacher, run, auto_beta)
    lrs = np.broadcast_to(run.lr, len(learners))
    by_rule: dict[Rule, list[_Assigned]] = {}
    for learner, lr, form in zip(learners, lrs, common.forms, strict=True):
        resolved = fill_in(learner, context)
        lanes = by_rule.setdefault(resolved.rule, [])
        lanes.append(_Assigned(resolved, lr, form))
    return [common.session(rule, lanes) for rule, lanes in by_rule.items()]


class _Assigned(NamedTuple):
    """A learner with all settings filled in, and its step size and form."""

    learner: Learner
    lr: float
    form: Form


@dataclass(frozen=True)
class _Common:
    """What all lanes of a call have in common.

    Attributes:
        task: the task.
        teacher: the teacher as the user gave it.
        code: the teacher without its name and numbers.
        run: the numbers of the run.
        seeds: the seeds.
        layout: the devices that share the seeds.
        worlds: the worlds of all seeds, stacked.
        axes: axis of the seeds in each array of the worlds: 0, or None if it is shared.
        forms: the form of the step of each learner; they differ only in numbers.
        teacher_numbers: the settings of the teacher.
        eval_every: steps between measurements.
    """

    task: Task
    teacher: Teacher
    code: Teacher
    run: Run
    seeds: list[int]
    layout: Layout
    worlds: World
    axes: tuple[int | None, ...]
    forms: list[Form]
    teacher_numbers: Any
    eval_every: int

    @classmethod
    def of(cls, task: Task, teacher: Teacher, run: Run, learners: int) -> "_Common":
        """Draw the worlds and check that they have what the teacher needs."""
        seeds = run.seed_list
        layout = Layout.of(len(seeds), run.devices)
        drawn_worlds = [task.world(seed) for seed in seeds]
        worlds, axes = stack_worlds(drawn_worlds)
        check_world(task, teacher, worlds, diagnostics=run.diagnostics)
        return cls(
            task=task,
            teacher=teacher,
            code=teacher.code(run.choices),
            run=run,
            seeds=seeds,
            layout=layout,
            worlds=worlds,
            axes=axes,
            forms=run.forms(learners),
            teacher_numbers=teacher.resolve(teacher.settings, task.beta),
            eval_every=min(run.interval_on(task), run.steps),
        )

    def program(self, rule: Rule) -> Program:
        """Return the code of all lanes whose learners have this rule."""
        return Program(
            rules=self.task.rules,
            teacher=self.code,
            rule=rule,
            take=self.forms[0].take,
            batch_size=self.run.batch_size,
            choices=self.run.choices,
            diagnostics=self.run.diagnostics,
            watched=self.task.picture is not None,
            axes=self.axes,
            platform=self.layout.devices[0].platform,
            mesh=self.layout.mesh,
        )

    def numbers(self, lr: Any, form: Any, learner: Any, shape: tuple[int, ...]) -> Numbers:
        """Return the numbers of a program with lanes of this shape: (seed, lane), or (seed,)."""
        kind = jnp.result_type(float)
        step_sizes = np.asarray(lr, kind)
        spread_out = functools.partial(spread, shape=shape)
        lanes = LaneNumbers(
            lr=np.broadcast_to(step_sizes, shape),
            form=form,
            learner=learner,
            teacher=jax.tree.map(spread_out, self.teacher_numbers),
        )
        return Numbers(
            worlds=self.worlds,
            seeds=np.asarray(self.seeds, np.uint32),
            lanes=lanes,
            every=whole(_stride(self.eval_every)),
            last_step=whole(self.run.steps),
        )

    def auto_beta(
        self,
        rule: Rule,
        imagine: Callable[[Lesson, Params], Array],
        sign: float,
    ) -> np.ndarray:
        """Find ``beta="auto"`` of every seed from the volumes that a learner imagines."""
        # Its lessons are those of one lane per seed, with the form of the first learner.
        # Any rule will do, because the learner only imagines and takes no step.
        seeds = len(self.seeds)
        first_form = _side_by_side(self.forms[:1], seeds)
        one_lane = jax.tree.map(lambda number: number[:, 0], first_form)
        numbers = self.numbers(
            lr=self.run.lr,
            form=one_lane,
            learner=(),
            shape=(seeds,),
        )
        per_seed = numbers.placed(
            shared=self.layout.copied,
            by_seed=self.layout.spread,
            axes=self.axes,
        )
        init = self.run.start_on(self.task)
        found = auto_beta_per_seed(
            self.program(rule),
            imagine,
            init.kind,
            spread(init.scale, ()),
            spread(sign, ()),
            per_seed,
        )
        return self.layout.cut(np.asarray(found))

    def session(self, rule: Rule, lanes: Sequence[_Assigned]) -> Session:
        """Open the session of all learners that share a rule."""
        seeds = len(self.seeds)
        learners = tuple(lane.learner for lane in lanes)
        numbers = self.numbers(
            lr=[lane.lr for lane in lanes],
            form=_side_by_side([lane.form for lane in lanes], seeds),
            learner=_side_by_side(learners, seeds),
            shape=(seeds, len(lanes)),
        )
        return Session(
            self.program(rule),
            numbers,
            learners,
            init=self.run.start_on(self.task),
            steps=self.run.steps,
            eval_every=self.eval_every,
            layout=self.layout,
            teacher=self.teacher.name,
            exam=self.task.exam,
        )


def _stride(eval_every: int) -> int:
    """Return the steps of one interval of the compiled block.

    The host can report and stop only between intervals. So above 100 steps an interval is the
    largest divisor of ``eval_every`` in [10, 100], if there is one.
    """
    if eval_every <= 100:
        return eval_every
    divisors = [steps for steps in range(10, 101) if eval_every % steps == 0]
    return max(divisors, default=eval_every)


def _side_by_side(parts: Sequence[Learner | Form], seeds: int) -> Any:
    """Return the settings of several learners (or forms) as one pytree, axes (seed, lane)."""
    spread_out = functools.partial(spread, shape=(seeds,))
    lanes = [jax.tree.map(spread_out, part.settings) for part in parts]

    def stack_lanes(*numbers: np.ndarray) -> np.ndarray:
        return np.stack(numbers, axis=1)

    return jax.tree.map(stack_lanes, *lanes)


def situation(task: Task, teacher: Teacher, run: Run, auto_beta: Callable[..., Any]) -> Situation:
    """Return what learners know before they start.

    Args:
        task: the task.
        teacher: the teacher.
        run: the numbers of the run.
        auto_beta: finds a β per seed.

    Returns:
        The situation.
    """
    return Situation(
        beta=_fitting_beta(task, teacher) if run.beta is None else run.beta,
        beta_decay=run.beta_decay_on(task),
        batch_size=run.batch_size,
        volume="exact" if teacher.omniscient else "imitated",
        auto_beta=auto_beta,
        most_awareness=task.rules.most_awareness,
        choices=run.choices,
        optimizer=optimizer(run.optimizer),
        labels=run.labels,
        spread_of_start=task.init.spread,
    )


def _fitting_beta(task: Task, teacher: Teacher) -> float | str:
    """Return the task's β with the sign that fits the teacher: an adversary's is negative."""
    if isinstance(task.beta, str):
        return task.beta
    return teacher.sign * abs(task.beta)


def fill_in(learner: Learner, context: Situation) -> Learner:
    """Return the learner with everything filled in that the experiment decides.

    Args:
        learner: the learner as the user gave it.
        context: what learners know before they start.

    Returns:
        The learner.

    Raises:
        InputError: if the run has an optimizer, but the learner takes steps of its own.
    """
    resolved = learner.resolve(learner, context)
    if context.optimizer is not None and not resolved.rule.optimized:
        raise InputError(
            f"method {learner.name!r} takes steps of its own, so optimizer "
            f"{context.optimizer.name!r} cannot replace them: leave out the method or the optimizer"
        )
    if context.labels not in learner.labels:
        raise InputError(
            f"method {learner.name!r} cannot leave labels out: it has no use for labels "
            f"{context.labels!r}; leave out the method or the setting"
        )
    return resolved


def version_of(teacher: Teacher, learner: Learner) -> str:
    """Return the version of the code that computes a lane: its loop, teacher and learner.

    Args:
        teacher: the teacher.
        learner: the learner.

    Returns:
        The three versions, separated by points.
    """
    return f"{_program.VERSION}.{teacher.version}.{learner.version}"


class Recording:
    """What the sessions of a run report, block by block, and the curves it makes.

    Args:
        sessions: the sessions of the run.
    """

    def __init__(self, sessions: Sequence[Session]) -> None:
        self.sessions = sessions
        self.blocks: list[list[Block]] = [[] for _ in sessions]

    @property
    def total(self) -> int:
        """The total work, for progress: steps of all lanes; an exam counts as EXAM steps."""
        total = 0
        for session in self.sessions:
            work = session.steps + EXAM * len(session.exams)
            total += work * _lanes_of(session)
        return total

    @property
    def done(self) -> int:
        """The work done so far."""
        done = 0
        for i, session in enumerate(self.sessions):
            work = session.step + EXAM * self._exams_taken(i)
            done += work * _lanes_of(session)
        return done

    def done_with(self, share: float) -> int:
        """Return the work done so far, including a share of the next exam.

        Args:
            share: share of the next exam that is done, from 0 to 1.

        Returns:
            The work in steps.
        """
        lanes = _lanes_of(self.sessions[0])
        return self.done + round(share * EXAM * lanes)

    def _exams_taken(self, i: int) -> int:
        """Return how many exams one session has taken."""
        blocks = self.blocks[i]
        if not blocks:
            return 0
        last_step = int(blocks[-1].steps[-1])
        exams = self.sessions[i].exams
        return sum(step <= last_step for step in exams)

    def rows(self, i: int) -> dict[str, np.ndarray]:
        """Return everything that one session measured; NaN where a block lacks a metric.

        Args:
            i: index of the session.

        Returns:
            Metric → rows (step, seed, lane); "step" → the measured steps.
        """
        blocks = self.blocks[i]
        # Signals are not measured at the start, and exams not in every block: the last block with a
        # metric tells its shape.
        latest: dict[str, np.ndarray] = {}
        for block in blocks:
            latest |= block.rows
        collected = {"step": np.concatenate([block.steps for block in blocks])}
        for metric, like in latest.items():
            parts = []
            for block in blocks:
                gap_shape = (len(block.steps), *like.shape[1:])
                gap = np.full(gap_shape, np.nan, like.dtype)
                rows = block.rows.get(metric, gap)
                parts.append(rows)
            collected[metric] = np.concatenate(parts)
        return collected

    def curves(self, seeds: Sequence[int], methods: Sequence[str]) -> "xr.Dataset":
        """Return all curves, dimensions (learner, seed, step).

        Per lane (method, seed): its ``beta``, and ``diverged_at``, the first measured step at which
        its parameters were not finite (−1: never); ``computed`` distinguishes lanes that were run
        from gaps. Constants of a seed are attributes of their metric.

        Args:
            seeds: the seeds of the run.
            methods: names of the methods, in the desired order.

        Returns:
            The curves.
        """
        import xarray as xr

        parts = [self._curves_of(i, seeds) for i in range(len(self.sessions))]
        # Sessions may record different signals: the gaps become NaN.
        curves = xr.concat(
            parts,
            "learner",
            data_vars="all",
            join="outer",
            combine_attrs="override",
        )
        return curves.sel({"learner": list(methods)})

    def _curves_of(self, i: int, seeds: Sequence[int]) -> "xr.Dataset":
        """Return the curves of one session."""
        import xarray as xr

        session = self.sessions[i]
        rows = thinned(self.rows(i), session.eval_every)
        rows.pop(PATH, None)
        steps = rows.pop("step")
        finite = rows.pop(FINITE)
        diverged_at = _diverged_at(finite, steps)
        betas = [_beta_per_seed(learner, len(seeds)) for learner in session.learners]
        data: dict[str, Any] = {}
        for name, row in rows.items():
            per_lane_and_seed = row.transpose(2, 1, 0)
            data[name.removeprefix(SIGNAL)] = (("learner", "seed", "step"), per_lane_and_seed)
        per_lane = {
            "beta": np.stack(betas),
            "diverged_at": diverged_at,
            "computed": np.ones(diverged_at.shape, np.int8),
        }
        for name, row in per_lane.items():
            data[name] = (("learner", "seed"), row)
        coords = {
            "learner": [learner.name for learner in session.learners],
            "label": ("learner", [learner.label for learner in session.learners]),
            "seed": list(seeds),
            "step": steps,
        }
        curves = xr.Dataset(data, coords)
        for metric, constants in session.references.items():
            per_seed = {kind: np.asarray(value) for kind, value in constants.items()}
            curves[metric].attrs |= per_seed
        if session.exam:
            for metric, constants in session.exam.references().items():
                # An exam has one constant for all seeds.
                same = {kind: np.full(len(seeds), value) for kind, value in constants.items()}
                curves[metric].attrs |= same
        return curves

    def path(self, seeds: Sequence[int]) -> "xr.DataArray | None":
        """Return the parameters of the first seed over time, if the task can be drawn.

        Args:
            seeds: the seeds of the run.

        Returns:
            The parameters (learner, frame, parameter), or None if the task cannot be drawn.
        """
        import xarray as xr

        methods: list[str] = []
        paths = []
        for i, session in enumerate(self.sessions):
            rows = self.rows(i)
            if PATH not in rows or rows[PATH].ndim != 3:
                return None
            steps = rows["step"]
            methods += [learner.name for learner in session.learners]
            paths.append(rows[PATH])
        every = np.linspace(0, len(steps) - 1, FRAMES)
        frames = np.unique(every.round().astype(int))
        # (frame, method, parameter), the methods of all sessions side by side.
        path = np.concatenate([rows[frames] for rows in paths], axis=1)
        return xr.DataArray(
            path.transpose(1, 0, 2),
            {"learner": methods, "frame": steps[frames]},
            ("learner", "frame", "parameter"),
            attrs={"seed": seeds[0]},
        )


def _beta_per_seed(learner: Learner, seeds: int) -> np.ndarray:
    """Return the β of a learner on each seed; NaN for a learner without one."""
    beta = getattr(learner.settings, "beta", np.nan)
    return np.broadcast_to(np.asarray(beta, float), seeds)


def _lanes_of(session: Session) -> int:
    """Return the number of lanes, all seeds counted."""
    return session.numbers.lanes.lr.size


def _diverged_at(finite: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the first measured step at which parameters were not finite; −1 for never.

    Args:
        finite: whether they were finite (step, seed, lane).
        steps: the measured steps.

    Returns:
        The steps (lane, seed).
    """
    first = steps[np.argmin(finite, axis=0)]
    return np.where(finite.all(axis=0), -1, first).T


def write_summary(curves: "xr.Dataset", task: Task, folder: Path, draw: bool = True) -> list[Path]:
    """Write ``summary.csv`` and the figures ``curves.png`` and ``curves.pdf`` of a run.

    Args:
        curves: curves of the run.
        task: its task.
        folder: the folder to write to.
        draw: whether to write the figures.

    Returns:
        The files.
    """
    from ital import figures

    summary = folder / "summary.csv"
    write(summary, summarise(curves).to_csv(index=False).encode())
    if not draw:
        return [summary]
    figure = figures.plot_curves(curves, task)
    return [summary, *figures.save(figure, folder / "curves")]


def write_table(curves: "xr.Dataset", file: Path, wanted: bool) -> list[Path]:
    """Write every measured value as CSV, if asked for.

    An existing file is written too, because it would be out of date.

    Args:
        curves: curves of a run, or the grid of a sweep.
        file: the file.
        wanted: whether the file was asked for.

    Returns:
        The file, or nothing.
    """
    if not (wanted or file.exists()):
        return []
    write(file, long_form(curves).to_csv(index=False).encode())
    return [file]
