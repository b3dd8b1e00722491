"""The types of the loop: the program, its numbers, and what it carries from step to step."""

from collections.abc import Callable
from typing import Any, NamedTuple

from ital.learners import Rule
from ital.tasks import Rules
from ital.teachers import Teacher
from ital.tools.types import Array, Params

# The version of the loop: raised whenever the same seed would give other examples or other steps.
VERSION = 2

# Streams of random numbers of a seed, kept apart by fold_in.
START = 0
STEPS = 1
AUTO = 2
TEACHER = 3

# The name of a signal of every step: whether the teacher's index is outside the mini-batch.
OUTSIDE = "_outside"

# Steps whose random numbers are drawn at once; results do not depend on it.
CHUNK = 10


class Program(NamedTuple):
    """The code of a run, without its numbers: equal programs share one compilation.

    Attributes:
        rules: functions of the task.
        teacher: the teacher without its numbers.
        rule: code of the learners.
        take: the form of the step: how much of a proposed update is applied.
        batch_size: examples in a mini-batch.
        choices: examples that the teacher shows in a step.
        diagnostics: whether to check Theorem 1 on every step.
        watched: whether every row holds the parameters of the first seed.
        axes: axis of the seeds in each array of the world: 0, or None if it is shared.
        platform: platform of the devices.
        mesh: the devices that share the seeds, if there are several.
    """

    rules: Rules
    teacher: Teacher
    rule: Rule
    take: Callable[..., Params]
    batch_size: int
    choices: int
    diagnostics: bool
    watched: bool
    axes: tuple[int | None, ...]
    platform: str = "cpu"
    mesh: Any = None


class LaneNumbers(NamedTuple):
    """The numbers that differ by lane.

    Attributes:
        lr: the step size η.
        form: numbers of the form of the step.
        learner: numbers of the learner.
        teacher: numbers of the teacher.
    """

    lr: Any
    form: Any
    learner: Any
    teacher: Any


class Carry(NamedTuple):
    """The state of a run between steps.

    Attributes:
        step: number of steps taken.
        lanes: all lanes, with leading axes (seed, lane).
    """

    step: Any
    lanes: Any


class Moment(NamedTuple):
    """The position of a step in the run.

    Attributes:
        step: its number, from 0.
        steps: number of steps of the run.
    """

    step: Array
    steps: Array


class Drawn(NamedTuple):
    """The random numbers of one step of one seed, shared by all its methods.

    Attributes:
        batch: the mini-batch, as the task draws it.
        first: index of the first copy of each example in the mini-batch; its own index if there is
            no earlier copy.
        order: a random order of the mini-batch.
        bystander: index of a random example.
        noise: what the teacher's ``prepare`` drew for its choice.
        ahead: the mini-batches of the next steps, for a teacher that sees them; None for others.
    """

    batch: Any
    first: Array
    order: Array
    bystander: Array
    noise: Any
    ahead: Any = None


class Scene(NamedTuple):
    """One mini-batch as each player sees it, and the learner's feedback.

    Attributes:
        examples: the learner's view of the mini-batch.
        teacher_examples: the teacher's view of the same examples.
        feedback: what the learner reports, e.g. its answers α to them.
    """

    examples: Any
    teacher_examples: Any
    feedback: Any


class Lane(NamedTuple):
    """The state of one learner between two steps.

    Attributes:
        params: its parameters.
        memory: its memory.
        previous: the initial value of its next feedback, if the task needs one.
        teacher: the teacher's memory, if it has one.
        asked: number of answers given so far, if the teacher asks questions.
    """

    params: Params
    memory: Any
    previous: Any
    teacher: Any = ()
    asked: Any = ()


class Measurement(NamedTuple):
    """One measurement of every lane; arrays have the axes (seed, lane).

    Attributes:
        metrics: what the task measures, by name.
        signals: means of the signals since the last measurement, by name.
        watched: the parameters of the first seed in a watched run, else ().
    """

    metrics: Any
    signals: Any
    watched: Any
