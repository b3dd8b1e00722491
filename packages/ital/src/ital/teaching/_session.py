"""A session: lanes that share one program, compiled and run to the end.

:func:`start` and :func:`begin` make the lanes before the first step, :func:`run_block` takes many
steps and measures, :class:`Session` calls it from the host, block by block.

Seeds and methods are lanes of one compiled program: an outer ``vmap`` over seeds (each with its
world and its mini-batches), an inner ``vmap`` over methods (each with its numbers), and a loop over
steps around both, in blocks that the host calls with the carry of the previous one. Numbers of
teachers and learners, the step size, the seeds, the number of steps and the interval between
measurements are traced: changing them compiles nothing. The host takes exams and resumes between
blocks.
"""

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec

from ital.errors import InputError
from ital.learners import Beginning, Learner
from ital.models import Init
from ital.results import FINITE, PATH, RESERVED, SIGNAL
from ital.tasks import Exam, World
from ital.teaching._program import (
    CHUNK,
    OUTSIDE,
    START,
    STEPS,
    TEACHER,
    Carry,
    Drawn,
    Lane,
    LaneNumbers,
    Measurement,
    Moment,
    Program,
)
from ital.teaching._step import draw, first_previous, teaching_step
from ital.tools import randomness
from ital.tools.devices import EVERYWHERE, SEEDS, Layout
from ital.tools.platform import traced_for
from ital.tools.types import Array, Params, PRNGKeyArray

# Most measurements in one call of the compiled block; results do not depend on it.
BLOCK = 64
# What is recorded of a step or an interval, by name.
Recorded = dict[str, Array]
# How long a block takes: the host can report and be stopped only between blocks.
SECONDS_PER_BLOCK = 0.5


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
        structure = jax.tree.structure(self.worlds)
        return jax.tree.unflatten(structure, program.axes)

    def each_seed(self, program: Program, of_seed: Callable[..., Any], *per_seed: Any) -> Any:
        """Return ``of_seed(world, …)`` of every seed, all seeds side by side.

        Args:
            program: the program.
            of_seed: a function of one world and of one seed's part of each array.
            *per_seed: pytrees of arrays with a leading axis of seeds.

        Returns:
            What it returns, with a leading axis of seeds.
        """
        axes: list[Any] = [self.world_axes(program), *[0] * len(per_seed)]
        side_by_side = jax.vmap(of_seed, in_axes=tuple(axes))
        return side_by_side(self.worlds, *per_seed)

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
        placed_leaves = []
        for leaf, axis in zip(leaves, axes, strict=True):
            place = shared if axis is None else by_seed
            placed_leaves.append(place(leaf))
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
    key_of_all_seeds = randomness.key(0)
    return jax.random.fold_in(key_of_all_seeds, seed)


def whole(number: int) -> np.ndarray:
    """Return a whole number as an array for a program."""
    kind = jnp.result_type(int)
    return np.asarray(number, kind)


def spread(value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return a number, or one per seed, repeated for each lane.

    Args:
        value: one number, or numbers with the leading axes of ``shape``.
        shape: the axes (seed, lane), or the first of them.

    Returns:
        A read-only view of that shape.
    """
    # Integers become floats too, so that 5 and 5.0 give one program.
    kind = jnp.result_type(float)
    numbers = np.asarray(value, kind)
    missing_axes = len(shape) - numbers.ndim
    lane_axes = (1,) * missing_axes
    with_lane_axes = numbers.reshape(numbers.shape + lane_axes)
    return np.broadcast_to(with_lane_axes, shape)


def intervals_in(steps: int, length: int) -> int:
    """Return how many intervals of a length cover the steps; the last may be shorter."""
    return -(-steps // length)


@functools.partial(jax.jit, static_argnums=(0, 1))
def start(program: Program, kind: str, scale: Array, numbers: Numbers) -> Params:
    """Draw ν⁰ of every seed; all methods of a seed share it."""
    init = Init(kind, scale)

    def start_of_seed(world: World, seed: Array) -> Params:
        key = jax.random.fold_in(key_of(seed), START)
        return program.rules.start(key, init, world)

    with traced_for(program.platform):
        return numbers.each_seed(program, start_of_seed, numbers.seeds)


@functools.partial(jax.jit, static_argnums=0)
def begin(program: Program, numbers: Numbers, starts: Params) -> tuple[Lane, Any]:
    """Return all lanes before the first step, and the references.

    There is one ν⁰ per seed and one memory per lane.
    """
    rules = program.rules
    asks = program.teacher.ask is not None
    lane_numbers = numbers.lanes
    # Settings may be (): the number of lanes is then known from the step sizes only.
    lanes_of_seed = lane_numbers.lr.shape[1]

    def begin_seed(
        world: World,
        seed: Array,
        start: Params,
        learner: Any,
        teacher: Any,
    ) -> tuple[Lane, Any]:
        previous = first_previous(rules, start, world)

        def begin_lane(learner: Any, teacher: Any) -> Lane:
            params, memory = first_state(program, world, start, learner)
            return Lane(
                params=params,
                memory=memory,
                previous=previous,
                teacher=first_memory(program, world, seed, teacher),
                asked=jnp.zeros((), int) if asks else (),
            )

        begin_lanes = jax.vmap(begin_lane, axis_size=lanes_of_seed)
        lanes = begin_lanes(learner, teacher)
        return lanes, rules.references(start, world.truth)

    with traced_for(program.platform):
        return numbers.each_seed(
            program,
            begin_seed,
            numbers.seeds,
            starts,
            lane_numbers.learner,
            lane_numbers.teacher,
        )


def first_state(program: Program, world: World, start: Params, settings: Any) -> tuple[Params, Any]:
    """Return the learner's parameters and memory before the first step."""
    rules = program.rules
    rule = program.rule
    if rule.begin is None:
        memory = rule.init(start, settings)
        return start, _strong(memory)

    def draw_mini_batch(key: PRNGKeyArray) -> Any:
        drawn = rules.draw(key, world, program.batch_size)
        return rules.show(world.learner, drawn)

    rows = None
    if rules.pool_size is not None:
        rows = rules.pool_size(world)
    beginning = Beginning(
        params=start,
        # Only shapes: no example is drawn before the first step.
        examples=jax.eval_shape(draw_mini_batch, key_of(0)),
        likelihood=rules.likelihood,
        rows=rows,
        batch_size=program.batch_size,
        choices=program.choices,
    )
    params, memory = rule.begin(beginning, settings)
    return params, _strong(memory)


def first_memory(program: Program, world: World, seed: Array, settings: Any) -> Any:
    """Return the teacher's memory before the first step; () for a teacher without one."""
    make_memory = program.teacher.init
    if make_memory is None:
        return ()
    key = jax.random.fold_in(key_of(seed), TEACHER)
    memory = make_memory(key, world.teacher, settings)
    return _strong(memory)


def _strong(memory: Any) -> Any:
    """Give every number of a memory a strong type.

    Steps return strong types: a memory that started with weak types would make the block compile
    twice.
    """

    def strong_leaf(leaf: Any) -> Array:
        kind = jnp.result_type(leaf)
        return jnp.asarray(leaf, kind)

    return jax.tree.map(strong_leaf, memory)


@functools.partial(jax.jit, static_argnums=0, donate_argnums=2)
def run_block(
    program: Program,
    numbers: Numbers,
    carry: Carry,
    intervals: Array,
) -> tuple[Carry, Measurement]:
    """Run at most BLOCK intervals of all lanes; return the carry, and a row per measurement.

    With several devices, each runs the whole block on its own seeds, without communication.
    """
    block = functools.partial(_block, program)
    if program.mesh is not None:
        # Where each device finds its part of the numbers, the carry and the rows.
        numbers_spec = numbers.placed(
            shared=lambda leaf: EVERYWHERE,
            by_seed=lambda leaf: SEEDS,
            axes=program.axes,
        )
        carry_spec = Carry(step=EVERYWHERE, lanes=SEEDS)
        # Rows have a leading axis of measurements, before that of the seeds.
        row_spec = PartitionSpec(None, *SEEDS)
        rows_spec = Measurement(
            metrics=row_spec,
            signals=row_spec,
            watched=row_spec,
        )
        block = jax.shard_map(
            block,
            mesh=program.mesh,
            in_specs=(numbers_spec, carry_spec, EVERYWHERE),
            out_specs=(carry_spec, rows_spec),
            check_vma=False,
        )
    with traced_for(program.platform):
        return block(numbers, carry, intervals)


def _block(
    program: Program,
    numbers: Numbers,
    carry: Carry,
    intervals: Array,
) -> tuple[Carry, Measurement]:
    """Run a block on the seeds of one device."""

    @functools.partial(jax.jit, inline=True)  # traced once, for the shapes and for the loop
    def run_interval(carry: Carry) -> tuple[Carry, Measurement]:
        return _interval(program, numbers, carry)

    def room_for_block(measured: Any) -> Array:
        # There is always room for BLOCK rows, so that the number of intervals can be traced.
        return jnp.zeros((BLOCK, *measured.shape), measured.dtype)

    def run_and_store(
        i: Array,
        state: tuple[Carry, Measurement],
    ) -> tuple[Carry, Measurement]:
        before, rows = state
        after, measured = run_interval(before)

        def store_row(room: Array, value: Array) -> Array:
            return room.at[i].set(value)

        return after, jax.tree.map(store_row, rows, measured)

    _, shapes = jax.eval_shape(run_interval, carry)
    rows = jax.tree.map(room_for_block, shapes)
    return jax.lax.fori_loop(0, intervals, run_and_store, (carry, rows))


def _interval(program: Program, numbers: Numbers, carry: Carry) -> tuple[Carry, Measurement]:
    """Run all lanes to their next measurement, and measure; with ``every`` 0, measure at once."""
    first = carry.step
    due = first + numbers.every
    end = jnp.minimum(due, numbers.last_step)
    carry, sums = _steps_to(end, program, numbers, carry)
    lanes = carry.lanes

    outside = sums.pop(OUTSIDE)
    metrics = _measured(program, numbers, lanes)
    _check_names_of_signals(sums, metrics)
    if program.teacher.ask is not None:
        kind = jnp.result_type(float)
        metrics["answers"] = lanes.asked.astype(kind)
    metrics[OUTSIDE] = outside
    finite_lanes = jax.vmap(_all_finite)
    finite_seeds = jax.vmap(finite_lanes)
    metrics[FINITE] = finite_seeds(lanes.params)

    def mean_signal(total: Array) -> Array:
        # An interval of no steps has sums of 0: divide by 1.
        return total / jnp.maximum(end - first, 1)

    signals = jax.tree.map(mean_signal, sums)
    watched = _first_seed(lanes.params) if program.watched else ()
    return carry, Measurement(metrics, signals, watched)


def _first_seed(tree: Any) -> Any:
    """Return the first seed's part of arrays with a leading axis of seeds."""
    return jax.tree.map(lambda leaf: leaf[0], tree)


def _steps_to(
    end: Array,
    program: Program,
    numbers: Numbers,
    carry: Carry,
) -> tuple[Carry, Recorded]:
    """Run all lanes to the step ``end``; return the carry, and the sums of the signals."""
    draw_all = functools.partial(_draw_all, program, numbers)
    take_one = functools.partial(_step_all, program, numbers)
    # Jitted, it is traced once, for the shapes and for the loop.
    step_all = jax.jit(take_one, inline=True)
    # On a GPU, testing after each step whether it is the last costs more than computing a whole
    # chunk in vain.
    whole_chunks = program.platform != "cpu"

    def take_chunk(state: tuple[Carry, Recorded]) -> tuple[Carry, Recorded]:
        """Take up to CHUNK steps; add their signals to the sums."""
        before, sums = state
        # All random numbers of the chunk at once: arrays have the leading axes (step, seed).
        draw_chunk = jax.vmap(draw_all)
        drawn = draw_chunk(before.step + jnp.arange(CHUNK))

        def take_step(
            i: Array,
            state: tuple[Lane, Recorded],
        ) -> tuple[Lane, Recorded]:
            lanes, sums = state
            drawn_now = jax.tree.map(lambda leaf: leaf[i], drawn)
            after, signals = step_all(before.step + i, drawn_now, lanes)
            added = jax.tree.map(jnp.add, sums, signals)
            if not whole_chunks:
                return after, added
            counts = before.step + i < end

            def if_it_counts(new: Array, old: Array) -> Array:
                return jnp.where(counts, new, old)

            return jax.tree.map(if_it_counts, (after, added), state)

        steps: int | Array = CHUNK
        if not whole_chunks:
            steps = jnp.minimum(CHUNK, end - before.step)
        before_chunk = (before.lanes, sums)
        lanes, sums = jax.lax.fori_loop(0, steps, take_step, before_chunk)
        step = jnp.minimum(before.step + CHUNK, end)
        return Carry(step, lanes), sums

    def is_before_end(state: tuple[Carry, Recorded]) -> Array:
        reached, _ = state
        return reached.step < end

    # Which signals there are is known only from a step: shapes come from one that is not computed.
    drawn_shapes = jax.eval_shape(draw_all, carry.step)
    _, shapes = jax.eval_shape(
        step_all,
        carry.step,
        drawn_shapes,
        carry.lanes,
    )
    no_sums = jax.tree.map(lambda signal: jnp.zeros(signal.shape, signal.dtype), shapes)
    at_first = (carry, no_sums)
    return jax.lax.while_loop(is_before_end, take_chunk, at_first)


def _draw_all(program: Program, numbers: Numbers, step: Array) -> Drawn:
    """Draw the random numbers of one step for every seed; arrays have a leading axis of seeds."""
    ahead = program.teacher.ahead

    def draw_for_seed(world: World, seed: Array) -> Drawn:
        # The key depends on seed and step only: neither other seeds nor the blocks matter.
        key_of_steps = jax.random.fold_in(key_of(seed), STEPS)
        key_at = functools.partial(jax.random.fold_in, key_of_steps)
        later = None
        if ahead > 1:
            steps_ahead = step + jnp.arange(1, ahead)
            later = jax.vmap(key_at)(steps_ahead)
        return draw(program, world, key_at(step), later)

    return numbers.each_seed(program, draw_for_seed, numbers.seeds)


def _step_all(
    program: Program,
    numbers: Numbers,
    step: Array,
    drawn: Drawn,
    lanes: Lane,
) -> tuple[Lane, Recorded]:
    """Take one step in every lane of every seed."""
    moment = Moment(step, numbers.last_step)

    def step_seed(
        world: World,
        drawn: Drawn,
        per_lane: LaneNumbers,
        lanes: Lane,
    ) -> tuple[Lane, Recorded]:
        # All lanes of a seed share its world and its random numbers.
        step_lane = functools.partial(teaching_step, program, world, drawn)
        step_lanes = jax.vmap(step_lane, in_axes=(0, None, 0))
        return step_lanes(per_lane, moment, lanes)

    return numbers.each_seed(
        program,
        step_seed,
        drawn,
        numbers.lanes,
        lanes,
    )


def _measured(program: Program, numbers: Numbers, lanes: Lane) -> Recorded:
    """Return what the task measures of every lane, metric → (seed, lane)."""
    worlds = numbers.worlds
    axes = numbers.world_axes(program)
    measure_lanes = jax.vmap(program.rules.measure, in_axes=(0, None))
    measure_seeds = jax.vmap(measure_lanes, in_axes=(0, axes.truth))
    metrics = measure_seeds(lanes.params, worlds.truth)
    _check_metrics(metrics, lanes.params)
    return metrics


def _check_metrics(metrics: Any, params: Params) -> None:
    """Raise InputError for measurements that are not one number per lane."""
    if not isinstance(metrics, dict):
        raise InputError(
            f"a task's measure must return a dictionary of numbers, not {type(metrics).__name__}"
        )
    first_leaf, *_ = jax.tree.leaves(params)
    seeds_and_lanes = first_leaf.shape[:2]
    for name, values in metrics.items():
        if values.shape != seeds_and_lanes:
            of_lane = values.shape[2:]
            raise InputError(f"metric {name!r} must be one number, not an array of shape {of_lane}")


def _check_names_of_signals(signals: Recorded, metrics: Recorded) -> None:
    """Raise InputError for a signal with the name of a metric, or of anything else in a result."""
    taken = set(signals) & {*metrics, *RESERVED}
    for name in sorted(taken):
        raise InputError(f"a signal cannot be called {name!r}: that name is taken, choose another")


def _all_finite(params: Params) -> Array:
    """Return whether all parameters of one lane are finite."""
    finite_leaves = []
    for leaf in jax.tree.leaves(params):
        is_finite = jnp.isfinite(leaf)
        finite_leaves.append(jnp.all(is_finite))
    return functools.reduce(jnp.logical_and, finite_leaves)


class Block(NamedTuple):
    """The measurements of one call of the compiled block.

    Attributes:
        steps: the measured steps.
        rows: metric → rows (step, seed, lane).
    """

    steps: np.ndarray
    rows: dict[str, np.ndarray]


class Session:
    """Lanes that share one program: learners with one rule, taught on the same seeds.

    Made by :func:`open_sessions`. The carry between blocks is its whole state: a session that gets
    the carry of another resumes it bit for bit. ``state`` is the carry as plain arrays, independent
    of the devices.

    Args:
        program: the code.
        numbers: all numbers of the run.
        learners: the learners, one per lane.
        init: where learning starts.
        steps: number of steps of the run.
        eval_every: steps between the measurements to keep.
        layout: the devices that share the seeds.
        teacher: name of the teacher, for errors.
        exam: the task's exam, if it has one.
    """

    def __init__(  # noqa: PLR0913
        self,
        program: Program,
        numbers: Numbers,
        learners: Sequence[Learner],
        init: Init,
        *,
        steps: int,
        eval_every: int,
        layout: Layout,
        teacher: str = "",
        exam: Exam | None = None,
    ) -> None:
        self.program = program
        self.learners = learners
        self.layout = layout
        self.teacher = teacher
        self.numbers = numbers.placed(
            shared=layout.copied,
            by_seed=layout.spread,
            axes=program.axes,
        )
        self.steps = steps
        self.eval_every = eval_every
        self.exam = exam
        self.stride = int(numbers.every)
        scale = spread(init.scale, ())
        self.starts = start(program, init.kind, scale, self.numbers)
        lanes, references = begin(program, self.numbers, self.starts)
        self.references = jax.tree.map(self._on_host, references)
        no_steps = layout.copied(whole(0))
        self.carry = Carry(no_steps, lanes)
        # Whether the measurement at the start has been reported.
        self.begun = False

    def _on_host(self, leaf: Array) -> np.ndarray:
        on_host = np.asarray(leaf)
        return self.layout.cut(on_host)

    @property
    def state(self) -> Carry:
        """The carry as plain arrays, only for the seeds that were asked for."""
        step, lanes = self.carry
        return Carry(
            step=np.asarray(step),
            lanes=jax.tree.map(self._on_host, lanes),
        )

    @state.setter
    def state(self, state: Carry) -> None:
        self.carry = Carry(
            step=self.layout.copied(state.step),
            lanes=self.layout.spread(state.lanes),
        )

    @property
    def step(self) -> int:
        """The number of steps taken so far."""
        step = int(self.carry.step)
        return min(step, self.steps)

    def advance(self, intervals: int) -> Block:
        """Run up to ``intervals`` more measurements and wait for them.

        Args:
            intervals: number of measurements.

        Returns:
            The measurements.

        Raises:
            InputError: if the teacher chose an index outside the mini-batch.
        """
        first = int(self.carry.step)
        left = intervals_in(self.steps - first, self.stride)
        intervals = min(intervals, BLOCK, left)
        measured = self._run(self.numbers, intervals)
        # The last interval ends with the run, wherever that is.
        numbers_of_intervals = np.arange(1, intervals + 1)
        ends = first + self.stride * numbers_of_intervals
        steps = np.minimum(ends, self.steps)
        rows = self._rows(measured, intervals)
        outside = rows.pop(OUTSIDE)
        self._check_choices(outside, [first, *map(int, steps)])
        return Block(steps, rows)

    def _check_choices(self, outside: np.ndarray, bounds: Sequence[int]) -> None:
        """Raise InputError for choices outside the mini-batch.

        Args:
            outside: how many there were, (interval, seed, lane).
            bounds: the steps between which the intervals lie, one more than intervals.
        """
        intervals, _, lanes = np.nonzero(outside)
        if not len(intervals):
            return
        interval = intervals[0]
        learner = self.learners[lanes[0]]
        last_index = self.program.batch_size - 1
        first = bounds[interval]
        last = bounds[interval + 1] - 1
        raise InputError(
            f"teacher {self.teacher!r} chose an index outside the mini-batch in steps {first} to "
            f"{last} (method {learner.name!r}): it must choose from 0 to {last_index}"
        )

    @functools.cached_property
    def at_start(self) -> Block:
        """The measurement before the first step: an interval of no steps."""
        no_interval = self.layout.copied(whole(0))
        no_steps = self.numbers._replace(every=no_interval)
        measured = self._run(no_steps, 1)
        without_signals = measured._replace(signals={})
        rows = self._rows(without_signals, 1)
        # Nothing was chosen yet.
        rows.pop(OUTSIDE)
        return Block(np.zeros(1, int), rows)

    def _run(self, numbers: Numbers, intervals: int) -> Measurement:
        """Run this number of intervals; keep the carry, and return all rows of the block."""
        self.carry, measured = run_block(
            self.program,
            numbers,
            self.carry,
            whole(intervals),
        )
        return measured

    def _rows(self, measured: Measurement, intervals: int) -> dict[str, np.ndarray]:
        """Return the measured rows: a block has room for more, and devices fill up the seeds."""
        per_lane = dict(measured.metrics)
        for name, row in measured.signals.items():
            per_lane[SIGNAL + name] = row
        seeds = self.layout.seeds
        rows = {}
        for name, row in per_lane.items():
            on_host = np.asarray(row)
            rows[name] = on_host[:intervals, :seeds]
        path = jax.tree.leaves(measured.watched)
        if len(path) == 1:
            on_host = np.asarray(path[0])
            # With several devices, each has a first seed: only that of the first device counts.
            rows[PATH] = on_host[:intervals, : len(self.learners)]
        return rows

    def blocks(self, show: Callable[[float], None] = lambda done: None) -> Iterator[Block]:
        """Run to the end in blocks of about half a second.

        The measurement at the start comes first, if it has not been reported yet; exams are taken
        when they are due.

        Args:
            show: called with the share of an exam that is done, from 0 to 1.

        Yields:
            The measurements, block by block.
        """
        if not self.begun:
            assert self.step == 0
            block = self.examined(self.at_start, show)
            self.begun = True
            yield block
        intervals = 1
        while self.step < self.steps:
            began = time.perf_counter()
            until_due = self._next_exam() - self.step
            taken = min(intervals, intervals_in(until_due, self.stride))
            block = self.advance(taken)
            seconds = (time.perf_counter() - began) / taken
            yield self.examined(block, show)
            in_time = SECONDS_PER_BLOCK / seconds
            # The first block may include a compilation: grow at most twofold at a time.
            intervals = int(np.clip(in_time, 1, 2 * intervals))

    def _next_exam(self) -> int:
        """Return the step of the next exam; the last step if there is none."""
        coming = (step for step in self.exams if step > self.step)
        return next(coming, self.steps)

    @functools.cached_property
    def exams(self) -> list[int]:
        """The measured steps with an exam: those that the task asks for, or the next measured."""
        if self.exam is None:
            return []
        exams = {0, self.steps}
        for step in self.exam.steps:
            if step > self.steps:
                continue
            intervals = intervals_in(step, self.eval_every)
            next_measured = intervals * self.eval_every
            exams.add(min(next_measured, self.steps))
        return sorted(exams)

    def examined(self, block: Block, show: Callable[[float], None]) -> Block:
        """Return the block, with the results of an exam if one is due at its end.

        Lanes that have diverged get NaN.

        Args:
            block: the measurements.
            show: called with the share of the exam that is done, from 0 to 1.

        Returns:
            The block.
        """
        if self.exam is None or block.steps[-1] not in self.exams:
            return block
        rows = dict(block.rows)
        finite = rows[FINITE][-1]  # (seed, lane)

        def zero_where_diverged(leaf: np.ndarray) -> np.ndarray:
            # An exam may not end with parameters that are not finite. Axes: (seed, lane, …).
            missing_axes = (1,) * (leaf.ndim - finite.ndim)
            of_leaf = finite.reshape(finite.shape + missing_axes)
            return np.where(of_leaf, leaf, 0)

        lanes = self.state.lanes
        safe = jax.tree.map(zero_where_diverged, lanes.params)
        results = self.exam.take(safe, show)
        for metric, values in results.items():
            # Other steps of the block have no exam.
            shape = (len(block.steps), *values.shape)
            row = np.full(shape, np.nan, np.float32)
            row[-1] = np.where(finite, values, np.nan)
            rows[metric] = row
        return Block(block.steps, rows)
