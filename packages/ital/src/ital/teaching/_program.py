"""The types of the loop: the program, its numbers, and what it carries from step to step."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital.learners import Rule
from ital.tasks import Rules, World
from ital.teachers import Teacher
from ital.tools import randomness
from ital.tools.types import Array, Params, PRNGKeyArray

VERSION = 2  # of the loop: raised whenever the same seed would give other examples or other steps

# Streams of random numbers of a seed, kept apart by fold_in.
START, STEPS, AUTO, TEACHER = 0, 1, 2, 3

OUTSIDE = (
    "_outside"  # a signal of every step: whether the teacher's index is outside the mini-batch
)


class Program(NamedTuple):
    """The code of a run, without its numbers: equal programs share one compilation.

    Attributes:
        rules: functions of the task.
        teacher: the teacher without its numbers.
        rule: code of the learners.
        take: how much of a proposed update is applied.
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
    take: Callable[..., Params]  # how much of a proposed update is applied
    batch_size: int
    choices: int
    diagnostics: bool
    watched: bool  # whether every row holds the parameters of the first seed
    axes: tuple[
        int | None, ...
    ]  # axis of the seeds in each array of the world: 0, or None if it is shared
    platform: str = "cpu"  # platform of the devices
    mesh: Any = None  # the devices that share the seeds, if there are several


class LaneNumbers(NamedTuple):
    """The numbers that differ by lane.

    Attributes:
        lr: the step size η.
        form: numbers of the form of step.
        learner: numbers of the learner.
        teacher: numbers of the teacher.
    """

    lr: Any
    form: Any
    learner: Any
    teacher: Any


class Numbers(NamedTuple):
    """All traced numbers that stay constant during a run.

    Attributes:
        worlds: the worlds of all seeds.
        seeds: the seeds.
        lanes: the numbers that differ by lane, with leading axes (seed, lane).
        every: steps between measurements.
        last_step: number of steps of the run.
    """

    worlds: World
    seeds: Any
    lanes: LaneNumbers
    every: Any
    last_step: Any

    def world_axes(self, program: Program) -> World:
        """The axis of the seeds in each array of the world.

        Args:
            program: the program.

        Returns:
            0 or None for each array of the world.
        """
        return jax.tree.unflatten(jax.tree.structure(self.worlds), program.axes)

    def placed(self, shared: Any, by_seed: Any, axes: tuple[int | None, ...]) -> "Numbers":
        """Apply ``shared`` to everything that all seeds share, and ``by_seed`` to the rest.

        Args:
            shared: a function of an array.
            by_seed: a function of an array with a leading axis of seeds.
            axes: the axis of the seeds in each array of the world.

        Returns:
            The numbers.
        """
        worlds, structure = jax.tree.flatten(self.worlds)
        put = [
            (shared if axis is None else by_seed)(leaf)
            for leaf, axis in zip(worlds, axes, strict=True)
        ]
        seeds, lanes = jax.tree.map(by_seed, (self.seeds, self.lanes))
        return Numbers(
            jax.tree.unflatten(structure, put),
            seeds,
            lanes,
            shared(self.every),
            shared(self.last_step),
        )


def key_of(seed: Array | int) -> PRNGKeyArray:
    """The random key of a seed; it does not depend on the number or order of the seeds.

    Args:
        seed: the seed.

    Returns:
        The key.
    """
    return jax.random.fold_in(randomness.key(0), seed)


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
        first: index of the first copy of each example in the mini-batch; its own index if there is no earlier copy.
        order: a random order of the mini-batch.
        bystander: index of a random example.
        noise: the teacher's.
        ahead: the mini-batches of the next steps, for a teacher that sees them; None for others.
    """

    batch: Any
    first: Array
    order: Array
    bystander: Array
    noise: Any
    ahead: Any = None


class Scene(NamedTuple):
    """One mini-batch as each player sees it, and the learner's feedback."""

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
    """One measurement of every lane: metrics, means of the signals since the last measurement and, if the run is
    watched, the parameters of the first seed.
    """

    metrics: Any
    signals: Any
    watched: Any


def named(function: Callable[..., Any]) -> str:
    """The name of a function as an error message shows it: as written in its file."""
    return getattr(
        inspect.unwrap(getattr(function, "func", function)), "__qualname__", repr(function)
    )


def shapes_of(tree: Any, types: bool = False) -> str:
    """Structure and shapes of a pytree (and the types of its numbers) in one line."""

    def described(leaf: Any) -> str:
        numeric = isinstance(leaf, int | float | np.number | np.ndarray | jax.Array)
        return (
            f"{jnp.result_type(leaf) if types else ''}{list(jnp.shape(leaf))}"
            if numeric
            else type(leaf).__name__
        )

    return " ".join(str(jax.tree.map(described, tree)).replace("'", "").split())


def whole(number: int) -> np.ndarray:
    """A whole number as an array for a program."""
    return np.asarray(number, jnp.result_type(int))


def spread(value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """A number, or one per seed, repeated for each lane."""
    value = np.asarray(
        value, jnp.result_type(float)
    )  # integers become floats too: 5 and 5.0 give one program
    return np.broadcast_to(value.reshape(value.shape + (1,) * (len(shape) - value.ndim)), shape)
