"""The plan: every task with every teacher, from both starts, at full or quick scale."""

import functools
import itertools
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
# Tasks of the matrix: each teacher on them meets learners that assume each kind of teacher.
MATRIX = ("regression", "gaussian", "mnist-20", "irl-dense")
NEURAL = "mnist-mlp"
NEURAL_LR = 0.05

# ---- choices as evidence ----

BELIEFS = ("posterior", "ital-posterior")
"""Learners that keep a belief over their target: from labels alone, and from choices as well."""

NUMBERS = {
    "regression": 101,
    "gaussian": 310,
    "mnist-20": 250,
    "mnist-30": 250,
    "cifar10-6": 330,
    "cifar10-12": 330,
    "tiny-imagenet-lite0": 2200,
    "tiny-imagenet-lite2": 2200,
    "tiny-imagenet-13": 2200,
    "tiny-imagenet-19": 2200,
    "equation-40": 46,
    "equation-50": 46,
    "irl-dense": 64,
    "irl-sparse": 64,
}
"""How many numbers a learner of each task has."""

MOST_NUMBERS = 400  # of a belief, which holds matrices of all pairs of them
MANY_NUMBERS = 200  # above it a belief takes minutes, so a full run has fewer seeds
SEEDS_OF_MANY = 5

# Seconds for one step of one method on one seed, on two cores, by the first word of a task's name.
SECONDS = {"tiny": 9e-5, "irl": 6e-5, "equation": 6e-5, "mnist": 2e-5, "cifar10": 2e-5}
NEURAL_SECONDS = 4e-4
OTHER_SECONDS = 3e-6
SECONDS_TO_COMPILE = 6.0
BELIEF_SECONDS = 0.01  # for one step of both beliefs over 100 numbers


class Scale(NamedTuple):
    """How much is computed.

    Attributes:
        quick: whether this is a quick run.
        seeds: seeds of an experiment.
        steps: steps of an experiment.
        participants: simulated participants in each arm of the study.
        random: tasks with a random teacher.
        theory: tasks of the theory panel.
        theory_steps: steps of the theory panel.
        theory_seeds: seeds of the theory panel.
        sweeps: tasks on which every method is tuned.
        sweep_seeds: seeds of a sweep.
        beyond: tasks beyond the paper, with their teachers.
        eval_every: steps between the slow exams of a quick run, by task.
        equations: number of equations in an exam, None for the default.
        matrix: tasks on which every teacher meets every assumption.
        evidence: tasks on which beliefs read choices as evidence.
        evidence_steps: steps of a belief.
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
    evidence: tuple[str, ...] = ()
    evidence_steps: int = 200

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
        """Return a label with numbers of its own, empty in a full run."""
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
    evidence=PAPER,
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
    evidence=("irl-dense",),
)


class Condition(NamedTuple):
    """The condition of an experiment: its start, task and teacher."""

    start: str
    task: str
    teacher: str

    def folder(self, out: Path) -> Path:
        """Return the ``--out`` folder of its run.

        Results from the paper's start are in OUT itself.
        """
        return out if self.start == STARTS[0] else out / as_file_name(self.start)

    @property
    def title(self) -> str:
        """The condition in words."""
        return f"{self.task}, {self.teacher} teacher, {self.start} start"


def as_file_name(name: str) -> str:
    """Return a start's or a teacher's name without colons, which not all file systems take."""
    return name.replace(":", "-")


# ---- the paper's experiments ----


def conditions(names: Sequence[str], scale: Scale) -> list[Condition]:
    """Return all experiments on these tasks."""
    in_paper = itertools.product(names, TEACHERS, STARTS)
    by_chance = itertools.product([name for name in names if name in scale.random], STARTS)
    return [
        *(Condition(start, task, teacher) for task, teacher, start in in_paper),
        *(Condition(start, task, "random") for task, start in by_chance),
    ]


def settings(condition: Condition, scale: Scale) -> Settings:
    """Return the settings of an experiment.

    Controls run with the cooperative teacher, and at full scale with every teacher but the random
    one.
    """
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
        # Without a start, the settings are those of ``ital run``, and so is the result's identity.
        init=None if condition.start == STARTS[0] else condition.start,
        eval_every=scale.eval_every.get(condition.task),
        equations=scale.equations if is_equation(condition.task) else None,
    )


def task_of(made: Settings) -> Task:
    """Return the task of an experiment; its data are read only once."""
    return _task(made.task, made.teacher_loss, made.equations)


@functools.cache
def _task(
    name: str,
    teacher_loss: str | None,
    equations: int | None,
) -> Task:
    return Settings(task=name, teacher_loss=teacher_loss, equations=equations).make_task()


def identity(task: Task) -> dict[str, Any]:
    """Return the identity of a task's results.

    It differs between variants of the task and between data sets.
    """
    variants = ("teacher_loss", "equations")
    return {
        "data_version": task.data_version,
        **{name: task.settings[name] for name in variants if name in task.settings},
    }


def is_equation(task: str) -> bool:
    """Return whether a task teaches equations."""
    return task.startswith("equation-")


# ---- experiments of other kinds ----


def zero_loss_conditions(names: Sequence[str]) -> list[Condition]:
    """Return the experiments to repeat with a teacher that assumes zero loss for its target."""
    equations = filter(is_equation, names)
    pairs = itertools.product(equations, TEACHERS)
    return [Condition(STARTS[0], task, teacher) for task, teacher in pairs]


def zero_loss_settings(condition: Condition, scale: Scale) -> Settings:
    """Return the settings of the paper's experiments with such a teacher.

    They are measured only at the start and at the end: exams are slow.
    """
    in_paper = settings(condition, scale)
    return replace(in_paper, methods=BY_LOSS, teacher_loss="zero", eval_every=scale.steps)


def beyond_conditions(names: Sequence[str], scale: Scale) -> list[Condition]:
    """Return the experiments beyond the paper.

    Their learners infer what their teacher is like, their teachers change, one learner is a
    network.
    """
    found = []
    for task, kinds in scale.beyond.items():
        # The network's task is none of the paper's, so nobody asks for it by name.
        if task in names or task == NEURAL:
            found += [Condition(STARTS[0], task, teacher) for teacher in kinds]
    return found


def beyond_settings(condition: Condition, scale: Scale) -> Settings:
    """Return the settings of the paper's experiments with other methods.

    A network needs longer steps. A quick run adds the controls only for the network: the paper's
    experiments include them already.
    """
    in_paper = settings(condition, scale)
    if condition.task == NEURAL:
        return replace(in_paper, methods=BEYOND, lr=NEURAL_LR)
    computed_already = learners.CONTROLS if scale.quick else ()
    methods = tuple(method for method in BEYOND if method not in computed_already)
    return replace(in_paper, methods=methods, lr=1e-3)


def matrix_conditions(names: Sequence[str], scale: Scale) -> list[Condition]:
    """Return the experiments of the matrices of real and assumed teachers.

    Teachers that need more than a task offers are left out.
    """
    found = []
    for name in names:
        if name in scale.matrix:
            offers = set(task_of(Settings(task=name)).offers)
            found += [
                Condition(STARTS[0], name, teacher)
                for teacher in experiments.TEACHERS
                if set(teachers.make(teacher).needs) <= offers
            ]
    return found


def matrix_settings(condition: Condition, scale: Scale) -> Settings:
    """Return the settings of the paper's experiments with learners that assume other teachers."""
    return replace(settings(condition, scale), methods=tuple(figures.ASSUMED))


def evidence_conditions(names: Sequence[str], scale: Scale) -> list[Condition]:
    """Return the experiments with learners that read choices as evidence.

    Their first parameters are the mean of a prior, not the start, so one start suffices. Tasks
    with more numbers than a belief can hold are left out.
    """
    return [
        Condition(STARTS[0], task, "cooperative")
        for task in names
        if task in scale.evidence and NUMBERS[task] <= MOST_NUMBERS
    ]


def evidence_settings(condition: Condition, scale: Scale) -> Settings:
    """Return the settings of the paper's experiments with beliefs, which need fewer steps.

    A belief over many numbers takes long, so a full run has fewer seeds of it.
    """
    seeds = scale.seeds
    if NUMBERS[condition.task] > MANY_NUMBERS:
        seeds = min(seeds, SEEDS_OF_MANY)
    return replace(
        settings(condition, scale),
        methods=BELIEFS,
        seeds=seeds,
        steps=scale.evidence_steps,
        # A quick run measures some tasks rarely, because their exams are slow.
        eval_every=None,
    )


def sweep_conditions(names: Sequence[str], scale: Scale) -> list[Condition]:
    """Return the experiments in which every method is tuned.

    They begin at the small start, which shows small distances best.
    """
    return [Condition(STARTS[1], task, "cooperative") for task in names if task in scale.sweeps]


# ---- which tasks, and how long they take ----


def left_out() -> list[str]:
    """Return the tasks of the paper whose files the user has not built."""
    return [] if features.find(BUILT_FILE) else list(STAND_INS)


def chosen(names: Sequence[str]) -> list[str]:
    """Return the requested tasks, by default all of the paper's that can be made here.

    Raises:
        InputError: if a task cannot be made.
    """
    for name in names:
        if name not in tasks.REGISTRY:
            raise InputError(nearest("task", name, tasks.REGISTRY))
    if names:
        wanted = list(dict.fromkeys(names))
    else:
        without_files = left_out()
        wanted = [name for name in PAPER if name not in without_files]
    for name in wanted:
        # Tasks of the package can be made; others raise here, before anything is computed.
        if name not in TASKS:
            tasks.make(name)
    return wanted


def evidence_seconds(condition: Condition, scale: Scale) -> float:
    """Estimate the duration of an experiment with beliefs: they hold matrices of all numbers."""
    made = evidence_settings(condition, scale)
    each = BELIEF_SECONDS * (NUMBERS[condition.task] / 100) ** 2
    return SECONDS_TO_COMPILE + each * made.steps * len(made.seed_list)


def seconds(condition: Condition, scale: Scale) -> float:
    """Estimate the duration of an experiment on two cores, its weight in the progress display."""
    if condition.task == NEURAL:
        each = NEURAL_SECONDS
    else:
        first_word, _, _ = condition.task.partition("-")
        each = SECONDS.get(first_word, OTHER_SECONDS)
    made = settings(condition, scale)
    lanes = len(made.seed_list) * len(made.methods or ())
    return SECONDS_TO_COMPILE + each * made.steps * lanes
