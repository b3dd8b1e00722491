"""Make sessions from parts and a run.

Draw the worlds, fill in open values, and group learners that share a rule: a group is one program.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital.errors import InputError
from ital.learners import Learner, Lesson, Rule, Situation, optimizer
from ital.steps import Form
from ital.tasks import Task, World, stack_worlds
from ital.teachers import Teacher
from ital.teaching import _program, _start
from ital.teaching._parts import check_world
from ital.teaching._program import LaneNumbers, Numbers, Program, spread, whole
from ital.teaching._run import Run
from ital.teaching._session import Session
from ital.tools.devices import Layout
from ital.tools.types import Array, Params


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
        worlds, axes = stack_worlds([task.world(seed) for seed in seeds])
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
        lanes = LaneNumbers(
            lr=np.broadcast_to(np.asarray(lr, jnp.result_type(float)), shape),
            form=form,
            learner=learner,
            teacher=jax.tree.map(lambda number: spread(number, shape), self.teacher_numbers),
        )
        return Numbers(
            worlds=self.worlds,
            seeds=np.asarray(self.seeds, np.uint32),
            lanes=lanes,
            every=whole(_stride(self.eval_every)),
            last_step=whole(self.run.steps),
        )

    def auto_beta(
        self, rule: Rule, imagine: Callable[[Lesson, Params], Array], sign: float
    ) -> np.ndarray:
        """Find ``beta="auto"`` of every seed from the volumes that a learner imagines."""
        # Its lessons are those of one lane per seed, with the form of the first learner.
        # Any rule will do, because the learner only imagines and takes no step.
        first_form = _side_by_side(self.forms[:1], len(self.seeds))
        one_lane = jax.tree.map(lambda number: number[:, 0], first_form)
        numbers = self.numbers(self.run.lr, one_lane, (), (len(self.seeds),))
        per_seed = numbers.placed(self.layout.copied, self.layout.spread, self.axes)
        init = self.run.start_on(self.task)
        found = _start.auto_beta_per_seed(
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


def open_sessions(
    task: Task, teacher: Teacher, learners: Sequence[Learner], run: Run
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
        imagine: Callable[[Lesson, Params], Array], sign: float = teacher.sign
    ) -> np.ndarray:
        return common.auto_beta(learners[0].rule, imagine, sign)

    context = situation(task, teacher, run, auto_beta)
    lrs = np.broadcast_to(run.lr, len(learners))
    by_rule: dict[Rule, list[_Assigned]] = {}
    for learner, lr, form in zip(learners, lrs, common.forms, strict=True):
        resolved = fill_in(learner, context)
        by_rule.setdefault(resolved.rule, []).append(_Assigned(resolved, lr, form))
    return [common.session(rule, lanes) for rule, lanes in by_rule.items()]


def _stride(eval_every: int) -> int:
    """Return the steps of one interval of the compiled block.

    The host can report and stop only between intervals. So above 100 steps an interval is the
    largest divisor of ``eval_every`` in [10, 100], if there is one.
    """
    if eval_every <= 100:
        return eval_every
    divisors = [steps for steps in range(10, 101) if eval_every % steps == 0]
    return max(divisors, default=eval_every)


def version_of(teacher: Teacher, learner: Learner) -> str:
    """Return the version of the code that computes a lane: its loop, teacher and learner.

    Args:
        teacher: the teacher.
        learner: the learner.

    Returns:
        The three versions, separated by points.
    """
    return f"{_program.VERSION}.{teacher.version}.{learner.version}"


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


def _side_by_side(parts: Sequence[Learner | Form], seeds: int) -> Any:
    """Return the settings of several learners (or forms) as one pytree, axes (seed, lane)."""
    lanes = [jax.tree.map(lambda number: spread(number, (seeds,)), part.settings) for part in parts]
    return jax.tree.map(lambda *numbers: np.stack(numbers, axis=1), *lanes)
