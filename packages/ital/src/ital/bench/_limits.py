"""The limits of a machine, the cost of one teaching step, and the bounds that follow from them."""

import functools
import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ital.gradients import HIGHEST
from ital.teaching import Drawn, Lane, Moment, Session, draw, key_of, teaching_step
from ital.tools.types import Array

CHAIN = 64  # kernels in a row, to time one
SIZES = (2**16, 2**19, 2**22, 2**25, 2**28)  # bytes of the arrays that are copied
# The name of an operation in a line of the compiled program, ``  %add.1 = f32[8]{0} add(…)``.
OPERATION = re.compile(r"^  (?:ROOT )?%?[\w.-]+ = .*? ([a-z][\w-]*)\(", re.MULTILINE)
# Operations that only name or arrange values, without any work.
IDLE = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast")


class Limits(NamedTuple):
    """Measured peaks of a machine.

    Attributes:
        copy: size of an array in bytes → bytes read and written per second.
        arithmetic: operations per second.
        loop: seconds of one round of a loop that contains one kernel.
        kernel: seconds of one more kernel in a long chain. It is not ``loop``, because a GPU
            finishes a short chain while the next round is being launched.
    """

    copy: dict[int, float]
    arithmetic: float
    loop: float
    kernel: float

    def bandwidth(self, size: float) -> float:
        """Return bytes per second from an array of ``size`` bytes."""
        largest_copied = max(self.copy)
        measured = min(size, largest_copied)
        # A small array stays in a cache, but a larger one cannot be faster than it.
        rates = [rate for copied, rate in self.copy.items() if copied >= measured]
        return max(rates)


class Cost(NamedTuple):
    """The least that one step of one lane needs.

    Attributes:
        flops: operations.
        bytes: what must be read and written even if everything else stays in registers: parameters,
            the rows of the mini-batch, a share of the test set.
        reach: the bytes over which these are spread, which tells which memory holds them.
        kernels: number of kernels in a step of all lanes.
    """

    flops: float
    bytes: float
    reach: float
    kernels: int


def measure_limits() -> Limits:
    """Time copies of 64 KiB to 256 MiB, a large matrix product, and loops of tiny kernels."""
    loop, _ = _loop(1)
    # Two long chains: what their rounds have in common cancels.
    short, few = _loop(CHAIN)
    long, many = _loop(2 * CHAIN)
    return Limits(
        copy={size: _copy(size) for size in SIZES},
        arithmetic=_operations_per_second(),
        loop=loop,
        kernel=(long - short) / (many - few),
    )


def _operations_per_second() -> float:
    """Time the product of two matrices, large enough to keep the whole device busy."""
    n = 8192
    if jax.default_backend() == "cpu":
        n = 1024
    matrix = jnp.ones((n, n))
    product = jax.jit(functools.partial(jnp.matmul, precision=HIGHEST))
    # Each of the n² results takes n multiplications and n additions.
    operations = 2 * n**3
    return operations / _seconds(product, matrix, matrix)


def _seconds(function: Callable[..., Any], *arguments: Any) -> float:
    """Return the shortest of five runs, after compilation."""
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(5):
        began = time.perf_counter()
        result = function(*arguments)
        jax.block_until_ready(result)
        took = time.perf_counter() - began
        times.append(took)
    return min(times)


def _copy(size: int) -> float:
    """Return bytes read and written per second when an array of that size is updated."""
    rounds = min(2000, 2**32 // size)

    def update(x: Array) -> Array:
        return jax.lax.fori_loop(0, rounds, lambda _, x: x + 1.0, x)

    array = jnp.zeros(size // 4, jnp.float32)
    seconds = _seconds(jax.jit(update), array)
    # Every round reads the array and writes it.
    moved = 2 * size * rounds
    return moved / seconds


def _loop(links: int, rounds: int = 2000) -> tuple[float, int]:
    """Return seconds per round of a loop of kernels that do almost nothing, and their number."""

    def one_round(x: Array) -> Array:
        for _ in range(links):
            # The maximum must be known first, so the compiler cannot fuse the kernels into one.
            x = x - 1e-3 * jnp.max(x)
        return x

    def many_rounds(x: Array) -> Array:
        return jax.lax.fori_loop(0, rounds, lambda _, x: one_round(x), x)

    start = jnp.ones(64)
    compiled = jax.jit(one_round).lower(start).compile()
    kernels = _kernels(compiled.as_text() or "")
    seconds = _seconds(jax.jit(many_rounds), start)
    return seconds / rounds, kernels


def cost(session: Session, every: int) -> Cost:
    """Return the cost of one step of one lane, with its share of a measurement.

    The compiler counts the operations, of one round where there is a loop.
    """
    program = session.program
    numbers = session.numbers
    worlds = numbers.worlds
    axes = numbers.world_axes(program)
    lanes = session.carry.lanes

    rules = program.rules

    # Every function of the loop serves one seed; these do the same for all seeds at once.
    draw_all = jax.vmap(functools.partial(draw, program), in_axes=(axes, 0))
    step_all = jax.vmap(_step_of_seed(session), in_axes=(axes, 0, 0, 0))
    measure_lanes = jax.vmap(rules.measure, in_axes=(0, None))
    measure_all = jax.vmap(measure_lanes, in_axes=(0, axes.truth))
    show_all = jax.vmap(rules.show, in_axes=(axes.learner, 0))

    keys = jax.vmap(key_of)(numbers.seeds)
    drawn = draw_all(worlds, keys)
    batch = jax.eval_shape(show_all, worlds.learner, drawn.batch)
    step_flops, kernels = _analysed(step_all, worlds, drawn, numbers.lanes, lanes)
    measurement_flops, _ = _analysed(measure_all, lanes.params, worlds.truth)
    flops = step_flops + measurement_flops / every

    # Lanes are read and written, the rest is only read.
    step_bytes = 2 * _bytes(lanes) + _bytes(batch)
    measurement_bytes = _bytes(worlds.truth.test) + _bytes(lanes.params)
    moved = step_bytes + measurement_bytes / every
    reach = _bytes(lanes) + _bytes(worlds.learner)
    number = numbers.lanes.lr.size
    return Cost(
        flops=flops / number,
        bytes=moved / number,
        reach=reach / number,
        kernels=kernels,
    )


def _step_of_seed(session: Session) -> Callable[[Any, Drawn, Any, Lane], Lane]:
    """Return the first step of a session, for all lanes of one seed."""
    moment = Moment(jnp.zeros((), int), session.numbers.last_step)

    def step_of_seed(world: Any, drawn: Drawn, numbers: Any, lanes: Lane) -> Lane:
        step_of_lane = functools.partial(teaching_step, session.program, world, drawn)
        step_of_lanes = jax.vmap(step_of_lane, in_axes=(0, None, 0))
        after, _ = step_of_lanes(numbers, moment, lanes)
        return after

    return step_of_seed


def _bytes(tree: Any) -> int:
    """Return the bytes of all arrays in a tree; it may hold their shapes alone."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def _analysed(function: Callable[..., Any], *arguments: Any) -> tuple[float, int]:
    """Return the numbers of operations and of kernels of a compiled program."""
    lowered = jax.jit(function).lower(*arguments)
    compiled = lowered.compile()
    text = compiled.as_text() or ""
    analysis: Any = compiled.cost_analysis()
    if "custom-call" in text:
        # The compiler does not count operations inside library calls.
        analysis = lowered.cost_analysis()
    # Some versions of JAX return a list.
    if isinstance(analysis, list):
        analysis = analysis[0]
    counts = analysis or {}
    flops = float(counts.get("flops", 0.0))
    return flops, _kernels(text)


def _kernels(text: str) -> int:
    """Count the operations of a compiled program that do work when it runs; a loop is one."""
    _, _, from_entry = text.partition("\nENTRY ")
    entry, _, _ = from_entry.partition("\n}")
    operations = OPERATION.findall(entry)
    return sum(name not in IDLE for name in operations)


def bounds(limits: Limits, cost: Cost, lanes: int) -> dict[str, float]:
    """Return the least seconds that one step of all lanes takes: resource → seconds."""
    bandwidth = limits.bandwidth(cost.reach * lanes)
    return {
        "memory": cost.bytes * lanes / bandwidth,
        "arithmetic": cost.flops * lanes / limits.arithmetic,
        "launch": max(limits.loop, cost.kernels * limits.kernel),
    }
