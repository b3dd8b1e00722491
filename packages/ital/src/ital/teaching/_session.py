"""A session: lanes that share one program.

The host runs them in blocks. It takes exams and resumes between blocks.
"""

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax
import numpy as np

from ital.errors import InputError
from ital.learners import Learner
from ital.models import Init
from ital.results import FINITE, PATH, SIGNAL
from ital.tasks import Exam
from ital.teaching import _block, _start
from ital.teaching._program import (
    OUTSIDE,
    Carry,
    Measurement,
    Numbers,
    Program,
    intervals_in,
    spread,
    whole,
)
from ital.tools.devices import Layout
from ital.tools.types import Array

# How long a block takes: the host can report and be stopped only between blocks.
SECONDS_PER_BLOCK = 0.5


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
        self.numbers = numbers.placed(layout.copied, layout.spread, program.axes)
        self.steps = steps
        self.eval_every = eval_every
        self.exam = exam
        self.stride = int(numbers.every)
        self.starts = _start.start(program, init.kind, spread(init.scale, ()), self.numbers)
        lanes, references = _start.begin(program, self.numbers, self.starts)
        self.references = jax.tree.map(self._on_host, references)
        self.carry = Carry(layout.copied(whole(0)), lanes)
        # Whether the measurement at the start has been reported.
        self.begun = False

    def _on_host(self, leaf: Array) -> np.ndarray:
        return self.layout.cut(np.asarray(leaf))

    @property
    def state(self) -> Carry:
        """The carry as plain arrays, only for the seeds that were asked for."""
        return Carry(np.asarray(self.carry.step), jax.tree.map(self._on_host, self.carry.lanes))

    @state.setter
    def state(self, state: Carry) -> None:
        self.carry = Carry(self.layout.copied(state.step), self.layout.spread(state.lanes))

    @property
    def step(self) -> int:
        """The number of steps taken so far."""
        return min(int(self.carry.step), self.steps)

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
        intervals = min(intervals, _block.BLOCK, left)
        measured = self._run(self.numbers, intervals)
        # The last interval ends with the run, wherever that is.
        ends = first + self.stride * np.arange(1, intervals + 1)
        steps = np.minimum(ends, self.steps)
        rows = self._rows(measured, intervals)
        self._check_choices(rows.pop(OUTSIDE), [first, *map(int, steps)])
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
        first = bounds[intervals[0]]
        last = bounds[intervals[0] + 1] - 1
        method = self.learners[lanes[0]].name
        raise InputError(
            f"teacher {self.teacher!r} chose an index outside the mini-batch in steps {first} to "
            f"{last} (method {method!r}): it must choose from 0 to {self.program.batch_size - 1}"
        )

    @functools.cached_property
    def at_start(self) -> Block:
        """The measurement before the first step: an interval of no steps."""
        no_steps = self.numbers._replace(every=self.layout.copied(whole(0)))
        measured = self._run(no_steps, 1)
        rows = self._rows(measured._replace(signals={}), 1)
        # Nothing was chosen yet.
        rows.pop(OUTSIDE)
        return Block(np.zeros(1, int), rows)

    def _run(self, numbers: Numbers, intervals: int) -> Measurement:
        """Run this number of intervals; keep the carry, and return all rows of the block."""
        self.carry, measured = _block.run_block(self.program, numbers, self.carry, whole(intervals))
        return measured

    def _rows(self, measured: Measurement, intervals: int) -> dict[str, np.ndarray]:
        """Return the measured rows: a block has room for more, and devices fill up the seeds."""
        per_lane = dict(measured.metrics)
        per_lane |= {SIGNAL + name: row for name, row in measured.signals.items()}
        rows = {
            name: np.asarray(row)[:intervals, : self.layout.seeds] for name, row in per_lane.items()
        }
        path = jax.tree.leaves(measured.watched)
        if len(path) == 1:
            # With several devices, each has a first seed: only that of the first device counts.
            rows[PATH] = np.asarray(path[0])[:intervals, : len(self.learners)]
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
            due = next((step for step in self.exams if step > self.step), self.steps)
            taken = min(intervals, intervals_in(due - self.step, self.stride))
            block = self.advance(taken)
            seconds = (time.perf_counter() - began) / taken
            yield self.examined(block, show)
            # The first block may include a compilation: grow at most twofold at a time.
            intervals = int(np.clip(SECONDS_PER_BLOCK / seconds, 1, 2 * intervals))

    @functools.cached_property
    def exams(self) -> list[int]:
        """The measured steps with an exam: those that the task asks for, or the next measured."""
        if self.exam is None:
            return []
        exams = {0, self.steps}
        for step in self.exam.steps:
            if step <= self.steps:
                next_measured = intervals_in(step, self.eval_every) * self.eval_every
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
        finite = rows[FINITE][-1]

        def zero_where_diverged(leaf: np.ndarray) -> np.ndarray:
            # An exam may not end with parameters that are not finite. Axes: (seed, lane, …).
            missing_axes = (1,) * (leaf.ndim - finite.ndim)
            return np.where(finite.reshape(finite.shape + missing_axes), leaf, 0)

        safe = jax.tree.map(zero_where_diverged, self.state.lanes.params)
        for metric, values in self.exam.take(safe, show).items():
            rows[metric] = np.full((len(block.steps), *values.shape), np.nan, np.float32)
            rows[metric][-1] = np.where(finite, values, np.nan)
        return Block(block.steps, rows)
