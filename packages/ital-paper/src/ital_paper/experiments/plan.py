"""The plan: every task with every teacher, from both starts, at full or quick scale."""

import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ital import experiments, figures, learners, tasks, teachers
from ital.errors import InputError
from ital.experiments import Settings
from ital.tasks import Task
from ital.tools.registry import nearest
from ital_paper import features

PAPER = (
    "regression",
    "gaussian",
    "mnist-20",
    "mnist-30",
    "cifar10-6",
    "cifar10-12",
    "tiny-imagenet-lite0",
    "tiny-imagenet-lite2",
    "tiny-imagenet-13",
    "tiny-imagenet-19",
    "equation-40",
    "equation-50",
    "irl-dense",
    "irl-sparse",
)
"""All tasks of the paper, in its order."""

STAND_INS = {"tiny-imagenet-13": "tiny-imagenet-lite0", "tiny-imagenet-19": "tiny-imagenet-lite2"}
"""Tasks of the paper that need files built by the user, and the tasks that replace them without."""

BUILT_FILE = "tiny-imagenet-vgg"  # the features that they need

TASKS = tuple(name for name in PAPER if name not in STAND_INS)
"""Those that come with the package."""

STARTS = ("uniform", "normal:0.1")
"""The starts: as in Algorithm 1 (the task's own range), and as in the authors' later code."""

TEACHERS = ("cooperative", "adversarial")
OF_EVERY_KIND = ("cooperative", "random", "adversarial", "switching")
TUNED = ("batch", "sgd", "imt", "ital")  # methods of a sweep
STEP_SIZES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
RATIONALITIES = (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0)  # of a sweep, times the task's β
RANDOM_METHODS = ("batch", "imt", "ital")
BEYOND = ("batch", "imt", "ital", "ital-safe", "ital-full", "ital-adaptive", *learners.CONTROLS)
BY_LOSS = ("imt", "ital")  # methods that depend on the loss that a teacher assumes for its target
MATRIX = (
    "regression",
    "gaussian",
    "mnist-20",
    "irl-dense",
)  # tasks on which every teacher meets every assumption
NEURAL = "mnist-mlp"
NEURAL_LR = 0.05


class Scale(NamedTuple):
    """How much is computed.

    ``random`` are the tasks with a random teacher, ``theory`` those of the theory panel, ``sweeps`` those where every
    method is tuned, ``beyond`` those beyond the paper, with their teachers, ``matrix`` those on which every teacher
    meets every assumption. ``eval_every`` is the number of steps between the slow exams of a quick run. ``equations``
    is the number of equations in an exam, None for the default.
    """

    quick: bool
    seeds: int
    steps: int
    participants: int
    random: tuple[str, ...]
    theory: tuple[str, ...]
    theory_steps: int
    theory_seeds: int
    sweeps: tuple[str, ...]
    sweep_seeds: int
    beyond: dict[str, tuple[str, ...]]
    eval_every: dict[str, int]
    equations: int | None = None
    matrix: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """The label of a figure of a quick run's experiments."""
        return self.noted(self.seeds, self.steps)

    @property
    def sweep_note(self) -> str:
        """The label of a figure of a quick run's sweeps."""
        return self.noted(self.sweep_seeds, self.steps)

    @property
    def theory_note(self) -> str:
        """The label of a figure of a quick run's theory."""
        return self.noted(self.theory_seeds, self.theory_steps)

    @property
    def study_note(self) -> str:
        """The label of a figure of a quick run's study."""
        return f"quick run: {self.participants} participants per arm" if self.quick else ""

    def noted(self, seeds: int, steps: int) -> str:
        """A label with numbers of its own, empty in a full run."""
        return f"quick run: {seeds} seeds, {steps} steps" if self.quick else ""


FULL = Scale(
    quick=False,
    seeds=20,
    steps=2000,
    participants=20,
    random=("regression", "gaussian", "irl-dense"),
    theory=PAPER,
    theory_steps=2000,
    theory_seeds=5,
    sweeps=PAPER,
    sweep_seeds=5,
    beyond={"regression": OF_EVERY_KIND, "gaussian": OF_EVERY_KIND, NEURAL: TEACHERS},
    eval_every={},
    matrix=MATRIX,
)
QUICK = Scale(
    quick=True,
    seeds=5,
    steps=400,
    participants=6,
    random=("regression", "gaussian"),
    theory=("regression", "gaussian"),
    theory_steps=200,
    theory_seeds=3,
    sweeps=("regression",),
    sweep_seeds=3,
    beyond={"regression": ("random", "switching"), NEURAL: ("cooperative",)},
    eval_every={"equation-40": 200, "equation-50": 200},
)


class Condition(NamedTuple):
    """The condition of an experiment: its start, task and teacher."""

    start: str
    task: str
    teacher: str

    def folder(self, out: Path) -> Path:
        """The ``--out`` folder of its run; results from the paper's start are in OUT itself."""
        return out if self.start == STARTS[0] else out / self.start.replace(":", "-")

    @property
    def title(self) -> str:
        """The condition in words."""
        return f"{self.task}, {self.teacher} teacher, {self.start} start"


def conditions(names: Sequence[str], scale: Scale) -> list[Condition]:
    """All experiments on these tasks."""
    every = [
        Condition(start, task, teacher)
        for task in names
        for teacher in TEACHERS
        for start in STARTS
    ]
    return every + [
        Condition(start, task, "random")
        for task in names
        if task in scale.random
        for start in STARTS
    ]


def settings(condition: Condition, scale: Scale) -> Settings:
    """The settings of an experiment. Controls run with the cooperative teacher, and at full scale with all."""
    methods: tuple[str, ...] = learners.PAPER
    if condition.teacher == "cooperative" or not scale.quick:
        methods += learners.CONTROLS
    if condition.teacher == "random":
        methods = RANDOM_METHODS
    return Settings(
        task=condition.task,
        teacher=condition.teacher,
        methods=methods,
        seeds=scale.seeds,
        steps=scale.steps,
        init=None if condition.start == STARTS[0] else condition.start,
        eval_every=scale.eval_every.get(condition.task),
        equations=scale.equations if is_equation(condition.task) else None,
    )


def task_of(made: Settings) -> Task:
    """The task of an experiment; its data are read only once."""
    return _task(made.task, made.teacher_loss, made.equations)


@functools.cache
def _task(name: str, teacher_loss: str | None, equations: int | None) -> Task:
    return Settings(task=name, teacher_loss=teacher_loss, equations=equations).make_task()


def identity(task: Task) -> dict[str, Any]:
    """The identity of a task's results: it differs between variants of the task and between data sets."""
    named = {
        name: task.settings[name] for name in ("teacher_loss", "equations") if name in task.settings
    }
    return {"data_version": task.data_version, **named}


def is_equation(task: str) -> bool:
    """Whether a task teaches equations."""
    return task.startswith("equation-")


def zero_loss_conditions(names: Sequence[str]) -> list[Condition]:
    """The experiments that are repeated with a teacher that assumes zero loss for its target."""
    return [
        Condition(STARTS[0], task, teacher)
        for task in names
        if is_equation(task)
        for teacher in TEACHERS
    ]


def zero_loss_settings(condition: Condition, scale: Scale) -> Settings:
    """The settings of the paper's experiments, measured only at the start and at the end: exams are slow."""
    own = settings(condition, scale)
    return replace(own, methods=BY_LOSS, teacher_loss="zero", eval_every=scale.steps)


def beyond_conditions(names: Sequence[str], scale: Scale) -> list[Condition]:
    """Experiments beyond the paper: learners that infer what their teacher is like, changing teachers, a network."""
    taught = [task for task in scale.beyond if task in names or task == NEURAL]
    return [
        Condition(STARTS[0], task, teacher) for task in taught for teacher in scale.beyond[task]
    ]


def beyond_settings(condition: Condition, scale: Scale) -> Settings:
    """The settings of the paper's experiments with other methods; a network needs longer steps.

    A quick run adds the controls only for the network: the paper's experiments include them already.
    """
    left_out = learners.CONTROLS if scale.quick and condition.task != NEURAL else ()
    methods = tuple(method for method in BEYOND if method not in left_out)
    return replace(
        settings(condition, scale),
        methods=methods,
        lr=NEURAL_LR if condition.task == NEURAL else 1e-3,
    )


def matrix_conditions(names: Sequence[str], scale: Scale) -> list[Condition]:
    """The experiments of the matrices of real and assumed teachers, without those that make no sense on a task."""
    return [
        Condition(STARTS[0], task, teacher)
        for task in names
        if task in scale.matrix
        for teacher in experiments.TEACHERS
        if set(teachers.make(teacher).needs) <= set(task_of(Settings(task=task)).offers)
    ]


def matrix_settings(condition: Condition, scale: Scale) -> Settings:
    """The settings of the paper's experiments, with learners that assume different teachers."""
    return replace(settings(condition, scale), methods=tuple(figures.ASSUMED))


def sweep_conditions(names: Sequence[str], scale: Scale) -> list[Condition]:
    """The experiments in which every method is tuned, from the small start: it shows small distances best."""
    return [Condition(STARTS[1], task, "cooperative") for task in names if task in scale.sweeps]


def left_out() -> list[str]:
    """Tasks of the paper whose files the user has not built."""
    return [] if features.find(BUILT_FILE) else list(STAND_INS)


def chosen(names: Sequence[str]) -> list[str]:
    """The requested tasks, by default all of the paper's that can be made here. Raises if a task cannot be made."""
    for name in names:
        if name not in tasks.REGISTRY:
            raise InputError(nearest("task", name, tasks.REGISTRY))
    wanted = list(dict.fromkeys(names)) or [name for name in PAPER if name not in left_out()]
    for name in wanted:
        if name not in TASKS:
            tasks.make(name)
    return wanted


def seconds(condition: Condition, scale: Scale) -> float:
    """Estimated duration of an experiment on two cores, its weight in the progress display."""
    kinds = {"tiny": 9e-5, "irl": 6e-5, "equation": 6e-5, "mnist": 2e-5, "cifar10": 2e-5}
    each = 4e-4 if condition.task == NEURAL else kinds.get(condition.task.partition("-")[0], 3e-6)
    made = settings(condition, scale)
    return 6.0 + each * made.steps * len(made.seed_list) * len(made.methods or ())
