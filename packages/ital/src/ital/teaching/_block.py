"""The compiled block: all lanes of all seeds, many steps, and a measurement after each interval.

Seeds and methods are lanes of one compiled program: an outer ``vmap`` over seeds (each with its
world and its mini-batches), an inner ``vmap`` over methods (each with its numbers), and a loop over
steps around both, in blocks that the host calls with the carry of the previous one. Numbers of
teachers and learners, the step size, the seeds, the number of steps and the interval between
measurements are traced: changing them compiles nothing.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from ital.errors import InputError
from ital.results import FINITE, RESERVED
from ital.tasks import World
from ital.teaching._program import (
    OUTSIDE,
    STEPS,
    Carry,
    Drawn,
    Lane,
    LaneNumbers,
    Measurement,
    Moment,
    Numbers,
    Program,
    key_of,
)
from ital.teaching._step import draw, teaching_step
from ital.tools.devices import EVERYWHERE, SEEDS
from ital.tools.platform import traced_for
from ital.tools.types import Array, Params

# Most measurements in one call of the compiled block; results do not depend on it.
BLOCK = 64
# Steps whose random numbers are drawn at once; results do not depend on it.
CHUNK = 10


def _draw_all(program: Program, numbers: Numbers, step: Array) -> Drawn:
    """Draw the random numbers of one step for every seed; arrays have a leading axis of seeds."""

    def draw_for_seed(world: World, seed: Array) -> Drawn:
        # The key depends on seed and step only: neither other seeds nor the blocks matter.
        key_at = functools.partial(jax.random.fold_in, jax.random.fold_in(key_of(seed), STEPS))
        later = None
        if program.teacher.ahead > 1:
            later = jax.vmap(key_at)(step + jnp.arange(1, program.teacher.ahead))
        return draw(program, world, key_at(step), later)

    axes = (numbers.world_axes(program), 0)
    return jax.vmap(draw_for_seed, in_axes=axes)(numbers.worlds, numbers.seeds)


def _step_all(
    program: Program, numbers: Numbers, step: Array, drawn: Drawn, lanes: Lane
) -> tuple[Lane, dict[str, Array]]:
    """Take one step in every lane of every seed."""
    moment = Moment(step, numbers.last_step)

    def step_seed(
        world: World, drawn: Drawn, per_lane: LaneNumbers, lanes: Lane
    ) -> tuple[Lane, dict[str, Array]]:
        # All lanes of a seed share its world and its random numbers.
        step_lane = functools.partial(teaching_step, program, world, drawn)
        return jax.vmap(step_lane, in_axes=(0, None, 0))(per_lane, moment, lanes)

    axes = (numbers.world_axes(program), 0, 0, 0)
    return jax.vmap(step_seed, in_axes=axes)(numbers.worlds, drawn, numbers.lanes, lanes)


def _interval(program: Program, numbers: Numbers, carry: Carry) -> tuple[Carry, Measurement]:
    """Run all lanes to their next measurement, and measure; with ``every`` 0, measure at once."""
    first = carry.step
    end = jnp.minimum(first + numbers.every, numbers.last_step)
    carry, sums = _steps_to(end, program, numbers, carry)

    outside = sums.pop(OUTSIDE)
    metrics = _measured(program, numbers, carry.lanes)
    _check_names_of_signals(sums, metrics)
    if program.teacher.ask is not None:
        metrics["answers"] = carry.lanes.asked.astype(jnp.result_type(float))
    metrics[OUTSIDE] = outside
    params = carry.lanes.params
    metrics[FINITE] = jax.vmap(jax.vmap(_all_finite))(params)
    # An interval of no steps has sums of 0: divide by 1.
    signals = jax.tree.map(lambda s: s / jnp.maximum(end - first, 1), sums)
    watched = jax.tree.map(lambda leaf: leaf[0], params) if program.watched else ()
    return carry, Measurement(metrics, signals, watched)


def _steps_to(
    end: Array, program: Program, numbers: Numbers, carry: Carry
) -> tuple[Carry, dict[str, Array]]:
    """Run all lanes to the step ``end``; return the carry, and the sums of the signals."""
    draw_all = functools.partial(_draw_all, program, numbers)
    # Jitted, it is traced once, for the shapes and for the loop.
    step_all = jax.jit(functools.partial(_step_all, program, numbers), inline=True)
    # On a GPU, testing after each step whether it is the last costs more than computing a whole
    # chunk in vain.
    whole_chunks = program.platform != "cpu"

    def take_chunk(state: tuple[Carry, Any]) -> tuple[Carry, Any]:
        """Take up to CHUNK steps; add their signals to the sums."""
        before, sums = state
        # All random numbers of the chunk at once: arrays have the leading axes (step, seed).
        drawn = jax.vmap(draw_all)(before.step + jnp.arange(CHUNK))

        def take_step(i: Array, state: tuple[Lane, Any]) -> tuple[Lane, Any]:
            lanes, sums = state
            drawn_now = jax.tree.map(lambda leaf: leaf[i], drawn)
            after, signals = step_all(before.step + i, drawn_now, lanes)
            added = jax.tree.map(jnp.add, sums, signals)
            if not whole_chunks:
                return after, added
            counts = before.step + i < end
            return jax.tree.map(lambda new, old: jnp.where(counts, new, old), (after, added), state)

        steps = CHUNK if whole_chunks else jnp.minimum(CHUNK, end - before.step)
        lanes, sums = jax.lax.fori_loop(0, steps, take_step, (before.lanes, sums))
        return Carry(jnp.minimum(before.step + CHUNK, end), lanes), sums

    # Which signals there are is known only from a step: shapes come from one that is not computed.
    drawn_shapes = jax.eval_shape(draw_all, carry.step)
    _, shapes = jax.eval_shape(step_all, carry.step, drawn_shapes, carry.lanes)
    zeros = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    return jax.lax.while_loop(lambda state: state[0].step < end, take_chunk, (carry, zeros))


def _measured(program: Program, numbers: Numbers, lanes: Lane) -> dict[str, Array]:
    """Return what the task measures of every lane, metric → (seed, lane)."""
    measure_lanes = jax.vmap(program.rules.measure, in_axes=(0, None))
    axes = (0, numbers.world_axes(program).truth)
    metrics = jax.vmap(measure_lanes, in_axes=axes)(lanes.params, numbers.worlds.truth)
    _check_metrics(metrics, lanes.params)
    return metrics


def _check_metrics(metrics: Any, params: Params) -> None:
    """Raise InputError for measurements that are not one number per lane."""
    if not isinstance(metrics, dict):
        raise InputError(
            f"a task's measure must return a dictionary of numbers, not {type(metrics).__name__}"
        )
    lanes = jax.tree.leaves(params)[0].shape[:2]
    for name, values in metrics.items():
        if values.shape != lanes:
            raise InputError(
                f"metric {name!r} must be one number, not an array of shape {values.shape[2:]}"
            )


def _check_names_of_signals(signals: dict[str, Array], metrics: dict[str, Array]) -> None:
    """Raise InputError for a signal with the name of a metric, or of anything else in a result."""
    taken = set(signals) & {*metrics, *RESERVED}
    if taken:
        raise InputError(
            f"a signal cannot be called {sorted(taken)[0]!r}: that name is taken, choose another"
        )


def _all_finite(params: Params) -> Array:
    """Return whether all parameters of one lane are finite."""
    leaves = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(params)]
    return functools.reduce(jnp.logical_and, leaves)


@functools.partial(jax.jit, static_argnums=0, donate_argnums=2)
def run_block(
    program: Program, numbers: Numbers, carry: Carry, intervals: Array
) -> tuple[Carry, Measurement]:
    """Run at most BLOCK intervals of all lanes; return the carry, and a row per measurement.

    With several devices, each runs the whole block on its own seeds, without communication.
    """
    block = functools.partial(_block, program)
    if program.mesh is not None:
        specs = numbers.placed(lambda leaf: EVERYWHERE, lambda leaf: SEEDS, program.axes)
        lanes = Carry(EVERYWHERE, SEEDS)
        # Rows have a leading axis of measurements, before that of the seeds.
        rows = PartitionSpec(None, *SEEDS)
        block = jax.shard_map(
            block,
            mesh=program.mesh,
            in_specs=(specs, lanes, EVERYWHERE),
            out_specs=(lanes, Measurement(rows, rows, rows)),
            check_vma=False,
        )
    with traced_for(program.platform):
        return block(numbers, carry, intervals)


def _block(
    program: Program, numbers: Numbers, carry: Carry, intervals: Array
) -> tuple[Carry, Measurement]:
    """Run a block on the seeds of one device."""

    @functools.partial(jax.jit, inline=True)  # traced once, for the shapes and for the loop
    def interval(carry: Carry) -> tuple[Carry, Measurement]:
        return _interval(program, numbers, carry)

    def run_and_store(i: Array, state: tuple[Carry, Measurement]) -> tuple[Carry, Measurement]:
        carry, rows = state
        carry, measured = interval(carry)
        return carry, jax.tree.map(lambda row, value: row.at[i].set(value), rows, measured)

    # There is always room for BLOCK rows, so that the number of intervals can be traced.
    _, shapes = jax.eval_shape(interval, carry)
    rows = jax.tree.map(lambda s: jnp.zeros((BLOCK, *s.shape), s.dtype), shapes)
    return jax.lax.fori_loop(0, intervals, run_and_store, (carry, rows))
