"""What a task is: a world per seed with a side for each player, and the pure functions the loop calls."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np

from ital._types import Params
from ital.models import Init
from ital.tasks.protocols import (
    DrawFn,
    FeedbackFn,
    FirstPreviousFn,
    GradientsFn,
    KeepFn,
    MeasureFn,
    ReferencesFn,
    ShowFn,
    StartFn,
    VolumesFn,
    WorldFn,
)


class TeacherSide(NamedTuple):
    """What the teacher has of the world: her view of the examples and her optimum ω*."""

    examples: Any
    target: Params


class Truth(NamedTuple):
    """What only measurements and the omniscient teacher may read: ν* (None where unknown) and the test set."""

    target: Any
    test: Any


class World(NamedTuple):
    """One seed's world. Each player is handed his own side only. An array that is the same object for all
    seeds is shared by them, never copied.
    """

    learner: Any
    teacher: TeacherSide
    truth: Truth


class Rules(NamedTuple):
    """The functions of a task, pure and jit-able; equal rules share one compiled program.

    ``start(key, init, world)`` draws ν⁰;
    ``draw(key, world, B)`` draws a mini-batch as small arrays (rows, states, …), equal where examples are equal;
    ``show(side, drawn)`` looks them up on the learner's or the teacher's side;
    ``feedback(ν, examples, previous)`` is what the learner reports, with whatever follows from the report alone;
    ``volumes(feedback, examples, ω*, η)`` are the teacher's imitated teaching volumes;
    ``gradients(ν, examples, feedback)`` the learner's losses and gradients, given his feedback at that ν;
    ``measure(ν, truth)`` the recorded metrics; ``references(ν⁰, truth)`` constants of a seed, by metric and kind
    (a "floor" that no method can go below, a "reference" line);
    ``first_previous(ν⁰, world)``, where given, is the ``previous`` of the first step, and ``keep(feedback)`` that of
    the next one: a place to begin for what is found by iteration. Without it ``previous`` is None.
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


class Picture(NamedTuple):
    """What there is to draw of parameters: ``grid(params)`` gives the rewards (n, n) of a map and its policy (4, n, n).

    ``colours`` names what they stand for, ``caption`` explains the picture in a line.
    """

    grid: Callable[[Any], tuple[np.ndarray, np.ndarray]]
    colours: str
    caption: str


class Exam(NamedTuple):
    """A measurement too slow for every step, made between blocks of the compiled program, at few steps.

    It is taken at the start, at ``steps`` and at the last step: ``take(params, show)`` gets parameters with leading
    axes (seed, lane), all finite, and returns metrics (seed, lane); ``show`` may be told how much is done, from 0 to
    1. ``references()`` are constants by metric and kind, as in :class:`Rules`.
    """

    steps: tuple[int, ...]
    metrics: tuple[str, ...]
    take: Callable[[Params, Callable[[float], None]], Mapping[str, np.ndarray]]
    references: Callable[[], Mapping[str, Mapping[str, float]]] = lambda: {}


class Metric(NamedTuple):
    """How a metric is shown: its name on an axis, and whether more is better."""

    title: str
    higher_is_better: bool = False


class Task(NamedTuple):
    """A task: a world per seed, its rules, and the paper's settings for it.

    ``panels`` are the metrics that the task's figure shows, where recorded. ``settings`` are
    stored with every result and tell one variant of a task from another;
    ``data_version`` changes whenever the same seed would get another world. ``picture``, where
    given, shows what parameters amount to; ``exam`` measures it at few steps.
    """

    name: str
    title: str
    world: WorldFn
    rules: Rules
    beta: float
    metrics: Mapping[str, Metric]
    panels: tuple[str, ...]
    beta_decay: float = 0.0
    init: Init = Init("uniform", 1.0)
    eval_every: int = 10
    settings: Mapping[str, Any] = MappingProxyType({})
    data_version: str = "1"
    picture: Picture | None = None
    exam: Exam | None = None


def stack_worlds(worlds: Sequence[World]) -> tuple[World, tuple[int | None, ...]]:
    """The worlds of several seeds as one, and per array the axis of the seeds: None where all share one object."""
    columns = list(zip(*map(jax.tree.leaves, worlds), strict=True))
    axes = tuple(None if all(leaf is column[0] for leaf in column) else 0 for column in columns)
    stacked = [column[0] if axis is None else np.stack(column) for column, axis in zip(columns, axes, strict=True)]
    return jax.tree.unflatten(jax.tree.structure(worlds[0]), stacked), axes
