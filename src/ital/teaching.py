"""The one teaching loop: sample, feedback, choose, update, record.

Seeds and methods are lanes of one compiled program: ``vmap`` over seeds outside (each with its world and its
mini-batches), ``vmap`` over methods inside (each with its numbers), a loop over steps around both, in blocks that the
host calls again with their carry. Numbers of teachers and learners, the step size, the seeds, the number of steps and
the interval between measurements are traced: another value compiles nothing.
"""

import functools
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec

from ital import _random, rationality, tasks, teachers, theory, volume
from ital._devices import EVERYWHERE, SEEDS, Layout
from ital._progress import show_progress
from ital._types import Array, Params, PRNGKeyArray
from ital.errors import InputError
from ital.gradients import Gradients, add_scaled, squared_norm
from ital.learners import Learner, Lesson, Rule, Situation
from ital.learners import make as make_learner
from ital.models import Init
from ital.results import FINITE, PATH, RESERVED, SIGNAL, Recording, Result
from ital.steps import Form
from ital.steps import make as make_step
from ital.tasks import Rules, Task, World
from ital.tasks._base import Exam, stack_worlds
from ital.teachers import LearnerView, OmniscientTeacher, TeacherView
from ital.teachers._base import AnyTeacher

VERSION = 1  # of the loop: raised whenever the same seed would see other examples or take other steps
BLOCK = 64  # measurements that one call of the compiled block can hold; no number depends on it
CHUNK = 10  # steps whose random numbers are drawn at once; no number depends on it
SECONDS_PER_BLOCK = 0.5

# Streams of random numbers of a seed, kept apart by fold_in.
_START, _STEPS, _AUTO = 0, 1, 2


class Program(NamedTuple):
    """Everything that is code, not numbers: equal programs share one compilation."""

    rules: Rules
    teacher: Callable[..., Array]
    prepare: Callable[[PRNGKeyArray, int], Any]  # draws what the teacher needs of chance
    omniscient: bool
    rule: Rule
    step: Callable[..., Params]  # how much of a proposed update is taken
    batch_size: int
    diagnostics: bool
    watched: bool  # does every row hold the parameters of the first seed?
    axes: tuple[int | None, ...]  # of the world's arrays: 0 one per seed, None shared
    mesh: Any = None  # the devices that share the seeds, where there are several


class Numbers(NamedTuple):
    """Everything traced that stays the same over a run: leading axes are seeds, then lanes where it differs by lane."""

    worlds: World
    seeds: Any
    lr: Any
    step: Any
    learner: Any
    teacher: Any
    every: Any
    last_step: Any

    @property
    def per_lane(self) -> tuple[Any, ...]:
        """What differs by lane."""
        return self.lr, self.step, self.learner, self.teacher

    def world_axes(self, program: Program) -> World:
        """Where the seeds are in each array of the world."""
        return jax.tree.unflatten(jax.tree.structure(self.worlds), program.axes)

    def placed(self, shared: Any, by_seed: Any, axes: tuple[int | None, ...]) -> "Numbers":
        """``shared`` of everything that all seeds share, ``by_seed`` of the rest."""
        worlds, structure = jax.tree.flatten(self.worlds)
        put = [(shared if axis is None else by_seed)(leaf) for leaf, axis in zip(worlds, axes, strict=True)]
        seeds, per_lane = jax.tree.map(by_seed, (self.seeds, self.per_lane))
        lr, step, learner, teacher = per_lane
        every, last = shared(self.every), shared(self.last_step)
        return Numbers(jax.tree.unflatten(structure, put), seeds, lr, step, learner, teacher, every, last)


def key_of(seed: Array | int) -> PRNGKeyArray:
    """The random key of a seed: the number of seeds, or their order, never changes it."""
    return jax.random.fold_in(_random.key(0), seed)


class Carry(NamedTuple):
    """The state of a run between steps: the number of steps taken, and all lanes with leading axes (seed, lane)."""

    step: Any
    lanes: Any


class Moment(NamedTuple):
    """Where in the run a step is: its number from 0, and how many there will be."""

    step: Array
    steps: Array


class Drawn(NamedTuple):
    """The random numbers of one step of one seed, shared by all its methods."""

    batch: Any
    order: Array
    bystander: Array
    noise: Any


def draw(program: Program, world: World, key: PRNGKeyArray) -> Drawn:
    """Everything random in a step: the mini-batch, a random order of it, a random index, the teacher's noise."""
    batch, order, bystander, teacher = jax.random.split(key, 4)
    size = program.batch_size
    return Drawn(
        batch=program.rules.draw(batch, world, size),
        order=_ranks(jax.random.bits(order, (size,))),
        bystander=jax.random.randint(bystander, (), 0, size),
        noise=program.prepare(teacher, size),
    )


def _ranks(tickets: Array) -> Array:
    """The place of each ticket in their order, ties by index; for small batches pairs beat XLA's sort."""
    if len(tickets) > 64:
        return jnp.argsort(jnp.argsort(tickets))
    index = jnp.arange(len(tickets))
    before = (tickets < tickets[:, None]) | ((tickets == tickets[:, None]) & (index < index[:, None]))
    return jnp.sum(before, axis=1)


def _first_feedback(rules: Rules, start: Params, world: World) -> Any:
    return rules.first_feedback(start, world) if rules.first_feedback else None


class Scene(NamedTuple):
    """One mini-batch in front of both players: what each sees of it, and what the learner reports."""

    examples: Any
    teacher_examples: Any
    feedback: Any


def meet(program: Program, world: World, drawn: Drawn, params: Params, previous: Any) -> Scene:
    """Both look at the mini-batch, each at his own side of it, and the learner reports."""
    rules = program.rules
    examples = rules.show(world.learner, drawn.batch)
    return Scene(examples, rules.show(world.teacher.examples, drawn.batch), rules.feedback(params, examples, previous))


def _kept(rules: Rules, scene: Scene) -> Any:
    """The feedback as the ``previous`` of the next, where the task wants it."""
    return scene.feedback if rules.first_feedback else None


def choose(
    program: Program,
    world: World,
    drawn: Drawn,
    scene: Scene,
    moment: Moment,
    params: Params,
    lr: Array,
    settings: Any,
) -> Array:
    """The teacher scores and chooses. She is handed her side of the world and his feedback."""
    rules, target = program.rules, world.teacher.target
    volumes = rules.volumes(scene.feedback, scene.teacher_examples, target, lr)
    view = TeacherView(volumes, scene.feedback, scene.teacher_examples, target, lr, *moment)
    if not program.omniscient:
        return _index(program.teacher(drawn.noise, view, settings))
    gradients = rules.gradients(params, scene.examples, scene.feedback)
    progress = gradients.inner(add_scaled(params, -1.0, world.truth.target))
    volumes = volume.exact(lr, gradients.squared_norms, progress)
    learner = LearnerView(volumes, params, world.truth.target)
    return _index(program.teacher(drawn.noise, view, learner, settings))


def _index(chosen: Any) -> Array:
    """A teacher's choice, refused if it is not one whole number."""
    if chosen is None or jnp.shape(chosen) != () or not jnp.issubdtype(jnp.result_type(chosen), jnp.integer):
        raise InputError(
            f"a teacher must choose one index of the mini-batch, a whole number, but she returned {chosen}"
        )
    return jnp.asarray(chosen)


def _lesson(
    program: Program, drawn: Drawn, scene: Scene, params: Params, moment: Moment, lr: Array, step: Any, chosen: Array
) -> Lesson:
    """What the learner is shown: his side of the world and her choice."""
    rules = program.rules

    def gradients(elsewhere: Params) -> Gradients:
        imagined = rules.feedback(elsewhere, scene.examples, _kept(rules, scene))
        return rules.gradients(elsewhere, scene.examples, imagined)

    here = rules.gradients(params, scene.examples, scene.feedback)
    lesson = Lesson(
        moment.step, lr, scene.examples, here, gradients, chosen, drawn.order, drawn.bystander, moment.steps
    )
    return lesson._replace(toward=functools.partial(program.step, lesson, step))


class Lane(NamedTuple):
    """One learner between two steps: his parameters, his memory, and his last feedback where the task wants it."""

    params: Params
    memory: Any
    feedback: Any


def teaching_step(
    program: Program, world: World, drawn: Drawn, numbers: Any, moment: Moment, lane: Lane
) -> tuple[Lane, dict[str, Array]]:
    """One step of one lane: feedback, choice, update; returns the lane and the signals to record."""
    lr, step, learner_settings, teacher_settings = numbers
    scene = meet(program, world, drawn, lane.params, lane.feedback)
    chosen = choose(program, world, drawn, scene, moment, lane.params, lr, teacher_settings)
    lesson = _lesson(program, drawn, scene, lane.params, moment, lr, step, chosen)
    update = program.rule.update(lesson, learner_settings, lane.params, lane.memory)
    if jax.tree.map(jnp.shape, update.params) != jax.tree.map(jnp.shape, lane.params):
        raise InputError("a learner's update must return parameters of the shape that it was given")
    after = lesson.toward(lane.params, update.params)
    signals = dict(update.signals)
    if program.diagnostics:
        signals |= _theorem(lesson, lane.params, after, world.truth.target)
    return Lane(after, update.memory, _kept(program.rules, scene)), signals


def _theorem(lesson: Lesson, before: Params, after: Params, target: Params) -> dict[str, Array]:
    """Theorem 1 on this step, whatever the learner: his step against the naive one."""
    here = lesson.here
    is_chosen = (jnp.arange(lesson.order.shape[0]) == lesson.chosen).astype(here.losses.dtype)
    naive = add_scaled(before, -lesson.lr, here.weighted_sum(is_chosen))
    held = theory.local_improvement(lesson.lr, lesson.chosen, here, lesson.gradients(naive), naive, after, target)
    # Two steps that differ by rounding alone are one: a compiler may round the same sum in two ways.
    rounding = 4 * jnp.finfo(here.losses.dtype).eps ** 2 * squared_norm(naive)
    improved = held.improved & (squared_norm(add_scaled(after, -1.0, naive)) > rounding)
    return {
        "theorem_conditions": held.conditions.astype(here.losses.dtype),
        "theorem_improved": improved.astype(here.losses.dtype),
    }


class Measurement(NamedTuple):
    """What one measurement finds of every lane: metrics, means of the signals since the last, and, where the run is
    watched, the parameters of the first seed.
    """

    metrics: Any
    signals: Any
    watched: Any


def _draw_all(program: Program, numbers: Numbers, step: Array) -> Drawn:
    """The random numbers of one step of every seed."""

    def of_seed(world: World, seed: Array) -> Drawn:
        return draw(program, world, jax.random.fold_in(jax.random.fold_in(key_of(seed), _STEPS), step))

    return jax.vmap(of_seed, in_axes=(numbers.world_axes(program), 0))(numbers.worlds, numbers.seeds)


def _step_all(
    program: Program, numbers: Numbers, step: Array, drawn: Drawn, lanes: Lane
) -> tuple[Lane, dict[str, Array]]:
    """One step of every lane of every seed."""
    moment = Moment(step, numbers.last_step)

    def of_seed(world: World, drawn: Drawn, per_lane: Any, lanes: Lane) -> tuple[Lane, dict[str, Array]]:
        of_lane = functools.partial(teaching_step, program, world, drawn)
        return jax.vmap(of_lane, in_axes=(0, None, 0))(per_lane, moment, lanes)

    axes = (numbers.world_axes(program), 0, 0, 0)
    return jax.vmap(of_seed, in_axes=axes)(numbers.worlds, drawn, numbers.per_lane, lanes)


def _interval(program: Program, numbers: Numbers, carry: Carry) -> tuple[Carry, Measurement]:
    """All lanes to their next measurement, and the measurement; with ``every`` 0 it is made at once."""
    first, end = carry.step, jnp.minimum(carry.step + numbers.every, numbers.last_step)
    draw_all = functools.partial(_draw_all, program, numbers)
    step_all = jax.jit(functools.partial(_step_all, program, numbers), inline=True)  # read once, for shapes and loop
    # A GPU loses more by asking after each step whether it is the last than by taking a whole chunk in vain.
    whole_chunks = jax.default_backend() != "cpu"

    def chunk(state: tuple[Carry, Any]) -> tuple[Carry, Any]:
        """Up to CHUNK steps, all their random numbers drawn at once; adds the signals to the sums."""
        begun, sums = state
        drawn = jax.vmap(draw_all)(begun.step + jnp.arange(CHUNK))

        def one_step(i: Array, state: tuple[Lane, Any]) -> tuple[Lane, Any]:
            lanes, sums = state
            after, signals = step_all(begun.step + i, jax.tree.map(lambda leaf: leaf[i], drawn), lanes)
            added = jax.tree.map(jnp.add, sums, signals)
            if not whole_chunks:
                return after, added
            taken = begun.step + i < end
            return jax.tree.map(lambda new, old: jnp.where(taken, new, old), (after, added), state)

        number = CHUNK if whole_chunks else jnp.minimum(CHUNK, end - begun.step)
        lanes, sums = jax.lax.fori_loop(0, number, one_step, (begun.lanes, sums))
        return Carry(jnp.minimum(begun.step + CHUNK, end), lanes), sums

    shapes = jax.eval_shape(step_all, first, jax.eval_shape(draw_all, first), carry.lanes)[1]
    sums = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    carry, sums = jax.lax.while_loop(lambda state: state[0].step < end, chunk, (carry, sums))

    params = carry.lanes.params
    measure = jax.vmap(program.rules.measure, in_axes=(0, None))
    metrics = jax.vmap(measure, in_axes=(0, numbers.world_axes(program).truth))(params, numbers.worlds.truth)
    taken_names = set(sums) & {*metrics, *RESERVED}
    if taken_names:
        raise InputError(f"a learner's signal cannot be called {sorted(taken_names)[0]!r}: that name is taken")
    metrics[FINITE] = jax.vmap(jax.vmap(_all_finite))(params)
    signals = jax.tree.map(lambda s: s / jnp.maximum(end - first, 1), sums)
    watched = jax.tree.map(lambda leaf: leaf[0], params) if program.watched else ()
    return carry, Measurement(metrics, signals, watched)


def _all_finite(params: Params) -> Array:
    return functools.reduce(jnp.logical_and, [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(params)])


@functools.partial(jax.jit, static_argnums=0, donate_argnums=2)
def run_block(program: Program, numbers: Numbers, carry: Carry, intervals: Array) -> tuple[Carry, Measurement]:
    """Runs ``intervals`` (≤ BLOCK) intervals of all lanes; returns the carry and one row per measurement.

    Several devices each run the whole block on their own seeds: nothing ever passes between them.
    """
    block = functools.partial(_block, program)
    if program.mesh is not None:
        specs = numbers.placed(lambda leaf: EVERYWHERE, lambda leaf: SEEDS, program.axes)
        lanes = Carry(EVERYWHERE, SEEDS)
        rows = PartitionSpec(None, *SEEDS)
        block = jax.shard_map(
            block,
            mesh=program.mesh,
            in_specs=(specs, lanes, EVERYWHERE),
            out_specs=(lanes, Measurement(rows, rows, rows)),
            check_vma=False,
        )
    return block(numbers, carry, intervals)


def _block(program: Program, numbers: Numbers, carry: Carry, intervals: Array) -> tuple[Carry, Measurement]:
    @functools.partial(jax.jit, inline=True)  # read once, for the shapes and for the loop
    def interval(carry: Carry) -> tuple[Carry, Measurement]:
        return _interval(program, numbers, carry)

    def one(i: Array, state: tuple[Carry, Measurement]) -> tuple[Carry, Measurement]:
        carry, rows = state
        carry, measured = interval(carry)
        return carry, jax.tree.map(lambda row, value: row.at[i].set(value), rows, measured)

    shapes = jax.eval_shape(interval, carry)[1]
    rows = jax.tree.map(lambda s: jnp.zeros((BLOCK, *s.shape), s.dtype), shapes)
    return jax.lax.fori_loop(0, intervals, one, (carry, rows))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _start(program: Program, kind: str, scale: Array, numbers: Numbers) -> Params:
    """ν⁰ of every seed."""

    def seed(world: World, seed: Array) -> Params:
        return program.rules.start(jax.random.fold_in(key_of(seed), _START), Init(kind, scale), world)

    return jax.vmap(seed, in_axes=(numbers.world_axes(program), 0))(numbers.worlds, numbers.seeds)


@functools.partial(jax.jit, static_argnums=0)
def _begin(program: Program, numbers: Numbers, starts: Params) -> tuple[Lane, Any]:
    """All lanes before the first step (the same ν⁰ for all of a seed, each its own memory), and the references."""

    def seed(world: World, start: Params, settings: Any) -> tuple[Lane, Any]:
        feedback = _first_feedback(program.rules, start, world)

        def lane(settings: Any) -> Lane:
            # Steps return strong types: a memory that began with weak ones would make the block compile twice.
            memory = jax.tree.map(
                lambda leaf: jnp.asarray(leaf, jnp.result_type(leaf)), program.rule.init(start, settings)
            )
            return Lane(start, memory, feedback)

        lanes = jax.vmap(lane, axis_size=numbers.lr.shape[1])(settings)
        return lanes, program.rules.references(start, world.truth)

    axes = numbers.world_axes(program), 0, 0
    return jax.vmap(seed, in_axes=axes)(numbers.worlds, starts, numbers.learner)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def auto_beta_per_seed(
    program: Program, imagine: Callable[[Lesson, Params], Array], kind: str, scale: Array, sign: Array, numbers: Numbers
) -> Array:
    """``beta="auto"`` of every seed: from the volumes that the learner imagines on 64 mini-batches at ν⁰ after the
    teacher's real choices, copies of one example counted as one.
    """
    moment = Moment(jnp.zeros((), int), numbers.last_step)

    def seed(world: World, seed: Array, per_lane: Any) -> Array:
        lr, step, _, settings = per_lane
        key = key_of(seed)
        params = program.rules.start(jax.random.fold_in(key, _START), Init(kind, scale), world)
        first = _first_feedback(program.rules, params, world)

        def batch(key: PRNGKeyArray) -> tuple[Array, Array]:
            drawn = draw(program, world, key)
            scene = meet(program, world, drawn, params, first)
            chosen = choose(program, world, drawn, scene, moment, params, lr, settings)
            volumes = imagine(_lesson(program, drawn, scene, params, moment, lr, step, chosen), params)
            alike = [jnp.all((a[:, None] == a).reshape(*2 * a.shape[:1], -1), -1) for a in jax.tree.leaves(drawn.batch)]
            return volumes, functools.reduce(jnp.logical_and, alike)

        volumes, same = jax.vmap(batch)(jax.random.split(jax.random.fold_in(key, _AUTO), rationality.BATCHES))
        return rationality.auto_beta(lr, sign, volumes, same)

    run = jax.vmap(seed, in_axes=(numbers.world_axes(program), 0, 0))
    return run(numbers.worlds, numbers.seeds, numbers.per_lane)


class Block(NamedTuple):
    """What one call of the compiled block brought: the steps measured and a row (seed, lane) per measurement."""

    steps: np.ndarray
    rows: dict[str, np.ndarray]


class Session:
    """Lanes that share one program: learners of one rule, taught on the same seeds. Made by :func:`open_sessions`.

    The carry between blocks is all of its state: a session given the carry of another goes on bit for bit.
    ``state`` is the same as plain arrays, whatever the devices.
    """

    def __init__(
        self,
        program: Program,
        numbers: Numbers,
        learners: Sequence[Learner],
        init: Init,
        *,
        steps: int,
        eval_every: int,
        layout: Layout,
        exam: Exam | None = None,
    ) -> None:
        self.program, self.learners, self.layout = program, learners, layout
        self.numbers = numbers.placed(layout.copied, layout.spread, program.axes)
        self.steps, self.eval_every, self.exam = steps, eval_every, exam
        self.stride = int(numbers.every)
        self.starts = _start(program, init.kind, _spread(init.scale, ()), self.numbers)
        lanes, references = _begin(program, self.numbers, self.starts)
        self.references = jax.tree.map(self._on_host, references)
        self.carry = Carry(layout.copied(_whole(0)), lanes)
        self.begun = False  # has the measurement at the start been reported?

    def _on_host(self, leaf: Array) -> np.ndarray:
        return self.layout.cut(np.asarray(leaf))

    @property
    def state(self) -> Carry:
        """The carry as plain arrays, with the seeds that were asked for and no more."""
        return Carry(np.asarray(self.carry.step), jax.tree.map(self._on_host, self.carry.lanes))

    @state.setter
    def state(self, state: Carry) -> None:
        self.carry = Carry(self.layout.copied(state.step), self.layout.spread(state.lanes))

    @property
    def step(self) -> int:
        """The number of steps taken so far."""
        return min(int(self.carry.step), self.steps)

    def advance(self, intervals: int) -> Block:
        """Runs up to ``intervals`` measurements further and waits until they are there."""
        first = int(self.carry.step)
        intervals = min(intervals, BLOCK, -(-(self.steps - first) // self.stride))
        measured = self._run(self.numbers, intervals)
        ends = first + self.stride * np.arange(1, intervals + 1)
        return Block(np.minimum(ends, self.steps), self._rows(measured, intervals))

    @functools.cached_property
    def at_start(self) -> Block:
        """The measurement before the first step: an interval of no steps."""
        measured = self._run(self.numbers._replace(every=self.layout.copied(_whole(0))), 1)
        return Block(np.zeros(1, int), self._rows(measured._replace(signals={}), 1))

    def _run(self, numbers: Numbers, intervals: int) -> Measurement:
        self.carry, measured = run_block(self.program, numbers, self.carry, _whole(intervals))
        return measured

    def _rows(self, measured: Measurement, intervals: int) -> dict[str, np.ndarray]:
        per_lane = {**measured.metrics, **{SIGNAL + name: row for name, row in measured.signals.items()}}
        rows = {name: np.asarray(row)[:intervals, : self.layout.seeds] for name, row in per_lane.items()}
        path = jax.tree.leaves(measured.watched)  # of several devices, each has a first seed
        return rows | ({PATH: np.asarray(path[0])[:intervals, : len(self.learners)]} if len(path) == 1 else {})

    def blocks(self, show: Callable[[float], None] = lambda done: None) -> Iterator[Block]:
        """Runs to the end in blocks of about half a second: the measurement at the start, if it has not been reported,
        and then one block after the other, with exams where they are due. ``show`` is told how much of an exam is done.
        """
        if not self.begun:
            assert self.step == 0
            block = self.examined(self.at_start, show)
            self.begun = True
            yield block
        intervals = 1
        while self.step < self.steps:
            began = time.perf_counter()
            due = next((step for step in self.exams if step > self.step), self.steps)
            taken = min(intervals, -(-(due - self.step) // self.stride))
            block = self.advance(taken)
            each = (time.perf_counter() - began) / taken
            yield self.examined(block, show)
            intervals = int(np.clip(SECONDS_PER_BLOCK / each, 1, 2 * intervals))

    @functools.cached_property
    def exams(self) -> list[int]:
        """The measured steps after which there is an exam: where the task wants them, or the next measured step."""
        if self.exam is None:
            return []
        measured = (-(-step // self.eval_every) * self.eval_every for step in self.exam.steps if step <= self.steps)
        return sorted({0, self.steps, *(min(step, self.steps) for step in measured)})

    def examined(self, block: Block, show: Callable[[float], None]) -> Block:
        """The block, with the results of an exam where one is due at its end; NaN for lanes that have diverged."""
        if self.exam is None or block.steps[-1] not in self.exams:
            return block
        finite = block.rows[FINITE][-1]
        params = self.state.lanes.params
        safe = jax.tree.map(
            lambda leaf: np.where(finite.reshape(*finite.shape, *(1,) * (leaf.ndim - 2)), leaf, 0), params
        )
        rows = dict(block.rows)
        for metric, values in self.exam.take(safe, show).items():
            rows[metric] = np.full((len(block.steps), *values.shape), np.nan, np.float32)
            rows[metric][-1] = np.where(finite, values, np.nan)
        return Block(block.steps, rows)


def open_sessions(
    task: Task,
    teacher: AnyTeacher,
    learners: Sequence[Learner],
    seeds: Sequence[int],
    *,
    steps: int,
    lr: float | Sequence[float],
    batch_size: int,
    init: Init,
    eval_every: int,
    beta: float | str | None = None,
    step: str | Form | Sequence[Form] = "rate",
    diagnostics: bool = False,
    devices: int | str = 1,
) -> list[Session]:
    """Draws the worlds, lets teacher and learners fill in what they left open, and opens one session per rule.

    ``beta`` is for learners that have none of their own: a number, "auto", or None for the task's with the
    teacher's sign. ``lr`` is one step size for all, or (where nobody asks for "auto") one for each learner; so is
    ``step``, the form of their steps, where the forms differ in numbers alone. ``devices``, a number or "all", share
    the seeds.
    """
    layout = Layout.of(len(seeds), devices)
    omniscient = isinstance(teacher, OmniscientTeacher)
    eval_every = min(eval_every, steps)
    stride = _stride(eval_every)
    worlds, axes = stack_worlds([task.world(seed) for seed in seeds])
    check_world(task, teacher, worlds, diagnostics=diagnostics)
    teacher_settings = teacher.resolve(teacher.settings, task.beta)
    forms = [make_step(step)] * len(learners) if isinstance(step, str | Form) else list(step)
    if len({form.take for form in forms}) > 1:
        raise InputError("steps of different forms make different programs: teach them one after the other")

    def program(rule: Rule) -> Program:
        return Program(
            task.rules,
            teacher.choose,
            teacher.prepare,
            omniscient,
            rule,
            forms[0].take,
            batch_size,
            diagnostics,
            task.picture is not None,
            axes,
            layout.mesh,
        )

    def numbers(lr: Any, forms: Sequence[Form], learner_settings: Any, shape: tuple[int, ...]) -> Numbers:
        spread_teacher = jax.tree.map(functools.partial(_spread, shape=shape), teacher_settings)
        each_lr = np.broadcast_to(np.asarray(lr, jnp.result_type(float)), shape)
        each_form = _side_by_side(forms, len(seeds))
        if not shape[1:]:
            each_form = jax.tree.map(lambda number: number[:, 0], each_form)
        return Numbers(
            worlds,
            np.asarray(seeds, np.uint32),
            each_lr,
            each_form,
            learner_settings,
            spread_teacher,
            _whole(stride),
            _whole(steps),
        )

    @functools.cache
    def auto_beta(imagine: Callable[[Lesson, Params], Array], sign: float = teacher.sign) -> np.ndarray:
        shared = program(learners[0].rule), imagine, init.kind, _spread(init.scale, ()), _spread(sign, ())
        asked = numbers(lr, forms[:1], (), (len(seeds),)).placed(layout.copied, layout.spread, axes)
        return layout.cut(np.asarray(auto_beta_per_seed(*shared, asked)))

    told = situation(task, teacher, beta, batch_size, auto_beta)
    by_rule: dict[Rule, list[tuple[Learner, float, Form]]] = {}
    for learner, own_lr, form in zip(learners, np.broadcast_to(lr, len(learners)), forms, strict=True):
        resolved = learner.resolve(learner, told)
        by_rule.setdefault(resolved.rule, []).append((resolved, own_lr, form))
    groups = {rule: list(zip(*lanes, strict=True)) for rule, lanes in by_rule.items()}
    return [
        Session(
            program(rule),
            numbers(lrs, own_forms, _side_by_side(group, len(seeds)), (len(seeds), len(group))),
            group,
            init,
            steps=steps,
            eval_every=eval_every,
            layout=layout,
            exam=task.exam,
        )
        for rule, (group, lrs, own_forms) in groups.items()
    ]


def _stride(eval_every: int) -> int:
    """Steps of one interval: a part of ``eval_every`` that is short, so that no block takes long (if it has one)."""
    return (
        max((d for d in range(10, 101) if eval_every % d == 0), default=eval_every) if eval_every > 100 else eval_every
    )


def version_of(teacher: AnyTeacher, learner: Learner) -> str:
    """What computes a lane: the versions of the loop, of its teacher and of its learner."""
    return f"{VERSION}.{teacher.version}.{learner.version}"


def situation(
    task: Task, teacher: AnyTeacher, beta: float | str | None, batch_size: int, auto_beta: Callable[..., Any]
) -> Situation:
    """What learners are told before they start; the task's β comes with the sign that fits the teacher."""
    return Situation(
        beta=teacher.sign * abs(task.beta) if beta is None else beta,
        beta_decay=task.beta_decay if beta is None else 0.0,
        batch_size=batch_size,
        volume="exact" if isinstance(teacher, OmniscientTeacher) else "imitated",
        auto_beta=auto_beta,
    )


def _side_by_side(parts: Sequence[Learner | Form], seeds: int) -> Any:
    """The settings of several learners (or forms of step) as one pytree with leading axes (seed, lane)."""
    lanes = [jax.tree.map(lambda number: _spread(number, (seeds,)), part.settings) for part in parts]
    return jax.tree.map(lambda *numbers: np.stack(numbers, axis=1), *lanes)


def _whole(number: int) -> np.ndarray:
    """A whole number for a program."""
    return np.asarray(number, jnp.result_type(int))


def _spread(value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """A number, or one per seed, repeated to one for each lane."""
    value = np.asarray(value, jnp.result_type(float))  # whole numbers too: 5 and 5.0 are one program
    return np.broadcast_to(value.reshape(value.shape + (1,) * (len(shape) - value.ndim)), shape)


def teach(
    task: Task | str,
    teacher: AnyTeacher | str = "cooperative",
    learner: Learner | str | Sequence[Learner | str] = "ital",
    *,
    steps: int = 2000,
    seeds: int | Sequence[int] = 20,
    beta: float | str | None = None,
    lr: float = 1e-3,
    batch_size: int = 20,
    init: str | Init | None = None,
    eval_every: int | None = None,
    step: str | Form = "rate",
    diagnostics: bool = False,
    devices: int | str = 1,
    progress: bool = False,
) -> Result:
    """Teaches one or several learners, each on every seed, and returns their learning curves.

    Args:
        task: where to teach, e.g. ``ital.tasks.regression()``; a registered name will do, here and below.
        teacher: who chooses the examples, e.g. ``ital.teachers.cooperative()``.
        learner: one learner, e.g. ``ital.learners.teacher_aware()``, or several, with shared mini-batches and starts.
        steps: teaching steps T.
        seeds: how many seeds (0, 1, …), or which ones.
        beta: for learners that have none of their own: a number, "auto", or None for the task's, with the sign
            that fits the teacher.
        lr: the step size η.
        batch_size: examples B in a mini-batch.
        init: where learning starts, e.g. "uniform" or "normal:0.1"; default the task's.
        eval_every: steps between measurements; default the task's.
        step: how much of a proposed update learners take: "rate" (all of it, the paper's), "length:L" or
            "length:L:decay" (steps of one length for all methods), "safe" (no β diverges).
        diagnostics: also record per interval the share of steps on which the conditions of Theorem 1 held
            (``theorem_conditions``) and on which the learner's step beat the naive one (``theorem_improved``).
        devices: how many local devices share the seeds, or "all".
        progress: show a progress bar.

    """
    task, teacher, learners = parts(task, teacher, learner)
    seeds = list(range(seeds)) if isinstance(seeds, int | np.integer) else list(seeds)
    eval_every = task.eval_every if eval_every is None else eval_every
    init = task.init if init is None else Init.parse(init)
    check_settings(learners, seeds, steps=steps, lr=lr, batch_size=batch_size, eval_every=eval_every, beta=beta)
    sessions = open_sessions(
        task, teacher, learners, seeds, steps=steps, lr=lr, batch_size=batch_size, init=init,
        eval_every=eval_every, beta=beta, step=step, diagnostics=diagnostics, devices=devices,
    )  # fmt: skip
    recording = Recording(sessions)
    with show_progress(f"{task.name}, {teacher.name} teacher", recording.total, progress) as show:
        for i, session in enumerate(sessions):
            for block in session.blocks(lambda share: show(recording.done_with(share))):
                recording.blocks[i].append(block)
                show(recording.done)
    curves = recording.curves(seeds, [learner.name for learner in learners])
    settings = {
        "lr": lr,
        "init": str(init),
        "steps": steps,
        "batch_size": batch_size,
        "step_form": make_step(step).name,
    }
    curves.attrs |= {"task": task.name, "teacher": teacher.name, **settings}
    final = {
        learner.name: jax.tree.map(lambda leaf, lane=lane: leaf[:, lane].copy(), session.state.lanes.params)
        for session in sessions
        for lane, learner in enumerate(session.learners)
    }
    return Result(curves, task, final)


def parts(
    task: Task | str, teacher: AnyTeacher | str, learner: Learner | str | Sequence[Learner | str]
) -> tuple[Task, AnyTeacher, list[Learner]]:
    """The parts of an experiment, made where they were named; refuses anything else."""
    task = tasks.make(task) if isinstance(task, str) else task
    teacher = teachers.make(teacher) if isinstance(teacher, str) else teacher
    several: Sequence[Any] = [learner] if isinstance(learner, str | Learner) or callable(learner) else learner
    learners = [make_learner(one) if isinstance(one, str) else one for one in several]
    expected: list[tuple[str, Any, type | tuple[type, ...], str]] = [
        ("task", task, Task, "ital.tasks.regression()"),
        ("teacher", teacher, (teachers.Teacher, OmniscientTeacher), "ital.teachers.cooperative()"),
        *(("learner", one, Learner, "ital.learners.teacher_aware()") for one in learners),
    ]
    for what, part, kind, example in expected:
        if not isinstance(part, kind):
            hint = ", but it is a function: call it" if callable(part) else ""
            raise InputError(f"a {what} is made like {example}, or given by its name, not {part!r}{hint}")
    return task, teacher, learners


def check_world(task: Task, teacher: AnyTeacher, world: World, *, diagnostics: bool = False) -> None:
    """Refuses a world that lacks what the teacher or the diagnostics need."""
    omniscient = isinstance(teacher, OmniscientTeacher)
    if world.truth.target is None and (omniscient or diagnostics):
        what = "the omniscient teacher" if omniscient else "diagnostics"
        raise InputError(f"{what} needs the learner's target, which task {task.name!r} does not have")


def check_settings(
    learners: Sequence[Learner],
    seeds: Sequence[int],
    *,
    steps: int,
    lr: float,
    batch_size: int,
    eval_every: int,
    beta: float | str | None,
) -> None:
    """Refuses settings that make no experiment, in one line each."""
    names = [learner.name for learner in learners]
    for name, value in (("steps", steps), ("batch_size", batch_size), ("eval_every", eval_every)):
        if not isinstance(value, int | np.integer) or isinstance(value, bool):
            raise InputError(f"{name} must be a whole number, not {value!r}")
        if not 1 <= value < 2**31:
            raise InputError(f"{name} must be at least 1 and below 2**31, not {value}")
    if not isinstance(lr, int | float | np.number) or not (math.isfinite(np.float32(lr)) and np.float32(lr) > 0):
        raise InputError(f"lr (the step size) must be positive and finite, not {lr!r}")
    if not seeds:
        raise InputError("at least one seed is needed")
    if not names:
        raise InputError("at least one method is needed")
    for kind, values in (("seed", seeds), ("method", names)):
        most_common = Counter[Any](values).most_common(1)
        if most_common[0][1] > 1:
            raise InputError(f"{kind} {most_common[0][0]} is given twice")
    if not all(isinstance(seed, int | np.integer) for seed in seeds):
        raise InputError(f"seeds must be a whole number or several, not {seeds!r}")
    if min(seeds) < 0 or max(seeds) >= 2**31:
        raise InputError(f"seeds must lie in [0, 2**31), not {min(seeds) if min(seeds) < 0 else max(seeds)}")
    if isinstance(beta, str) and beta != "auto":
        raise InputError(f"beta must be a finite number or 'auto', not {beta!r}")
    if beta is not None and not isinstance(beta, str) and not math.isfinite(float(beta)):
        raise InputError(f"beta must be a finite number or 'auto', not {beta}")


__all__ = [
    "Block",
    "Carry",
    "Drawn",
    "Numbers",
    "Program",
    "Session",
    "check_settings",
    "open_sessions",
    "situation",
    "teach",
]
