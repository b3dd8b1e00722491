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

# The version of the loop: raised whenever the same seed would give other examples or other steps.
VERSION = 2

# Streams of random numbers of a seed, kept apart by fold_in.
START = 0
STEPS = 1
AUTO = 2
TEACHER = 3

# The name of a signal of every step: whether the teacher's index is outside the mini-batch.
OUTSIDE = "_outside"


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
        """Return the axis of the seeds in each array of the world, as ``vmap`` takes it.

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
        leaves, structure = jax.tree.flatten(self.worlds)
        placed_leaves = [
            shared(leaf) if axis is None else by_seed(leaf)
            for leaf, axis in zip(leaves, axes, strict=True)
        ]
        return Numbers(
            worlds=jax.tree.unflatten(structure, placed_leaves),
            seeds=by_seed(self.seeds),
            lanes=jax.tree.map(by_seed, self.lanes),
            every=shared(self.every),
            last_step=shared(self.last_step),
        )


def key_of(seed: Array | int) -> PRNGKeyArray:
    """Return the random key of a seed; it does not depend on the number or order of the seeds.

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
        first: index of the first copy of each example in the mini-batch; its own index if there is
            no earlier copy.
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


def named(function: Callable[..., Any]) -> str:
    """Return the name of a function as an error message shows it: as written in its file."""
    # A partial and a decorated function have no name of their own; what they wrap has.
    wrapped = inspect.unwrap(getattr(function, "func", function))
    return getattr(wrapped, "__qualname__", repr(function))


def shapes_of(tree: Any, types: bool = False) -> str:
    """Return structure and shapes of a pytree (and the types of its numbers) in one line."""

    def leaf_in_words(leaf: Any) -> str:
        if not isinstance(leaf, int | float | np.number | np.ndarray | jax.Array):
            return type(leaf).__name__
        shape = list(jnp.shape(leaf))
        return f"{jnp.result_type(leaf)}{shape}" if types else f"{shape}"

    in_words = str(jax.tree.map(leaf_in_words, tree))
    return " ".join(in_words.replace("'", "").split())


def whole(number: int) -> np.ndarray:
    """Return a whole number as an array for a program."""
    return np.asarray(number, jnp.result_type(int))


def spread(value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return a number, or one per seed, repeated for each lane.

    Args:
        value: one number, or numbers with the leading axes of ``shape``.
        shape: the axes (seed, lane), or the first of them.

    Returns:
        A read-only view of that shape.
    """
    # Integers become floats too, so that 5 and 5.0 give one program.
    numbers = np.asarray(value, jnp.result_type(float))
    missing_axes = len(shape) - numbers.ndim
    with_lane_axes = numbers.reshape(numbers.shape + (1,) * missing_axes)
    return np.broadcast_to(with_lane_axes, shape)


def intervals_in(steps: int, length: int) -> int:
    """Return how many intervals of a length cover the steps; the last may be shorter."""
    return -(-steps // length)
