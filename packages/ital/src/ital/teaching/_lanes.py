"""Make sessions from parts and a run: draw worlds, fill in open values, and group learners that share a rule."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ital.errors import InputError
from ital.learners import Learner, Lesson, Rule, Situation, optimizer
from ital.steps import Form
from ital.tasks import Task, stack_worlds
from ital.teachers import Teacher
from ital.teaching import _program, _start
from ital.teaching._parts import check_world
from ital.teaching._program import LaneNumbers, Numbers, Program, spread, whole
from ital.teaching._run import Run
from ital.teaching._session import Session
from ital.tools.devices import Layout
from ital.tools.types import Array, Params


def open_sessions(
    task: Task, teacher: Teacher, learners: Sequence[Learner], run: Run
) -> list[Session]:
    """Draw the worlds, fill in open settings of teacher and learners, and open one session per rule.

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
    seeds = run.seed_list
    layout = Layout.of(len(seeds), run.devices)
    init, eval_every = run.start_on(task), min(run.interval_on(task), run.steps)
    worlds, axes = stack_worlds([task.world(seed) for seed in seeds])
    check_world(task, teacher, worlds, diagnostics=run.diagnostics)
    teacher_numbers = teacher.resolve(teacher.settings, task.beta)
    forms, code = run.forms(len(learners)), teacher.code(run.choices)

    def program(rule: Rule) -> Program:
        return Program(
            task.rules,
            code,
            rule,
            forms[0].take,
            run.batch_size,
            run.choices,
            run.diagnostics,
            task.picture is not None,
            axes,
            layout.devices[0].platform,
            layout.mesh,
        )

    def numbers(
        lr: Any, form_numbers: Any, learner_numbers: Any, shape: tuple[int, ...]
    ) -> Numbers:
        each_lr = np.broadcast_to(np.asarray(lr, jnp.result_type(float)), shape)
        each_teacher = jax.tree.map(functools.partial(spread, shape=shape), teacher_numbers)
        lanes = LaneNumbers(each_lr, form_numbers, learner_numbers, each_teacher)
        return Numbers(
            worlds,
            np.asarray(seeds, np.uint32),
            lanes,
            whole(_stride(eval_every)),
            whole(run.steps),
        )

    @functools.cache
    def auto_beta(
        imagine: Callable[[Lesson, Params], Array], sign: float = teacher.sign
    ) -> np.ndarray:
        first_form = jax.tree.map(lambda number: number[:, 0], _side_by_side(forms[:1], len(seeds)))
        per_seed = numbers(run.lr, first_form, (), (len(seeds),)).placed(
            layout.copied, layout.spread, axes
        )
        shared = (
            program(learners[0].rule),
            imagine,
            init.kind,
            spread(init.scale, ()),
            spread(sign, ()),
        )
        return layout.cut(np.asarray(_start.auto_beta_per_seed(*shared, per_seed)))

    make_session = functools.partial(
        Session,
        init=init,
        steps=run.steps,
        eval_every=eval_every,
        layout=layout,
        teacher=teacher.name,
        exam=task.exam,
    )
    context = situation(task, teacher, run, auto_beta)
    by_rule: dict[Rule, list[tuple[Learner, float, Form]]] = {}
    for learner, lr, form in zip(
        learners, np.broadcast_to(run.lr, len(learners)), forms, strict=True
    ):
        resolved = fill_in(learner, context)
        by_rule.setdefault(resolved.rule, []).append((resolved, lr, form))
    sessions = []
    for rule, lanes in by_rule.items():
        group, lrs, group_forms = zip(*lanes, strict=True)
        each_form, each_learner = (
            _side_by_side(group_forms, len(seeds)),
            _side_by_side(group, len(seeds)),
        )
        group_numbers = numbers(lrs, each_form, each_learner, (len(seeds), len(group)))
        sessions.append(make_session(program(rule), group_numbers, group))
    return sessions


def _stride(eval_every: int) -> int:
    """Steps of one interval: above 100, the largest divisor of ``eval_every`` in [10, 100], if there is one."""
    divisors = [d for d in range(10, 101) if eval_every % d == 0] if eval_every > 100 else []
    return max(divisors, default=eval_every)


def version_of(teacher: Teacher, learner: Learner) -> str:
    """The version of the code that computes a lane: of the loop, its teacher and its learner.

    Args:
        teacher: the teacher.
        learner: the learner.

    Returns:
        The three versions, separated by points.
    """
    return f"{_program.VERSION}.{teacher.version}.{learner.version}"


def situation(task: Task, teacher: Teacher, run: Run, auto_beta: Callable[..., Any]) -> Situation:
    """What learners know before they start; the task's β has the sign that fits the teacher.

    Args:
        task: the task.
        teacher: the teacher.
        run: the numbers of the run.
        auto_beta: finds a β per seed.

    Returns:
        The situation.
    """
    own_beta = task.beta if isinstance(task.beta, str) else teacher.sign * abs(task.beta)
    return Situation(
        beta=own_beta if run.beta is None else run.beta,
        beta_decay=run.beta_decay_on(task),
        batch_size=run.batch_size,
        choices=run.choices,
        volume="exact" if teacher.omniscient else "imitated",
        auto_beta=auto_beta,
        most_awareness=task.rules.most_awareness,
        optimizer=optimizer(run.optimizer),
    )


def fill_in(learner: Learner, context: Situation) -> Learner:
    """The learner with everything filled in that the experiment decides.

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
            f"method {learner.name!r} takes steps of its own, so optimizer {context.optimizer.name!r} cannot replace "
            "them: leave out the method or the optimizer"
        )
    return resolved


def _side_by_side(parts: Sequence[Learner | Form], seeds: int) -> Any:
    """The settings of several learners (or forms of step) as one pytree with leading axes (seed, lane)."""
    lanes = [jax.tree.map(lambda number: spread(number, (seeds,)), part.settings) for part in parts]
    return jax.tree.map(lambda *numbers: np.stack(numbers, axis=1), *lanes)
