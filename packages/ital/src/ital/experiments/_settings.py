"""The settings of an experiment, as typed on the command line."""

import inspect
import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import jax.numpy as jnp
import numpy as np

from ital import learners, tasks
from ital.errors import InputError
from ital.learners import Learner
from ital.tasks import Task
from ital.teachers import Teacher
from ital.teaching import Run, check_parts, fill_in, parts, situation
from ital.tools import devices
from ital.tools.checks import require_whole, shown


@dataclass(frozen=True, repr=False)
class Settings(Run):
    """What to run, as text and numbers.

    These are the names of the parts, and the numbers of a :class:`ital.teaching.Run`.

    Attributes:
        task: name of the task, or a task of your own.
        teacher: name of the teacher.
        methods: names of the learners; None for the task's own, or the eight of the paper.
        first_seed: the first seed; ``seeds`` is the number of seeds.
        label_noise: the probability that a label is replaced, or "sd:NUMBER" for Gaussian noise
            of numeric labels.
        map: a file of rewards, for task irl.
        teacher_loss: the loss that the teacher assumes for its target, "own" or "zero", if the task
            offers both; None for the task's.
        equations: number of equations in an exam of the equation tasks; None for the task's.
        data: a table to make the task from, as in :func:`ital.tasks.from_table`; ``task`` is then
            its name.
        label: the table column with the labels.
        teacher_columns: the columns that the teacher sees, separated by commas; None for all.
        learner_columns: the same for the learner.
        kind: "classification" or "regression"; None infers it.
    """

    task: str | Task
    teacher: str = "cooperative"
    methods: tuple[str, ...] | None = None
    first_seed: int = 0
    label_noise: float | str = 0.0
    map: str | None = None
    teacher_loss: str | None = None
    equations: int | None = None
    data: str | None = None
    label: str | None = None
    teacher_columns: str | None = None
    learner_columns: str | None = None
    kind: str | None = None

    @property
    def seed_list(self) -> list[int]:
        """Every seed."""
        require_whole(first_seed=self.first_seed)
        return [self.first_seed + seed for seed in super().seed_list]

    def plan(self) -> "Plan":
        """Make the parts and check the settings; nothing is computed or written yet.

        Returns:
            The parts and the numbers of the run.

        Raises:
            InputError: if the settings are not valid.
        """
        self._check_types()
        task = self.make_task()
        names = self.methods
        if names is None:
            names = task.methods or learners.PAPER
        task, teacher, methods = parts(task, self.teacher, list(names))
        teacher.resolve(teacher.settings, task.beta)
        self.check(task, methods)
        if not isinstance(self.optimizer, str | None):
            raise InputError(
                "results are stored under the optimizer's name: give a name such as 'adam:0.001'"
            )
        check_parts(task, teacher, methods, self.choices)
        numbers = {field.name: getattr(self, field.name) for field in fields(Run)}
        run = Run(**{**numbers, "seeds": self.seed_list})
        # Everything that teaching will ask for is asked for now, before a folder is made.
        run.start_on(task)
        run.forms(len(methods))
        devices.chosen(self.devices)
        context = situation(task, teacher, run, auto_beta=lambda *arguments: float("nan"))
        for learner in methods:
            fill_in(learner, context)
        return Plan(task, teacher, methods, run)

    def _check_types(self) -> None:
        """Raise InputError for parts that are given in a wrong way."""
        if not isinstance(self.task, str | Task):
            raise InputError(f"task must be a task or the name of one, not {shown(self.task)}")
        if not isinstance(self.teacher, str):
            raise InputError(
                f"teacher must be the name of a teacher, not {self.teacher!r}: "
                "ital.teach takes objects"
            )
        if isinstance(self.methods, str):
            # A text is a sequence too: of letters.
            listed = ", ".join(repr(name.strip()) for name in self.methods.split(","))
            raise InputError(
                f"methods must be a list of names, [{listed}], not the text {self.methods!r}"
            )

    def make_task(self) -> Task:
        """Make the task, with the options given in the settings.

        Returns:
            The task.

        Raises:
            InputError: if there is no such task, or it does not take one of the options.
        """
        if isinstance(self.task, Task):
            return self._given_task(self.task)
        if self.data is None:
            return self._registered_task(self.task)
        return self._own_task(self.task, self.data)

    def _given_task(self, task: Task) -> Task:
        """Return a task that is an object; raise InputError for options of named tasks."""
        for option in ("label_noise", "map", "teacher_loss", "equations", "data", *_OF_TABLES):
            if getattr(self, option):
                raise InputError(
                    f"{option} is for tasks that are named: "
                    "give it to the function that makes your task"
                )
        return task

    def _own_task(self, name: str, data: str) -> Task:
        """Make a task from a table."""
        if self.map is not None:
            raise InputError(
                "--map and --data exclude each other: --map is for task irl, --data for a table"
            )
        for option in ("teacher_loss", "equations"):
            if getattr(self, option) is not None:
                raise InputError(
                    f"--{option.replace('_', '-')} is for the equation tasks, not for a table"
                )
        return tasks.from_table(
            data,
            self.label,
            teacher_columns=_listed(self.teacher_columns),
            learner_columns=_listed(self.learner_columns),
            name=name,
            kind=self.kind,
            label_noise=self.label_noise,
            quiet=True,
        )

    def _registered_task(self, name: str) -> Task:
        """Make a task that is known by name."""
        for option in _OF_TABLES:
            if getattr(self, option) is not None:
                raise InputError(
                    f"--{option.replace('_', '-')} describes a table: use it with --data"
                )
        options: dict[str, Any] = {}
        if self.label_noise:
            options["label_noise"] = self.label_noise
        given = {
            "rewards": self.map,
            "teacher_loss": self.teacher_loss,
            "equations": self.equations,
        }
        options |= {option: value for option, value in given.items() if value is not None}
        if name in tasks.REGISTRY:
            _check_options(name, options)
        return tasks.make(name, **options)


# Options of tasks → why a task does not take them.
_REFUSALS = {
    "label_noise": "has no labels, so it takes no --label-noise",
    "rewards": "has its own world, so it takes no --map (task 'irl' does)",
    "teacher_loss": "has no choice of teacher_loss (the equation tasks do)",
    "equations": "has no exam in equations (the equation tasks do)",
}


def _check_options(name: str, options: Iterable[str]) -> None:
    """Raise InputError for an option that the constructor of a registered task does not take."""
    signature = inspect.signature(tasks.REGISTRY[name])
    for option in options:
        try:
            signature.bind_partial(**{option: None})
        except TypeError:
            raise InputError(f"task {name!r} {_REFUSALS[option]}") from None


# Settings that describe the columns of a table.
_OF_TABLES = ("label", "teacher_columns", "learner_columns", "kind")

# Settings that ``Plan.identity`` states in words of its own, and those that change no number or may
# differ between the lanes of one result. A new setting of Run is in neither: it identifies a
# result.
_STATED = ("beta", "beta_decay", "lr", "init", "steps", "batch_size", "eval_every", "form")
_SHARED = ("seeds", "diagnostics", "devices")


def _listed(text: str | None) -> list[str] | None:
    """Return the comma-separated items."""
    if text is None:
        return None
    return [part.strip() for part in text.split(",") if part.strip()]


def _as_attribute(value: Any) -> str | int | float:
    """Return a value as a file stores it: text, a number, or the JSON of anything else."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | float):
        return value
    # NetCDF 3 has no booleans, and whole numbers of 32 bits.
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31:
        return value
    return json.dumps(value, default=str)


DEFAULTS = {"step_form": "rate"} | {
    field.name: _as_attribute(field.default)
    for field in fields(Run)
    if field.name not in (*_STATED, *_SHARED)
}
"""Defaults of settings that a result does not record.

Only other values are stored, so results from before a setting existed stay valid.
"""


@dataclass(frozen=True)
class Plan:
    """Settings with every part built and every open value filled in."""

    task: Task
    teacher: Teacher
    learners: list[Learner]
    run: Run

    @property
    def seeds(self) -> list[int]:
        """Every seed."""
        return self.run.seed_list

    @property
    def methods(self) -> list[str]:
        """Names of the learners."""
        return [learner.name for learner in self.learners]

    @property
    def identity(self) -> dict[str, Any]:
        """The settings that distinguish one result from another.

        ``DEFAULTS``, methods and seeds are left out.
        """
        run = self.run
        (form,) = run.forms(1)
        context = situation(self.task, self.teacher, run, auto_beta=lambda *arguments: None)
        identity = {
            "task": self.task.name,
            "teacher": self.teacher.name,
            "beta": context.beta,
            "beta_decay": context.beta_decay,
            "lr": run.lr,
            "init": str(run.start_on(self.task)),
            "steps": run.steps,
            "batch_size": run.batch_size,
            "eval_every": run.interval_on(self.task),
            **{name: getattr(run, name) for name in DEFAULTS if hasattr(run, name)},
            "step_form": form.name,  # the name of a form in files
            "optimizer": run.optimizer_name,
            **self.task.settings,
            "data_version": self.task.data_version,
            "precision": str(jnp.result_type(float)),
        }
        stated = {name: _as_attribute(value) for name, value in identity.items()}
        return {name: value for name, value in stated.items() if value != DEFAULTS.get(name)}
