"""The settings of an experiment, as typed on the command line."""

import inspect
import json
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from ital import _devices, learners, steps, tasks, teachers
from ital.errors import InputError
from ital.learners import Learner
from ital.models import Init
from ital.steps import Form
from ital.tasks import Task
from ital.teachers._base import AnyTeacher
from ital.teaching import check_settings, situation


@dataclass(frozen=True)
class Settings:
    """What to run. ``None`` stands for the task's own value."""

    task: str
    teacher: str = "cooperative"
    methods: tuple[str, ...] = learners.PAPER
    seeds: int = 20
    first_seed: int = 0
    steps: int = 2000
    beta: float | str | None = None
    lr: float = 1e-3
    batch_size: int = 20
    init: str | None = None
    label_noise: float = 0.0
    map: str | None = None
    eval_every: int | None = None
    step: str = "rate"
    devices: int | str = 1

    def plan(self) -> "Plan":
        """Makes the parts and refuses what makes no experiment; nothing is computed or written yet."""
        task = self._task()
        teacher = teachers.make(self.teacher)
        methods = [learners.make(name) for name in self.methods]
        plan = Plan(
            task=task,
            teacher=teacher,
            learners=methods,
            seeds=range(self.first_seed, self.first_seed + self.seeds),
            steps=self.steps,
            beta=self.beta,
            lr=self.lr,
            batch_size=self.batch_size,
            init=task.init if self.init is None else Init.parse(self.init),
            eval_every=task.eval_every if self.eval_every is None else self.eval_every,
            step=steps.make(self.step),
            devices=self.devices,
        )
        check_settings(
            methods, plan.seeds, steps=plan.steps, lr=plan.lr, batch_size=plan.batch_size,
            eval_every=plan.eval_every, beta=plan.beta,
        )  # fmt: skip
        _devices.chosen(self.devices)
        told = situation(task, teacher, self.beta, self.batch_size, auto_beta=lambda *asked: float("nan"))
        for learner in methods:
            learner.resolve(learner, told)
        return plan

    def _task(self) -> Task:
        refusals = {
            "label_noise": "has no labels, so it takes no label noise",
            "rewards": "has a world of its own, so it takes no map (task 'irl' does)",
        }
        given = {"label_noise": self.label_noise or None, "rewards": self.map}
        options = {name: value for name, value in given.items() if value is not None}
        for name in options if self.task in tasks.REGISTRY else ():
            try:
                inspect.signature(tasks.REGISTRY[self.task]).bind_partial(**{name: None})
            except TypeError:
                raise InputError(f"task {self.task!r} {refusals[name]}") from None
        return tasks.make(self.task, **options)


def _plain(value: Any) -> str | int | float:
    """A value as a file keeps it: text, a number, or the JSON of anything else."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | float) or (
        isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**31
    ):
        return value
    return json.dumps(value, default=str)


@dataclass(frozen=True)
class Plan:
    """Settings with every part made and every open value filled in."""

    task: Task
    teacher: AnyTeacher
    learners: list[Learner]
    seeds: range
    steps: int
    beta: float | str | None
    lr: float
    batch_size: int
    init: Init
    eval_every: int
    step: Form
    devices: int | str = 1

    @property
    def methods(self) -> list[str]:
        """Names of the learners."""
        return [learner.name for learner in self.learners]

    @property
    def identity(self) -> dict[str, Any]:
        """What tells one result from another; methods and seeds do not."""
        told = situation(self.task, self.teacher, self.beta, self.batch_size, auto_beta=lambda *asked: None)
        identity = {
            "task": self.task.name,
            "teacher": self.teacher.name,
            "beta": told.beta,
            "beta_decay": told.beta_decay,
            "lr": self.lr,
            "init": str(self.init),
            "steps": self.steps,
            "batch_size": self.batch_size,
            "eval_every": self.eval_every,
            **({} if self.step.name == "rate" else {"step_form": self.step.name}),
            **self.task.settings,
            "data_version": self.task.data_version,
            "precision": str(jnp.result_type(float)),
        }
        return {name: _plain(value) for name, value in identity.items()}

    @property
    def options(self) -> dict[str, Any]:
        """The settings that sessions are opened with."""
        names = ("steps", "beta", "lr", "batch_size", "init", "eval_every", "step")
        return {name: getattr(self, name) for name in names}
