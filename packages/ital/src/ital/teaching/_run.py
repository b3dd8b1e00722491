"""A run: its numbers, its parts, and what is refused before anything is computed.

:class:`Run` holds the numbers and checks them; :func:`parts` makes task, teacher and learners by
name; :func:`check_parts` and :func:`check_world` compare what they need with what they offer;
:func:`check_footprint` estimates the memory.
"""

import inspect
import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import jax
import numpy as np

from ital import learners, tasks, teachers
from ital.errors import InputError
from ital.learners import Learner
from ital.learners import optimizer as make_optimizer
from ital.models import Init
from ital.steps import Form
from ital.steps import make as make_form
from ital.tasks import Task, World, stack_worlds
from ital.teachers import Teacher
from ital.teaching._program import CHUNK
from ital.tools import randomness, registry
from ital.tools.checks import is_finite, is_whole, require_whole, shown
from ital.tools.memory import check_memory

# Memory of one seed before its world is drawn: a list of them must not exhaust the machine.
SEED_BYTES = 64
LABELS = ("all", "chosen")  # which labels of a mini-batch can be evidence
FEWER = "take fewer seeds, fewer methods or a larger eval_every"

# Copies of the parameters: before and after a step, and gradients.
COPIES = 4
# Smaller runs need no estimate.
FEW_SEEDS = 100
FEW_EXAMPLES = 2**14

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class Run:
    """The numbers of a run. ``None`` means the task's value.

    Attributes:
        steps: teaching steps T.
        seeds: number of seeds (0, 1, …), or a list of seeds.
        beta: β of learners without their own: a number, "auto", or None for the task's, with the
            sign that fits the teacher.
        beta_decay: the share that β loses per step; None for the task's if β is the task's, else 0.
        lr: the step size η; in a session also one per learner, unless a learner uses "auto".
        batch_size: examples B in a mini-batch.
        choices: number k of examples that the teacher shows in each step, in order.
        init: the start of the learners, e.g. "uniform" or "normal:0.1".
        eval_every: steps between measurements.
        form: how much of a proposed update is applied: "rate" (all of it, as in the paper),
            "length:L" or "length:L:decay" (steps of one length for all methods), "safe" (no β
            diverges). In a session also one per learner, if the forms differ only in numbers.
        optimizer: an Optax optimiser for all learners that follow gradients and have none of their
            own: a name such as "adam" or "adam:0.001" (without a rate, its rate is ``lr``), or
            ``optax.adam(1e-3)``; None for plain steps.
        labels: which labels are evidence: "all" of the mini-batch, as in the paper, or only the
            "chosen" one's. The choice is always read against the whole mini-batch.
        diagnostics: also record, per interval, the share of steps on which the conditions of
            Theorem 1 held (``theorem_conditions``) and on which the learner's step beat the naive
            one (``theorem_improved``).
        devices: number of local devices that share the seeds, or "all".

    """

    steps: int = 2000
    seeds: int | Sequence[int] = 20
    beta: float | str | None = None
    beta_decay: float | None = None
    lr: float | Sequence[float] = 1e-3
    batch_size: int = 20
    choices: int = 1
    init: str | Init | None = None
    eval_every: int | None = None
    form: str | Form | Sequence[Form] = "rate"
    optimizer: Any = None
    labels: str = "all"
    diagnostics: bool = False
    devices: int | str = 1

    def __repr__(self) -> str:
        changed = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)
            if getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"

    @property
    def seed_list(self) -> list[int]:
        """All seeds; raises InputError if ``seeds`` is neither a number nor a list of seeds."""
        seeds: Any = self.seeds
        if is_whole(seeds):
            # A mistyped number of seeds is refused before the list of them is made.
            check_memory(f"{seeds} seeds", SEED_BYTES * max(0, int(seeds)), "take fewer seeds")
            return list(range(int(seeds)))
        listed = list(seeds) if isinstance(seeds, Iterable) else [seeds]
        if not all(map(is_whole, listed)):
            raise InputError(f"seeds must be a whole number or a list of them, not {shown(seeds)}")
        return listed

    def start_on(self, task: Task) -> Init:
        """Return the start of the learners.

        Args:
            task: the task.

        Returns:
            The run's own start, or the task's.
        """
        if self.init is None:
            return task.init
        return Init.parse(self.init)

    def interval_on(self, task: Task) -> int:
        """Return the number of steps between measurements.

        Args:
            task: the task.

        Returns:
            The run's own interval, or the task's.
        """
        if self.eval_every is None:
            return task.eval_every
        return self.eval_every

    def forms(self, learners: int) -> list[Form]:
        """Return the form of the step of each learner.

        Args:
            learners: number of learners.

        Returns:
            One form per learner.

        Raises:
            InputError: if the forms differ in more than numbers.
        """
        if not isinstance(self.form, str | Form | Sequence):
            raise InputError(
                f"form must be rate, length:L, length:L:decay or safe, not {shown(self.form)}"
            )
        # A name and a form are sequences too: they come first.
        if isinstance(self.form, str | Form):
            return [make_form(self.form)] * learners
        forms = list(self.form)
        if len({form.take for form in forms}) > 1:
            raise InputError(
                "all learners of one call must share a form of step; they may differ in its numbers"
            )
        return forms

    def check(self, task: Task, learners: Sequence[Learner]) -> None:
        """Check all settings of the run.

        Args:
            task: the task.
            learners: the learners.

        Raises:
            InputError: if a number is out of range, or a seed or method is given twice.
        """
        names = [learner.name for learner in learners]
        self._check_counts(task)
        self._check_size(task, learners=len(names))
        seeds = self.seed_list
        self._check_lr()
        if not seeds:
            raise InputError("at least one seed is needed")
        if not names:
            raise InputError("at least one method is needed")
        _refuse_repeated("seed", seeds)
        _refuse_repeated("method", names)
        for seed in (min(seeds), max(seeds)):
            if not 0 <= seed < 2**31:
                raise InputError(f"seeds must lie in [0, 2**31), not {seed}")
        self._check_beta()
        if self.labels not in LABELS:
            raise InputError(f"labels must be {' or '.join(LABELS)}, not {shown(self.labels)}")
        make_optimizer(self.optimizer)

    def _check_counts(self, task: Task) -> None:
        """Raise InputError for a number of steps or examples that is out of range."""
        counts = {
            "steps": self.steps,
            "batch_size": self.batch_size,
            "choices": self.choices,
            "eval_every": self.interval_on(task),
        }
        require_whole(**counts)
        for name, value in counts.items():
            if not 1 <= value < 2**31:
                raise InputError(f"{name} must be at least 1 and below 2**31, not {value}")
        if task.examples is not None and self.batch_size > task.examples:
            raise InputError(
                f"batch_size must be at most {task.examples} on task {task.name!r}, "
                f"which has no more examples, not {self.batch_size}"
            )
        if self.choices > self.batch_size:
            raise InputError(
                f"choices must be at most batch_size ({self.batch_size}), not {self.choices}"
            )
        if self.choices > 1 and self.diagnostics:
            raise InputError(
                "diagnostics check Theorem 1, which is about a single choice: leave out choices"
            )

    def _check_size(self, task: Task, learners: int) -> None:
        """Raise InputError if the curves of one metric do not fit into memory."""
        # Only a number can be mistyped that large: a list is in memory already.
        seeds: Any = self.seeds
        count = int(seeds) if is_whole(seeds) else 1
        # The first and the last step are measured whatever the interval is.
        measurements = self.steps // self.interval_on(task) + 2
        numbers = count * learners * measurements
        bytes_of_number = np.dtype(np.float32).itemsize
        check_memory(
            f"curves of {count} seeds, {learners} methods and {measurements} measurements",
            numbers * bytes_of_number,
            FEWER,
        )

    def _check_lr(self) -> None:
        """Raise InputError unless the step size is one positive and finite number."""
        lr = self.lr
        # Programs compute in single precision, where a tiny or huge number may be 0 or infinite.
        if isinstance(lr, int | float | np.number):
            single = np.float32(lr)
            if math.isfinite(single) and single > 0:
                return
        hint = ""
        if isinstance(lr, Sequence | np.ndarray) and not isinstance(lr, str):
            hint = ": one number for all learners; call once per step size"
        raise InputError(f"lr (the step size) must be positive and finite, not {lr!r}{hint}")

    def _check_beta(self) -> None:
        """Raise InputError for a rationality or a decay that is out of range."""
        beta = self.beta
        is_auto = isinstance(beta, str) and beta == "auto"
        if not (beta is None or is_auto or is_finite(beta)):
            raise InputError(f"beta must be a finite number or 'auto', not {shown(beta)}")
        decay = self.beta_decay
        if decay is not None and not (is_finite(decay) and 0 <= decay < 1):
            raise InputError(f"beta_decay must lie in [0, 1), not {shown(decay)}")

    @property
    def optimizer_name(self) -> str | None:
        """The name of the optimiser, in one spelling; None without one."""
        made = make_optimizer(self.optimizer)
        if made is None:
            return None
        return made.name

    def beta_decay_on(self, task: Task) -> float:
        """Return the share that β loses per step.

        Args:
            task: the task.

        Returns:
            The run's own decay; else the task's, if β is the task's too.
        """
        if self.beta_decay is not None:
            return self.beta_decay
        # The task's decay belongs to the task's β: a β of the run stays constant.
        if self.beta is not None:
            return 0.0
        return task.beta_decay


def _refuse_repeated(kind: str, values: Sequence[Any]) -> None:
    """Raise InputError if a value is given twice."""
    [(value, times)] = Counter(values).most_common(1)
    if times > 1:
        raise InputError(f"{kind} {value} is given twice")


def takes_run(*fixed: str) -> Callable[[Function], Function]:
    """Show the settings of a :class:`Run` in the signature of the decorated function.

    Args:
        *fixed: settings that the function fixes itself, so that callers cannot give them.

    Returns:
        The decorator.
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        parameters = []
        for parameter in signature.parameters.values():
            # Its ``**settings`` are those of the run.
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
                parameters.append(parameter)
        for field in fields(Run):
            if field.name in fixed:
                continue
            setting = inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=field.type,
            )
            parameters.append(setting)
        with_run = signature.replace(parameters=parameters)
        function.__signature__ = with_run  # type: ignore[attr-defined]
        return function

    return decorate


def make_run(settings: dict[str, Any], **fixed: Any) -> Run:
    """Make a run from settings by name; raise TypeError for an unknown name."""
    names = [field.name for field in fields(Run) if field.name not in fixed]
    for name in settings:
        if name in names:
            continue
        # The command line and files of experiments call the learners methods.
        if name in ("method", "methods", "learners"):
            raise TypeError(
                f"unknown setting {name!r}: give methods as learner=, a name or a list of names"
            )
        raise TypeError(registry.nearest("setting", name, names))
    return Run(**settings, **fixed)


def parts(
    task: Task | str,
    teacher: Teacher | str,
    learner: Learner | str | Sequence[Learner | str],
) -> tuple[Task, Teacher, list[Learner]]:
    """Return the parts of an experiment; make those that are given by name.

    Args:
        task: a task or its name.
        teacher: a teacher or its name.
        learner: a learner or its name, or several.

    Returns:
        The task, the teacher, and the list of learners.

    Raises:
        InputError: if a name is unknown, or a part has the wrong type.
    """
    if isinstance(task, str):
        task = tasks.make(task)
    if isinstance(teacher, str):
        _check_role("teacher", teacher, teachers.REGISTRY, "learner", learners.REGISTRY)
        teacher = teachers.make(teacher)
    # A learner is a named tuple: it is one learner, not several.
    listed: list[Any] = [learner]
    if isinstance(learner, list | tuple) and type(learner) is not Learner:
        listed = list(learner)
    made = [_learner(part) if isinstance(part, str) else part for part in listed]
    _check_type("task", task, Task, "ital.tasks.regression()")
    _check_type("teacher", teacher, Teacher, "ital.teachers.cooperative()")
    for part in made:
        _check_type("learner", part, Learner, "ital.learners.teacher_aware()")
    return task, teacher, made


def _learner(name: str) -> Learner:
    _check_role("learner", name, learners.REGISTRY, "teacher", teachers.REGISTRY)
    return learners.make(name)


def _check_type(role: str, part: Any, kind: type, example: str) -> None:
    """Raise InputError for a part that is not of its kind."""
    if isinstance(part, kind):
        return
    # A likely slip: the constructor itself, without a call.
    hint = "; it is a function: call it" if callable(part) else _other_role(part)
    raise InputError(f"expected a {role} such as {example}, or its name, not {part!r}{hint}")


def _check_role(
    role: str,
    name: str,
    registered: Container[str],
    other: str,
    others: Container[str],
) -> None:
    """Raise InputError for the name of a learner in place of a teacher's, or the reverse."""
    base = name.partition(":")[0]
    if base in others and base not in registered:
        raise InputError(f"{name!r} is a {other}, not a {role}: give it as {other}={name!r}")


def _other_role(part: Any) -> str:
    """Return what a part of another kind is."""
    for kind, role in ((Task, "task"), (Teacher, "teacher"), (Learner, "learner")):
        if isinstance(part, kind):
            return f"; it is a {role}: give it as {role}=…"
    return ""


def check_parts(task: Task, teacher: Teacher, taught: Sequence[Learner], choices: int = 1) -> None:
    """Raise InputError for a teacher or learner that makes no sense on a task.

    Args:
        task: the task.
        teacher: the teacher.
        taught: the learners.
        choices: number of examples to choose in a step.

    Raises:
        InputError: if a part needs what the task does not offer, or the teacher cannot choose
            several.
    """
    teacher_needs = teacher.needs
    if teacher.omniscient:
        # The omniscient teacher's volumes are those of a step along a gradient.
        teacher_needs = (*teacher.needs, "gradients")
    _check_needs(task, f"teacher {teacher.name!r}", teacher_needs)
    for learner in taught:
        _check_needs(task, f"method {learner.name!r}", learner.needs)
    if choices > 1 and teacher.several is None:
        raise InputError(
            f"teacher {teacher.name!r} chooses one example in each step: "
            f"leave out choices ({choices})"
        )


def _check_needs(task: Task, who: str, needs: Sequence[str]) -> None:
    """Raise InputError for a part that needs what the task does not offer."""
    for need in needs:
        if need not in task.offers:
            raise InputError(
                f"{who} makes no sense on task {task.name!r}: it needs {need}, "
                f"and the task offers {', '.join(task.offers) or 'nothing'}"
            )


def check_world(task: Task, teacher: Teacher, world: World, *, diagnostics: bool = False) -> None:
    """Raise InputError if a world lacks what the teacher or the diagnostics need.

    Args:
        task: the task.
        teacher: the teacher.
        world: a world of the task.
        diagnostics: whether to check Theorem 1 on every step.

    Raises:
        InputError: if the learner's target or its gradients are needed and unknown.
    """
    if diagnostics and "gradients" not in task.offers:
        raise InputError(
            f"diagnostics check Theorem 1 on gradient steps, which task {task.name!r} does not have"
        )
    if world.truth.target is None and (teacher.omniscient or diagnostics):
        needy = f"teacher {teacher.name!r}" if teacher.omniscient else "diagnostics"
        raise InputError(
            f"{needy} needs the learner's target, which task {task.name!r} does not have"
        )


def check_footprint(task: Task, run: Run, learners: int, seeds: Sequence[int]) -> None:
    """Raise InputError if worlds, mini-batches and parameters of a run would not fit into memory.

    Only runs with many seeds or large mini-batches are checked: it takes two worlds and a few
    milliseconds.

    Args:
        task: the task.
        run: the numbers of the run.
        learners: number of learners.
        seeds: the seeds that are computed at once.

    Raises:
        InputError: if the estimate is larger than the free memory.
    """
    count = len(seeds)
    if count <= FEW_SEEDS and count * run.batch_size <= FEW_EXAMPLES:
        return
    # Two worlds tell which arrays seeds share and which each has for itself.
    worlds = [task.world(seed) for seed in seeds[:2]]
    per_seed = bytes_per_seed(task, run, learners, worlds)
    plural = "s" if count > 1 else ""
    check_memory(
        f"{count} seed{plural} with mini-batches of {run.batch_size} examples",
        count * per_seed,
        "take fewer seeds or a smaller batch size",
    )


def bytes_per_seed(task: Task, run: Run, learners: int, worlds: Sequence[World]) -> int:
    """Return the bytes per seed: its world, what is drawn at once, the parameters of its lanes.

    Args:
        task: the task.
        run: the numbers of the run.
        learners: number of learners.
        worlds: the worlds of one seed or two.

    Returns:
        The estimate.
    """
    rules = task.rules

    def shapes(world: World) -> tuple[Any, Any, Any]:
        key = randomness.key(0)
        drawn = rules.draw(key, world, run.batch_size)
        examples = rules.show(world.learner, drawn)
        teacher_examples = rules.show(world.teacher.examples, drawn)
        start = rules.start(key, run.start_on(task), world)
        return start, drawn, (examples, teacher_examples)

    params, drawn, views = jax.eval_shape(shapes, worlds[0])
    # One number per example: its rank in the random order, or its loss.
    per_example = run.batch_size * np.dtype(np.int32).itemsize
    drawn_at_once = CHUNK * (_bytes_of(drawn) + per_example)
    losses = learners * per_example
    # Which examples of a mini-batch are copies of one another.
    pairs = run.batch_size**2
    parameters = COPIES * learners * _bytes_of(params)
    batches = drawn_at_once + _bytes_of(views) + losses
    return _bytes_of_own_world(worlds) + pairs + batches + parameters


def _bytes_of_own_world(worlds: Sequence[World]) -> int:
    """Return the bytes of a world that seeds do not share."""
    stacked, axes = stack_worlds(worlds)
    own = 0
    for leaf, axis in zip(jax.tree.leaves(stacked), axes, strict=True):
        if axis == 0:
            own += _bytes_of(leaf)
    return own // len(worlds)


def _bytes_of(tree: Any) -> int:
    """Return the bytes of all arrays of a pytree, or of arrays with its shapes."""
    total = 0
    for leaf in jax.tree.leaves(tree):
        size = math.prod(np.shape(leaf))
        total += size * np.dtype(leaf.dtype).itemsize
    return total
