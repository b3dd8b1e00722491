"""The types of a task: a world per seed, with a side for each player, and its pure functions."""

import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ital import rationality
from ital.errors import InputError
from ital.gradients import add_scaled, squared_norm
from ital.likelihoods import Likelihood
from ital.models import Init, Model
from ital.tasks.protocols import (
    DrawFn,
    FeedbackFn,
    FirstPreviousFn,
    GradientsFn,
    IdealLabelsFn,
    KeepFn,
    MeasureFn,
    PoolSizeFn,
    ReferencesFn,
    RelabelFn,
    RiskFn,
    RowsFn,
    ShowFn,
    StartFn,
    VolumesFn,
    WorldFn,
)
from ital.tools.pickling import reduced
from ital.tools.short import called, short
from ital.tools.types import Array, Params


class TeacherSide(NamedTuple):
    """The teacher's side of the world.

    Attributes:
        examples: its view of the examples.
        target: its optimum ω*.
    """

    examples: Any
    target: Params


class Truth(NamedTuple):
    """The part of the world that only measurements and the omniscient teacher may read.

    Attributes:
        target: the learner's optimum ν*, None if it is unknown.
        test: the test set.
    """

    target: Any
    test: Any


class World(NamedTuple):
    """The world of a seed. Each player gets only its own side.

    An array that is the same object for all seeds is shared, never copied.

    Attributes:
        learner: the learner's side.
        teacher: the teacher's side.
        truth: the part that neither player sees.
    """

    learner: Any
    teacher: TeacherSide
    truth: Truth

    def __repr__(self) -> str:
        sides = self._asdict().items()
        sizes = [f"{name} {sizes_of(side)}" for name, side in sides]
        return f"World({', '.join(sizes)})"


class Rules(NamedTuple):
    """The functions of a task, pure and compilable; equal rules share one compiled program.

    Attributes:
        start: ``start(key, init, world)`` draws ν⁰.
        draw: ``draw(key, world, B)`` draws a mini-batch as small arrays (rows, states, …), equal
            where examples are equal.
        show: ``show(side, drawn)`` looks them up on the learner's or the teacher's side.
        feedback: ``feedback(ν, examples, previous)`` is what the learner reports, with anything
            that follows from the report alone.
        volumes: ``volumes(feedback, examples, ω*, η)`` returns the teacher's imitated teaching
            volumes.
        gradients: ``gradients(ν, examples, feedback)`` returns the learner's losses and gradients,
            given its feedback at that ν.
        measure: ``measure(ν, truth)`` returns the recorded metrics.
        references: ``references(ν⁰, truth)`` returns constants of a seed, by metric and kind (a
            "floor" that no method can get below, a "reference" line).
        first_previous: ``first_previous(ν⁰, world)``, if given, is the ``previous`` of the first
            step: an initial value for iterative computations. Without it ``previous`` is None.
        keep: ``keep(feedback)`` is the ``previous`` of the next step.
        most_awareness: the largest 2βη for the automatic β: the length of the awareness step in
            naive steps.
        relabel: ``relabel(examples, index, label)``, if given, replaces labels of the learner's
            mini-batch.
        ideal_labels: ``ideal_labels(ν, ν*, examples, lr)``, if given, returns labels with which one
            naive step on an example would bring the learner's answer to the target's, as far as
            labels can.
        teacher_model: a learner's model in the teacher's own view, if there is one.
        risk: ``risk(world)``, if given, is how much of the target the learner's view cannot
            express.
        likelihood: how probable labels are at any parameters, if the loss is a negative
            log-likelihood.
        rows: ``rows(drawn)``, for tasks with a pool, returns the numbers of the drawn rows (B,).
        pool_size: ``pool_size(world)`` returns the number of rows of the pool.
    """

    start: StartFn
    draw: DrawFn
    show: ShowFn
    feedback: FeedbackFn
    volumes: VolumesFn
    gradients: GradientsFn
    measure: MeasureFn
    references: ReferencesFn = lambda start, truth: {}
    first_previous: FirstPreviousFn | None = None
    keep: KeepFn = lambda feedback: None
    most_awareness: float = rationality.LINEAR
    relabel: RelabelFn | None = None
    ideal_labels: IdealLabelsFn | None = None
    teacher_model: Model | None = None
    risk: RiskFn | None = None
    likelihood: Likelihood | None = None
    rows: RowsFn | None = None
    pool_size: PoolSizeFn | None = None

    def __repr__(self) -> str:
        return f"Rules({getattr(self.measure, '__module__', '')}.{called(self.measure)})"


def copies(batch: Any, size: int) -> Array:
    """Find the examples of a mini-batch that are copies of one another: those with equal draws.

    Args:
        batch: what the task drew.
        size: number of examples in the mini-batch.

    Returns:
        Booleans (B, B). If a draw does not have one entry per example, no two examples count as
        copies.
    """
    itself = jnp.eye(size, dtype=bool)
    leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(batch)]
    has_one_entry_per_example = all(leaf.shape[:1] == (size,) for leaf in leaves)
    if not leaves or not has_one_entry_per_example:
        return itself
    equal_pairs = [_equal_pairs(leaf) for leaf in leaves]
    # NaN differs from itself, so the diagonal is added: each example is a copy of itself.
    return itself | functools.reduce(jnp.logical_and, equal_pairs)


def _equal_pairs(leaf: Array) -> Array:
    """Compare each entry of an array (B, …) with each other: booleans (B, B)."""
    size = len(leaf)
    equal_numbers = (leaf[:, None] == leaf).reshape(size, size, -1)
    return jnp.all(equal_numbers, axis=-1)


def distance_note(params: Params, target: Params) -> str:
    """Say in words how far parameters are from the target."""
    distance = float(np.sqrt(squared_norm(add_scaled(params, -1.0, target))))
    if not np.isfinite(distance):
        return "diverged"
    return f"distance {distance:.2f}"


class Picture(NamedTuple):
    """How to draw parameters.

    Attributes:
        grid: ``grid(params)`` returns the rewards (n, m) of a map and its policy (4, n, m), or None
            for no arrows. Walls are masked; so is the policy in cells where there is none.
        colours: what the colours mean.
        caption: one line that explains the picture.
        note: ``note(params, target)`` returns the line below a learner.
        limit: the largest value, if the values begin at 0; None for any values, with colours for
            the parameters.
        grey: whether it is a grey picture, black at 0 and white at the limit.
        goals: cells that are framed, as (row, column).
        starts: cells with a dotted frame.
    """

    grid: Callable[[Any], tuple[np.ndarray, np.ndarray | None]]
    colours: str
    caption: str
    note: Callable[[Any, Any], str] = distance_note
    limit: float | None = None
    grey: bool = False
    goals: tuple[tuple[int, int], ...] = ()
    starts: tuple[tuple[int, int], ...] = ()

    def __repr__(self) -> str:
        return short("Picture", self.caption)


class Exam(NamedTuple):
    """A measurement that is too slow for every step.

    It is taken at the start, at ``steps`` and at the last step, between blocks of the compiled
    program.

    Attributes:
        steps: the steps at which it is taken.
        metrics: names of its metrics.
        take: ``take(params, show)`` gets parameters with leading axes (seed, lane), all finite, and
            returns metrics (seed, lane); it may call ``show`` with the share that is done, from 0
            to 1.
        references: ``references()`` returns constants by metric and kind, as in :class:`Rules`. For
            a metric that is a share of correct answers, "questions" lets error bands include the
            choice of questions.
    """

    steps: tuple[int, ...]
    metrics: tuple[str, ...]
    take: Callable[[Params, Callable[[float], None]], Mapping[str, np.ndarray]]
    references: Callable[[], Mapping[str, Mapping[str, float]]] = lambda: {}

    def __repr__(self) -> str:
        return short("Exam", *self.metrics)


class Metric(NamedTuple):
    """How a metric is shown.

    Attributes:
        title: its name on an axis.
        higher_is_better: whether more is better.
        reference: what its reference line is, if it has one.
    """

    title: str
    higher_is_better: bool = False
    reference: str = "target"


class Task(NamedTuple):
    """A world per seed, the rules of teaching in it, and the paper's settings for it.

    Attributes:
        name: its registered name.
        title: its name in figures.
        world: ``world(seed)`` draws the world of a seed.
        rules: its functions.
        beta: β in the paper; "auto" if none is known.
        metrics: how its metrics are shown.
        panels: the metrics that its figure shows, if recorded.
        beta_decay: the share that β loses per step in the paper.
        init: the start of the learners.
        eval_every: steps between measurements.
        settings: stored with every result; they distinguish variants of a task.
        data_version: changes whenever the same seed would give another world.
        picture: how to draw parameters, if they can be drawn.
        exam: a slow measurement at a few steps, if there is one.
        offers: what teachers and learners may need of it. "gradients": a learner steps along
            gradients; "simulation": a teacher can simulate a learner in its own view; "questions":
            the learner answers on any row; "labels": a teacher may replace them; "ideal labels": it
            is known which would be best; "likelihood": the loss is a negative log-likelihood;
            "target losses": the teacher's volumes contain the losses of its target;
            "likelihoods": an example is a row of log P(d|h), and the parameters are a log belief.
        methods: names of its default learners; none means the eight of the paper.
        examples: number of its examples, if a mini-batch holds each at most once.
        encoding: how data of one's own were encoded, and the way back: see
            :class:`ital.tasks.Encoding`.
    """

    name: str
    title: str
    world: WorldFn
    rules: Rules
    beta: float | str
    metrics: Mapping[str, Metric]
    panels: tuple[str, ...]
    beta_decay: float = 0.0
    init: Init = Init("uniform", 1.0)
    eval_every: int = 10
    settings: Mapping[str, Any] = MappingProxyType({})
    data_version: str = "1"
    picture: Picture | None = None
    exam: Exam | None = None
    offers: tuple[str, ...] = ("gradients",)
    methods: tuple[str, ...] = ()
    examples: int | None = None
    encoding: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)

    def __repr__(self) -> str:
        return short("Task", self.name, numbers=self.settings)


def sizes_of(side: Any) -> str:
    """Count the arrays and their elements on a side of the world, in words."""
    leaves = jax.tree.leaves(side)
    elements = sum(np.size(leaf) for leaf in leaves)
    return f"{len(leaves)} arrays of {elements} numbers"


def as_float(values: Any) -> np.ndarray:
    """Convert values to the floating-point precision of this run."""
    return np.asarray(values, jnp.result_type(float))


def stack_worlds(worlds: Sequence[World]) -> tuple[World, tuple[int | None, ...]]:
    """Stack the worlds of several seeds along a first axis.

    An array that is one object in all worlds stays as it is: seeds share it, memory holds it once.

    Args:
        worlds: one world per seed.

    Returns:
        The world with an axis of seeds, and per array the axis of the seeds: 0, or None for an
        array that all share.

    Raises:
        InputError: if the worlds differ in their arrays or the shapes of these.
    """
    _check_alike(worlds)
    leaves: list[Any] = []
    axes: list[int | None] = []
    # Each turn gets one array of the world, as every seed has it.
    for of_seeds in zip(*map(jax.tree.leaves, worlds), strict=True):
        first = of_seeds[0]
        if all(leaf is first for leaf in of_seeds):
            leaves.append(first)
            axes.append(None)
        else:
            leaves.append(np.stack(of_seeds))
            axes.append(0)
    structure = jax.tree.structure(worlds[0])
    return jax.tree.unflatten(structure, leaves), tuple(axes)


def _check_alike(worlds: Sequence[World]) -> None:
    """Raise InputError for worlds that cannot be lanes of one program."""
    first_leaves, first_structure = jax.tree.flatten(worlds[0])
    for number, world in enumerate(worlds[1:], 1):
        leaves, structure = jax.tree.flatten(world)
        if str(structure) != str(first_structure):
            raise InputError(
                f"the worlds of seed numbers 0 and {number} hold different arrays: "
                "give all the same structure"
            )
        for expected, other in zip(first_leaves, leaves, strict=True):
            if expected is not other and np.shape(expected) != np.shape(other):
                shapes = f"{np.shape(expected)} and {np.shape(other)}"
                raise InputError(
                    f"the worlds of seed numbers 0 and {number} hold arrays of shapes {shapes}: "
                    "all seeds must have the same shapes"
                )
